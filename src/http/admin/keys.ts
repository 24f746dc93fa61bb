import { Type } from 'typebox'
import { CreatedKey, KeyView, RevokedKey, RotatedKey } from '../../admin/keys.ts'
import type { App } from '../app.ts'
import { security } from '../openapi.ts'
import type { RequestAdmin } from './operator.ts'
import { ById, KeyChangeBody, KeyRotationBody, List, NewKeyBody, RevocationBody } from './schemas.ts'

const documented = { tags: ['Admin: keys'], security: security.admin }

export function keyRoutes(app: App, { admin }: { admin: RequestAdmin }): void {
  app.get(
    '/admin/v1/keys',
    {
      schema: {
        ...documented,
        summary: 'List keys',
        description:
          'The private and tracking keys of a tenant, or the admin keys without `tenant`: kind, scopes, limits, creator, expiry and last use. The secrets are not included.',
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
      // Every role may create a read-only key that expires within a day: the console reads with such a key.
      config: { role: 'viewer', problems: [404] },
      schema: {
        ...documented,
        summary: 'Create a key',
        description:
          'The key is shown only in this response. Role: `admin`. Viewers and operators can create read-only private keys that expire within a day.',
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
        summary: 'Update the limits of a tracking key',
        description: 'Allowed origins, event types and rate limit. Fields that are absent stay unchanged.',
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
        summary: 'Rotate a key',
        description:
          'Creates a key with the same kind, scopes and limits. It is shown only in this response. The previous key remains valid for `overlap_hours` (24). 409 if the key is revoked or expired.',
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
        summary: 'Revoke a key',
        description:
          'Takes effect on every node within two seconds. Role: `admin`; viewers and operators can revoke keys that they created. The response lists what was created with the key.',
        params: ById,
        body: RevocationBody,
        response: { 200: RevokedKey },
      },
    },
    async request => admin(request).keys.revoke(request.params.id, { withMade: request.body.with_made ?? false }),
  )
}
