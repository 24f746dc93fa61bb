import { HealthView } from '../../admin/views.ts'
import type { App } from '../app.ts'
import { security } from '../openapi.ts'
import type { AdminOf } from './operator.ts'
import { ById } from './schemas.ts'

export function healthRoute(
  app: App,
  { admin, diskFree }: { admin: AdminOf; diskFree: () => number | null },
): void {
  app.get(
    '/admin/v1/tenants/:id/health',
    {
      config: { problems: [404] },
      schema: {
        tags: ['Admin: tenants'],
        security: security.admin,
        summary: 'How a tenant stands: what waits, what failed, what was refused',
        params: ById,
        response: { 200: HealthView },
      },
    },
    async request => ({
      ...(await admin(request).health.show(request.params.id)),
      disk_free: diskFree(),
    }),
  )
}
