import type pg from 'pg'
import { queryPrepared } from '../../postgres/database.ts'

/** Whose a stream is: of an installation, and of one database of it. A copy that was restored elsewhere is another owner. */
export type ReadOwner = () => Promise<string>

/** Read once: a stream that is looked for again while PostgreSQL is away is still ours. */
export function ownerIn(pool: pg.Pool): ReadOwner {
  let known: string | null = null
  return async () => {
    known ??= await readOwner(pool)
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
