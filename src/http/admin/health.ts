import { DestinationActivity, HealthView, IssueView, SourceActivity } from '../../admin/health.ts'
import type { App } from '../app.ts'
import { security } from '../openapi.ts'
import type { AdminOf } from './operator.ts'
import { ById, List } from './schemas.ts'

export function healthRoutes(
  app: App,
  { admin, disk }: { admin: AdminOf; disk: { free(): number | null; daysLeft(): number | null } },
): void {
  app.get(
    '/admin/v1/tenants/:id/health',
    {
      config: { problems: [404] },
      schema: {
        tags: ['Admin: tenants'],
        security: security.admin,
        summary: 'How a tenant stands: what waits, what failed, what was refused',
        description:
          'Open dead letters, refused requests of the last day and deferred events of the tenant. What waits and the room on the disk are those of the installation; null for a key that is bound to one tenant, or where they are not known.',
        params: ById,
        response: { 200: HealthView },
      },
    },
    async request => ({
      ...(await admin(request).health.show(request.params.id)),
      disk_free: disk.free(),
      disk_days_left: disk.daysLeft(),
    }),
  )
  app.get(
    '/admin/v1/tenants/:id/issues',
    {
      config: { problems: [404] },
      schema: {
        tags: ['Admin: tenants'],
        security: security.admin,
        summary: 'What fails, by cause: open dead letters and refused requests, the newest first',
        description:
          'One row a cause, with how often it was met, when first and last; destinations that fail are among them. The dead letters of a cause are listed and replayed with `cause`.',
        params: ById,
        response: { 200: List(IssueView) },
      },
    },
    async request => ({
      results: await admin(request).health.issues(request.params.id),
      next_cursor: null,
    }),
  )
  activityRoutes(app, admin)
}

function activityRoutes(app: App, admin: AdminOf): void {
  app.get(
    '/admin/v1/sources/:id/activity',
    {
      schema: {
        tags: ['Admin: sources'],
        security: security.admin,
        summary: 'How much a source brought and how much of it was refused, by the hour of the last day',
        description: 'Hours, oldest first, those without any included.',
        params: ById,
        response: { 200: SourceActivity },
      },
    },
    async request => admin(request).health.source(request.params.id),
  )
  app.get(
    '/admin/v1/destinations/:id/activity',
    {
      schema: {
        tags: ['Admin: destinations'],
        security: security.admin,
        summary: 'How many attempts to deliver succeeded and failed, by the hour of the last day',
        description: 'Hours, oldest first, those without any included.',
        params: ById,
        response: { 200: DestinationActivity },
      },
    },
    async request => admin(request).health.destination(request.params.id),
  )
}
