import { DestinationActivity, HealthView, IssueView, SourceActivity } from '../../admin/health.ts'
import type { App } from '../app.ts'
import { adminRoutes, type RequestAdmin } from './routes.ts'

export function healthRoutes(
  app: App,
  { disk, ...parts }: { admin: RequestAdmin; disk: { free(): number | null; daysLeft(): number | null } },
): void {
  const tenants = adminRoutes(app, parts, 'Admin: tenants')
  tenants.route('GET', '/admin/v1/tenants/:id/health', {
    summary: 'Get the health of a tenant',
    description:
      'Open dead letters, rejected requests of the last day and deferred events of the tenant. Backlog and disk space are those of the installation; null for a key that is restricted to one tenant, or if unknown.',
    returns: HealthView,
    run: async (admin, { params }) => ({
      ...(await admin.health.show(params.id)),
      disk_free: disk.free(),
      disk_days_left: disk.daysLeft(),
    }),
  })
  tenants.list('/admin/v1/tenants/:id/issues', {
    summary: 'List issues by cause',
    description:
      'Open dead letters, rejected requests, pending deliveries and billing data that cannot be read, newest first. One row per cause, with its count and the time of its first and last occurrence. Use `cause` to list and replay the dead letters of a cause.',
    item: IssueView,
    run: (admin, { params }) => admin.health.issues(params.id),
  })
  adminRoutes(app, parts, 'Admin: sources').route('GET', '/admin/v1/sources/:id/activity', {
    summary: 'Get the activity of a source',
    description:
      'Received and rejected events per hour of the last day, oldest first. Hours without activity are included.',
    returns: SourceActivity,
    run: (admin, { params }) => admin.health.source(params.id),
  })
  adminRoutes(app, parts, 'Admin: destinations').route('GET', '/admin/v1/destinations/:id/activity', {
    summary: 'Get the activity of a destination',
    description:
      'Successful and failed delivery attempts per hour of the last day, oldest first. Hours without activity are included.',
    returns: DestinationActivity,
    run: (admin, { params }) => admin.health.destination(params.id),
  })
}
