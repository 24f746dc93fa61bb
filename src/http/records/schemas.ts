import { type Static, Type } from 'typebox'
import { ENTITY_TYPES, type EntityType, OPERATION_OUTCOMES } from '../../domain/records/records.ts'
import { Nullable, NullableText, NullableTimestamp, OpenObject, Timestamp, Uuid } from '../../domain/shapes.ts'
import { ValidationError } from '../../domain/validation-error.ts'

/** Fields that writes and deletes share. A delete can identify the record by other fields than `id`. */
export type RecordBody = Static<typeof RecordDeleteBody>

export function withArticle(entityType: EntityType): string {
  return entityType === 'order' ? 'an order' : `a ${entityType}`
}

const Id = Type.String({ minLength: 1, maxLength: 255 })
const EntityTypeName = Type.Enum([...ENTITY_TYPES])

export const RecordWriteBody = Type.Object({
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
})

const RecordDeleteBody = Type.Object({
  entityType: EntityTypeName,
  sourceUpdatedAt: Type.String({ format: 'timestamp', description: 'When the delete happened in your system.' }),
  id: Type.Optional(Id),
  externalId: Type.Optional(Id),
  idempotencyKey: Type.Optional(Type.String()),
  data: Type.Optional(OpenObject({ description: 'For products: sku or code, instead of id.' })),
})

const EXAMPLES = {
  product: { id: 'p-1', data: { sku: 'MUG-01', name: 'Mug', price: 12.9, currency: 'EUR' } },
  contact: { id: 'c-1', data: { email: 'ada@example.com', name: 'Ada Lovelace', company: 'Engines' } },
  order: { id: 'o-1', data: { total: 49.9, currency: 'EUR', contactId: 'c-1', created_at: '2026-01-31T09:00:00Z' } },
}

/** The bodies of one type's routes, with examples of that type. */
export function buildBodies(entityType: EntityType) {
  const { id, data } = EXAMPLES[entityType]
  const write = { entityType, id, sourceUpdatedAt: '2026-01-31T09:30:00Z', data }
  const remove = { entityType, id, sourceUpdatedAt: '2026-02-01T00:00:00Z' }
  return {
    write: Type.Object(RecordWriteBody.properties, { examples: [write] }),
    remove: Type.Object(RecordDeleteBody.properties, { examples: [remove] }),
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

export const BatchResult = Type.Object({
  results: Type.Array(
    Type.Object({
      index: Type.Integer(),
      ...Type.Partial(Type.Object(acceptance)).properties,
      accepted: Type.Boolean(),
      errors: Type.Optional(Type.Array(ValidationError, { description: 'Why the item was rejected' })),
    }),
  ),
})

export const StoredRecordBody = Type.Object({
  entityType: EntityTypeName,
  id: Type.String(),
  externalId: NullableText,
  sourceUpdatedAt: Timestamp,
  data: Nullable(OpenObject()),
  createdAt: Timestamp,
  updatedAt: Timestamp,
  deleted: Type.Optional(Type.Boolean({ description: 'Only in lists, with include_deleted' })),
})

export const OperationBody = Type.Object({
  operationId: Uuid,
  status: Type.Enum(['queued', ...OPERATION_OUTCOMES]),
  entityType: EntityTypeName,
  id: NullableText,
  acceptedAt: Timestamp,
  appliedAt: NullableTimestamp,
  error: NullableText,
})
