import { AuditView } from '../../admin/audit.ts'
import { Type } from '../../domain/typebox.ts'
import type { App } from '../app.ts'
import { adminRoutes, type RequestAdmin } from './routes.ts'
import { timeRange } from './schemas.ts'

export function auditRoute(app: App, parts: { admin: RequestAdmin }): void {
  const { pages } = adminRoutes(app, parts, 'Admin: audit')
  pages('/admin/v1/audit', {
    summary: 'List audit log entries',
    description: 'Every change by command line, admin API or console, newest first. Entries cannot be modified.',
    problems: [404],
    query: {
      tenant: Type.Optional(
        Type.String({ description: 'Id or name; default: all tenants and the installation itself' }),
      ),
      ...timeRange,
    },
    item: AuditView,
    run: (admin, { query }, { limit, after }) => admin.audit.list({ ...query, limit, before: after }),
    placeOf: ({ at, id }) => [at, id],
  })
}
