import { INTERVALS, MAX_BUCKETS } from '../domain/buckets.ts'
import { storableText } from '../domain/json/json.ts'
import { WHOLE_DAY } from '../domain/time-zone.ts'
import { type Static, Type } from '../domain/typebox.ts'
import type { SeriesBucket, SeriesRequest, Sum } from '../reports/series.ts'
import { plainNumber } from '../store/export/row-texts.ts'
import { timeWindow } from './paging.ts'
import { problems } from './problems.ts'

/** The query parameters of GET /v1/events/series and GET /v1/conversions/series. */
export const SeriesQuery = Type.Object({
  interval: Type.Enum([...INTERVALS], { default: 'hour', description: 'Length of a bucket' }),
  since: Type.Optional(
    Type.String({
      format: 'timestamp',
      description:
        'The first bucket contains this time; default: 60 minutes, 24 hours or 30 days ago, depending on the interval',
    }),
  ),
  until: Type.Optional(
    Type.String({
      format: 'timestamp',
      description: `The last bucket contains this time; default: now. ${WHOLE_DAY}`,
    }),
  ),
  cut: Type.Optional(
    Type.Boolean({
      default: false,
      description:
        'Whether the last bucket ends at the minute of `until`. Use it to compare a past period with the current, incomplete period',
    }),
  ),
  event_type: Type.Optional(
    Type.String({ description: 'Exact event type; for conversions, the event type or conversion_type' }),
  ),
  group_by: Type.Optional(
    Type.Enum(['event_type', 'source'], {
      description: 'Adds the values per group. Only the 100 largest groups are listed; `count` includes all groups',
    }),
  ),
})

export function seriesRequest(
  query: Static<typeof SeriesQuery>,
  { now, timeZone }: { now: Date; timeZone: string },
): SeriesRequest {
  const { since, until } = timeWindow(query, timeZone)
  return {
    ...{ interval: query.interval, since, until, now, timeZone, isCut: query.cut ?? false },
    groupBy: query.group_by ?? null,
    eventType: query.event_type === undefined ? null : storableText(query.event_type),
  }
}

/** The response as JSON text, because amounts are exact decimals and a group may have any name (`__proto__`). */
export function seriesText(
  series: SeriesBucket[] | null,
  { interval, groupBy }: SeriesRequest,
  sumText: (sum: Sum) => string,
): string {
  if (series === null) throw tooManyBuckets()
  const rows = series.map(bucket => {
    const groups = [...bucket.groups].map(([name, sum]) => `${JSON.stringify(name)}:{${sumText(sum)}}`)
    const grouped = groupBy === null ? '' : `,"groups":{${groups.join(',')}}`
    return `{"at":${JSON.stringify(bucket.at)},${sumText(bucket)}${grouped}}`
  })
  return `{"interval":"${interval}","results":[${rows.join(',')}]}`
}

export function tooManyBuckets() {
  const message = `must be later, or interval must be longer: the series would have more than ${MAX_BUCKETS} buckets`
  return problems.invalid([{ pointer: '/since', message }])
}

export function countText({ count }: Sum): string {
  return `"count":${count}`
}

export function amountsText(sum: Sum): string {
  const amounts = [...sum.amounts].toSorted().map(([currency, amount]) => `"${currency}":${plainNumber(amount)}`)
  return `${countText(sum)},"amounts":{${amounts.join(',')}}`
}
