/** Dates of recurring charges, in UTC. */

import { DAY_MS } from '../time.ts'
import type { Instant, Interval } from './types.ts'

/** Adds calendar months or years; the 31st becomes the last day of a shorter month. Days have 24 hours. */
export function addIntervals(at: Instant, interval: Interval, count: number): Instant {
  if (interval === 'day') return at + count * DAY_MS
  if (interval === 'week') return at + count * 7 * DAY_MS
  const from = new Date(at)
  const months = monthNumber(at) + count * (interval === 'year' ? 12 : 1)
  const year = Math.floor(months / 12)
  const month = months % 12
  const day = Math.min(from.getUTCDate(), daysInMonth(year, month))
  return Date.UTC(year, month, day) + (at - startOfDay(at))
}

/** Whether a term is longer than any month. */
export function isLongerThanAMonth(interval: Interval, count: number): boolean {
  if (interval === 'year') return true
  if (interval === 'month') return count > 1
  return (interval === 'week' ? count * 7 : count) > 31
}

/** A lower bound for the number of whole terms between two instants, from which to start counting. */
export function termsBetween(from: Instant, to: Instant, interval: Interval, count: number): number {
  const longestTermDays = { day: 1, week: 7, month: 31, year: 366 }[interval] * count
  return Math.max(0, Math.floor((to - from) / (longestTermDays * DAY_MS)))
}

/**
 * The anchor of a charge on `at`. A charge on 28 February may belong to a cycle on the 31st. This is the case if the day of
 * one of `hints` (a billing anchor, the start of the period), limited to that month, is the same day.
 */
export function findAnchor(at: Instant, interval: Interval, count: number, hints: (Instant | null)[]): Instant {
  if (interval !== 'month' && interval !== 'year') return at
  const charge = new Date(at)
  const day = charge.getUTCDate()
  if (day < daysInMonth(charge.getUTCFullYear(), charge.getUTCMonth())) return at
  for (const hint of hints) {
    if (hint === null || hint >= at || new Date(hint).getUTCDate() <= day) continue
    const onTheHour = startOfDay(hint) + (at - startOfDay(at))
    if ((monthNumber(at) - monthNumber(hint)) % (interval === 'year' ? 12 * count : count) === 0) return onTheHour
  }
  return at
}

function monthNumber(at: Instant): number {
  const date = new Date(at)
  return date.getUTCFullYear() * 12 + date.getUTCMonth()
}

function startOfDay(at: Instant): Instant {
  return Math.floor(at / DAY_MS) * DAY_MS
}

function daysInMonth(year: number, month: number): number {
  return new Date(Date.UTC(year, month + 1, 0)).getUTCDate()
}
