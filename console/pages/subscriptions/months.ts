import { DAY_MS } from '../../day.ts'

/** Months as they are written in addresses: 2026-11. */

const MOST = 24

/** The one that `asOf` lies in (empty: now), and those before it. */
export function monthsUntil(asOf: string): string[] {
  const end = asOf === '' ? new Date() : new Date(asOf)
  return Array.from({ length: MOST }, (_, back) =>
    new Date(Date.UTC(end.getUTCFullYear(), end.getUTCMonth() - back, 1)).toISOString().slice(0, 7),
  )
}

/** The first moment of a month, as dates that have no zone are drawn. */
export function dayOf(month: string): Date {
  return new Date(`${month}-01T00:00:00Z`)
}

/** Where a month ends: with the day after its last, which begins the next one. */
export function followingDay(month: string): string {
  const at = dayOf(month)
  return new Date(Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + 1, 1)).toISOString().slice(0, 10)
}

/** The last day of a month; of one that is not over, today. */
export function endOf(month: string): string {
  const last = new Date(Date.parse(followingDay(month)) - DAY_MS).toISOString().slice(0, 10)
  const today = new Date().toISOString().slice(0, 10)
  return last < today ? last : today
}
