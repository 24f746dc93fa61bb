import type pg from 'pg'
import { endStuckSessions } from '../postgres/sessions.ts'
import type { Job } from './jobs.ts'

// More than PostgreSQL allows a transaction that is idle, and less than anybody should wait for a host that stands still.
const STUCK_AFTER_MS = 15_000

/** Every node with workers looks after the others: the one that stands still cannot. */
export function stuckSessions(pool: pg.Pool, logger: { warn(facts: object, message: string): void }): Job {
  return {
    name: 'stuck sessions',
    everyMs: 5_000,
    async run() {
      const sessions = await endStuckSessions(pool, STUCK_AFTER_MS)
      if (sessions > 0)
        logger.warn({ sessions }, 'sessions that waited too long inside a transaction were ended')
    },
  }
}
