import type pg from 'pg'
import { type Db, inTransaction, isConflict } from '../../postgres/database.ts'

/** One state of the database for all questions of one report. */
export async function consistently<T>(pool: pg.Pool, ask: (db: Db) => Promise<T>): Promise<T> {
  try {
    return await askOnce(pool, ask)
  } catch (error) {
    // behind a pooler that loses prepared statements, the first report finds that out
    if (!isConflict(error)) throw error
    return askOnce(pool, ask)
  }
}

function askOnce<T>(pool: pg.Pool, ask: (db: Db) => Promise<T>): Promise<T> {
  return inTransaction(pool, async client => {
    // The questions are many and small: starting helpers and compiling would cost more than they save.
    await client.query(`set transaction isolation level repeatable read, read only;
      set local jit = off; set local max_parallel_workers_per_gather = 0`)
    return ask(client)
  })
}

/** Some rows of a list: `limit` of them after the first `offset`. */
export type Slice = { offset: number; limit: number }

/**
 * A slice from the second half of a list is read from its end: the deepest page then costs what the first one does,
 * and the one in the middle costs most.
 */
export function nearerEnd(slice: Slice, count: number): Slice & { backwards: boolean } {
  const limit = Math.max(0, Math.min(slice.limit, count - slice.offset))
  const fromEnd = count - slice.offset - limit
  return fromEnd < slice.offset
    ? { offset: Math.max(0, fromEnd), limit, backwards: true }
    : { offset: slice.offset, limit, backwards: false }
}

/** Cuts a slice that runs over several lists, one after the other, into slices of each. */
export function slicesOf(slice: Slice, counts: number[]): Slice[] {
  let { offset, limit } = slice
  return counts.map(count => {
    const taken = Math.max(0, Math.min(limit, count - offset))
    const part = { offset: Math.min(offset, count), limit: taken }
    offset = Math.max(0, offset - count)
    limit -= taken
    return part
  })
}

/**
 * The first rows of several sources that are each in order already: merged as they are read, where sorting them
 * together would read all. `$offset + $limit` of each are enough.
 */
export function merged(sources: string[], order: string, offset: string, limit: string): string {
  const ordered = sources.map(
    source => `(${source} order by ${order} limit ${offset}::bigint + ${limit}::bigint)`,
  )
  return `(${ordered.join(' union all ')}) merged order by ${order} offset ${offset} limit ${limit}`
}
