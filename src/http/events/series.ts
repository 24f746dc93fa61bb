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
        summary: 'Count events by the minute, hour or day',
        description:
          'The events that GET /v1/events lists (what is no conversion), by when they happened, oldest bucket first, in the tenant’s time zone. At most 1,500 buckets.',
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
