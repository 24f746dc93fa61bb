import type pg from 'pg'
import { HOUR_MS } from '../domain/time.ts'
import { ensurePartitions } from '../postgres/partitions.ts'
import type { Directory } from '../store/tenants/directory.ts'
import type { Job } from './jobs.ts'

/** Partitions are made ahead of need. */
export function partitionUpkeep(pool: pg.Pool, now: () => Promise<Date>): Job {
  return {
    name: 'partition upkeep',
    everyMs: HOUR_MS,
    async run() {
      await ensurePartitions(pool, await now())
    },
  }
}

/** When each key was last used. */
export function keyUse(directory: Directory): Job {
  return { name: 'key use', everyMs: 10_000, run: () => directory.writeUses() }
}
