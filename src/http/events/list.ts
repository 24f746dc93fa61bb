import type pg from 'pg'
import { listEvents } from '../../store/events/events.ts'
import { eventText } from '../../store/export/row-texts.ts'
import type { App } from '../app.ts'
import { sendJson } from '../json.ts'
import { TimeList, TimeQuery, timeList } from '../paging.ts'
import { EventBody } from './schemas.ts'

export function eventListRoute(app: App, { pool }: { pool: pg.Pool }): void {
  app.get(
    '/v1/events',
    {
      config: { scope: 'events:read' },
      schema: {
        tags: ['Events'],
        summary: 'List events that are not conversions, newest first',
        querystring: TimeQuery,
        response: { 200: TimeList(EventBody) },
      },
    },
    async ({ query, caller }, reply) =>
      sendJson(reply, await timeList(query, page => listEvents(pool, caller.tenantId, page), eventText)),
  )
}
