import { Type } from 'typebox'
import { PurgePreview, PurgeReceipt } from '../../admin/purges.ts'
import { Nullable } from '../../domain/shapes.ts'
import type { App } from '../app.ts'
import { security } from '../openapi.ts'
import type { AdminOf } from './operator.ts'
import { ById, whole } from './schemas.ts'

const documented = { tags: ['Admin: people'], security: security.admin }

// Together with the wait for what is not applied yet, less than a request may take.
const PATIENCE_MS = 15_000

const NewPurge = Type.Object(
  {
    tenant: Type.String({ description: 'Id or name' }),
    key: Type.String({ description: 'The id of a tracking key, revoked or not' }),
    since: Type.String({ format: 'timestamp', description: 'What came in from then on' }),
    until: Type.Optional(Nullable(Type.String({ format: 'timestamp', description: 'And before then' }))),
    dry_run: Type.Optional(Type.Boolean({ description: 'Only show what it would take' })),
  },
  { ...whole, examples: [{ tenant: 'acme', key: 'key_4fTzQ9aXw2LmN8pB', since: '2026-01-31T09:30:00Z' }] },
)

export function purgeRoutes(app: App, { admin }: { admin: AdminOf }): void {
  app.post(
    '/admin/v1/purges',
    {
      config: { problems: [404] },
      schema: {
        ...documented,
        summary: 'Take out what a tracking key added, as if it had never sent',
        description:
          'Its events, sales that only they told of, and joins of people that they caused; sums and attribution follow. Revoke the key first. Responds with 201 when it is done. What takes longer than 15 seconds goes on by itself, also after a crash: 202, and GET /admin/v1/purges/:id tells how far it is.',
        querystring: Type.Object({}, whole),
        body: NewPurge,
        response: { 200: PurgePreview, 201: PurgeReceipt, 202: PurgeReceipt },
      },
    },
    async (request, reply) => {
      const { dry_run, ...query } = request.body
      const { purges } = admin(request)
      if (dry_run) return reply.code(200).send(await purges.preview(query))
      const receipt = await purges.start(query, PATIENCE_MS)
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
        summary: 'Get the receipt of a purge, and how far it is',
        description:
          '`running` until everything is done, whatever happens to the process that began it; then `completed`, with counts of what was taken.',
        params: ById,
        response: { 200: PurgeReceipt },
      },
    },
    async request => admin(request).purges.show(request.params.id),
  )
}
