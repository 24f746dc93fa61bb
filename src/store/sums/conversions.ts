import type { Db } from '../../postgres/database.ts'
import type { SeriesQuestion } from './events.ts'

/** `currency` is '' and `amount` nothing to show where there is no amount, or one without a currency. */
export type ConversionSeriesRow = {
  bucket: number
  isTotal: boolean
  group: string | null
  currency: string
  count: number
  /** exact decimal text */
  amount: string
}

// A sale that only an order's record tells of has no event type; it is told apart by what kind of conversion it is.
const GROUPS = { event_type: `coalesce(nullif(event_type, ''), conversion_type)`, source: 'source' }

/** The same of conversions, by currency too. Triggers on their table keep the sums. */
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
