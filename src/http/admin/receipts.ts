import { ArchiveFacts, BacklogView, ReceiptView, ReceivedRequest, RejectionView } from '../../admin/receipts.ts'
import { RECEIPT_OUTCOMES } from '../../domain/inbound/receipts.ts'
import { Type } from '../../domain/typebox.ts'
import type { App } from '../app.ts'
import { security } from '../openapi.ts'
import { decodeCursor, PagedList, pageBody, pageParameters, readPage, sendJson } from '../paging.ts'
import { adminRoutes, type RequestAdmin } from './routes.ts'
import { ById, bySource, byTenant, timeRange } from './schemas.ts'

const TAG = 'Admin: inbound events'

const ArchiveBody = Type.Object(
  {
    ...ArchiveFacts.properties,
    result: Type.Object({}, { description: 'The normalized event as it was processed' }),
  },
  { title: 'ArchivedEvent', description: 'The stored result of an inbound event' },
)

/** Fits into a JavaScript number and into bigint. */
const isRejectionId = (part: string) => /^\d{1,15}$/.test(part)

export function receiptRoutes(app: App, { admin }: { admin: RequestAdmin }): void {
  const { route, list, pages } = adminRoutes(app, { admin }, TAG)
  pages('/admin/v1/receipts', {
    summary: 'List receipts',
    description:
      'The outcome of each inbound event, newest first: `processed`, `duplicate` (of `first_id`), `dropped` (above the rate limit), `dead_letter` or `suppressed`. Kept for 30 days by default.',
    problems: [404],
    query: {
      ...byTenant,
      ...bySource,
      outcome: Type.Optional(Type.Enum([...RECEIPT_OUTCOMES], { description: 'Only events with this outcome' })),
      inbound_event_id: Type.Optional(
        Type.String({ description: "The sender's id of the event; fastest with source" }),
      ),
      ...timeRange,
    },
    item: ReceiptView,
    run: (admin, { query }, { limit, after }) =>
      admin.receipts.receipts({ ...query, limit, before: after && { receivedAt: after.at, id: after.id } }),
    placeOf: ({ received_at, id }) => [received_at, id],
  })
  app.get(
    '/admin/v1/archive/:id',
    {
      schema: {
        tags: [TAG],
        security: security.admin,
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
  list('/admin/v1/overflow', {
    summary: 'List sources with deferred events',
    description: 'The number of deferred events per source, for all tenants that the key can access.',
    item: BacklogView,
    run: admin => admin.receipts.backlogs(),
  })
  route('GET', '/admin/v1/events/:id/request', {
    summary: 'Get the request of an event',
    description:
      'The request as received, without credentials, as long as the log keeps it. For a batch, only the item that became the event: the others may belong to other people. If the request is not available, `missing` is the reason.',
    query: Type.Object({
      tenant: Type.String({ description: 'Id or name' }),
      whole: Type.Boolean({ default: false, description: 'For a batch: the whole batch' }),
    }),
    returns: ReceivedRequest,
    run: (admin, { params, query }) => admin.receivedRequests.ofEvent(params.id, query),
  })
  route('GET', '/admin/v1/rejections', {
    summary: 'List rejected requests',
    description:
      'A sample of the requests to sources and the writes with a known key that were rejected, newest first. For sources, 10 per minute and cause are stored and the others counted in `suppressed`. For keys, 5 per minute and cause are stored, and GET /admin/v1/tenants/:id/issues counts all. The last 1,000 per source, and 20 per route and code of keys, are kept for 14 days.',
    problems: [404],
    query: Type.Object({
      ...byTenant,
      ...bySource,
      code: Type.Optional(Type.String({ description: 'For example signature_invalid' })),
      route: Type.Optional(Type.String({ description: 'Route of a request with a key, for example POST /v1/track' })),
      cause: Type.Optional(Type.String({ description: 'Cause of a request with a key, as in issues' })),
      ...pageParameters,
    }),
    returns: PagedList(RejectionView),
    run: async (admin, { query: { cursor, ...query } }) => {
      const after = decodeCursor(cursor, isRejectionId)
      const before = after ? Number(after[0]) : undefined
      const read = (limit: number) => admin.receipts.rejections({ ...query, limit, before })
      return pageBody(await readPage(query, read, last => [last.id]))
    },
  })
}
