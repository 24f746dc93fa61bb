import { addMonths, type CohortMonth, cohortMonths } from '../domain/billing/movements.ts'
import { dayIn, startOfDayIn } from '../domain/time-zone.ts'
import type { Db } from '../postgres/database.ts'
import type { RetentionBase } from '../store/reports/movements.ts'
import { openLedger } from './open-ledger.ts'
import { listOf, type ReportList, type ReportQuestion } from './question.ts'

export type RetentionReport = { months: number; base: RetentionBase; cohorts: ReportList<CohortEntry> }

type CohortEntry = Omit<CohortMonth, 'cappedMrr'> & {
  grossMrr: number
  logoRetention: number | null
  grossRevenueRetention: number | null
  netRevenueRetention: number | null
}

/** Cohorts of so many months, the current one included. */
export async function retentionReport(
  db: Db,
  question: ReportQuestion,
  { months, base }: { months: number; base: RetentionBase },
): Promise<RetentionReport> {
  const { asOf, policy } = question
  const zone = policy.timeZone
  const since = startOfDayIn(zone, addMonths(dayIn(zone, asOf), 1 - months))
  const ledger = await openLedger(db, question)
  const changes = await ledger.cohorts(since, base)
  return { months, base, cohorts: listOf(cohortMonths(changes, asOf.getTime(), zone).map(cohortEntry)) }
}

function cohortEntry({ cappedMrr, ...month }: CohortMonth): CohortEntry {
  const share = (part: number, whole: number) => (whole > 0 ? part / whole : null)
  return {
    ...month,
    grossMrr: cappedMrr,
    logoRetention: share(month.accounts, month.startingAccounts),
    grossRevenueRetention: share(cappedMrr, month.startingMrr),
    netRevenueRetention: share(month.mrr, month.startingMrr),
  }
}
