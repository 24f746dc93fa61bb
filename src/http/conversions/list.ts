import type pg from 'pg'
import { Type } from 'typebox'
import { SOURCE_TYPES } from '../../domain/events/events.ts'
import { Nullable, NullableText, Timestamp, Uuid } from '../../domain/shapes.ts'
import { CONVERSION_COLUMNS } from '../../reports/export/columns.ts'
import { listConversions } from '../../store/conversions/conversions.ts'
import type { TimePage } from '../../store/events/events.ts'
import { conversionText } from '../../store/export/row-texts.ts'
import type { App } from '../app.ts'
import { sendList, TimeList, TimeQuery, timeList } from '../paging.ts'

const ConversionBody = Type.Object({
  id: Uuid,
  occurred_at: Timestamp,
  conversion_type: Type.String(),
  event_type: NullableText,
  source: Type.Enum(['tracking', ...SOURCE_TYPES, 'orders', 'billing']),
  source_object_id: NullableText,
  amount: Nullable(Type.Number()),
  currency: NullableText,
  visitor: NullableText,
  profile_id: NullableText,
  contact_id: NullableText,
  contact_name: NullableText,
  contact_email: NullableText,
  company_name: NullableText,
  integration_id: NullableText,
})

export function conversionListRoute(app: App, { pool }: { pool: pg.Pool }): void {
  app.get(
    '/v1/conversions',
    {
      config: { scope: 'conversions:read' },
      schema: {
        tags: ['Events'],
        summary: 'List conversions, newest first; one sale is one row',
        description: 'With `Accept: text/csv` the same rows as CSV.',
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
