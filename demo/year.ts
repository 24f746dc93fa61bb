import { DAY_MS, HOUR_MS } from '../src/domain/time.ts'
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

/** The name of the shop's source without the end of its year, which is a day or a minute. A later run finds the source by this prefix. */
export function sourceNamePrefix({ seed, scale }: Year): string {
  return `Demo shop${seed === 1 ? '' : ` ${seed}`}${scale === 1 ? '' : ` × ${scale}`} (until `
}

export function sourceName(year: Year): string {
  return `${sourceNamePrefix(year)}${isoTime(year.end).replace(/(T00:00)?:00\.000Z$/, (_, midnight) => (midnight ? '' : 'Z'))})`
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
