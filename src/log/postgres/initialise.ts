import type pg from 'pg'
import { type Db, inTransaction } from '../../postgres/database.ts'
import { LOCKS, lock } from '../../postgres/locks.ts'

/**
 * Makes the cursors of a new installation. The number of partitions is fixed then, because it decides who waits behind
 * whom; returns it.
 */
export async function initialisePostgresLog(pool: pg.Pool, partitions: number): Promise<number> {
  await pool.query(
    `insert into log_cursors (partition) select generate_series(0, $1 - 1)
     where not exists (select 1 from log_cursors) on conflict do nothing`,
    [partitions],
  )
  await inTransaction(pool, async client => {
    await lock(client, LOCKS.adoption)
    await client.query(ADOPT_RESTORED)
  })
  return countPartitions(pool)
}

/** As it was fixed when the log was initialised. */
export async function countPartitions(db: Db): Promise<number> {
  const { rows } = await db.query<{ count: number }>('select count(*) from log_cursors')
  const { count } = rows[0]!
  if (count === 0)
    throw new Error('The log has no partitions yet: no server was ever started on this database.')
  return count
}

// A dump restored into another cluster brings positions from another transaction counter. They lie in the future
// and would hide every new entry: what was not yet read is moved to the present, in its old order.
const ADOPT_RESTORED = `
with foreign_entries as (
  delete from log l using log_cursors c
  where l.partition = c.partition and l.xid >= pg_snapshot_xmax(pg_current_snapshot())
  returning l.*, (l.xid, l.ord) > (c.xid, c.ord) as unread
), moved as (
  insert into log (partition, ord, id, tenant_id, kind, ordering_key, received_at, context, body_bytes, body)
  select partition, row_number() over (order by xid, ord), id, tenant_id, kind, ordering_key, received_at,
         context, body_bytes, body
  from foreign_entries where unread
)
update log_cursors set xid = pg_current_xact_id(), ord = 0 where xid >= pg_snapshot_xmax(pg_current_snapshot())`
