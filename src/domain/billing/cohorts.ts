/** What became of the accounts that began to pay in the same month. */

import { type Day, dayOf, withinYears } from '../time.ts'
import { startOfDayIn, UTC } from '../time-zone.ts'
import type { Instant } from './types.ts'

/** What a month did to a cohort; months by their first day, 'YYYY-MM-DD'. */
export type CohortChange = {
  cohort: string
  month: string
  newAccounts: number
  newMrr: number
  mrr: number
  /** The change of MRR where no account counts for more than it began with. */
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

/** One row a cohort and month of the zone, up to the month of `asOf`; the oldest cohort first. */
export function cohortMonths(changes: CohortChange[], asOf: Instant, zone = UTC): CohortMonth[] {
  const cohorts = Map.groupBy(changes, change => change.cohort)
  return [...cohorts]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([cohort, own]) => rowsOf(cohort, own, asOf, zone))
}

function rowsOf(cohort: string, changes: CohortChange[], asOf: Instant, zone: string): CohortMonth[] {
  const starting = changes.reduce(
    (sum, change) => ({ accounts: sum.accounts + change.newAccounts, mrr: sum.mrr + change.newMrr }),
    { accounts: 0, mrr: 0 },
  )
  const byMonth = new Map(changes.map(change => [change.month, change]))
  const rows: CohortMonth[] = []
  const sum = { accounts: 0, mrr: 0, cappedMrr: 0 }
  let previous = ''
  for (let month = 0; ; month++) {
    const first = monthAfter(cohort, month)
    // the last month that there is comes after itself
    if (startOfDayIn(zone, first).getTime() > asOf || first === previous) return rows
    previous = first
    const change = byMonth.get(first)
    sum.accounts += change?.accounts ?? 0
    sum.mrr += change?.mrr ?? 0
    sum.cappedMrr += change?.cappedMrr ?? 0
    rows.push({
      cohort: cohort.slice(0, 7),
      month,
      at: Math.min(startOfDayIn(zone, monthAfter(cohort, month + 1)).getTime(), asOf),
      startingAccounts: starting.accounts,
      startingMrr: starting.mrr,
      ...sum,
    })
  }
}

/** The first day of the month so many months after, or before. */
export function monthAfter(first: Day, months: number): Day {
  const date = new Date(`${first}T00:00:00Z`)
  date.setUTCMonth(date.getUTCMonth() + months, 1)
  return `${dayOf(withinYears(date.getTime())).slice(0, 7)}-01`
}
