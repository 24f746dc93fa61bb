import { Type } from 'typebox'
import { ErasureReceipt } from '../../admin/views.ts'
import type { App } from '../app.ts'
import { security } from '../openapi.ts'
import type { AdminOf } from './operator.ts'
import { List } from './schemas.ts'

const documented = { tags: ['Admin: people'], security: security.admin }

const NewErasure = Type.Object(
  {
    tenant: Type.String({ description: 'Id or name' }),
    email: Type.Optional(Type.String({ description: 'An e-mail address of the person' })),
    profile: Type.Optional(
      Type.String({ description: 'Instead of email: profile_id of an event or a conversion' }),
    ),
  },
  { examples: [{ tenant: 'acme', email: 'ada@example.com' }] },
)

export function erasureRoutes(app: App, { admin }: { admin: AdminOf }): void {
  app.post(
    '/admin/v1/erasures',
    {
      config: { problems: [404] },
      schema: {
        ...documented,
        summary: 'Erase a person: events, identities and contact are deleted, sales are made anonymous',
        description: 'Responds when it is done: after a few seconds, longer with many events.',
        body: NewErasure,
        response: { 201: ErasureReceipt },
      },
    },
    async (request, reply) => reply.code(201).send(await admin(request).erasures.erase(request.body)),
  )
  app.get(
    '/admin/v1/erasures',
    {
      config: { problems: [404] },
      schema: {
        ...documented,
        summary: 'List receipts of erasures, newest first: the last 100',
        querystring: Type.Object({ tenant: Type.String({ description: 'Id or name' }) }),
        response: { 200: List(ErasureReceipt) },
      },
    },
    async request => ({
      results: await admin(request).erasures.list(request.query.tenant),
      next_cursor: null,
    }),
  )
}
