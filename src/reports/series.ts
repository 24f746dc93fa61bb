import type pg from 'pg'
import { buildBuckets, findGrains, type Interval } from '../domain/buckets.ts'
import { majorText, toMinor } from '../domain/money.ts'
import type { Day } from '../domain/time.ts'
import { dayIn } from '../domain/time-zone.ts'
import type { Db } from '../postgres/database.ts'
import { countVisitors } from '../store/events/visitors.ts'
import {
  type ConversionSeriesRow,
  readConversionSeries,
  readEventSeries,
  type SeriesQuestion,
} from '../store/sums/series.ts'
import { openExchange } from './exchange.ts'
import { inSnapshot, QuestionError } from './question.ts'

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

/** Leaves only the amounts in one currency. Counts stay unchanged. */
export function selectCurrency(series: SeriesBucket[], currency: string): SeriesBucket[] {
  const selected = ({ count, amounts }: Sum): Sum => ({
    count,
    amounts: new Map([...amounts].filter(([code]) => code === currency)),
  })
  return series.map(bucket => ({
    ...{ at: bucket.at, ...selected(bucket) },
    groups: new Map([...bucket.groups].map(([name, sum]) => [name, selected(sum)])),
  }))
}

/** Converts the amounts of all currencies into one, by the rates of the day of each bucket. */
export async function exchangeSeries(
  db: Db,
  tenantId: number,
  series: SeriesBucket[],
  { target, timeZone }: { target: string; timeZone: string },
): Promise<SeriesBucket[]> {
  const dayOf = ({ at }: SeriesBucket) => dayIn(timeZone, at)
  const currencies = [...new Set(series.flatMap(({ amounts }) => [...amounts.keys()]))]
  if (currencies.length === 0) return series
  const [first, last] = [dayOf(series[0]!), dayOf(series.at(-1)!)]
  const convert = await openExchange(db, tenantId, { currencies, target, first, last })
  const converted = ({ count, amounts }: Sum, day: Day): Sum => {
    if (amounts.size === 0) return { count, amounts }
    let minor = 0
    for (const [currency, amount] of amounts) minor += convert(requireMinor(amount, currency), currency, day)
    return { count, amounts: new Map([[target, majorText(minor, target)]]) }
  }
  return series.map(bucket => ({
    ...{ at: bucket.at, ...converted(bucket, dayOf(bucket)) },
    groups: new Map([...bucket.groups].map(([name, sum]) => [name, converted(sum, dayOf(bucket))])),
  }))
}

function requireMinor(amount: string, currency: string): number {
  const minor = toMinor(amount, currency)
  if (minor !== null) return minor
  throw new QuestionError('/currency', `cannot be converted: ${amount} ${currency} is too large`)
}

/** The number of distinct visitors in each bucket and in all of them; null: too many buckets. */
export async function visitorSeries(
  pool: pg.Pool,
  tenantId: number,
  request: SeriesRequest,
): Promise<{ total: number; results: { at: Date; count: number }[] } | null> {
  const buckets = buildBuckets(request.interval, request)
  if (buckets === null) return null
  // In a snapshot, PostgreSQL uses a generic plan. With a plan for these dates, it scanned whole partitions for each day.
  const counts = await inSnapshot(pool, db => countVisitors(db, tenantId, buckets))
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
  const question = { buckets, ranges: findGrains(buckets), eventType, groupBy, maxGroups: MAX_GROUPS }
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
