import type { Buckets, GrainRange } from '../../domain/buckets.ts'
import { type Db, queryPrepared } from '../../postgres/database.ts'
import { NOT_A_TEST } from '../events/events.ts'

/** The number of events added (or, if negative, deleted) per minute, type and source. */
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

/** Subtracts deleted events. `gone` is the statement that deletes them and returns their rows. */
export const SUBTRACT_EVENTS = `
  insert into event_sums_added (tenant_id, minute, event_type, source, count)
  select tenant_id, date_trunc('minute', occurred_at, 'UTC'), event_type, source, -count(*)
  from gone where not conversion group by 1, 2, 3, 4`

/** A count of 0 changes no sum, but the events of the day are read again. `moved` is a statement that returns the rows. */
export const OUTDATE_MOVED_EVENTS = `
  insert into event_sums_added (tenant_id, minute, event_type, source, count)
  select distinct tenant_id, date_trunc('minute', occurred_at, 'UTC'), event_type, source, 0 from moved`

/** The total of a bucket, or one of its groups. `group` is null for the sum of the groups beyond the largest. */
type EventSeriesRow = { bucket: number; isTotal: boolean; group: string | null; count: number }

export type SeriesQuestion = {
  buckets: Buckets
  /** Each sum of these grains falls into one bucket. */
  ranges: GrainRange[]
  eventType: string | null
  groupBy: 'event_type' | 'source' | null
  maxGroups: number
}

const RANGES = `ranges as materialized (
  select * from unnest($2::text[], $3::timestamptz[], $4::timestamptz[]) as r (grain, since, until))`

const toColumns = (ranges: GrainRange[]) => [
  ranges.map(({ grain }) => grain),
  ranges.map(({ since }) => since),
  ranges.map(({ until }) => until),
]

/**
 * Sums by minute are kept for three days (fold.ts). In a range of minutes that starts before the last two, the events are counted
 * instead: it has at most 1,500 minutes.
 */
const IS_OLD = `r.grain = 'minute' and r.since < now() - interval '2 days'`

/**
 * Counts by bucket (from 1) and group, from the folded sums and those not folded yet. Groups by time first, because
 * finding the buckets of 60,000 sums one by one takes as long as adding them up.
 */
export async function readEventSeries(
  db: Db,
  tenantId: number,
  { buckets, ranges, eventType, groupBy, maxGroups }: SeriesQuestion,
): Promise<EventSeriesRow[]> {
  const { rows } = await db.query<EventSeriesRow>(
    `with ${RANGES}, sums as materialized (
       select width_bucket(at, $5::timestamptz[]) as bucket, key, sum(count) as count from (
         select at, ${groupBy ?? 'null::text'} as key, sum(count) as count from (
           select s.at, s.event_type, s.source, s.count from ranges r cross join lateral (
             select at, event_type, source, count from event_sums
             where tenant_id = $1 and grain = r.grain and all_types = $6 and at >= r.since and at < r.until
               and ($7::text is null or event_type = $7)
               and not at <@ (select coalesce(range_agg(tstzrange(since, until)), '{}') from event_sums_dropped)
           ) s where not (${IS_OLD})
           union all
           select s.minute, s.event_type, s.source, s.count from ranges r cross join lateral (
             select minute, event_type, source, count from event_sums_added
             where tenant_id = $1 and minute >= r.since and minute < r.until and ($7::text is null or event_type = $7)
           ) s where not (${IS_OLD})
           union all
           select date_trunc('minute', e.occurred_at, 'UTC'), e.event_type, e.source, 1 from ranges r cross join lateral (
             select occurred_at, event_type, source from events
             where tenant_id = $1 and occurred_at >= r.since and occurred_at < r.until
               and ($7::text is null or event_type = $7) and not conversion and ${NOT_A_TEST}
           ) e where ${IS_OLD}
         ) s group by 1, 2
       ) s group by 1, 2 having sum(count) <> 0
     ), largest as (
       select key from sums group by key order by sum(count) desc, key limit $8
     )
     select bucket, grouping(shown) = 1 as "isTotal", shown as group, sum(count)::bigint as count
     from (select *, case when key in (select key from largest) then key end as shown from sums) s
     group by grouping sets ((bucket), (bucket, shown)) order by 1, 4 desc, 3`,
    [
      ...[tenantId, ...toColumns(ranges), buckets.starts],
      ...[eventType === null && groupBy !== 'event_type', eventType, maxGroups],
    ],
  )
  return rows
}

/** If there is no amount or no currency, `currency` is '' and `amount` is not shown. */
export type ConversionSeriesRow = {
  bucket: number
  isTotal: boolean
  group: string | null
  currency: string
  count: number
  /** Exact decimal text. */
  amount: string
}

// A sale of an order record has no event type. It is grouped by its conversion type.
const GROUPS = { event_type: `coalesce(nullif(event_type, ''), conversion_type)`, source: 'source' }

/** The same for conversions, also by currency. Triggers on their table maintain the sums. */
export async function readConversionSeries(
  db: Db,
  tenantId: number,
  { buckets, ranges, eventType, groupBy, maxGroups }: SeriesQuestion,
): Promise<ConversionSeriesRow[]> {
  const { rows } = await db.query<ConversionSeriesRow>(
    `with ${RANGES}, sums as materialized (
       select width_bucket(at, $5::timestamptz[]) as bucket, key, currency, sum(count) as count, sum(amount) as amount from (
         select at, ${groupBy ? GROUPS[groupBy] : 'null::text'} as key, currency, sum(count) as count, sum(amount) as amount
         from (
           select s.* from ranges r cross join lateral (
             select at, event_type, conversion_type, source, currency, count, amount from conversion_sums
             where tenant_id = $1 and grain = r.grain and at >= r.since and at < r.until
             union all
             select minute, event_type, conversion_type, source, currency, count, amount from conversion_sums_added
             where tenant_id = $1 and minute >= r.since and minute < r.until
           ) s where $6::text is null or $6 <> '' and $6 in (s.event_type, s.conversion_type)
         ) s group by 1, 2, 3
       ) s group by 1, 2, 3 having sum(count) <> 0
     ), largest as (
       select key from sums group by key order by sum(count) desc, key limit $7
     )
     select bucket, grouping(shown) = 1 as "isTotal", shown as group, currency, sum(count)::bigint as count,
       sum(amount)::text as amount
     from (select *, case when key in (select key from largest) then key end as shown from sums) s
     group by grouping sets ((bucket, currency), (bucket, shown, currency)) order by 1, 5 desc, 3, 4`,
    [tenantId, ...toColumns(ranges), buckets.starts, eventType, maxGroups],
  )
  return rows
}
