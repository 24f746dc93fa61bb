import { MAX_BUCKETS } from '../../domain/buckets.ts'
import { type Db, queryPrepared } from '../../postgres/database.ts'

export const BUCKET_INTERVALS = ['day', 'week', 'month'] as const
export type BucketInterval = (typeof BUCKET_INTERVALS)[number]

/** `date`: the day on which it begins; `ends` is exclusive. */
export type Bucket = { date: string; starts: Date; ends: Date }

type BucketQuestion = {
  interval: BucketInterval
  /** Without it: twelve months, the last one included. */
  from: Date | null
  to: Date
  timeZone: string
}

// A set in the select list is made row by row, and no further than `limit`. Local time plus an interval is what clocks
// show, whatever summer time does in between.
const BUCKETS = `
select to_char(local, 'YYYY-MM-DD') as date, local at time zone $3 as starts, (local + step) at time zone $3 as ends
from (
  select step, generate_series(date_trunc($4, first), last, step) as local
  from (
    select ('1 ' || $4)::interval as step, $2::timestamptz at time zone $3 as last,
      coalesce($1::timestamptz at time zone $3,
        date_trunc('month', $2::timestamptz at time zone $3) - interval '11 months') as first
  ) bounds
  limit ${MAX_BUCKETS + 1}
) buckets
order by local`

/** The buckets that hold `from`, `to` and what lies between; null where they are too many. */
export async function findBuckets(db: Db, question: BucketQuestion): Promise<Bucket[] | null> {
  const { from, to, timeZone, interval } = question
  const { rows } = await queryPrepared<Bucket>(db, BUCKETS, [from, to, timeZone, interval])
  return rows.length > MAX_BUCKETS ? null : rows
}
