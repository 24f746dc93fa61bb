import type pg from 'pg'
import { Type } from 'typebox'
import { conversionSeries } from '../../reports/series.ts'
import { appliedPolicy } from '../../store/billing/policies.ts'
import type { App } from '../app.ts'
import { sendJson } from '../json.ts'
import { amountsText, SeriesBody, SeriesQuery, seriesRequest, seriesText } from '../series.ts'

const Sums = {
  count: Type.Integer(),
  amounts: Type.Record(Type.String(), Type.Number(), {
    description: 'By currency; amounts without a currency are counted and not added up',
  }),
}

export function conversionSeriesRoute(app: App, { pool, now }: { pool: pg.Pool; now: () => Date }): void {
  app.get(
    '/v1/conversions/series',
    {
      config: { scope: 'conversions:read' },
      schema: {
        tags: ['Events'],
        summary: 'Count conversions by the minute, hour or day, with their amounts',
        description:
          'The conversions that GET /v1/conversions lists, by when they happened, oldest bucket first, in the tenant’s time zone. At most 1,500 buckets.',
        querystring: SeriesQuery,
        response: { 200: SeriesBody(Sums) },
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
