import { Type } from 'typebox'
import type { SourceTestAdmin } from '../../admin/source-test.ts'
import type { App } from '../app.ts'
import { security } from '../openapi.ts'
import { ReceiptBody } from './receipts.ts'
import { ById } from './schemas.ts'

const Headers = Type.Record(Type.String(), Type.String())

export function sourceTestRoutes(app: App, { sourceTests }: { sourceTests: SourceTestAdmin }): void {
  app.post(
    '/admin/v1/sources/:id/test',
    {
      config: { body: 'optional-json' },
      schema: {
        tags: ['Admin: sources'],
        security: security.admin,
        summary: 'Send a sample event and show its way',
        description:
          'The event is real: it is processed, listed (its type is kontor.test unless the source says otherwise) and leaves a receipt.',
        params: ById,
        body: Type.Object(
          {
            body: Type.Optional(
              Type.Unknown({ description: 'What to send; default: a sample that fits the source' }),
            ),
            headers: Type.Optional(Headers),
          },
          { examples: [{}, { body: { event_type: 'order.shipped', payload: { order_id: 'o-1' } } }] },
        ),
        response: {
          200: Type.Object({
            source_config_id: Type.String(),
            ok: Type.Boolean(),
            sent: Type.Object({ headers: Headers, body: Type.String() }),
            steps: Type.Array(
              Type.Object({
                step: Type.Enum(['source', 'normalize', 'accept', 'process', 'archive']),
                ok: Type.Boolean(),
                detail: Type.String(),
              }),
            ),
            receipts: Type.Array(ReceiptBody),
            archived: Type.Array(Type.Object({})),
          }),
        },
      },
    },
    async request => {
      const { body, headers } = request.body
      return sourceTests.test(request.params.id, {
        body: body === undefined ? undefined : JSON.stringify(body),
        headers,
      })
    },
  )
}
