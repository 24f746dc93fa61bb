import { PurgePreview, PurgeReceipt } from '../../admin/purges.ts'
import { Nullable } from '../../domain/shapes.ts'
import { WHOLE_DAY_UTC } from '../../domain/time-zone.ts'
import { Type } from '../../domain/typebox.ts'
import type { App } from '../app.ts'
import { adminRoutes, type RequestAdmin } from './routes.ts'
import { whole } from './schemas.ts'

const NewPurge = Type.Object(
  {
    tenant: Type.String({ description: 'Id or name' }),
    key: Type.String({ description: 'The id of a tracking key, revoked or not' }),
    since: Type.String({ format: 'timestamp', description: 'Events received at or after this time' }),
    until: Type.Optional(
      Nullable(Type.String({ format: 'timestamp', description: `Events received before this time. ${WHOLE_DAY_UTC}` })),
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

export function purgeRoutes(app: App, parts: { admin: RequestAdmin }): void {
  const { route, work } = adminRoutes(app, parts, 'Admin: people')
  work('/admin/v1/purges', {
    summary: 'Delete events sent with a key',
    description:
      'Deletes the events of a tracking key, the sales that only these events reported, and the links between people that they caused. Totals and attribution are updated. Revoke the key first. 201: completed. 202: it takes longer than 15 seconds and continues in the background, even after a crash; see GET /admin/v1/purges/:id.',
    problems: [404],
    body: NewPurge,
    preview: { returns: PurgePreview, run: (admin, query) => admin.purges.preview(query) },
    start: { returns: PurgeReceipt, run: (admin, query, waitMs) => admin.purges.start(query, waitMs) },
  })
  route('GET', '/admin/v1/purges/:id', {
    summary: 'Get a purge',
    description: 'The receipt of a purge: `running`, then `completed` with the number of deleted objects.',
    returns: PurgeReceipt,
    run: (admin, { params }) => admin.purges.show(params.id),
  })
}
