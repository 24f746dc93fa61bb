import type pg from 'pg'
import { queryPrepared } from '../../postgres/database.ts'

/** Whose a stream is: of an installation, and of one database of it. A copy that was restored elsewhere is another owner. */
export type ReadOwner = () => Promise<string>

/** Read anew each time: the database may be exchanged behind its address. While PostgreSQL is away, it is who it was. */
export function ownerIn(pool: pg.Pool): ReadOwner {
  let known: string | null = null
  return async () => {
    try {
      known = await readOwner(pool)
    } catch (error) {
      if (known === null) throw error
    }
    return known
  }
}

async function readOwner(pool: pg.Pool): Promise<string> {
  const { rows } = await queryPrepared<{ owner: string }>(
    pool,
    `select id || '/' || log_database() as owner from installation`,
    [],
  )
  return rows[0]!.owner
}
