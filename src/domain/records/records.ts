import { objectFields, parseJson } from '../json/json.ts'
import { timestampText } from '../time.ts'

export const ENTITY_TYPES = ['product', 'contact', 'order'] as const
export type EntityType = (typeof ENTITY_TYPES)[number]

/** The outcome of an accepted change. superseded: a newer change was already known. */
export const OPERATION_OUTCOMES = ['applied', 'superseded', 'failed'] as const
export type OperationOutcome = (typeof OPERATION_OUTCOMES)[number]

/** The context of a record entry, added by the data API. */
export type RecordContext = { op: 'write' | 'delete'; entityType: EntityType }

/** Identifiers other than the id by which a record can be deleted. */
export type RecordName = 'external_id' | 'sku' | 'code'

export type RecordWrite = {
  op: 'write'
  entityType: EntityType
  id: string
  externalId: string | null
  /** ISO 8601 with microseconds, UTC, so that it compares as text. */
  sourceUpdatedAt: string
  data: Record<string, unknown>
  /** As received, so that digits stay exact. */
  dataText: string
}
export type RecordDelete = { op: 'delete'; entityType: EntityType; id: string; sourceUpdatedAt: string }
export type RecordDeleteByName = {
  op: 'delete-by-name'
  entityType: EntityType
  name: RecordName
  value: string
  sourceUpdatedAt: string
}
export type RecordChange = RecordWrite | RecordDelete | RecordDeleteByName

type DeleteBody = { id?: string; externalId?: string; data?: Record<string, unknown> }

/** The record that a delete identifies: by id first, then by other names. Null if it identifies none. */
export function deleteTarget(
  entityType: EntityType,
  body: DeleteBody,
): { name: 'id' | RecordName; value: string } | null {
  if (body.id !== undefined) return { name: 'id', value: body.id }
  if (body.externalId !== undefined) return { name: 'external_id', value: body.externalId }
  if (entityType === 'product') {
    for (const name of ['sku', 'code'] as const) {
      const value = parseName(body.data?.[name])
      if (value !== null) return { name, value }
    }
  }
  return null
}

const MAX_NAME_LENGTH = 255

/** Parses a SKU or code. Returns null if it is longer than an id may be: then it is only data. */
function parseName(value: unknown): string | null {
  if (typeof value === 'number') return String(value)
  return typeof value === 'string' && value !== '' && !isTooLongForName(value) ? value : null
}

/** Counted in characters, like ids. */
export function isTooLongForName(text: string): boolean {
  return text.length > MAX_NAME_LENGTH && [...text].length > MAX_NAME_LENGTH
}

export function recordOrderingKey(entityType: EntityType, target: { name: 'id' | RecordName; value: string }): string {
  return target.name === 'id' ? `${entityType}:${target.value}` : `${entityType}:${target.name}:${target.value}`
}

/** Reads the change of a valid entry. */
export function readChange(context: RecordContext, text: string): RecordChange {
  const body = parseJson(text) as DeleteBody & { sourceUpdatedAt: string }
  const sourceUpdatedAt = timestampText(body.sourceUpdatedAt)
  if (sourceUpdatedAt === null) throw new Error('sourceUpdatedAt is not a timestamp')
  const { entityType } = context
  if (context.op === 'delete') {
    const target = deleteTarget(entityType, body)
    if (target === null) throw new Error('the delete names no record')
    if (target.name === 'id') return { op: 'delete', entityType, id: target.value, sourceUpdatedAt }
    return { op: 'delete-by-name', entityType, name: target.name, value: target.value, sourceUpdatedAt }
  }
  return {
    op: 'write',
    entityType,
    id: body.id!,
    externalId: body.externalId ?? null,
    sourceUpdatedAt,
    data: body.data ?? {},
    dataText: objectFields(text).findLast(([key]) => key === 'data')?.[1] ?? '{}',
  }
}

/** The version of a record: the time at the source, then the arrival. */
export type Version = { sourceUpdatedAt: string; entryId: string }

/** The newest source time wins. Between equal ones, the later arrival wins. */
export function isNewer(change: Version, than: Version): boolean {
  return change.sourceUpdatedAt === than.sourceUpdatedAt
    ? change.entryId > than.entryId
    : change.sourceUpdatedAt > than.sourceUpdatedAt
}

/** The names of a written record other than its id. */
export function listNames(write: RecordWrite): { name: RecordName; value: string }[] {
  const names: { name: RecordName; value: string }[] = []
  if (write.externalId !== null) names.push({ name: 'external_id', value: write.externalId })
  if (write.entityType === 'product') {
    for (const name of ['sku', 'code'] as const) {
      const value = parseName(write.data[name])
      if (value !== null) names.push({ name, value })
    }
  }
  return names
}
