import { Type } from 'typebox'
import { ArchiveFacts, BacklogView, ReceiptView, ReceivedRequest } from '../../admin/receipts.ts'
import { RECEIPT_OUTCOMES } from '../../domain/inbound/receipts.ts'
import type { App } from '../app.ts'
import { security } from '../openapi.ts'
import { decodeTimeCursor, PagedList, pageBody, pageParameters, readPage, sendJson } from '../paging.ts'
import type { RequestAdmin } from './operator.ts'
import { ById, bySource, byTenant, List } from './schemas.ts'

const documented = { tags: ['Admin: inbound events'], security: security.admin }

const ArchiveBody = Type.Object({
  ...ArchiveFacts.properties,
  result: Type.Object({}, { description: 'The normalized event as it was processed' }),
})

export function receiptRoutes(app: App, { admin }: { admin: RequestAdmin }): void {
  listRoute(app, admin)
  archiveRoute(app, admin)
  overflowRoute(app, admin)
}

function listRoute(app: App, admin: RequestAdmin): void {
  app.get(
    '/admin/v1/receipts',
    {
      config: { problems: [404] },
      schema: {
        ...documented,
        summary: 'List receipts',
        description:
          'The outcome of each inbound event, newest first: `processed`, `duplicate` (of `first_id`), `dropped` (over the source’s limit), `dead_letter` or `suppressed`. Kept for 30 days by default.',
        querystring: Type.Object({
          ...byTenant,
          ...bySource,
          outcome: Type.Optional(Type.Enum([...RECEIPT_OUTCOMES])),
          inbound_event_id: Type.Optional(
            Type.String({ description: "The sender's id of the event; fastest with source" }),
          ),
          since: Type.Optional(Type.String({ format: 'timestamp', description: 'Inclusive' })),
          until: Type.Optional(Type.String({ format: 'timestamp', description: 'Inclusive' })),
          ...pageParameters,
        }),
        response: { 200: PagedList(ReceiptView) },
      },
    },
    async request => {
      const { cursor, ...query } = request.query
      const after = decodeTimeCursor(cursor)
      const before = after ? { receivedAt: after.at, id: after.id } : undefined
      const page = await readPage(
        query,
        limit => admin(request).receipts.receipts({ ...query, limit, before }),
        last => [last.received_at, last.id],
      )
      return pageBody(page)
    },
  )
}

function archiveRoute(app: App, admin: RequestAdmin): void {
  app.get(
    '/admin/v1/archive/:id',
    {
      schema: {
        ...documented,
        summary: 'Get the archived result of an inbound event',
        description:
          'The normalized event as it was applied, by the id in its receipt. Every `processed` receipt has one. Kept for 30 days by default.',
        params: ById,
        querystring: Type.Object(byTenant),
        response: { 200: ArchiveBody },
      },
    },
    async (request, reply) => {
      const { facts, result } = await admin(request).receipts.archived(request.params.id, request.query.tenant)
      // The result is sent as stored: parsing it would lose exact digits.
      return sendJson(reply, `${JSON.stringify(facts).slice(0, -1)},"result":${result}}`)
    },
  )
}

function overflowRoute(app: App, admin: RequestAdmin): void {
  app.get(
    '/admin/v1/overflow',
    {
      schema: {
        ...documented,
        summary: 'List sources with deferred events',
        description:
          'The number of events per source that exceed its limit and wait for budget, for all tenants that the key can access.',
        response: {
          200: List(BacklogView),
        },
      },
    },
    async request => ({ results: await admin(request).receipts.backlogs(), next_cursor: null }),
  )
}

export function receivedRequestRoute(app: App, { admin }: { admin: RequestAdmin }): void {
  app.get(
    '/admin/v1/events/:id/request',
    {
      schema: {
        tags: ['Admin: inbound events'],
        security: security.admin,
        summary: 'Get the request of an event',
        description:
          'The request as received, without credentials, as long as the log keeps it. For a batch, only the item that became the event: the others may belong to other people. If the request is not available, `missing` is the reason.',
        params: ById,
        querystring: Type.Object({
          tenant: Type.String({ description: 'Id or name' }),
          whole: Type.Boolean({ default: false, description: 'For a batch: the whole batch' }),
        }),
        response: { 200: ReceivedRequest },
      },
    },
    async request => admin(request).receivedRequests.ofEvent(request.params.id, request.query),
  )
}
