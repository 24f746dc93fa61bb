import { isFiltered } from '../domain/billing/dimensions.ts'
import type { Db } from '../postgres/database.ts'
import { accountSlice, segmentsOfAccounts } from '../store/reports/accounts.ts'
import { movedWithin, standingsBefore } from '../store/reports/history.ts'
import { cohortChanges, movementSlice, movementsOfAccount } from '../store/reports/movements.ts'
import { movedBetween, sourceFigures } from '../store/reports/totals.ts'
import { filteredLedger } from './filtered-ledger.ts'
import type { Ledger } from './ledger.ts'
import { nettedLedger } from './netted-ledger.ts'
import type { ReportQuestion } from './question.ts'

export async function openLedger(db: Db, question: ReportQuestion): Promise<Ledger> {
  const ledger = isFiltered(question.filter) ? await filteredLedger(db, question) : keptLedger(db, question)
  const { netWithinDay, timeZone } = question.policy
  return netWithinDay ? nettedLedger(ledger, timeZone) : ledger
}

function keptLedger(db: Db, question: ReportQuestion): Ledger {
  const { tenantId, currency, asOf, policy } = question
  return {
    figures: (at, then) => sourceFigures(db, tenantId, at, then),
    moved: (since, until) => movedBetween(db, tenantId, currency, since, until),
    standings: bounds => standingsBefore(db, question, bounds),
    movedWithin: bounds => movedWithin(db, question, bounds),
    cohorts: (since, base) =>
      cohortChanges(db, tenantId, currency, { since, asOf, zone: policy.timeZone, base }),
    accounts: (slice, count) => accountSlice(db, question, slice, count),
    segments: accounts => segmentsOfAccounts(db, tenantId, accounts, asOf),
    movements: (window, wanted) => movementSlice(db, tenantId, currency, window, wanted),
    movementsOf: account => movementsOfAccount(db, tenantId, currency, account, asOf),
    narrowed: null,
  }
}
