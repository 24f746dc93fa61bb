import { statfs } from 'node:fs/promises'
import type { Config } from '../config/config.ts'
import { DAY_MS, HOUR_MS } from '../domain/time.ts'

/** How much room the disk has that PostgreSQL writes to; of a PostgreSQL of your own it is not known. */
export type Disk = {
  /** From 0 to 1; null: not known. */
  free(): number | null
  /** At the pace of the last day; null: not known yet, or it does not fill. */
  daysLeft(): number | null
  /** So little that a full disk is near: events and webhooks are turned away while their senders still keep them. */
  isLow(): boolean
  stop(): void
}

/** The free part of the disk that a directory is on; null where that cannot be told. */
export type ReadFree = () => Promise<number | null>

// A disk takes some hundred MB a second at the most: of 5 % of 100 GB, ten seconds are left.
const READ_EVERY_MS = 2_000
const SAMPLED_EVERY_MS = 10 * 60_000
const SAMPLED_FOR_MS = DAY_MS
// In less than an hour a checkpoint or a backup looks like a trend.
const SHORTEST_TREND_MS = HOUR_MS

export function freeOf({ databaseUrl, dataDir }: Pick<Config, 'databaseUrl' | 'dataDir'>): ReadFree {
  return async () => {
    if (databaseUrl !== null) return null
    try {
      const { bavail, blocks } = await statfs(dataDir)
      return blocks > 0 ? bavail / blocks : null
    } catch {
      return null
    }
  }
}

export async function watchDisk(readFree: ReadFree, minFree: number | null): Promise<Disk> {
  let free = await readFree()
  let samples: Sample[] = []
  const sampled = () => {
    const at = performance.now()
    const isDue = samples.length === 0 || at - samples.at(-1)!.at >= SAMPLED_EVERY_MS
    if (free !== null && isDue)
      samples = [...samples.filter(sample => at - sample.at <= SAMPLED_FOR_MS), { at, free }]
  }
  sampled()
  const timer = setInterval(async () => {
    free = await readFree()
    sampled()
  }, READ_EVERY_MS)
  timer.unref()
  return {
    free: () => free,
    daysLeft: () => (free === null ? null : daysUntilFull(samples, { at: performance.now(), free })),
    isLow: () => isLow(free, minFree),
    stop: () => clearInterval(timer),
  }
}

/** The free part at a moment, in milliseconds of any clock. */
export type Sample = { at: number; free: number }

/** When nothing is left, if it goes on as since the oldest sample. */
export function daysUntilFull([oldest]: Sample[], now: Sample): number | null {
  if (!oldest || now.at - oldest.at < SHORTEST_TREND_MS) return null
  const filled = oldest.free - now.free
  return filled > 0 ? (now.free / filled) * ((now.at - oldest.at) / DAY_MS) : null
}

export function isLow(free: number | null, minFree: number | null): boolean {
  return free !== null && minFree !== null && free < minFree
}

/** For people. */
export function diskText({ free, isLow }: Disk): string {
  const ratio = free()
  if (ratio === null) return 'unknown'
  const percent = `${(ratio * 100).toFixed(1)} % free`
  return isLow() ? `${percent}: too little, events and webhooks are answered 503` : percent
}
