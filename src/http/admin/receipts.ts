import { Type } from 'typebox'
import { RECEIPT_OUTCOMES, type ReceiptAdmin } from '../../admin/receipts.ts'
import { NullableText, Timestamp } from '../../domain/shapes.ts'
import type { App } from '../app.ts'
import { sendJson } from '../json.ts'
import { security } from '../openapi.ts'
import { decodeTimeCursor, PagedList, pageBody, pageParameters, readPage } from '../paging.ts'
import { ById, bySource, byTenant } from './schemas.ts'

const documented = { tags: ['Admin: inbound events'], security: security.admin }

export const ReceiptBody = Type.Object(
  {
    id: Type.String({ format: 'uuid', description: 'The id of the event' }),
    tenant: Type.String(),
    source_config_id: Type.String(),
    inbound_event_id: NullableText,
    event_type: NullableText,
    outcome: Type.Enum([...RECEIPT_OUTCOMES]),
    detail: NullableText,
    received_at: Timestamp,
    written_at: Timestamp,
  },
  {
    examples: [
      {
        id: '019c1234-5678-7000-8abc-def012300000',
        tenant: 'ten_1',
        source_config_id: 'src_4fTzQ9aXw2LmN8pB',
        inbound_event_id: 'evt_1001',
        event_type: 'order.shipped',
        outcome: 'processed',
        detail: null,
        received_at: '2026-01-31T09:30:00.000Z',
        written_at: '2026-01-31T09:30:00.040Z',
      },
    ],
  },
)

const ArchiveBody = Type.Object({
  id: Type.String({ format: 'uuid' }),
  tenant: Type.String(),
  source_config_id: Type.String(),
  received_at: Timestamp,
  result: Type.Object({}, { description: 'The normalized event as it was processed' }),
})

export function receiptRoutes(app: App, { receipts }: { receipts: ReceiptAdmin }): void {
  app.get(
    '/admin/v1/receipts',
    {
      config: { problems: [404] },
      schema: {
        ...documented,
        summary: 'What became of inbound events, newest first',
        querystring: Type.Object({
          ...byTenant,
          ...bySource,
          outcome: Type.Optional(Type.Enum([...RECEIPT_OUTCOMES])),
          inbound_event_id: Type.Optional(Type.String({ description: "The sender's id; best with source" })),
          since: Type.Optional(Type.String({ format: 'timestamp', description: 'Inclusive' })),
          until: Type.Optional(Type.String({ format: 'timestamp', description: 'Inclusive' })),
          ...pageParameters,
        }),
        response: { 200: PagedList(ReceiptBody) },
      },
    },
    async request => {
      const { cursor, ...query } = request.query
      const after = decodeTimeCursor(cursor)
      const before = after ? { receivedAt: after.at, id: after.id } : undefined
      const page = await readPage(
        query,
        limit => receipts.receipts({ ...query, limit, before }),
        last => [last.received_at, last.id],
      )
      return pageBody(page)
    },
  )
  app.get(
    '/admin/v1/archive/:id',
    {
      schema: {
        ...documented,
        summary: 'The archived result of an inbound event, by the id in its receipt',
        params: ById,
        querystring: Type.Object(byTenant),
        response: { 200: ArchiveBody },
      },
    },
    async (request, reply) => {
      const { facts, result } = await receipts.archived(request.params.id, request.query.tenant)
      // The result goes out as it is stored: parsing it would cost exact digits.
      return sendJson(reply, `${JSON.stringify(facts).slice(0, -1)},"result":${result}}`)
    },
  )
  app.get(
    '/admin/v1/overflow',
    {
      schema: {
        ...documented,
        summary: 'Sources with events over their limit, and how many wait',
        response: {
          200: Type.Object({
            results: Type.Array(
              Type.Object({
                source_config_id: Type.String(),
                events: Type.Integer(),
                oldest_at: Timestamp,
              }),
            ),
            next_cursor: Type.Null(),
          }),
        },
      },
    },
    async () => ({ results: await receipts.backlogs(), next_cursor: null }),
  )
}
