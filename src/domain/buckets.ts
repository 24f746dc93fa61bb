import { DAY_MS, HOUR_MS } from './time.ts'

/** What time is cut into: by the minute, the hour or the day, in UTC. */
export const INTERVALS = ['minute', 'hour', 'day'] as const
export type Interval = (typeof INTERVALS)[number]

export const MAX_BUCKETS = 1_500

const LENGTH_MS: Record<Interval, number> = { minute: 60_000, hour: HOUR_MS, day: DAY_MS }
/** Without bounds. */
const USUAL_BUCKETS: Record<Interval, number> = { minute: 60, hour: 24, day: 30 }

/** Stretches of time that follow each other, oldest first: each from its start to the next one's, the last to `end`. */
export type Buckets = { starts: Date[]; end: Date }

/** Whole buckets around what is asked for, none of them in the future; null where they are too many. */
export function bucketsOf(
  interval: Interval,
  { since, until, now }: { since: Date | null; until: Date | null; now: Date },
): Buckets | null {
  const length = LENGTH_MS[interval]
  const floor = (ms: number) => Math.floor(ms / length) * length
  const last = floor(now.getTime()) + length
  const wanted = until === null ? last : Math.min(Math.ceil(until.getTime() / length) * length, last)
  const from = since === null ? wanted - USUAL_BUCKETS[interval] * length : floor(since.getTime())
  // One moment that is a boundary: the bucket that begins there.
  const end = until !== null && wanted <= from ? Math.min(from + length, last) : wanted
  const count = Math.max(0, (end - from) / length)
  if (count > MAX_BUCKETS) return null
  return { starts: Array.from({ length: count }, (_, i) => new Date(from + i * length)), end: new Date(end) }
}

/** The coarsest sums that lie in one bucket each. */
export function grainOf({ starts, end }: Buckets): Interval {
  const fits = (ms: number) => [...starts, end].every(at => at.getTime() % ms === 0)
  return fits(DAY_MS) ? 'day' : fits(HOUR_MS) ? 'hour' : 'minute'
}
