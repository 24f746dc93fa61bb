import { type Static, Type } from 'typebox'
import { Nullable, NullableText, NullableTimestamp, Timestamp } from '../../domain/shapes.ts'
import { DESTINATION_SETTINGS } from '../destination-settings.ts'
import { created_by } from './keys.ts'

const DESTINATION_EXAMPLE = {
  id: 'dst_4fTzQ9aXw2LmN8pB',
  tenant: 'ten_1',
  name: 'warehouse',
  url: 'https://warehouse.example/hooks',
  what: ['events', 'conversions'],
  event_types: ['order.*'],
  enabled: true,
  headers: {},
  disabled_reason: null,
  secrets: [{ hint: '…x7Qe', expires_at: null }],
  health: {
    status: 'ok',
    pending: 0,
    failing_since: null,
    last_attempt_at: '2026-01-31T09:30:00.000Z',
    last_success_at: '2026-01-31T09:30:00.000Z',
    last_status: 200,
    last_error: null,
  },
  created_by: 'key_9kTzQ9aXw2LmN8pC',
  created_at: '2026-01-31T09:30:00.000Z',
  updated_at: '2026-01-31T09:30:00.000Z',
}

const destination = {
  id: Type.String(),
  tenant: Type.String(),
  ...DESTINATION_SETTINGS,
  disabled_reason: Nullable(Type.String({ description: 'Why Kontor disabled it; null where somebody did' })),
  secrets: Type.Array(Type.Object({ hint: Type.String(), expires_at: NullableText }), {
    description: 'Two while a secret is being rotated: messages are signed with both',
  }),
  health: Type.Object({
    status: Type.Enum(['ok', 'failing', 'disabled']),
    pending: Type.Integer({ description: 'Messages still to be delivered; counted up to 100,000' }),
    failing_since: NullableTimestamp,
    last_attempt_at: NullableTimestamp,
    last_success_at: NullableTimestamp,
    last_status: Nullable(Type.Integer()),
    last_error: NullableText,
  }),
  created_by,
  created_at: Timestamp,
  updated_at: Timestamp,
}

export const DestinationView = Type.Object(destination, { examples: [DESTINATION_EXAMPLE] })
export type DestinationView = Static<typeof DestinationView>

/** The only moment in which the secret itself is there. */
export const CreatedDestination = Type.Object(
  {
    ...destination,
    secret: Type.String({ description: 'What messages are signed with, shown only once' }),
  },
  { examples: [{ ...DESTINATION_EXAMPLE, secret: 'whsec_9f…' }] },
)
export type CreatedDestination = Static<typeof CreatedDestination>

export const DestinationTest = Type.Object({
  ok: Type.Boolean({ description: 'It was answered 2xx within 15 seconds' }),
  message_id: Type.String(),
  url: Type.String(),
  status: Nullable(Type.Integer()),
  error: NullableText,
  response: Nullable(Type.String({ description: 'How the answer began' })),
  duration_ms: Type.Integer(),
})
export type DestinationTest = Static<typeof DestinationTest>

export const DELIVERY_OUTCOMES = ['delivered', 'retrying', 'failed'] as const

/** One attempt to deliver a message. */
export const DeliveryView = Type.Object({
  id: Type.String({ description: 'webhook-id: the same in every attempt' }),
  type: Type.String(),
  outcome: Type.Enum([...DELIVERY_OUTCOMES]),
  attempt: Type.Integer(),
  attempted_at: Timestamp,
  status: Nullable(Type.Integer({ description: 'null: there was no answer' })),
  error: NullableText,
  response: Nullable(Type.String({ description: 'How the answer began' })),
  duration_ms: Type.Integer(),
  next_attempt_at: NullableTimestamp,
})
export type DeliveryView = Static<typeof DeliveryView>
