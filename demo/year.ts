import { DAY_MS, HOUR_MS, MINUTE_MS } from '../src/domain/time.ts'
import type { Random } from './random.ts'

export { DAY_MS, HOUR_MS }

/** Which shop, and which year of it: from `start` to `end`, in epoch milliseconds. */
export type Year = {
  seed: number
  scale: number
  start: number
  end: number
  /** The prefix of every id, so that a tenant can contain shops with other seeds and scales. */
  label: string
}

export function createYear({ seed, scale, end }: { seed: number; scale: number; end: number }): Year {
  return {
    seed,
    scale,
    start: end - 365 * DAY_MS,
    end,
    label: scale === 1 ? `d${seed}` : `d${seed}x${scale}`,
  }
}

/** The name of the shop's source. A year ends with the minute in which its source was created, unless `end` is given: a day. */
export function sourceName({ seed, scale }: Pick<Year, 'seed' | 'scale'>, end?: number): string {
  const shop = `Demo shop${seed === 1 ? '' : ` ${seed}`}${scale === 1 ? '' : ` × ${scale}`}`
  return end === undefined ? shop : `${shop}${YEAR_TO}${isoTime(end).slice(0, 10)}`
}

const YEAR_TO = ', year to '

/** Whether the source was created for any shop of the demo. */
export function isDemoSource({ name }: { name: string }): boolean {
  return /^Demo shop(?: \d+)?(?: × [\d.]+)?(?:, year to |$)/.test(name)
}

/** The end of the year of this source, for a later run that continues it; null: it is the source of another shop. */
export function findEnd(
  source: { name: string; created_at: string },
  shop: Pick<Year, 'seed' | 'scale'>,
): number | null {
  const name = sourceName(shop)
  if (source.name === name) return Math.floor(Date.parse(source.created_at) / MINUTE_MS) * MINUTE_MS
  return source.name.startsWith(name + YEAR_TO) ? Date.parse(source.name.slice(name.length + YEAR_TO.length)) : null
}

export function isoTime(at: number): string {
  return new Date(at).toISOString()
}

export function numbered(number: number, digits: number): string {
  return String(number).padStart(digits, '0')
}

// Share of visits in percent by hour of the day (UTC).
const HOURS = [1, 1, 0, 0, 0, 1, 3, 5, 6, 5, 5, 5, 6, 6, 4, 4, 5, 6, 8, 9, 8, 6, 4, 2].map(
  (weight, hour) => [hour, weight] as const,
)

/** A random time on the day of `at`, weighted by hour. */
export function randomMoment(at: number, random: Random): number {
  const day = Math.floor(at / DAY_MS) * DAY_MS
  return day + random.weighted(HOURS) * HOUR_MS + random.int(0, 3_599) * 1000
}

/** How busy a day is, about 1 in the middle of the year. Shops grow, and sell more before Christmas. */
function busyness(at: number, { start, end }: Year): number {
  const month = new Date(at).getUTCMonth()
  const season = month === 10 ? 1.5 : month === 11 ? 1.7 : month === 6 || month === 7 ? 0.8 : 1
  return (0.7 + (0.6 * (at - start)) / (end - start)) * season
}

const BUSIEST = 1.3 * 1.7

/** A random time between `from` and the end of the year, more likely in busy times. */
export function busyMoment(from: number, year: Year, random: Random): number {
  for (;;) {
    const at = from + random.next() * (year.end - from)
    if (random.next() * BUSIEST >= busyness(at, year)) continue
    const moment = randomMoment(at, random)
    // The last day may be in progress: its later hours have no visits yet.
    if (moment < year.end) return moment
  }
}

const MONTHS = 'january february march april may june july august september october november december'.split(' ')

export function monthName(at: number): string {
  return MONTHS[new Date(at).getUTCMonth()]!
}
