import { buildBuckets, findGrain, type Interval } from '../domain/buckets.ts'
import type { Db } from '../postgres/database.ts'
import { countVisitors } from '../store/events/visitors.ts'
import {
  type ConversionSeriesRow,
  readConversionSeries,
  readEventSeries,
  type SeriesQuestion,
} from '../store/sums/series.ts'

export type SeriesRequest = Pick<SeriesQuestion, 'eventType' | 'groupBy'> & {
  interval: Interval
  since: Date | null
  until: Date | null
  now: Date
  /** The time zone in which buckets start. */
  timeZone: string
  /** Whether the last bucket ends with the minute of `until`. */
  isCut?: boolean
}

/** `amounts`: of conversions, exact decimal text by currency. */
export type Sum = { count: number; amounts: Map<string, string> }
export type SeriesBucket = Sum & { at: Date; groups: Map<string, Sum> }

// Senders choose event types freely, so their number must be bounded.
const MAX_GROUPS = 100

/** The number of events without conversions in each bucket; null: too many buckets. */
export function eventSeries(db: Db, tenantId: number, request: SeriesRequest): Promise<SeriesBucket[] | null> {
  return readSeries(request, async question => {
    const rows = await readEventSeries(db, tenantId, question)
    return rows.map(row => ({ ...row, currency: '', amount: '0' }))
  })
}

/** The same for conversions, with their amounts by currency. */
export function conversionSeries(db: Db, tenantId: number, request: SeriesRequest): Promise<SeriesBucket[] | null> {
  return readSeries(request, question => readConversionSeries(db, tenantId, question))
}

/** The number of distinct visitors in each bucket and in all of them; null: too many buckets. */
export async function visitorSeries(
  db: Db,
  tenantId: number,
  request: SeriesRequest,
): Promise<{ total: number; results: { at: Date; count: number }[] } | null> {
  const buckets = buildBuckets(request.interval, request)
  if (buckets === null) return null
  const counts = await countVisitors(db, tenantId, buckets)
  return {
    total: counts.get(null) ?? 0,
    results: buckets.starts.map((at, index) => ({ at, count: counts.get(index + 1) ?? 0 })),
  }
}

async function readSeries(
  { eventType, groupBy, ...request }: SeriesRequest,
  read: (question: SeriesQuestion) => Promise<ConversionSeriesRow[]>,
): Promise<SeriesBucket[] | null> {
  const buckets = buildBuckets(request.interval, request)
  if (buckets === null) return null
  const series = buckets.starts.map((at): SeriesBucket => ({ at, ...nothing(), groups: new Map() }))
  if (series.length === 0) return series
  const question = { buckets, grain: findGrain(buckets), eventType, groupBy, maxGroups: MAX_GROUPS }
  for (const row of await read(question)) {
    const bucket = series[row.bucket - 1]!
    if (row.isTotal) add(bucket, row)
    else if (row.group !== null) {
      const group = bucket.groups.get(row.group) ?? nothing()
      bucket.groups.set(row.group, group)
      add(group, row)
    }
  }
  return series
}

const nothing = (): Sum => ({ count: 0, amounts: new Map() })

function add(sum: Sum, { count, currency, amount }: ConversionSeriesRow): void {
  sum.count += count
  if (currency !== '') sum.amounts.set(currency, amount)
}
