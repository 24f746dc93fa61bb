import { Type } from 'typebox'
import { DEAD_LETTER_REASONS, type DeadLetterAdmin } from '../../admin/dead-letters.ts'
import type { App } from '../app.ts'
import { security } from '../openapi.ts'
import { bySource, byTenant, limitOf, pageOf, paging, placeOf } from './paging.ts'
import { ById } from './schemas.ts'

const documented = { tags: ['Admin: dead letters'], security: security.admin }
const Nullable = Type.Union([Type.String(), Type.Null()])
const Timestamp = Type.String({ format: 'timestamp' })
// A request should not run for minutes: who has more asks again.
const AT_MOST = 10_000

const letter = {
  id: Type.String({ format: 'uuid', description: 'Of a record write: the operation id' }),
  tenant: Type.String(),
  kind: Type.Enum(['record', 'events']),
  source_config_id: Nullable,
  inbound_event_id: Nullable,
  reason: Type.Enum([...DEAD_LETTER_REASONS], {
    description: 'rejected: never valid; failed: could not be applied',
  }),
  error: Type.String(),
  attempts: Type.Integer(),
  received_at: Timestamp,
  failed_at: Timestamp,
  replayed_at: Type.Union([Timestamp, Type.Null()]),
  replayed_as: Type.Union([Type.String({ description: 'The id under which it went in again' }), Type.Null()]),
}
const EXAMPLE = {
  id: '019c1234-5678-7000-8abc-def012300003',
  tenant: 'ten_1',
  kind: 'events',
  source_config_id: 'src_4fTzQ9aXw2LmN8pB',
  inbound_event_id: null,
  reason: 'rejected',
  error: 'event_type is required',
  attempts: 0,
  received_at: '2026-01-31T09:30:00.000Z',
  failed_at: '2026-01-31T09:30:00.040Z',
  replayed_at: null,
  replayed_as: null,
}

export function deadLetterRoutes(app: App, { deadLetters }: { deadLetters: DeadLetterAdmin }): void {
  app.get(
    '/admin/v1/dead-letters',
    {
      config: { problems: [404] },
      schema: {
        ...documented,
        summary: 'What could not be processed and waits for a decision, newest first',
        querystring: Type.Object({
          ...byTenant,
          ...bySource,
          reason: Type.Optional(Type.Enum([...DEAD_LETTER_REASONS])),
          ...paging,
        }),
        response: {
          200: Type.Object({
            results: Type.Array(Type.Object(letter, { examples: [EXAMPLE] })),
            next_cursor: Nullable,
          }),
        },
      },
    },
    async request => {
      const { cursor, ...query } = request.query
      const limit = limitOf(query)
      const place = placeOf(cursor)
      const before = place && { failedAt: place.at, id: place.id }
      const rows = await deadLetters.list({ ...query, limit: limit + 1, before })
      return pageOf(rows, limit, last => [last.failed_at, last.id])
    },
  )
  app.get(
    '/admin/v1/dead-letters/:id',
    {
      schema: {
        ...documented,
        summary: 'One of them, with the body as it came in',
        params: ById,
        querystring: Type.Object(byTenant),
        response: { 200: Type.Object({ ...letter, body: Type.String() }) },
      },
    },
    async request => deadLetters.show(request.params.id, request.query.tenant),
  )
  app.post(
    '/admin/v1/dead-letters/replay',
    {
      config: { problems: [404] },
      schema: {
        ...documented,
        summary: 'Process them again: one, those of a source or a reason, or all',
        description: `Each is handed out once, and events are read with the source's settings of today. A request replays at most about ${AT_MOST}; while remaining is not 0, ask again.`,
        body: Type.Object(
          {
            ...byTenant,
            id: Type.Optional(Type.String()),
            ...bySource,
            reason: Type.Optional(Type.Enum([...DEAD_LETTER_REASONS])),
            all: Type.Optional(Type.Boolean()),
          },
          {
            examples: [
              { id: EXAMPLE.id },
              { source: EXAMPLE.source_config_id, reason: 'failed' },
              { all: true },
            ],
          },
        ),
        response: {
          200: Type.Object(
            { replayed: Type.Integer(), remaining: Type.Integer() },
            { examples: [{ replayed: 12, remaining: 0 }] },
          ),
        },
      },
    },
    async request => deadLetters.replay(request.body, { atMost: AT_MOST }),
  )
}
