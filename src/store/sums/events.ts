import type { Buckets, Interval } from '../../domain/buckets.ts'
import { type Db, queryPrepared } from '../../postgres/database.ts'

/** How many events of a minute, type and source came or went. */
export type EventSum = { tenantId: number; minute: string; eventType: string; source: string; count: number }

export async function addEventSums(db: Db, sums: EventSum[]): Promise<void> {
  await queryPrepared(
    db,
    `insert into event_sums_added (tenant_id, minute, event_type, source, count)
     select * from unnest($1::int[], $2::timestamptz[], $3::text[], $4::text[], $5::bigint[])`,
    [
      ...[sums.map(({ tenantId }) => tenantId), sums.map(({ minute }) => minute)],
      ...[sums.map(({ eventType }) => eventType), sums.map(({ source }) => source)],
      sums.map(({ count }) => count),
    ],
  )
}

/** What deleted events take away; `gone` is the statement that deletes them, returning their rows. */
export const SUBTRACT_EVENTS = `
  insert into event_sums_added (tenant_id, minute, event_type, source, count)
  select tenant_id, date_trunc('minute', occurred_at, 'UTC'), event_type, source, -count(*)
  from gone where not conversion group by 1, 2, 3, 4`

/** A bucket as a whole, or one of its groups; `group` is null in what is left beside the largest of them. */
type EventSeriesRow = { bucket: number; isTotal: boolean; group: string | null; count: number }

export type SeriesQuestion = {
  buckets: Buckets
  /** Sums of this grain lie in one bucket each. */
  grain: Interval
  eventType: string | null
  groupBy: 'event_type' | 'source' | null
  maxGroups: number
}

/**
 * Counts by bucket (from 1 on) and group, from the sums and from what is not folded into them yet. Added up by time first:
 * finding the bucket of 60,000 sums one by one takes as long as adding them up.
 */
export async function readEventSeries(
  db: Db,
  tenantId: number,
  { buckets, grain, eventType, groupBy, maxGroups }: SeriesQuestion,
): Promise<EventSeriesRow[]> {
  const { rows } = await db.query<EventSeriesRow>(
    `with sums as materialized (
       select width_bucket(at, $4::timestamptz[]) as bucket, key, sum(count) as count from (
         select at, ${groupBy ?? 'null::text'} as key, sum(count) as count from (
           select at, event_type, source, count from event_sums
           where tenant_id = $1 and grain = $5 and all_types = $6 and at >= $2 and at < $3
             and ($7::text is null or event_type = $7)
             and not at <@ (select coalesce(range_agg(tstzrange(since, until)), '{}') from event_sums_dropped)
           union all
           select minute, event_type, source, count from event_sums_added
           where tenant_id = $1 and minute >= $2 and minute < $3 and ($7::text is null or event_type = $7)
         ) s group by 1, 2
       ) s group by 1, 2 having sum(count) <> 0
     ), largest as (
       select key from sums group by key order by sum(count) desc, key limit $8
     )
     select bucket, grouping(shown) = 1 as "isTotal", shown as group, sum(count)::bigint as count
     from (select *, case when key in (select key from largest) then key end as shown from sums) s
     group by grouping sets ((bucket), (bucket, shown)) order by 1, 4 desc, 3`,
    [
      ...[tenantId, buckets.starts[0], buckets.end, buckets.starts, grain],
      ...[eventType === null && groupBy !== 'event_type', eventType, maxGroups],
    ],
  )
  return rows
}
