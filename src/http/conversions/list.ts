import type pg from 'pg'
import { Type } from 'typebox'
import { contactFacts } from '../../domain/conversions/conversions.ts'
import { SOURCE_TYPES } from '../../domain/events/events.ts'
import { publicProfileId } from '../../domain/identity/identity.ts'
import { Nullable, NullableText, Timestamp, Uuid } from '../../domain/shapes.ts'
import { type ConversionRow, listConversions } from '../../store/conversions/conversions.ts'
import type { App } from '../app.ts'
import { sendJson } from '../json.ts'
import { TimeList, TimeQuery, timeList } from '../paging.ts'

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
        querystring: TimeQuery,
        response: { 200: TimeList(ConversionBody) },
      },
    },
    async ({ query, caller }, reply) =>
      sendJson(
        reply,
        await timeList(
          query,
          async page => ({ rows: await listConversions(pool, caller.tenantId, page), isCut: false }),
          conversionText,
        ),
      ),
  )
}

function conversionText(row: ConversionRow): string {
  const contact = row.contactData === null ? null : contactFacts(JSON.parse(row.contactData))
  const facts = JSON.stringify({
    id: row.id,
    occurred_at: row.occurredAt,
    conversion_type: row.conversionType,
    event_type: row.eventType,
    source: row.source,
    source_object_id: row.sourceObjectId,
    currency: row.currency,
    visitor: row.visitor,
    profile_id: publicProfileId(row.profile),
    contact_id: row.contactId,
    contact_name: contact?.name ?? null,
    contact_email: contact?.email ?? null,
    company_name: contact?.company ?? null,
    integration_id: row.integrationId,
  })
  // The amount is exact decimal text and a JSON number as it is; trailing zeros say nothing.
  return `${facts.slice(0, -1)},"amount":${row.amount === null ? 'null' : plainNumber(row.amount)}}`
}

function plainNumber(decimal: string): string {
  return decimal.includes('.') ? decimal.replace(/\.?0+$/, '') : decimal
}
