import type pg from 'pg'
import type { Db } from '../../postgres/database.ts'
import { enterEra } from './eras.ts'

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
  await enterEra(pool)
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
