import type { Db } from '../../postgres/database.ts'

/** How much came or went in each of the last 24 hours, oldest first; the last is not over. */
type ByHour = number[]

const HOURS = `generate_series(date_trunc('hour', now()) - interval '23 hours', date_trunc('hour', now()), interval '1 hour')`

/** An hour is counted so far and no further, however busy it was: 24 of them are read from an index. */
const MOST_IN_AN_HOUR = 10_000

export async function sourceActivity(
  db: Db,
  tenantId: number,
  sourceId: string,
): Promise<{ received: ByHour; refused: ByHour }> {
  const { rows } = await db.query<{ received: ByHour; refused: ByHour }>(
    `with refused as materialized (
       select date_trunc('hour', rejected_at) as hour, sum(1 + suppressed) as count from rejections
       where tenant_id = $1 and source_id = $2 and rejected_at >= date_trunc('hour', now()) - interval '23 hours' group by 1
     )
     select array(
       select (select count(*) from (
           select from receipts r where r.tenant_id = $1 and r.source_id = $2
             and r.received_at >= h and r.received_at < h + interval '1 hour' limit ${MOST_IN_AN_HOUR}
         ) c)::int from ${HOURS} as h order by h
     ) as received,
     array(select coalesce(r.count, 0)::int from ${HOURS} as h left join refused r on r.hour = h order by h) as refused`,
    [tenantId, sourceId],
  )
  return rows[0]!
}

export async function destinationActivity(
  db: Db,
  tenantId: number,
  destinationId: string,
): Promise<{ delivered: ByHour; failed: ByHour }> {
  const { rows } = await db.query<{ delivered: ByHour; failed: ByHour }>(
    `with hours as materialized (
       select h, a.delivered, a.failed from ${HOURS} as h cross join lateral (
         select count(*) filter (where outcome = 'delivered')::int as delivered,
           count(*) filter (where outcome <> 'delivered')::int as failed
         from (
           select outcome from delivery_attempts where tenant_id = $1 and destination_id = $2
             and attempted_at >= h and attempted_at < h + interval '1 hour' limit ${MOST_IN_AN_HOUR}
         ) c
       ) a
     )
     select array(select delivered from hours order by h) as delivered, array(select failed from hours order by h) as failed`,
    [tenantId, destinationId],
  )
  return rows[0]!
}
