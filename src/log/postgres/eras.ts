import type pg from 'pg'
import { type Db, inTransaction, queryPrepared, RestartTransaction } from '../../postgres/database.ts'
import { LOCKS, lock } from '../../postgres/locks.ts'

/**
 * Positions hold transaction numbers, and these count from somewhere else in every cluster. The log knows which epoch it is in,
 * and each append and each take asks whether that is still so: the database may be another one at any moment, behind the same address.
 */
type Eras = {
  /** As it is known here; what is done with it is refused if it no longer holds. */
  current(db: Db): Promise<number>
  /** Finds out anew; begins one, if this is another database. */
  enter(): Promise<number>
  /** What a transaction that was refused has to do: begin again, in the epoch that is. */
  beginAgain(error: unknown): unknown
}

export function openEras(pool: pg.Pool): Eras {
  let known: number | undefined
  async function enter(): Promise<number> {
    known = await enterEra(pool)
    return known
  }
  return {
    async current(db) {
      known ??= await latestEra(db)
      return known
    },
    enter,
    beginAgain: error =>
      isOtherEra(error)
        ? new RestartTransaction((error as Error).message, async () => {
            await enter()
          })
        : error,
  }
}

/** The database said so: see `is_log_epoch` in the migrations. */
export function isOtherEra(error: unknown): boolean {
  return (error as { code?: unknown } | null)?.code === 'KT001'
}

/** One node after the other: the second finds what the first has begun. */
export function enterEra(pool: pg.Pool): Promise<number> {
  return inTransaction(pool, async client => {
    await lock(client, LOCKS.epoch)
    const { rows } = await client.query<{ epoch: number }>('select enter_log_epoch() as epoch')
    return rows[0]!.epoch
  })
}

/**
 * For a restored backup: whatever database this is, all that came with it lies before what comes now. In the caller's
 * transaction, which nobody else knows of.
 */
export async function beginEra(client: pg.PoolClient): Promise<void> {
  await client.query(
    'insert into log_epochs (epoch, database) select coalesce(max(epoch), 0) + 1, log_database() from log_epochs',
  )
}

async function latestEra(db: Db): Promise<number> {
  const { rows } = await queryPrepared<{ epoch: number }>(db, 'select max(epoch) as epoch from log_epochs')
  return rows[0]!.epoch
}
