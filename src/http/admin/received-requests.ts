import { Type } from 'typebox'
import { ReceivedRequest } from '../../admin/receipts.ts'
import type { App } from '../app.ts'
import { security } from '../openapi.ts'
import type { AdminOf } from './operator.ts'
import { ById } from './schemas.ts'

export function receivedRequestRoute(app: App, { admin }: { admin: AdminOf }): void {
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
