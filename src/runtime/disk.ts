import { statfs } from 'node:fs/promises'
import type { Config } from '../config/config.ts'

/** How much room the disk has that PostgreSQL writes to; of a PostgreSQL of your own it is not known. */
export type Disk = {
  /** From 0 to 1; null: not known. */
  free(): number | null
  /** So little that a full disk is near: events and webhooks are turned away while their senders still keep them. */
  isLow(): boolean
  stop(): void
}

/** The free part of the disk that a directory is on; null where that cannot be told. */
export type ReadFree = () => Promise<number | null>

// A disk takes some hundred MB a second at the most: of 5 % of 100 GB, ten seconds are left.
const READ_EVERY_MS = 2_000

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
  const timer = setInterval(async () => {
    free = await readFree()
  }, READ_EVERY_MS)
  timer.unref()
  return {
    free: () => free,
    isLow: () => isLow(free, minFree),
    stop: () => clearInterval(timer),
  }
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
