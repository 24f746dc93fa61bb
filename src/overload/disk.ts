import { statfs } from 'node:fs/promises'
import { DAY_MS, HOUR_MS } from '../domain/time.ts'

/** Free space of the embedded PostgreSQL's disk; unknown for an external PostgreSQL. */
export type Disk = {
  /** From 0 to 1; null: unknown. */
  free(): number | null
  /** Extrapolated from the last day; null: unknown, or the disk is not filling up. */
  daysLeft(): number | null
  /** Below KONTOR_MIN_FREE_DISK: events and webhooks are rejected while their senders still have them. */
  isLow(): boolean
  stop(): void
}

/** Free part of the data directory's disk; null: unknown. */
export type ReadFree = () => Promise<number | null>

// A disk writes a few hundred MB/s at most: the last 5 % of 100 GB last ten seconds.
const READ_EVERY_MS = 2_000
const SAMPLE_EVERY_MS = 10 * 60_000
const SAMPLES_KEPT_MS = DAY_MS
// Within less than an hour a checkpoint or a backup looks like a trend.
const MIN_TREND_MS = HOUR_MS

export function diskReader({ databaseUrl, dataDir }: { databaseUrl: string[] | null; dataDir: string }): ReadFree {
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
  const sample = () => {
    const at = performance.now()
    const isDue = samples.length === 0 || at - samples.at(-1)!.at >= SAMPLE_EVERY_MS
    if (free !== null && isDue) samples = [...samples.filter(sample => at - sample.at <= SAMPLES_KEPT_MS), { at, free }]
  }
  sample()
  const timer = setInterval(async () => {
    free = await readFree()
    sample()
  }, READ_EVERY_MS)
  timer.unref()
  return {
    free: () => free,
    daysLeft: () => (free === null ? null : daysUntilFull(samples, { at: performance.now(), free })),
    isLow: () => isLow(free, minFree),
    stop: () => clearInterval(timer),
  }
}

/** `at` in milliseconds of any monotonic clock. */
export type Sample = { at: number; free: number }

export function daysUntilFull([oldest]: Sample[], now: Sample): number | null {
  if (!oldest || now.at - oldest.at < MIN_TREND_MS) return null
  const filled = oldest.free - now.free
  return filled > 0 ? (now.free / filled) * ((now.at - oldest.at) / DAY_MS) : null
}

export function isLow(free: number | null, minFree: number | null): boolean {
  return free !== null && minFree !== null && free < minFree
}

export function describeDisk({ free, isLow }: Disk): string {
  const ratio = free()
  if (ratio === null) return 'unknown'
  const percent = `${(ratio * 100).toFixed(1)}% free`
  return isLow() ? `${percent}: too little, events and webhooks are answered with 503` : percent
}
