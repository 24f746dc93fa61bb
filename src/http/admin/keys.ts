import { Type } from 'typebox'
import { CreatedKey, KeyView, RevokedKey, RotatedKey } from '../../admin/keys.ts'
import type { App } from '../app.ts'
import { security } from '../openapi.ts'
import type { AdminOf } from './operator.ts'
import { ById, KeyChangeBody, KeyRotationBody, List, NewKeyBody, RevocationBody } from './schemas.ts'

const documented = { tags: ['Admin: keys'], security: security.admin }

export function keyRoutes(app: App, { admin }: { admin: AdminOf }): void {
  app.get(
    '/admin/v1/keys',
    {
      schema: {
        ...documented,
        summary: 'List keys, without the keys themselves',
        description:
          'Of a tenant its private and tracking keys, without one the admin keys: kind, scopes, limits, who made them, when they end and when they were last used.',
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
      // A key that only reads, for a day at most, is for everybody: the console reads with one.
      config: { role: 'viewer', problems: [404] },
      schema: {
        ...documented,
        summary: 'Create a key; it is shown only in this response',
        description:
          'Role: `admin`. Viewers and operators can make private keys that only read and end within a day.',
        body: NewKeyBody,
        response: { 201: CreatedKey },
      },
    },
    async (request, reply) => reply.code(201).send(await admin(request).keys.create(request.body)),
  )
  app.patch(
    '/admin/v1/keys/:id',
    {
      schema: {
        ...documented,
        summary: 'Change what a tracking key is for: pages, names of events, how many of them',
        description: 'What is left out stays as it is.',
        params: ById,
        body: KeyChangeBody,
        response: { 200: KeyView },
      },
    },
    async request => admin(request).keys.update(request.params.id, request.body),
  )
  app.post(
    '/admin/v1/keys/:id/rotate',
    {
      config: { body: 'optional-json', problems: [409] },
      schema: {
        ...documented,
        summary: 'Replace a key by one like it; the previous one stays valid for a while',
        description:
          'Same kind, scopes and limits. The new key is shown only in this response; the previous one ends after `overlap_hours` (24). 409 where it is revoked or has ended.',
        params: ById,
        body: KeyRotationBody,
        response: { 200: RotatedKey },
      },
    },
    async request => {
      const { overlap_hours: overlapHours } = request.body
      return admin(request).keys.rotate(request.params.id, {
        ...(overlapHours !== undefined && { overlapHours }),
      })
    },
  )
  app.post(
    '/admin/v1/keys/:id/revoke',
    {
      config: { role: 'viewer', body: 'optional-json' },
      schema: {
        ...documented,
        summary: 'Revoke a key; every node refuses it within two seconds',
        description:
          'Role: `admin`; viewers and operators can revoke what they made. The response lists what was made with the key.',
        params: ById,
        body: RevocationBody,
        response: { 200: RevokedKey },
      },
    },
    async request =>
      admin(request).keys.revoke(request.params.id, { withMade: request.body.with_made ?? false }),
  )
}
