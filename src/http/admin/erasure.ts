import { Type } from 'typebox'
import type { ErasureAdmin } from '../../admin/erasure.ts'
import { NullableTimestamp, Timestamp } from '../../domain/shapes.ts'
import type { App } from '../app.ts'
import { security } from '../openapi.ts'
import { List } from './schemas.ts'

const documented = { tags: ['Admin: people'], security: security.admin }
const Count = Type.Integer({ minimum: 0 })

const NewErasure = Type.Object(
  {
    tenant: Type.String({ description: 'Id or name' }),
    email: Type.Optional(Type.String({ description: 'An e-mail address of the person' })),
    profile: Type.Optional(
      Type.String({ description: 'Or the profile: profile_id of an event or a conversion' }),
    ),
  },
  { examples: [{ tenant: 'acme', email: 'ada@example.com' }] },
)

const Receipt = Type.Object({
  id: Type.String({ format: 'uuid' }),
  tenant: Type.String(),
  subject_hash: Type.String({
    description: 'SHA-256 of "<tenant id> email <address>" or "<tenant id> profile <number>"',
  }),
  requested_at: Timestamp,
  completed_at: NullableTimestamp,
  erased: Type.Object({
    events: Count,
    conversions: Count,
    orders: Count,
    contacts: Count,
    identities: Count,
    touches: Count,
    archived: Count,
    dead_letters: Count,
    waiting: Count,
    log_entries: Count,
    billing: Count,
  }),
  not_yet_processed: Count,
  notes: Type.Array(Type.String()),
})

export function erasureRoutes(app: App, { erasures }: { erasures: ErasureAdmin }): void {
  app.post(
    '/admin/v1/erasures',
    {
      config: { problems: [404] },
      schema: {
        ...documented,
        summary: 'Erase a person: events, identities and contact go, sales stay without a name',
        description: 'Answers when it is done: a few seconds, longer where there are many events.',
        body: NewErasure,
        response: { 201: Receipt },
      },
    },
    async (request, reply) => reply.code(201).send(await erasures.erase(request.body)),
  )
  app.get(
    '/admin/v1/erasures',
    {
      config: { problems: [404] },
      schema: {
        ...documented,
        summary: 'Receipts of erasures, newest first: the last 100',
        querystring: Type.Object({ tenant: Type.String({ description: 'Id or name' }) }),
        response: { 200: List(Receipt) },
      },
    },
    async request => ({ results: await erasures.list(request.query.tenant), next_cursor: null }),
  )
}
