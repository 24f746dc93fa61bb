import { PurgePreview, PurgeReceipt } from '../../admin/purges.ts'
import { Nullable } from '../../domain/shapes.ts'
import { WHOLE_DAY } from '../../domain/time-zone.ts'
import { Type } from '../../domain/typebox.ts'
import type { App } from '../app.ts'
import { security } from '../openapi.ts'
import type { RequestAdmin } from './routes.ts'
import { ById, whole } from './schemas.ts'

const documented = { tags: ['Admin: people'], security: security.admin }

// Together with the wait for earlier entries, less than the time limit of a request.
const MAX_WAIT_MS = 15_000

const NewPurge = Type.Object(
  {
    tenant: Type.String({ description: 'Id or name' }),
    key: Type.String({ description: 'The id of a tracking key, revoked or not' }),
    since: Type.String({ format: 'timestamp', description: 'Events received at or after this time' }),
    until: Type.Optional(
      Nullable(Type.String({ format: 'timestamp', description: `Events received before this time. ${WHOLE_DAY}` })),
    ),
    dry_run: Type.Optional(Type.Boolean({ description: 'Preview: return what would be deleted' })),
  },
  {
    title: 'NewPurge',
    description: 'The key and the period whose events are deleted',
    ...whole,
    examples: [{ tenant: 'acme', key: 'key_4fTzQ9aXw2LmN8pB', since: '2026-01-31T09:30:00Z' }],
  },
)

export function purgeRoutes(app: App, { admin }: { admin: RequestAdmin }): void {
  app.post(
    '/admin/v1/purges',
    {
      config: { problems: [404] },
      schema: {
        ...documented,
        summary: 'Delete events sent with a key',
        description:
          'Deletes the events of a tracking key, sales known only from them, and links between people that they caused; sums and attribution are updated. Revoke the key first. 201: completed. 202: it takes longer than 15 seconds and continues in the background, even after a crash; see GET /admin/v1/purges/:id.',
        querystring: Type.Object({}, whole),
        body: NewPurge,
        response: { 200: PurgePreview, 201: PurgeReceipt, 202: PurgeReceipt },
      },
    },
    async (request, reply) => {
      const { dry_run, ...query } = request.body
      const { purges } = admin(request)
      if (dry_run) return reply.code(200).send(await purges.preview(query))
      const receipt = await purges.start(query, MAX_WAIT_MS)
      return reply
        .code(receipt.status === 'completed' ? 201 : 202)
        .header('location', `/admin/v1/purges/${receipt.id}`)
        .send(receipt)
    },
  )
  app.get(
    '/admin/v1/purges/:id',
    {
      schema: {
        ...documented,
        summary: 'Get a purge',
        description: 'The receipt of a purge: `running`, then `completed` with the number of deleted objects.',
        params: ById,
        response: { 200: PurgeReceipt },
      },
    },
    async request => admin(request).purges.show(request.params.id),
  )
}
