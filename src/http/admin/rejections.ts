import { Type } from 'typebox'
import type { ReceiptAdmin } from '../../admin/receipts.ts'
import type { App } from '../app.ts'
import { decodeCursor } from '../cursor.ts'
import { security } from '../openapi.ts'
import { bySource, byTenant, limitOf, pageOf, paging } from './paging.ts'

const Nullable = Type.Union([Type.String(), Type.Null()])

const RejectionBody = Type.Object(
  {
    id: Type.String(),
    tenant: Type.String(),
    source_config_id: Type.String(),
    rejected_at: Type.String({ format: 'timestamp' }),
    status: Type.Integer(),
    code: Type.String(),
    detail: Type.String(),
    ip: Nullable,
    user_agent: Nullable,
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
          ...paging,
        }),
        response: { 200: Type.Object({ results: Type.Array(RejectionBody), next_cursor: Nullable }) },
      },
    },
    async request => {
      const { cursor, ...query } = request.query
      const limit = limitOf(query)
      const rows = await receipts.rejections({ ...query, limit: limit + 1, before: placeOf(cursor) })
      return pageOf(rows, limit, last => [last.id])
    },
  )
}

function placeOf(cursor: string | undefined): number | undefined {
  if (cursor === undefined) return undefined
  const [id] = decodeCursor(cursor, 1) as [string]
  if (!/^\d{1,15}$/.test(id)) decodeCursor('', 1)
  return Number(id)
}
