import type pg from 'pg'
import type { Log } from '../src/log/log.ts'
import { eventually } from './eventually.ts'

/**
 * Resolves when everything accepted so far is applied: the log is read to its end and nothing is parked. With `tenantIds`, only
 * entries of these tenants count.
 */
export async function settled(pool: pg.Pool, log?: Log, tenantIds?: number[]): Promise<void> {
  const isOver = async () => {
    // JetStream first: entries that are read in the meantime are then found in PostgreSQL.
    if (((await log?.outside?.untilRead(0)) ?? 0) > 0) return false
    const { rows } = await pool.query<{ waiting: boolean }>({
      name: 'settled', // planning takes five times as long as execution
      // The order makes PostgreSQL read from the cursors on. Otherwise it reads the whole log, of all files with the shared server.
      text: `select exists (select from log_cursors c cross join lateral (
                        select from log l
                        where l.partition = c.partition and (l.epoch, l.xid, l.ord) > (c.epoch, c.xid, c.ord)
                          and ($1::int[] is null or l.tenant_id = any($1))
                        order by l.epoch, l.xid, l.ord limit 1) unread)
           or exists (select 1 from parked_entries where $1::int[] is null or tenant_id = any($1))
           or exists (select 1 from sale_folds where $1::int[] is null or tenant_id = any($1)) as waiting`,
      values: [tenantIds ?? null],
    })
    return !rows[0]!.waiting
  }
  await eventually('what was accepted to take effect', isOver, { state: () => waitingIn(pool) })
}

async function waitingIn(pool: pg.Pool) {
  const unread = await pool.query(
    `select l.partition, l.kind, count(*) as entries, min(l.received_at) as oldest
     from log l join log_cursors c using (partition) where (l.epoch, l.xid, l.ord) > (c.epoch, c.xid, c.ord) group by 1, 2 order by 1, 2`,
  )
  const parked = await pool.query('select * from parked_entries order by next_attempt_at limit 10')
  return { unread: unread.rows, parked: parked.rows }
}
