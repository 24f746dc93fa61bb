import { Type } from 'typebox'
import { RejectionView } from '../../admin/receipts.ts'
import type { App } from '../app.ts'
import { security } from '../openapi.ts'
import { decodeCursor, PagedList, pageBody, pageParameters, readPage } from '../paging.ts'
import type { AdminOf } from './operator.ts'
import { bySource, byTenant } from './schemas.ts'

/** Safe as a number, and no more digits than bigint has. */
const isRejectionId = (part: string) => /^\d{1,15}$/.test(part)

export function rejectionRoute(app: App, { admin }: { admin: AdminOf }): void {
  app.get(
    '/admin/v1/rejections',
    {
      config: { problems: [404] },
      schema: {
        tags: ['Admin: inbound events'],
        security: security.admin,
        summary: 'List refused requests, newest first: a sample',
        description:
          'Requests to sources, and writes to the event and data API with a known key, that were answered with an error, with the reason and from where. Of many alike only the first are written down: of a source 10 per minute and cause, and the others counted (`suppressed`); with a key 5, and all of them counted in GET /admin/v1/tenants/:id/issues. The last 1,000 of a source, 20 of each route and code with a key, for 14 days.',
        querystring: Type.Object({
          ...byTenant,
          ...bySource,
          code: Type.Optional(Type.String({ description: 'For example signature_invalid' })),
          route: Type.Optional(
            Type.String({ description: 'Of requests with a key: for example POST /v1/track' }),
          ),
          cause: Type.Optional(Type.String({ description: 'Of requests with a key: as issues name it' })),
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
