/** What became of the accounts that began to pay in the same month. */

import type { Instant } from './types.ts'

/** What a month did to a cohort; months by their first day, 'YYYY-MM-DD'. */
export type CohortChange = {
  cohort: string
  month: string
  newAccounts: number
  newMrr: number
  mrr: number
  /** The change of MRR where no account counts for more than it first paid. */
  cappedMrr: number
  accounts: number
}

export type CohortMonth = {
  /** 'YYYY-MM' */
  cohort: string
  /** 0: the month in which its accounts began. */
  month: number
  at: Instant
  startingAccounts: number
  startingMrr: number
  accounts: number
  mrr: number
  cappedMrr: number
}

/** One row a cohort and month, up to the month of `asOf`; the oldest cohort first. */
export function cohortMonths(changes: CohortChange[], asOf: Instant): CohortMonth[] {
  const cohorts = Map.groupBy(changes, change => change.cohort)
  return [...cohorts]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([cohort, own]) => rowsOf(cohort, own, asOf))
}

function rowsOf(cohort: string, changes: CohortChange[], asOf: Instant): CohortMonth[] {
  const starting = changes.reduce(
    (sum, change) => ({ accounts: sum.accounts + change.newAccounts, mrr: sum.mrr + change.newMrr }),
    { accounts: 0, mrr: 0 },
  )
  const byMonth = new Map(changes.map(change => [change.month, change]))
  const rows: CohortMonth[] = []
  const sum = { accounts: 0, mrr: 0, cappedMrr: 0 }
  for (let month = 0; ; month++) {
    const begins = monthAfter(cohort, month)
    if (begins > asOf) return rows
    const change = byMonth.get(new Date(begins).toISOString().slice(0, 10))
    sum.accounts += change?.accounts ?? 0
    sum.mrr += change?.mrr ?? 0
    sum.cappedMrr += change?.cappedMrr ?? 0
    rows.push({
      cohort: cohort.slice(0, 7),
      month,
      at: Math.min(monthAfter(cohort, month + 1), asOf),
      startingAccounts: starting.accounts,
      startingMrr: starting.mrr,
      ...sum,
    })
  }
}

function monthAfter(first: string, months: number): Instant {
  const date = new Date(`${first}T00:00:00Z`)
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + months, 1)
}
