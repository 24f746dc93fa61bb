import type pg from 'pg'
import { eventSeries } from '../../reports/series.ts'
import { appliedPolicy } from '../../store/billing/policies.ts'
import type { App } from '../app.ts'
import { sendJson } from '../json.ts'
import { countText, SeriesQuery, seriesRequest, seriesText } from '../series.ts'
import { EventSeriesBody } from './schemas.ts'

export function eventSeriesRoute(app: App, { pool, now }: { pool: pg.Pool; now: () => Date }): void {
  app.get(
    '/v1/events/series',
    {
      config: { scope: 'events:read' },
      schema: {
        tags: ['Events'],
        summary: 'Count events over time',
        description:
          'Number of events (without conversions) per minute, hour or day, by the time they occurred, in the tenant’s time zone. Oldest bucket first, at most 1,500 buckets.',
        querystring: SeriesQuery,
        response: { 200: EventSeriesBody },
      },
    },
    async ({ query, caller }, reply) => {
      const { timeZone } = await appliedPolicy(pool, caller.tenantId)
      const request = seriesRequest(query, { now: now(), timeZone })
      const series = await eventSeries(pool, caller.tenantId, request)
      return sendJson(reply, seriesText(series, request, countText))
    },
  )
}
