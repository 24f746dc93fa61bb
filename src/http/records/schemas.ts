import { Type } from 'typebox'

const Id = Type.String({ minLength: 1, maxLength: 255 })
const Timestamp = Type.String({ format: 'timestamp', examples: ['2026-01-31T09:30:00Z'] })
const EntityTypeName = Type.Enum(['product', 'contact', 'order'])

export const RecordWriteBody = Type.Object(
  {
    entityType: EntityTypeName,
    id: Type.String({ minLength: 1, maxLength: 255, description: 'Your identifier of the record' }),
    sourceUpdatedAt: Type.String({
      format: 'timestamp',
      description:
        'When the record last changed in your system. The newest wins, whatever the order of arrival.',
    }),
    externalId: Type.Optional(
      Type.String({ minLength: 1, maxLength: 255, description: 'A second identifier' }),
    ),
    idempotencyKey: Type.Optional(
      Type.String({ description: 'May be sent as header x-idempotency-key instead; the header wins.' }),
    ),
    data: Type.Optional(
      Type.Object({}, { description: 'All fields of the record; replaces what was there.' }),
    ),
  },
  {
    examples: [
      {
        entityType: 'product',
        id: 'p-1',
        sourceUpdatedAt: '2026-01-31T09:30:00Z',
        data: { sku: 'MUG-01', name: 'Mug', price: 12.9, currency: 'EUR' },
      },
    ],
  },
)

export const RecordDeleteBody = Type.Object(
  {
    entityType: EntityTypeName,
    sourceUpdatedAt: Type.String({
      format: 'timestamp',
      description: 'When the delete happened in your system.',
    }),
    id: Type.Optional(Id),
    externalId: Type.Optional(Id),
    idempotencyKey: Type.Optional(Type.String()),
    data: Type.Optional(Type.Object({}, { description: 'For products: sku or code, instead of id.' })),
  },
  { examples: [{ entityType: 'product', id: 'p-1', sourceUpdatedAt: '2026-02-01T00:00:00Z' }] },
)

const Warning = Type.Object({ pointer: Type.String(), message: Type.String() })

export const Accepted = Type.Object(
  {
    accepted: Type.Boolean(),
    duplicate: Type.Boolean(),
    operationId: Type.String({ format: 'uuid' }),
    entityType: EntityTypeName,
    id: Type.Union([Type.String(), Type.Null()]),
    status: Type.Optional(
      Type.Enum(['queued', 'applied', 'superseded', 'failed'], { description: 'With Prefer: wait=N' }),
    ),
    payloadMismatch: Type.Optional(
      Type.Boolean({ description: 'The idempotency key was first used with another body.' }),
    ),
    warnings: Type.Optional(Type.Array(Warning)),
  },
  {
    examples: [
      {
        accepted: true,
        duplicate: false,
        operationId: '019c1234-5678-7000-8abc-def012300000',
        entityType: 'product',
        id: 'p-1',
      },
    ],
  },
)

export const BatchResult = Type.Object({
  results: Type.Array(
    Type.Object({
      index: Type.Integer(),
      accepted: Type.Boolean(),
      duplicate: Type.Optional(Type.Boolean()),
      operationId: Type.Optional(Type.String({ format: 'uuid' })),
      errors: Type.Optional(Type.Array(Warning)),
    }),
  ),
})

export const StoredRecordBody = Type.Object({
  entityType: EntityTypeName,
  id: Type.String(),
  externalId: Type.Union([Type.String(), Type.Null()]),
  sourceUpdatedAt: Timestamp,
  data: Type.Union([Type.Object({}), Type.Null()]),
  createdAt: Timestamp,
  updatedAt: Timestamp,
  deleted: Type.Optional(Type.Boolean({ description: 'Only in lists, with include_deleted' })),
})

export const RecordList = Type.Object({
  results: Type.Array(StoredRecordBody),
  next_cursor: Type.Union([Type.String(), Type.Null()]),
})

export const OperationBody = Type.Object({
  operationId: Type.String({ format: 'uuid' }),
  status: Type.Enum(['queued', 'applied', 'superseded', 'failed']),
  entityType: EntityTypeName,
  id: Type.Union([Type.String(), Type.Null()]),
  acceptedAt: Timestamp,
  appliedAt: Type.Union([Timestamp, Type.Null()]),
  error: Type.Union([Type.String(), Type.Null()]),
})

const Nullable = Type.Union([Type.String(), Type.Null()])

export const EventBody = Type.Object({
  id: Type.String({ format: 'uuid' }),
  event_type: Type.String(),
  occurred_at: Timestamp,
  received_at: Timestamp,
  source: Type.Enum(['tracking', 'cdp', 'webhook', 'automation']),
  source_type: Type.Enum(['tracking', 'cdp', 'webhook', 'automation']),
  source_config_id: Nullable,
  inbound_event_id: Nullable,
  provider_event_id: Nullable,
  visitor: Nullable,
  session_id: Nullable,
  profile_id: Nullable,
  contact_id: Nullable,
  payload: Type.Unknown(),
  headers: Type.Object({}),
  meta: Type.Object({}),
})

const NullableTime = Type.Union([Timestamp, Type.Null()])

export const EventOutcomeBody = Type.Object({
  id: Type.String({ format: 'uuid' }),
  status: Type.Enum(['queued', 'deferred', 'stored', 'duplicate', 'dead_letter', 'dropped']),
  reason: Nullable,
  received_at: Timestamp,
  duplicate_of: Type.Union([Type.String({ format: 'uuid' }), Type.Null()]),
  attempts: Type.Union([Type.Integer(), Type.Null()]),
  next_attempt_at: NullableTime,
  failed_at: NullableTime,
  replayed_at: NullableTime,
  replayed_as: Type.Union([
    Type.String({ format: 'uuid', description: 'What a replay went in as' }),
    Type.Null(),
  ]),
  conversion: Type.Union([Type.Boolean(), Type.Null()]),
  event: Type.Union([EventBody, Type.Null()]),
})

export const ConversionBody = Type.Object({
  id: Type.String({ format: 'uuid' }),
  occurred_at: Timestamp,
  conversion_type: Type.String(),
  event_type: Nullable,
  source: Type.Enum(['tracking', 'cdp', 'webhook', 'automation', 'orders', 'billing']),
  source_object_id: Nullable,
  amount: Type.Union([Type.Number(), Type.Null()]),
  currency: Nullable,
  visitor: Nullable,
  profile_id: Nullable,
  contact_id: Nullable,
  contact_name: Nullable,
  contact_email: Nullable,
  company_name: Nullable,
  integration_id: Nullable,
})

export const TimeQuery = Type.Object({
  limit: Type.Integer({
    minimum: 1,
    default: 50,
    description: 'Rows to return; more than 100 is served as 100',
  }),
  offset: Type.Integer({ minimum: 0, default: 0 }),
  cursor: Type.Optional(
    Type.String({
      description: 'next_cursor of the page before; costs the same at any depth. Instead of offset.',
    }),
  ),
  event_type: Type.Optional(Type.String({ description: 'Exact event type' })),
  since: Type.Optional(
    Type.String({ format: 'timestamp', description: 'Inclusive lower bound of occurred_at' }),
  ),
  until: Type.Optional(
    Type.String({ format: 'timestamp', description: 'Inclusive upper bound of occurred_at' }),
  ),
})

export function timeList(item: ReturnType<typeof Type.Object>) {
  return Type.Object({
    results: Type.Array(item),
    limit: Type.Integer(),
    offset: Type.Integer(),
    has_more: Type.Boolean(),
    next_cursor: Nullable,
  })
}
