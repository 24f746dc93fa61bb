import { INTERVALS } from '../../domain/buckets.ts'
import { SOURCE_TYPES } from '../../domain/events/types.ts'
import { Nullable, NullableText, NullableTimestamp, Timestamp, Uuid } from '../../domain/shapes.ts'
import { type TProperties, Type } from '../../domain/typebox.ts'

const EventSource = Type.Enum(['tracking', ...SOURCE_TYPES])

export const EventBody = Type.Object(
  {
    id: Uuid,
    event_type: Type.String(),
    occurred_at: Timestamp,
    received_at: Timestamp,
    source: EventSource,
    source_type: EventSource,
    source_config_id: NullableText,
    inbound_event_id: NullableText,
    provider_event_id: NullableText,
    visitor: NullableText,
    session_id: NullableText,
    profile_id: NullableText,
    contact_id: NullableText,
    verified: Type.Boolean({
      description: 'Whether an inbound source or a server key sent the event, not a public tracking key',
    }),
    payload: Type.Unknown(),
    headers: Type.Object({}),
    meta: Type.Object({}),
  },
  { title: 'Event', description: 'An event in the format that Kontor uses for events of all sources' },
)

export const EventOutcomeBody = Type.Object(
  {
    id: Uuid,
    status: Type.Enum(['queued', 'deferred', 'stored', 'duplicate', 'dead_letter', 'dropped', 'suppressed']),
    reason: NullableText,
    received_at: Timestamp,
    duplicate_of: Nullable(Uuid),
    attempts: Nullable(Type.Integer()),
    next_attempt_at: NullableTimestamp,
    failed_at: NullableTimestamp,
    replayed_at: NullableTimestamp,
    replayed_as: Nullable(Type.String({ format: 'uuid', description: 'The id of the entry that the replay created' })),
    conversion: Nullable(Type.Boolean()),
    event: Nullable(EventBody),
  },
  { title: 'EventOutcome', description: 'The outcome of an event' },
)

export const ConversionBody = Type.Object(
  {
    id: Uuid,
    occurred_at: Timestamp,
    conversion_type: Type.String(),
    event_type: NullableText,
    source: Type.Enum(['tracking', ...SOURCE_TYPES, 'orders', 'billing']),
    source_object_id: NullableText,
    amount: Nullable(Type.Number()),
    currency: NullableText,
    visitor: NullableText,
    profile_id: NullableText,
    contact_id: NullableText,
    contact_name: NullableText,
    contact_email: NullableText,
    company_name: NullableText,
    integration_id: NullableText,
    verified: Type.Boolean({
      description: 'Whether verified input reports the sale: an order record, an inbound source or a server key',
    }),
    claims: Type.Integer({ minimum: 0, description: 'Number of unverified events that refer to the sale' }),
  },
  { title: 'Conversion', description: 'An event that counts as a sale or as another goal' },
)

const SeriesBody = <Sums extends TProperties>(sums: Sums) =>
  Type.Object({
    interval: Type.Enum([...INTERVALS]),
    results: Type.Array(
      Type.Object({
        at: Timestamp,
        ...sums,
        groups: Type.Optional(
          Type.Record(Type.String(), Type.Object(sums), { description: 'With group_by: the same values per group' }),
        ),
      }),
      { description: 'One row per bucket' },
    ),
  })

export const EventSeriesBody = SeriesBody({ count: Type.Integer() })

export const VisitorsBody = Type.Object(
  {
    interval: Type.Enum([...INTERVALS]),
    total: Type.Integer({ description: 'Distinct visitors of the whole period, not the sum of the buckets' }),
    results: Type.Array(Type.Object({ at: Timestamp, count: Type.Integer() }), { description: 'One row per bucket' }),
  },
  { title: 'VisitorSeries', description: 'Distinct visitors over time' },
)

export const ConversionSeriesBody = SeriesBody({
  count: Type.Integer(),
  amounts: Type.Record(Type.String(), Type.Number(), {
    description: 'By currency; conversions without a currency are counted but not summed',
  }),
})
