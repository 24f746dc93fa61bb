import type { Db } from '../../postgres/database.ts'

/**
 * From here on the transaction sees one state of the database and cannot change it. The questions of a report are many
 * and small: starting helpers and compiling would cost more than they save.
 */
export async function readOneState(db: Db): Promise<void> {
  await db.query(`set transaction isolation level repeatable read, read only;
    set local jit = off; set local max_parallel_workers_per_gather = 0`)
}
