import { Type } from 'typebox'
import type { ReceiptAdmin } from '../../admin/receipts.ts'
import { NullableText, Timestamp } from '../../domain/shapes.ts'
import type { App } from '../app.ts'
import { security } from '../openapi.ts'
import { decodeCursor, PagedList, pageBody, pageParameters, readPage } from '../paging.ts'
import { bySource, byTenant } from './schemas.ts'

/** Safe as a number, and no more digits than bigint has. */
const isRejectionId = (part: string) => /^\d{1,15}$/.test(part)

const RejectionBody = Type.Object(
  {
    id: Type.String(),
    tenant: Type.String(),
    source_config_id: Type.String(),
    rejected_at: Timestamp,
    status: Type.Integer(),
    code: Type.String(),
    detail: Type.String(),
    ip: NullableText,
    user_agent: NullableText,
    bytes: Type.Union([Type.Integer(), Type.Null()]),
    suppressed: Type.Integer({
      description: 'How many more like it came within the minute, and were only counted',
    }),
  },
  {
    examples: [
      {
        id: '81',
        tenant: 'ten_1',
        source_config_id: 'src_4fTzQ9aXw2LmN8pB',
        rejected_at: '2026-01-31T09:30:00.000Z',
        status: 401,
        code: 'signature_invalid',
        detail: 'The signature does not fit the body and the signing secret of this source.',
        ip: '203.0.113.7',
        user_agent: 'curl/8.5.0',
        bytes: 218,
        suppressed: 0,
      },
    ],
  },
)

export function rejectionRoutes(app: App, { receipts }: { receipts: ReceiptAdmin }): void {
  app.get(
    '/admin/v1/rejections',
    {
      config: { problems: [404] },
      schema: {
        tags: ['Admin: inbound events'],
        security: security.admin,
        summary: 'Refused requests of inbound sources, newest first: a sample of 10 a minute for each cause',
        querystring: Type.Object({
          ...byTenant,
          ...bySource,
          code: Type.Optional(Type.String({ description: 'For example signature_invalid' })),
          ...pageParameters,
        }),
        response: { 200: PagedList(RejectionBody) },
      },
    },
    async request => {
      const { cursor, ...query } = request.query
      const after = decodeCursor(cursor, isRejectionId)
      const before = after ? Number(after[0]) : undefined
      const page = await readPage(
        query,
        limit => receipts.rejections({ ...query, limit, before }),
        last => [last.id],
      )
      return pageBody(page)
    },
  )
}
