import { Type } from 'typebox'
import { CreatedKey, KeyView } from '../../admin/views.ts'
import type { App } from '../app.ts'
import { security } from '../openapi.ts'
import type { AdminOf } from './operator.ts'
import { ById, List, NewKeyBody } from './schemas.ts'

const documented = { tags: ['Admin: keys'], security: security.admin }

export function keyRoutes(app: App, { admin }: { admin: AdminOf }): void {
  app.get(
    '/admin/v1/keys',
    {
      schema: {
        ...documented,
        summary: 'List keys, without the keys themselves',
        querystring: Type.Object({
          tenant: Type.Optional(Type.String({ description: 'Id or name; without it: the admin keys' })),
        }),
        response: { 200: List(KeyView) },
      },
    },
    async request => ({
      results: await admin(request).keys.list(request.query.tenant ?? null),
      next_cursor: null,
    }),
  )
  app.post(
    '/admin/v1/keys',
    {
      config: { problems: [404] },
      schema: {
        ...documented,
        summary: 'Create a key; it is shown only in this response',
        body: NewKeyBody,
        response: { 201: CreatedKey },
      },
    },
    async (request, reply) => reply.code(201).send(await admin(request).keys.create(request.body)),
  )
  app.post(
    '/admin/v1/keys/:id/revoke',
    {
      config: { body: 'none' },
      schema: {
        ...documented,
        summary: 'Revoke a key; every node refuses it within two seconds',
        params: ById,
        response: { 200: KeyView },
      },
    },
    async request => admin(request).keys.revoke(request.params.id),
  )
}
