import type { Buckets, Grain } from '../../domain/buckets.ts'
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
  /** Each sum of this grain falls into one bucket. */
  grain: Grain
  eventType: string | null
  groupBy: 'event_type' | 'source' | null
  maxGroups: number
}

/**
 * Sums by minute are kept for three days (fold.ts). A series that starts before the last two counts the events instead:
 * it has at most 1,500 minutes.
 */
const IS_OLD = `$5 = 'minute' and $2 < now() - interval '2 days'`

/**
 * Counts by bucket (from 1) and group, from the folded sums and those not folded yet. Groups by time first, because
 * finding the buckets of 60,000 sums one by one takes as long as adding them up.
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
             and ($7::text is null or event_type = $7) and not (${IS_OLD})
             and not at <@ (select coalesce(range_agg(tstzrange(since, until)), '{}') from event_sums_dropped)
           union all
           select minute, event_type, source, count from event_sums_added
           where tenant_id = $1 and minute >= $2 and minute < $3 and ($7::text is null or event_type = $7)
             and not (${IS_OLD})
           union all
           select date_trunc('minute', occurred_at, 'UTC'), event_type, source, 1 from events
           where tenant_id = $1 and occurred_at >= $2 and occurred_at < $3 and ($7::text is null or event_type = $7)
             and not conversion and ${NOT_A_TEST} and ${IS_OLD}
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
  { buckets, grain, eventType, groupBy, maxGroups }: SeriesQuestion,
): Promise<ConversionSeriesRow[]> {
  const { rows } = await db.query<ConversionSeriesRow>(
    `with sums as materialized (
       select width_bucket(at, $4::timestamptz[]) as bucket, key, currency, sum(count) as count, sum(amount) as amount from (
         select at, ${groupBy ? GROUPS[groupBy] : 'null::text'} as key, currency, sum(count) as count, sum(amount) as amount
         from (
           select at, event_type, conversion_type, source, currency, count, amount from conversion_sums
           where tenant_id = $1 and grain = $5 and at >= $2 and at < $3
             and ($6::text is null or $6 <> '' and $6 in (event_type, conversion_type))
           union all
           select minute, event_type, conversion_type, source, currency, count, amount from conversion_sums_added
           where tenant_id = $1 and minute >= $2 and minute < $3
             and ($6::text is null or $6 <> '' and $6 in (event_type, conversion_type))
         ) s group by 1, 2, 3
       ) s group by 1, 2, 3 having sum(count) <> 0
     ), largest as (
       select key from sums group by key order by sum(count) desc, key limit $7
     )
     select bucket, grouping(shown) = 1 as "isTotal", shown as group, currency, sum(count)::bigint as count,
       sum(amount)::text as amount
     from (select *, case when key in (select key from largest) then key end as shown from sums) s
     group by grouping sets ((bucket, currency), (bucket, shown, currency)) order by 1, 5 desc, 3, 4`,
    [tenantId, buckets.starts[0], buckets.end, buckets.starts, grain, eventType, maxGroups],
  )
  return rows
}
