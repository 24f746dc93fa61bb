import { type Static, Type } from 'typebox'
import { DEAD_LETTER_REASONS } from '../../domain/entries/dead-letters.ts'
import { Nullable, NullableText, NullableTimestamp, Timestamp } from '../../domain/shapes.ts'

export const DeadLetterView = Type.Object(
  {
    id: Type.String({ format: 'uuid', description: 'Of a record write: the operation id' }),
    tenant: Type.String(),
    kind: Type.Enum(['record', 'events']),
    source_config_id: NullableText,
    inbound_event_id: NullableText,
    reason: Type.Enum([...DEAD_LETTER_REASONS], {
      description: 'rejected: never valid; failed: could not be applied',
    }),
    error: Type.String(),
    attempts: Type.Integer(),
    received_at: Timestamp,
    failed_at: Timestamp,
    replayed_at: NullableTimestamp,
    replayed_as: Nullable(Type.String({ description: 'The id of the replayed entry' })),
    resolved_at: Nullable(Type.String({ format: 'date-time', description: 'Closed without a replay' })),
  },
  {
    examples: [
      {
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
        resolved_at: null,
      },
    ],
  },
)
export type DeadLetterView = Static<typeof DeadLetterView>
