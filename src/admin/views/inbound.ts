import { type Static, Type } from 'typebox'
import { RECEIPT_OUTCOMES } from '../../domain/inbound/receipts.ts'
import { Nullable, NullableText, NullableTimestamp, Timestamp, Uuid } from '../../domain/shapes.ts'

export const ReceiptView = Type.Object(
  {
    id: Type.String({ format: 'uuid', description: 'The id of the event' }),
    tenant: Type.String(),
    source_config_id: Type.String(),
    inbound_event_id: NullableText,
    event_type: NullableText,
    outcome: Type.Enum([...RECEIPT_OUTCOMES]),
    archived: Type.Boolean({ description: 'GET /admin/v1/archive/:id has its result' }),
    detail: NullableText,
    received_at: Timestamp,
    written_at: Timestamp,
  },
  {
    examples: [
      {
        id: '019c1234-5678-7000-8abc-def012300000',
        tenant: 'ten_1',
        source_config_id: 'src_4fTzQ9aXw2LmN8pB',
        inbound_event_id: 'evt_1001',
        event_type: 'order.shipped',
        outcome: 'processed',
        archived: true,
        detail: null,
        received_at: '2026-01-31T09:30:00.000Z',
        written_at: '2026-01-31T09:30:00.040Z',
      },
    ],
  },
)
export type ReceiptView = Static<typeof ReceiptView>

/** An archived result without the result, which is JSON text as it was stored. */
export const ArchiveFacts = Type.Object({
  id: Uuid,
  tenant: Type.String(),
  source_config_id: Type.String(),
  received_at: Timestamp,
})
export type ArchiveFacts = Static<typeof ArchiveFacts>

export const RejectionView = Type.Object(
  {
    id: Type.String(),
    tenant: Type.String(),
    source_config_id: Nullable(
      Type.String({ description: 'Where it was sent to; null: it came with a key' }),
    ),
    key_id: NullableText,
    route: Nullable(Type.String({ description: 'Of a request with a key, for example POST /v1/track' })),
    rejected_at: Timestamp,
    status: Type.Integer(),
    code: Type.String(),
    detail: Type.String(),
    ip: NullableText,
    user_agent: NullableText,
    bytes: Nullable(Type.Integer()),
    body: Nullable(
      Type.String({
        description:
          'Of a request with a key: its first 2,000 characters, without credentials. Gone after an erasure, and where it names somebody who is not to be recorded',
      }),
    ),
    suppressed: Type.Integer({
      description: 'How many more like it came within the minute and were only counted',
    }),
  },
  {
    examples: [
      {
        id: '81',
        tenant: 'ten_1',
        source_config_id: 'src_4fTzQ9aXw2LmN8pB',
        key_id: null,
        route: null,
        rejected_at: '2026-01-31T09:30:00.000Z',
        status: 401,
        code: 'signature_invalid',
        detail: 'The signature does not match the body and the signing secret of this source.',
        ip: '203.0.113.7',
        user_agent: 'curl/8.5.0',
        bytes: 218,
        body: null,
        suppressed: 0,
      },
    ],
  },
)
export type RejectionView = Static<typeof RejectionView>

export const BacklogView = Type.Object({
  source_config_id: Type.String(),
  events: Type.Integer(),
  oldest_at: Timestamp,
})
export type BacklogView = Static<typeof BacklogView>

/** What an event came in with. */
export const ReceivedRequest = Type.Object({
  id: Type.String(),
  tenant: Type.String(),
  missing: Nullable(
    Type.Enum(['expired', 'erased', 'unknown'], {
      description:
        'Why it is not there. expired: the log keeps requests for a few days (KONTOR_LOG_RETENTION); erased: somebody in it was erased, or is not recorded, and requests go as a whole; null: it is there',
    }),
  ),
  received_at: NullableTimestamp,
  bytes: Nullable(Type.Integer({ minimum: 0, description: 'Of the whole request' })),
  batch: Nullable(
    Type.Object(
      { index: Type.Integer(), items: Type.Integer() },
      { description: 'Which item of how many the event is; null: the request is no batch' },
    ),
  ),
  body: Nullable(
    Type.String({
      description:
        'As received; of a batch the item, unless all of it is asked for; at most the first 100,000 characters',
    }),
  ),
  edited: Nullable(
    Type.Object(
      { by: Type.String(), at: Timestamp, dead_letter: Uuid },
      {
        description:
          'Set where an operator wrote the body, in place of what came in: who, when, and the dead letter that keeps the original',
      },
    ),
  ),
  truncated: Type.Boolean(),
})
export type ReceivedRequest = Static<typeof ReceivedRequest>
