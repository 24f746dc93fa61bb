import { Type } from 'typebox'
import { AuditView } from '../../admin/audit.ts'
import type { App } from '../app.ts'
import { security } from '../openapi.ts'
import { decodeTimeCursor, PagedList, pageBody, pageParameters, readPage } from '../paging.ts'
import type { RequestAdmin } from './operator.ts'

export function auditRoute(app: App, { admin }: { admin: RequestAdmin }): void {
  app.get(
    '/admin/v1/audit',
    {
      config: { problems: [404] },
      schema: {
        tags: ['Admin: audit'],
        security: security.admin,
        summary: 'List audit log entries',
        description: 'Every change by command line, admin API or console, newest first. Entries cannot be modified.',
        querystring: Type.Object({
          tenant: Type.Optional(
            Type.String({ description: 'Id or name; default: all tenants and the installation itself' }),
          ),
          since: Type.Optional(Type.String({ format: 'timestamp', description: 'Inclusive' })),
          until: Type.Optional(Type.String({ format: 'timestamp', description: 'Inclusive' })),
          ...pageParameters,
        }),
        response: { 200: PagedList(AuditView) },
      },
    },
    async request => {
      const { cursor, ...query } = request.query
      const before = decodeTimeCursor(cursor) ?? undefined
      const page = await readPage(
        query,
        limit => admin(request).audit.list({ ...query, limit, before }),
        last => [last.at, last.id],
      )
      return pageBody(page)
    },
  )
}
