import type pg from 'pg'
import { DAY_MS, HOUR_MS } from '../domain/time.ts'
import { dropPartitionsBefore, ensurePartitions, type PartitionedTable } from '../postgres/partitions.ts'
import type { Directory } from '../store/tenants/directory.ts'
import type { Job } from './jobs.ts'

const IDEMPOTENCY_KEYS_MS = 30 * DAY_MS

export type Retention = {
  logRetentionMs: number
  operationsRetentionMs: number
  receiptsRetentionMs: number
  archiveRetentionMs: number
  processedRetentionMs: number
  eventsRetentionMs: number | null
}

/** Partitions are made ahead of need. */
export function partitionUpkeep(pool: pg.Pool, now: () => Date): Job {
  return {
    name: 'partition upkeep',
    everyMs: HOUR_MS,
    async run() {
      await ensurePartitions(pool, now())
    },
  }
}

/** What has been kept long enough goes, a whole partition at a time. */
export function retention(
  pool: pg.Pool,
  settings: Retention,
  now: () => Date,
  mayDropLogBefore: () => Promise<Date | null>,
): Job {
  const drop = async (table: PartitionedTable, keepMs: number) =>
    dropPartitionsBefore(pool, table, new Date(now().getTime() - keepMs))
  return {
    name: 'retention',
    everyMs: HOUR_MS,
    async run() {
      // However old: what was accepted and is not yet applied stays.
      const oldestUnread = await mayDropLogBefore()
      const keepLogFrom = Math.min(
        now().getTime() - settings.logRetentionMs,
        oldestUnread?.getTime() ?? Infinity,
      )
      await dropPartitionsBefore(pool, 'log', new Date(keepLogFrom))
      await drop('operations', settings.operationsRetentionMs)
      await drop('idempotency_keys', IDEMPOTENCY_KEYS_MS)
      await drop('receipts', settings.receiptsRetentionMs)
      await drop('archive', settings.archiveRetentionMs)
      await drop('processed_events', settings.processedRetentionMs)
      if (settings.eventsRetentionMs !== null) await drop('events', settings.eventsRetentionMs)
    },
  }
}

/** When each key was last used. */
export function keyUse(directory: Directory): Job {
  return { name: 'key use', everyMs: 10_000, run: () => directory.writeUses() }
}
