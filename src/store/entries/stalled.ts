import type { Db } from '../../postgres/database.ts'

export type StalledPartition = { partition: string; failedAt: Date; error: string }

/** A partition of the log failed outside of any entry: nothing of it takes effect until it no longer does. */
export async function recordStall(db: Db, partition: string, error: string): Promise<void> {
  await db.query(
    `insert into stalled_partitions (partition, failed_at, error) values ($1, now(), $2)
     on conflict (partition) do update set failed_at = now(), error = excluded.error`,
    [partition, error],
  )
}

/** Those that failed in the last minutes: one that is stalled is tried every few seconds, and fails again. */
export async function listStalled(db: Db): Promise<StalledPartition[]> {
  const { rows } = await db.query<StalledPartition>(
    `select partition, failed_at as "failedAt", error from stalled_partitions
     where failed_at > now() - interval '3 minutes' order by partition`,
  )
  return rows
}
