import type pg from 'pg'
import { databaseNow } from '../postgres/database.ts'

const READ_EVERY_MS = 10_000
// A slower answer says too little about the moment it was given.
const SLOWEST_MS = 1_000

type Clock = { now(): Date; stop(): void }

/**
 * The time of the whole installation is PostgreSQL's. A node whose own clock is a year behind would date what it accepts a year back, for
 * retention to take away; so the node only counts on from what PostgreSQL said last, by a clock that nobody can set.
 */
export async function openClock(pool: pg.Pool): Promise<Clock> {
  let offsetMs = Date.now() - performance.now()

  async function read({ atAllCosts = false } = {}): Promise<void> {
    const before = performance.now()
    const then = await databaseNow(pool)
    const after = performance.now()
    if (atAllCosts || after - before <= SLOWEST_MS) offsetMs = then.getTime() - (before + after) / 2
  }

  await read({ atAllCosts: true })
  // While PostgreSQL is away, it goes on counting.
  const timer = setInterval(() => void read().catch(() => undefined), READ_EVERY_MS)
  timer.unref()
  return {
    now: () => new Date(offsetMs + performance.now()),
    stop: () => clearInterval(timer),
  }
}
