import type { Db } from './database.ts'

/** PostgreSQL's clock: it is one for all nodes. */
export async function databaseNow(db: Db): Promise<Date> {
  const { rows } = await db.query<{ now: Date }>('select now()')
  return rows[0]!.now
}
