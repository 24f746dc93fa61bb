import { DestinationActivity, HealthView, IssueView, SourceActivity } from '../../admin/health.ts'
import type { App } from '../app.ts'
import { security } from '../openapi.ts'
import type { RequestAdmin } from './operator.ts'
import { ById, List } from './schemas.ts'

export function healthRoutes(
  app: App,
  { admin, disk }: { admin: RequestAdmin; disk: { free(): number | null; daysLeft(): number | null } },
): void {
  app.get(
    '/admin/v1/tenants/:id/health',
    {
      config: { problems: [404] },
      schema: {
        tags: ['Admin: tenants'],
        security: security.admin,
        summary: 'Get the health of a tenant',
        description:
          'Open dead letters, rejected requests of the last day and deferred events of the tenant. Backlog and disk space are those of the installation; null for a key that is bound to one tenant, or if unknown.',
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
        summary: 'List issues by cause',
        description:
          'Open dead letters, rejected requests and failing destinations, newest first. One row per cause, with its count and the time of its first and last occurrence. Use `cause` to list and replay the dead letters of a cause.',
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

function activityRoutes(app: App, admin: RequestAdmin): void {
  app.get(
    '/admin/v1/sources/:id/activity',
    {
      schema: {
        tags: ['Admin: sources'],
        security: security.admin,
        summary: 'Get the activity of a source',
        description:
          'Received and rejected events per hour of the last day, oldest first. Hours without activity are included.',
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
        summary: 'Get the activity of a destination',
        description:
          'Successful and failed delivery attempts per hour of the last day, oldest first. Hours without activity are included.',
        params: ById,
        response: { 200: DestinationActivity },
      },
    },
    async request => admin(request).health.destination(request.params.id),
  )
}
