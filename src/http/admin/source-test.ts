import { Type } from 'typebox'
import { SourceTest } from '../../admin/source-test.ts'
import type { App } from '../app.ts'
import { security } from '../openapi.ts'
import type { AdminOf } from './operator.ts'
import { ById } from './schemas.ts'

export function sourceTestRoute(app: App, { admin }: { admin: AdminOf }): void {
  app.post(
    '/admin/v1/sources/:id/test',
    {
      config: { role: 'operator', body: 'optional-json' },
      schema: {
        tags: ['Admin: sources'],
        security: security.admin,
        summary: 'Send a test event',
        description:
          'Sends a sample event and returns how it was processed. The event is real: it is processed, listed (with the type kontor.test unless the source sets another) and has a receipt.',
        params: ById,
        body: Type.Object(
          {
            body: Type.Optional(
              Type.Unknown({ description: 'The body to send; default: a sample for this type of source' }),
            ),
            headers: Type.Optional(Type.Record(Type.String(), Type.String())),
          },
          { examples: [{}, { body: { event_type: 'order.shipped', payload: { order_id: 'o-1' } } }] },
        ),
        response: {
          200: SourceTest,
        },
      },
    },
    async request => {
      const { body, headers } = request.body
      return admin(request).sourceTests.test(request.params.id, {
        body: body === undefined ? undefined : JSON.stringify(body),
        headers,
      })
    },
  )
}
