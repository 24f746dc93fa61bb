import type { Db } from '../../postgres/database.ts'

/** What a tenant's operators have to look at: how much of it, and how much came in each of the last 24 hours, oldest first. */
export type Failures = {
  openLetters: number
  lettersByHour: number[]
  refused: number
  refusedByHour: number[]
  deferred: number
  deferredSince: Date | null
}

// The hour that is not over is the last of them.
const HOURS = `generate_series(date_trunc('hour', now()) - interval '23 hours', date_trunc('hour', now()), interval '1 hour')`

export async function failuresOf(db: Db, tenantId: number): Promise<Failures> {
  const { rows } = await db.query<Failures>(
    `with letters as materialized (
       select date_trunc('hour', failed_at) as hour, count(*) as count from dead_letters
       where tenant_id = $1 and failed_at >= date_trunc('hour', now()) - interval '23 hours' group by 1
     ), refused as materialized (
       select date_trunc('hour', r.rejected_at) as hour, sum(1 + r.suppressed) as count
       from sources s join rejections r on r.tenant_id = s.tenant_id and r.source_id = s.id
       where s.tenant_id = $1 and r.rejected_at >= date_trunc('hour', now()) - interval '23 hours' group by 1
     ), refused_keys as materialized (
       select hour, sum(count) as count from rejection_sums
       where tenant_id = $1 and hour >= date_trunc('hour', now()) - interval '23 hours' group by 1
     ), waiting as materialized (
       select coalesce(sum(o.items), 0)::bigint as events, min(o.received_at) as since
       from sources s join overflow o on o.source_id = s.id where s.tenant_id = $1
     )
     select (select count(*) from dead_letters where tenant_id = $1 and replayed_at is null) as "openLetters",
       array(select coalesce(l.count, 0)::int from ${HOURS} as h left join letters l on l.hour = h order by h) as "lettersByHour",
       (select coalesce(sum(count), 0)::bigint from (table refused union all table refused_keys) r) as refused,
       array(
         select (coalesce(r.count, 0) + coalesce(k.count, 0))::int
         from ${HOURS} as h left join refused r on r.hour = h left join refused_keys k on k.hour = h order by h
       ) as "refusedByHour",
       (select events from waiting) as deferred, (select since from waiting) as "deferredSince"`,
    [tenantId],
  )
  return rows[0]!
}
