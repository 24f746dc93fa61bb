import type { Db } from '../../postgres/database.ts'

/** The tenant, currency and time of a report. */
export type Scope = { tenantId: number; currency: string; asOf: Date }

/**
 * From here on the transaction sees one state of the database and cannot change it. The questions of a report are many
 * and small: starting helpers and compiling would cost more than they save. Plans are made once, for any tenant: made for
 * one that came after the last ANALYZE, they take its rows for none, and any index for as good as another. (A plan of
 * accounts × contacts × identities read 1,500 × 1,500 rows and took 60 s.)
 */
export async function readOneState(db: Db): Promise<void> {
  await db.query(`set transaction isolation level repeatable read, read only;
    set local jit = off; set local max_parallel_workers_per_gather = 0; set local plan_cache_mode = force_generic_plan`)
}

/**
 * The first rows of several sources that are each in order already: merged as they are read, where sorting them
 * together would read all. `$offset + $limit` of each are enough.
 */
export function merged(sources: string[], order: string, offset: string, limit: string): string {
  const ordered = sources.map(source => `(${source} order by ${order} limit ${offset}::bigint + ${limit}::bigint)`)
  return `(${ordered.join(' union all ')}) merged order by ${order} offset ${offset} limit ${limit}`
}
