import { hash } from 'node:crypto'
import { isObject, type JsonObject, objectFields, storable } from '../domain/json/json.ts'
import type { EntityType } from '../domain/records/records.ts'
import { parseTimestamp } from '../domain/time.ts'
import { type Mapping, mapped, type WrongValue } from './mapping.ts'
import { type Read, type Reading, type Row, rowByRow } from './row.ts'

export const RECORD_FIELDS = ['id', 'externalId', 'sourceUpdatedAt', 'data'] as const

/** The fields of a record write. `dataText` is the JSON of `data` as received. */
type RecordFields = {
  id?: unknown
  externalId?: unknown
  sourceUpdatedAt?: unknown
  data?: unknown
  dataText?: string
}

/** Reads records: with a map, as bodies of the API, or by column names. */
export function recordReading(
  entityType: EntityType,
  { mapping, time }: { mapping: Mapping | null; time: Date },
): Reading {
  return rowByRow(row => {
    const wrong: WrongValue[] = []
    const fields = mapping ? mapped(mapping, row.cells, time, wrong) : fieldsOf(row)
    if (wrong[0]) return { line: row.line, ...wrong[0] }
    return recordItem(entityType, row.line, fields)
  })
}

/** Applies the simple checks of the server, so that a dry run finds most errors. */
export function recordItem(entityType: EntityType, line: number, fields: RecordFields): Read {
  const { id, externalId, sourceUpdatedAt, data = {} } = fields
  const refuse = (column: string, reason: string) => ({ line, column, reason })
  if (id === undefined || id === null || id === '') return refuse('id', 'is missing')
  if (typeof id !== 'string' || [...id].length > 255)
    return refuse('id', 'must be a string of 1 to 255 characters')
  if (externalId !== undefined && (typeof externalId !== 'string' || [...externalId].length > 255))
    return refuse('externalId', 'must be a string of 1 to 255 characters')
  if (sourceUpdatedAt === undefined || sourceUpdatedAt === null)
    return refuse('sourceUpdatedAt', 'is missing')
  if (parseTimestamp(sourceUpdatedAt) === null)
    return refuse(
      'sourceUpdatedAt',
      `is not an ISO 8601 timestamp: ${JSON.stringify(sourceUpdatedAt).slice(0, 100)}`,
    )
  if (!isObject(data)) return refuse('data', 'must be an object')
  const dataText = fields.dataText ?? JSON.stringify(data)
  const content = `${JSON.stringify({ entityType, id, sourceUpdatedAt, externalId }).slice(0, -1)},"data":${dataText}`
  if (!storable(content))
    return {
      line,
      column: null,
      reason: 'contains a NUL character, an unpaired surrogate or a number out of range',
    }
  // The key is a hash of the row, so that importing the same row twice adds nothing.
  const key = `import-${hash('sha256', content, 'hex').slice(0, 40)}`
  return { line, id, text: `${content},"idempotencyKey":"${key}"}` }
}

const BESIDE_DATA = new Set([
  'entityType',
  ...RECORD_FIELDS,
  'idempotencyKey',
  'createdAt',
  'updatedAt',
  'deleted',
])

function fieldsOf({ cells, text }: Row): RecordFields {
  const { id, externalId, sourceUpdatedAt } = cells
  const named = { id: isNumber(id) ? String(id) : id, externalId: externalId ?? undefined, sourceUpdatedAt }
  if (text === undefined) return { ...named, data: nested(cells, name => !ENVELOPE.has(name)) }
  // A row of an export or a body of the API: the data is sent as written, with all digits.
  if (Object.hasOwn(cells, 'data') && cells.data !== null)
    return {
      ...named,
      data: cells.data,
      dataText: objectFields(text).findLast(([name]) => name === 'data')![1],
    }
  const beside = objectFields(text).filter(([name]) => !BESIDE_DATA.has(name))
  const dataText = `{${beside.map(([name, raw]) => `${JSON.stringify(name)}:${raw}`).join(',')}}`
  return { ...named, data: {}, dataText }
}

const ENVELOPE = new Set(['id', 'externalId', 'sourceUpdatedAt'])

function isNumber(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value)
}

/** Converts columns to fields. A dot in a column name creates a nested object. */
export function nested(cells: JsonObject, isWanted: (name: string) => boolean): JsonObject {
  const fields: JsonObject = Object.create(null)
  for (const [name, value] of Object.entries(cells)) {
    if (!isWanted(name)) continue
    const path = name.split('.')
    const last = path.pop()!
    let place: JsonObject = fields
    for (const step of path) {
      if (!isObject(place[step])) place[step] = Object.create(null) as JsonObject
      place = place[step] as JsonObject
    }
    place[last] = value
  }
  return fields
}
