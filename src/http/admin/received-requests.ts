import { Type } from 'typebox'
import { ReceivedRequest } from '../../admin/views.ts'
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
          'The whole request, other events of its batch included, without credentials. 404 once the log has let go of it (7 days unless set otherwise).',
        params: ById,
        querystring: Type.Object({ tenant: Type.String({ description: 'Id or name' }) }),
        response: { 200: ReceivedRequest },
      },
    },
    async request => admin(request).receivedRequests.ofEvent(request.params.id, request.query.tenant),
  )
}
