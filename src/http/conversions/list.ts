import type pg from 'pg'
import { CONVERSION_COLUMNS } from '../../reports/export/tables.ts'
import { listConversions } from '../../store/conversions/conversions.ts'
import type { TimePage } from '../../store/events/events.ts'
import { conversionText } from '../../store/export/row-texts.ts'
import type { App } from '../app.ts'
import { ConversionBody } from '../events/schemas.ts'
import { sendList, TimeList, TimeQuery, timeList } from '../paging.ts'

export function conversionListRoute(app: App, { pool }: { pool: pg.Pool }): void {
  app.get(
    '/v1/conversions',
    {
      config: { scope: 'conversions:read' },
      schema: {
        tags: ['Events'],
        summary: 'List conversions',
        description: 'Newest first. With `Accept: text/csv` the rows are returned as CSV.',
        querystring: TimeQuery,
        response: { 200: TimeList(ConversionBody) },
      },
    },
    async (request, reply) => {
      const { query, caller } = request
      const read = async (page: TimePage) => ({
        rows: await listConversions(pool, caller.tenantId, page),
        isCut: false,
      })
      return sendList(request, reply, timeList(query, read, conversionText), CONVERSION_COLUMNS)
    },
  )
}
