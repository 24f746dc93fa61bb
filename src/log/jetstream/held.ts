import type pg from 'pg'
import type { PostgresLog } from '../postgres/log.ts'

// Of the time in which other processes' appends to the PostgreSQL log are not seen here.
const LOOK_FOR_EVENTS_EVERY_MS = 250

/**
 * Partitions whose events still stand in the PostgreSQL log: of an installation that has gone over to NATS, or of what waited for
 * budget. They came before.
 */
export function openHeld(postgres: PostgresLog) {
  let lookedAt = -Infinity
  let held = new Set<number>()
  let hashes = 0
  return async (client: pg.PoolClient, partitions: number): Promise<(partition: number) => boolean> => {
    if (performance.now() - lookedAt > LOOK_FOR_EVENTS_EVERY_MS || held.size > 0) {
      lookedAt = performance.now()
      const found = await postgres.partitionsWithEvents(client)
      held = new Set(found.held)
      hashes = found.partitions
    }
    if (held.size === 0) return () => false
    // Both count from the same hash: where one number divides the other, a partition is a part of one over there.
    if (hashes % partitions !== 0) return () => true
    const ours = new Set([...held].map(theirs => theirs % partitions))
    return partition => ours.has(partition)
  }
}
