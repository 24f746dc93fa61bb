import { type CohortMonth, cohortMonths } from '../domain/billing/cohorts.ts'
import type { Db } from '../postgres/database.ts'
import { openLedger } from './open-ledger.ts'
import { listOf, type ReportList, type ReportQuestion } from './question.ts'

export type RetentionReport = { months: number; cohorts: ReportList<CohortEntry> }

export type CohortEntry = Omit<CohortMonth, 'cappedMrr'> & {
  grossMrr: number
  logoRetention: number | null
  grossRevenueRetention: number | null
  netRevenueRetention: number | null
}

/** Cohorts of so many months, the current one included. */
export async function retentionReport(
  db: Db,
  question: ReportQuestion,
  months: number,
): Promise<RetentionReport> {
  const { asOf } = question
  const since = new Date(Date.UTC(asOf.getUTCFullYear(), asOf.getUTCMonth() - months + 1, 1))
  const changes = await (await openLedger(db, question)).cohorts(since)
  return { months, cohorts: listOf(cohortMonths(changes, asOf.getTime()).map(cohortEntry)) }
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
