import { DAY_MS, HOUR_MS, MINUTE_MS, withinYears } from './time.ts'
import { dayIn, startOfDayIn, startOfHourIn } from './time-zone.ts'

/** What time is cut into for series. */
export const INTERVALS = ['minute', 'hour', 'day'] as const
export type Interval = (typeof INTERVALS)[number]

/** The most that a series has. */
export const MAX_BUCKETS = 1_500

/** Days are an hour longer or shorter when clocks are changed. */
const LENGTH_MS: Record<Interval, number> = { minute: MINUTE_MS, hour: HOUR_MS, day: DAY_MS }
/** Without bounds. */
const USUAL_BUCKETS: Record<Interval, number> = { minute: 60, hour: 24, day: 30 }

/** Stretches of time that follow each other, oldest first: each from its start to the next one's, the last to `end`. */
export type Buckets = { starts: Date[]; end: Date }

/** Whole buckets around what is asked for, none of them in the future; null where they are too many. */
export function bucketsOf(
  interval: Interval,
  { since, until, now, timeZone }: { since: Date | null; until: Date | null; now: Date; timeZone: string },
): Buckets | null {
  const length = LENGTH_MS[interval]
  const startOf = (ms: number) => startIn(timeZone, interval, ms)
  const endOf = (start: number) => startOf(start + length * 1.5)
  const last = endOf(startOf(now.getTime()))
  const wanted = until === null ? last : Math.min(endAround(until.getTime()), last)
  const usual = wanted - (USUAL_BUCKETS[interval] - 0.5) * length
  const from = startOf(since?.getTime() ?? usual)
  // One moment that is a boundary: the bucket that begins there.
  const end = wanted > from ? wanted : Math.min(endOf(from), last)
  if ((end - from) / length > MAX_BUCKETS + 1) return null
  const starts: Date[] = []
  for (let start = from; start < end; start = endOf(start)) starts.push(new Date(start))
  return starts.length > MAX_BUCKETS ? null : { starts, end: new Date(end) }

  function endAround(ms: number): number {
    const start = startOf(ms)
    return start === ms ? ms : endOf(start)
  }
}

function startIn(timeZone: string, interval: Interval, ms: number): number {
  if (interval === 'day') return startOfDayIn(timeZone, dayIn(timeZone, withinYears(ms))).getTime()
  // Zones differ by whole minutes.
  return interval === 'hour' ? startOfHourIn(timeZone, ms) : Math.floor(ms / MINUTE_MS) * MINUTE_MS
}

/** The coarsest sums, which are of minutes, hours and days in UTC, that lie in one bucket each. */
export function grainOf({ starts, end }: Buckets): Interval {
  const fits = (ms: number) => [...starts, end].every(at => at.getTime() % ms === 0)
  return fits(DAY_MS) ? 'day' : fits(HOUR_MS) ? 'hour' : 'minute'
}
