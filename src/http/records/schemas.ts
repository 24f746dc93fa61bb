import { ENTITY_TYPES, type EntityType, OPERATION_OUTCOMES } from '../../domain/records/records.ts'
import { Nullable, NullableText, NullableTimestamp, OpenObject, Timestamp, Uuid } from '../../domain/shapes.ts'
import { type Static, Type } from '../../domain/typebox.ts'
import { ValidationError } from '../../domain/validation-error.ts'

/** Fields that writes and deletes share. A delete can identify the record by other fields than `id`. */
export type RecordBody = Static<typeof RecordDeleteBody>

export function withArticle(entityType: EntityType): string {
  return entityType === 'order' ? 'an order' : `a ${entityType}`
}

export const MAX_ITEMS = 1_000

const Id = Type.String({ minLength: 1, maxLength: 255 })
const EntityTypeName = Type.Enum([...ENTITY_TYPES])

const write = {
  entityType: EntityTypeName,
  id: Type.String({ minLength: 1, maxLength: 255, description: 'Your identifier for the record' }),
  sourceUpdatedAt: Type.String({
    format: 'timestamp',
    description:
      'When the record last changed in your system. The newest change wins, in whatever order changes arrive.',
  }),
  externalId: Type.Optional(Type.String({ minLength: 1, maxLength: 255, description: 'A second identifier' })),
  idempotencyKey: Type.Optional(
    Type.String({ description: 'May be sent as header x-idempotency-key instead; the header takes precedence.' }),
  ),
  data: Type.Optional(OpenObject({ description: 'All fields of the record; replaces the previous ones.' })),
}
const writeNamed = { title: 'RecordWrite', description: 'A version of a record' }
export const RecordWriteBody = Type.Object(write, writeNamed)

const remove = {
  entityType: EntityTypeName,
  sourceUpdatedAt: Type.String({ format: 'timestamp', description: 'When the delete happened in your system.' }),
  id: Type.Optional(Id),
  externalId: Type.Optional(Id),
  idempotencyKey: Type.Optional(Type.String()),
  data: Type.Optional(OpenObject({ description: 'For products: sku or code, instead of id.' })),
}
const RecordDeleteBody = Type.Object(remove)

const EXAMPLES = {
  product: { id: 'p-1', data: { sku: 'MUG-01', name: 'Mug', price: 12.9, currency: 'EUR' } },
  contact: { id: 'c-1', data: { email: 'ada@example.com', name: 'Ada Lovelace', company: 'Engines' } },
  order: { id: 'o-1', data: { total: 49.9, currency: 'EUR', contactId: 'c-1', created_at: '2026-01-31T09:00:00Z' } },
}

/** The bodies of one type's routes, with examples of that type. */
export function buildBodies(entityType: EntityType) {
  const { id, data } = EXAMPLES[entityType]
  const version = { entityType, id, sourceUpdatedAt: '2026-01-31T09:30:00Z', data }
  const deletion = { entityType, id, sourceUpdatedAt: '2026-02-01T00:00:00Z' }
  const other = { ...version, id: `${id}0`, externalId: 'ERP-10' }
  return {
    write: Type.Object(write, { ...writeNamed, examples: [version] }),
    remove: Type.Object(remove, {
      title: 'RecordDelete',
      description: 'A delete, by one identifier of the record',
      examples: [deletion],
    }),
    batch: Type.Object(
      { records: Type.Array(RecordWriteBody, { minItems: 1, maxItems: MAX_ITEMS }) },
      { title: 'RecordBatch', description: 'Several versions of records', examples: [{ records: [version, other] }] },
    ),
    stored: storedRecord(entityType),
  }
}

const acceptance = {
  accepted: Type.Boolean(),
  duplicate: Type.Boolean(),
  operationId: Uuid,
  entityType: EntityTypeName,
  id: NullableText,
  status: Type.Optional(Type.Enum(['queued', ...OPERATION_OUTCOMES], { description: 'With Prefer: wait=N' })),
  payloadMismatch: Type.Optional(
    Type.Boolean({ description: 'The idempotency key was first used with another body.' }),
  ),
  warnings: Type.Optional(Type.Array(ValidationError)),
}

export const Accepted = Type.Object(acceptance, {
  title: 'AcceptedWrite',
  description: 'The write is durable',
  examples: [
    {
      accepted: true,
      duplicate: false,
      operationId: '019c1234-5678-7000-8abc-def012300000',
      entityType: 'product',
      id: 'p-1',
    },
  ],
})

export const BatchResult = Type.Object(
  {
    results: Type.Array(
      Type.Object(
        {
          index: Type.Integer(),
          ...Type.Partial(Type.Object(acceptance)).properties,
          accepted: Type.Boolean(),
          errors: Type.Optional(Type.Array(ValidationError, { description: 'Why the item was rejected' })),
        },
        { title: 'BatchRow', description: 'Whether one record was accepted' },
      ),
    ),
  },
  { title: 'BatchResult', description: 'One result per record, in the order of the request' },
)

export type StoredRecord = Static<ReturnType<typeof storedRecord>>

/** A record in the latest version received. */
function storedRecord(entityType: EntityType) {
  return Type.Object(
    {
      entityType: EntityTypeName,
      id: Type.String({ description: 'Your identifier for the record' }),
      externalId: NullableText,
      sourceUpdatedAt: Timestamp,
      data: Nullable(
        OpenObject({
          description: 'All fields as received; null if deleted',
          examples: [EXAMPLES[entityType].data],
        }),
      ),
      createdAt: Timestamp,
      updatedAt: Timestamp,
      deleted: Type.Optional(Type.Boolean({ description: 'Only in lists, with include_deleted' })),
    },
    {
      title: entityType[0]!.toUpperCase() + entityType.slice(1),
      description: `${withArticle(entityType).replace(/^a/, 'A')} in the latest version received`,
    },
  )
}

export const OperationBody = Type.Object(
  {
    operationId: Uuid,
    status: Type.Enum(['queued', ...OPERATION_OUTCOMES]),
    entityType: EntityTypeName,
    id: NullableText,
    acceptedAt: Timestamp,
    appliedAt: NullableTimestamp,
    error: NullableText,
  },
  { title: 'Operation', description: 'The outcome of an accepted write' },
)
