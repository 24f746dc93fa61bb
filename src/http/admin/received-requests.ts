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
        summary: 'Get the request that an event came in with, as it was received, while the log keeps it',
        description:
          'Of a batch, the item that became the event: the others are of other people. Without credentials. Where the request is not there, missing says why.',
        params: ById,
        querystring: Type.Object({
          tenant: Type.String({ description: 'Id or name' }),
          whole: Type.Boolean({ default: false, description: 'Of a batch, all of it' }),
        }),
        response: { 200: ReceivedRequest },
      },
    },
    async request => admin(request).receivedRequests.ofEvent(request.params.id, request.query),
  )
}
