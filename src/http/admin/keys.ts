import { CreatedKey, KeyView, RevokedKey, RotatedKey } from '../../admin/keys.ts'
import { Type } from '../../domain/typebox.ts'
import type { App } from '../app.ts'
import { adminRoutes, type RequestAdmin } from './routes.ts'
import { KeyChangeBody, KeyRotationBody, NewKeyBody, RevocationBody } from './schemas.ts'

export function keyRoutes(app: App, parts: { admin: RequestAdmin }): void {
  const { route, list } = adminRoutes(app, parts, 'Admin: keys')
  list('/admin/v1/keys', {
    summary: 'List keys',
    description:
      'The private and tracking keys of a tenant, or the admin keys without `tenant`: kind, scopes, limits, creator, expiry and last use. The secrets are not included.',
    query: Type.Object({
      tenant: Type.Optional(Type.String({ description: 'Id or name; without it: the admin keys' })),
    }),
    item: KeyView,
    run: (admin, { query }) => admin.keys.list(query.tenant ?? null),
  })
  route('POST', '/admin/v1/keys', {
    summary: 'Create a key',
    description:
      'The key is shown only in this response. Role: `admin`. Viewers and operators can create read-only private keys that expire within a day.',
    // Every role may create a read-only key that expires within a day, to read with a program.
    role: 'viewer',
    problems: [404],
    body: NewKeyBody,
    returns: CreatedKey,
    status: 201,
    run: (admin, { body }) => admin.keys.create(body),
  })
  route('PATCH', '/admin/v1/keys/:id', {
    summary: 'Update the limits of a tracking key',
    description: 'Allowed origins, event types and rate limit. Fields that are absent stay unchanged.',
    body: KeyChangeBody,
    returns: KeyView,
    run: (admin, { params, body }) => admin.keys.update(params.id, body),
  })
  route('POST', '/admin/v1/keys/:id/rotate', {
    summary: 'Rotate a key',
    description:
      'Creates a key with the same kind, scopes and limits. It is shown only in this response. The previous key remains valid for `overlap_hours` (24). 409 if the key is revoked or expired.',
    problems: [409],
    body: KeyRotationBody,
    isBodyOptional: true,
    returns: RotatedKey,
    run: (admin, { params, body }) => admin.keys.rotate(params.id, { overlapHours: body.overlap_hours }),
  })
  route('POST', '/admin/v1/keys/:id/revoke', {
    summary: 'Revoke a key',
    description:
      'Takes effect on every server within two seconds. Role: `admin`; viewers and operators can revoke keys that they created. The response lists what was created with the key.',
    role: 'viewer',
    body: RevocationBody,
    isBodyOptional: true,
    returns: RevokedKey,
    run: (admin, { params, body }) => admin.keys.revoke(params.id, { withMade: body.with_made ?? false }),
  })
}
