import { DAY_MS } from '../../day.ts'

/** By what history is read, and how far back each goes: what one can still tell apart. */
export const INTERVALS = [
  { name: 'month', days: 730 },
  { name: 'week', days: 364 },
  { name: 'day', days: 90 },
] as const
export type Interval = (typeof INTERVALS)[number]['name']

export function intervalOf(query: URLSearchParams): Interval {
  return INTERVALS.find(({ name }) => name === query.get('interval'))?.name ?? 'month'
}

/** Where a history that ends on a day, or now, begins. */
export function firstOf(interval: Interval, asOf: string): string {
  const end = asOf === '' ? Date.now() : Date.parse(asOf)
  const { days } = INTERVALS.find(({ name }) => name === interval)!
  return new Date(end - days * DAY_MS).toISOString().slice(0, 10)
}
