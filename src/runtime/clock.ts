import type pg from 'pg'
import { databaseNow } from '../postgres/database.ts'

const READ_EVERY_MS = 10_000
// A slower answer is too imprecise.
const MAX_READ_MS = 1_000

type Clock = { now(): Date; stop(): void }

/**
 * All nodes use the time of PostgreSQL. A node whose own clock is a year behind would date events a year back, and retention would
 * delete them. Between two reads the node advances the time with its monotonic clock.
 */
export async function openClock(pool: pg.Pool): Promise<Clock> {
  const time = createTime(Date.now())

  async function read({ anyDelay = false } = {}): Promise<void> {
    const before = performance.now()
    const then = await databaseNow(pool)
    const after = performance.now()
    if (anyDelay || after - before <= MAX_READ_MS) time.set(then.getTime(), (before + after) / 2)
  }

  await read({ anyDelay: true })
  // While PostgreSQL is unreachable, the monotonic clock continues.
  const timer = setInterval(() => void read().catch(() => undefined), READ_EVERY_MS)
  timer.unref()
  return { now: time.now, stop: () => clearInterval(timer) }
}

/**
 * The time by a monotonic clock, starting at `startMs`. Of two changes of a record with equal times, the later arrival
 * wins, so a correction by less than the imprecision of a read never turns the time back: it passes slowly until it is right.
 */
export function createTime(startMs: number, monotonic: () => number = () => performance.now()) {
  let offsetMs = startMs - monotonic()
  let [lastMs, lastMonotonic] = [startMs, monotonic()]
  return {
    set(timeMs: number, monotonicMs: number): void {
      offsetMs = timeMs - monotonicMs
    },
    now(): Date {
      const current = monotonic()
      const correct = offsetMs + current
      const slow = lastMs + (current - lastMonotonic) / 10
      lastMs = slow > correct && slow - correct < MAX_READ_MS ? slow : correct
      lastMonotonic = current
      return new Date(lastMs)
    },
  }
}
