import type pg from 'pg'
import { type Db, inTransaction, isConflict } from '../postgres/database.ts'
import { readOneState } from '../store/reports/snapshot.ts'

/** One state of the database for all questions of one report; PostgreSQL itself refuses to write in it. */
export async function inSnapshot<T>(pool: pg.Pool, read: (db: Db) => Promise<T>): Promise<T> {
  const once = () =>
    inTransaction(pool, async client => {
      await readOneState(client)
      return read(client)
    })
  try {
    return await once()
  } catch (error) {
    // behind a pooler that loses prepared statements, the first report finds that out
    if (!isConflict(error)) throw error
    return once()
  }
}
