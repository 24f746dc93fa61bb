import type pg from 'pg'
import { EVENT_COLUMNS } from '../../reports/export/tables.ts'
import { listEvents } from '../../store/events/events.ts'
import { eventText } from '../../store/export/row-texts.ts'
import type { App } from '../app.ts'
import { sendList, TimeList, TimeQuery, timeList } from '../paging.ts'
import { EventBody } from './schemas.ts'

export function eventListRoute(app: App, { pool }: { pool: pg.Pool }): void {
  app.get(
    '/v1/events',
    {
      config: { scope: 'events:read' },
      schema: {
        tags: ['Events'],
        summary: 'List events',
        description: 'Newest first. With `Accept: text/csv` the rows are returned as CSV.',
        querystring: TimeQuery,
        response: { 200: TimeList(EventBody) },
      },
    },
    async (request, reply) => {
      const { query, caller } = request
      const list = timeList(query, page => listEvents(pool, caller.tenantId, page), eventText)
      return sendList(request, reply, list, EVENT_COLUMNS)
    },
  )
}
