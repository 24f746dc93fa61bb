import type { Db } from '../../postgres/database.ts'

/** The tenant, currency and time of a report. */
export type Scope = { tenantId: number; currency: string; asOf: Date }

/**
 * From here on, the transaction sees one snapshot of the database and cannot change it. A report runs many small queries,
 * for which parallel workers and JIT compilation cost more than they save. Generic plans are used for all tenants: a plan
 * for a tenant that is newer than the last ANALYZE would expect no rows and choose any index. (Such a plan for accounts ×
 * contacts × identities read 1,500 × 1,500 rows and took 60 s.)
 */
export async function readOneState(db: Db): Promise<void> {
  await db.query(`set transaction isolation level repeatable read, read only;
    set local jit = off; set local max_parallel_workers_per_gather = 0; set local plan_cache_mode = force_generic_plan`)
}

/**
 * The first rows of several ordered sources. Each is read only up to `$offset + $limit` rows and then merged; sorting them
 * together would read all rows.
 */
export function merged(sources: string[], order: string, offset: string, limit: string): string {
  const ordered = sources.map(source => `(${source} order by ${order} limit ${offset}::bigint + ${limit}::bigint)`)
  return `(${ordered.join(' union all ')}) merged order by ${order} offset ${offset} limit ${limit}`
}
