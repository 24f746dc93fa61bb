import { DAY_MS, HOUR_MS, MINUTE_MS, withinYears } from './time.ts'
import { dayIn, startOfDayIn, startOfHourIn } from './time-zone.ts'

/** The lengths of the buckets of a series. */
export const INTERVALS = ['minute', 'hour', 'day'] as const
export type Interval = (typeof INTERVALS)[number]

/** The maximum length of a series. */
export const MAX_BUCKETS = 1_500

/** Approximate for days: they are an hour longer or shorter when daylight saving time starts or ends. */
const LENGTH_MS: Record<Interval, number> = { minute: MINUTE_MS, hour: HOUR_MS, day: DAY_MS }
/** The default length of a series. */
const USUAL_BUCKETS: Record<Interval, number> = { minute: 60, hour: 24, day: 30 }

/** Consecutive periods, the oldest first. Each ends at the start of the next one, the last one at `end`. */
export type Buckets = { starts: Date[]; end: Date }

/** The complete buckets that contain the requested period, without future ones; null: too many. */
export function buildBuckets(
  interval: Interval,
  {
    since,
    until,
    now,
    timeZone,
    isCut = false,
  }: {
    since: Date | null
    until: Date | null
    now: Date
    timeZone: string
    /** Whether the last bucket ends with the minute of `until`. */
    isCut?: boolean
  },
): Buckets | null {
  const length = LENGTH_MS[interval]
  const startOf = (ms: number) => startIn(timeZone, interval, ms)
  const endOf = (start: number) => startOf(start + length * 1.5)
  const last = endOf(startOf(now.getTime()))
  const wanted = until === null ? last : Math.min(endAround(until.getTime()), last)
  const usual = wanted - (USUAL_BUCKETS[interval] - 0.5) * length
  const from = startOf(since?.getTime() ?? usual)
  // An empty period at a boundary returns the bucket that starts there.
  const end = wanted > from ? wanted : Math.min(endOf(from), last)
  if ((end - from) / length > MAX_BUCKETS + 1) return null
  const starts: Date[] = []
  for (let start = from; start < end; start = endOf(start)) starts.push(new Date(start))
  const cut = isCut && until !== null ? Math.min(end, startIn(timeZone, 'minute', until.getTime()) + MINUTE_MS) : end
  return starts.length > MAX_BUCKETS ? null : { starts, end: new Date(cut) }

  function endAround(ms: number): number {
    const start = startOf(ms)
    return start === ms ? ms : endOf(start)
  }
}

function startIn(timeZone: string, interval: Interval, ms: number): number {
  if (interval === 'day') return startOfDayIn(timeZone, dayIn(timeZone, withinYears(ms))).getTime()
  // Zone offsets are whole minutes.
  return interval === 'hour' ? startOfHourIn(timeZone, ms) : Math.floor(ms / MINUTE_MS) * MINUTE_MS
}

/** The periods (UTC) that sums are kept for. Offsets of time zones are whole quarters of an hour, except historic ones. */
type Grain = 'minute' | 'quarter' | 'day'

const QUARTER_MS = 15 * MINUTE_MS

/** A range of time, and the grain of the sums to read in it. */
export type GrainRange = { grain: Grain; since: Date; until: Date }

const GRAINS: readonly [Grain, number][] = [
  ['day', DAY_MS],
  ['quarter', QUARTER_MS],
  ['minute', MINUTE_MS],
]

/**
 * The sums to read: each lies within one bucket. The coarsest grain that fits all starts and, if the last bucket is cut, finer
 * ones for the rest of it.
 */
export function findGrains({ starts, end }: Buckets): GrainRange[] {
  const ranges: GrainRange[] = []
  let since = starts[0]!.getTime()
  for (const [grain, length] of GRAINS) {
    const isFinest = grain === 'minute'
    if (!isFinest && !starts.every(at => at.getTime() % length === 0)) continue
    const until = isFinest ? end.getTime() : Math.floor(end.getTime() / length) * length
    if (until > since) ranges.push({ grain, since: new Date(since), until: new Date(until) })
    since = Math.max(since, until)
  }
  return ranges
}
