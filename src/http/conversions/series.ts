import type pg from 'pg'
import { conversionSeries } from '../../reports/series.ts'
import { appliedPolicy } from '../../store/billing/policies.ts'
import type { App } from '../app.ts'
import { ConversionSeriesBody } from '../events/schemas.ts'
import { sendJson } from '../json.ts'
import { amountsText, SeriesQuery, seriesRequest, seriesText } from '../series.ts'

export function conversionSeriesRoute(app: App, { pool, now }: { pool: pg.Pool; now: () => Date }): void {
  app.get(
    '/v1/conversions/series',
    {
      config: { scope: 'conversions:read' },
      schema: {
        tags: ['Events'],
        summary: 'Count conversions over time',
        description:
          'Number and amounts of conversions per minute, hour or day, by the time they occurred, in the tenant’s time zone. Oldest bucket first, at most 1,500 buckets.',
        querystring: SeriesQuery,
        response: { 200: ConversionSeriesBody },
      },
    },
    async ({ query, caller }, reply) => {
      const { timeZone } = await appliedPolicy(pool, caller.tenantId)
      const request = seriesRequest(query, { now: now(), timeZone })
      const series = await conversionSeries(pool, caller.tenantId, request)
      return sendJson(reply, seriesText(series, request, amountsText))
    },
  )
}
