import { Type } from 'typebox'
import { RejectionView } from '../../admin/receipts.ts'
import type { App } from '../app.ts'
import { security } from '../openapi.ts'
import { decodeCursor, PagedList, pageBody, pageParameters, readPage } from '../paging.ts'
import type { RequestAdmin } from './operator.ts'
import { bySource, byTenant } from './schemas.ts'

/** Fits into a JavaScript number and into bigint. */
const isRejectionId = (part: string) => /^\d{1,15}$/.test(part)

export function rejectionRoute(app: App, { admin }: { admin: RequestAdmin }): void {
  app.get(
    '/admin/v1/rejections',
    {
      config: { problems: [404] },
      schema: {
        tags: ['Admin: inbound events'],
        security: security.admin,
        summary: 'List rejected requests',
        description:
          'A sample of the requests to sources and the writes with a known key that were rejected, newest first. For sources, 10 per minute and cause are stored and the others counted in `suppressed`. For keys, 5 per minute and cause are stored, and GET /admin/v1/tenants/:id/issues counts all. The last 1,000 per source, and 20 per route and code of keys, are kept for 14 days.',
        querystring: Type.Object({
          ...byTenant,
          ...bySource,
          code: Type.Optional(Type.String({ description: 'For example signature_invalid' })),
          route: Type.Optional(
            Type.String({ description: 'Route of a request with a key, for example POST /v1/track' }),
          ),
          cause: Type.Optional(Type.String({ description: 'Cause of a request with a key, as in issues' })),
          ...pageParameters,
        }),
        response: { 200: PagedList(RejectionView) },
      },
    },
    async request => {
      const { cursor, ...query } = request.query
      const after = decodeCursor(cursor, isRejectionId)
      const before = after ? Number(after[0]) : undefined
      const page = await readPage(
        query,
        limit => admin(request).receipts.rejections({ ...query, limit, before }),
        last => [last.id],
      )
      return pageBody(page)
    },
  )
}
