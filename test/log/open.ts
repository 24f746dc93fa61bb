import { initializePostgresLog, openPostgresLog } from '../../src/log/postgres/log.ts'
import { openPool } from '../../src/postgres/database.ts'
import { ensurePartitions } from '../../src/postgres/partitions.ts'
import { testDatabase } from '../database.ts'
import { eventually } from '../eventually.ts'

export const PARTITIONS = 8

/** A log on its own database. */
export async function openTestLog({ now }: { now?: () => Date } = {}) {
  const database = await testDatabase({ partitioned: true })
  const pool = openPool({
    connection: { url: database.url },
    max: 12,
    name: 'log test',
    onError: () => undefined,
  })
  await ensurePartitions(pool, new Date())
  await initializePostgresLog(pool, PARTITIONS)
  const log = openPostgresLog({ pool, ...(now && { now }) })
  return {
    url: database.url,
    log,
    pool,
    async readable() {
      await eventually('every entry to be readable', async () => {
        const { rows } = await pool.query<{ all: boolean }>(
          'select coalesce(max(xid) < pg_snapshot_xmin(pg_current_snapshot()), true) as all from log',
        )
        return rows[0]!.all
      })
    },
    async close() {
      await pool.end()
      await database.drop()
    },
  }
}
