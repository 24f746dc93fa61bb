import { hash } from 'node:crypto'
import { inspect, MAX_ITEM_BYTES, openBody } from '../domain/events/normalize/normalize.ts'
import { isObject, type JsonObject, objectFields, storable } from '../domain/json/json.ts'
import type { EntityType } from '../domain/records/records.ts'
import { parseTimestamp } from '../domain/time.ts'
import { applyMapping, type Mapping, parseShopTimestamp, type WrongValue } from './mapping.ts'
import { type Read, type Reading, type Row, readEachRow } from './rows.ts'

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
  return readEachRow(row => {
    const wrong: WrongValue[] = []
    const fields = mapping ? applyMapping(mapping, row.cells, time, wrong) : readFields(row)
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

function readFields({ cells, text }: Row): RecordFields {
  const { id, externalId, sourceUpdatedAt } = cells
  const named = { id: isNumber(id) ? String(id) : id, externalId: externalId ?? undefined, sourceUpdatedAt }
  if (text === undefined) return { ...named, data: nestColumns(cells, name => !ENVELOPE.has(name)) }
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
function nestColumns(cells: JsonObject, isWanted: (name: string) => boolean): JsonObject {
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

export const EVENT_FIELDS = [
  ...['event_type', 'visitor', 'session_id', 'user_id', 'event_id', 'occurred_at', 'data'],
] as const

const OWN_FIELDS = new Set<string>(EVENT_FIELDS)
const IDS = ['visitor', 'session_id', 'user_id', 'event_id']

/** Reads tracking events: with a map, as bodies of POST /v1/track, as rows of an export, or by column names. */
export function eventReading({ mapping, time }: { mapping: Mapping | null; time: Date }): Reading {
  return readEachRow(row => {
    const wrong: WrongValue[] = []
    const event = mapping ? applyMapping(mapping, row.cells, time, wrong) : readEvent(row)
    if (wrong[0]) return { line: row.line, ...wrong[0] }
    return eventItem(row.line, event)
  })
}

/** An event in the native format, or a CDP call. */
function eventItem(line: number, event: JsonObject | string): Read {
  let text = typeof event === 'string' ? event : JSON.stringify(event)
  const own = typeof event === 'string' ? (JSON.parse(event) as JsonObject) : event
  const idField = own.event_type === undefined && own.type !== undefined ? 'messageId' : 'event_id'
  let id = own[idField]
  if (id === undefined || id === null || id === '') {
    // The same row always gets the same id, so that importing it twice adds nothing.
    id = `row-${hash('sha256', text, 'hex').slice(0, 40)}`
    text = `{"${idField}":"${id}"${text === '{}' ? '' : ','}${text.slice(1)}`
  }
  if (Buffer.byteLength(text) > MAX_ITEM_BYTES)
    return { line, column: null, reason: `an event may have at most ${MAX_ITEM_BYTES} bytes` }
  const { errors } = inspect(openBody(`[${text}]`), {
    route: 'cdp',
    kind: 'batch',
    ip: null,
    headers: {},
  })
  const [error] = errors
  if (error) return { line, column: toColumn(error.pointer), reason: error.message }
  return { line, id: String(id), text }
}

const toColumn = (pointer: string) => pointer.split('/').slice(2).join('.') || null

function readEvent(row: Row): JsonObject | string {
  const { cells, text } = row
  if (text === undefined) return readEventColumns(cells)
  if (isObject(cells.payload) && typeof cells.received_at === 'string') return readExportedEvent(cells, text)
  return text.trim()
}

/** A column that is not an event field becomes `data.<column>`. */
function readEventColumns(cells: JsonObject): JsonObject {
  const event: JsonObject = {}
  for (const name of EVENT_FIELDS) if (name !== 'data' && cells[name] !== undefined) event[name] = cells[name]
  const at = event.occurred_at
  if (typeof at === 'string') event.occurred_at = parseShopTimestamp(at.trim()) ?? at
  const columns = Object.fromEntries(
    Object.entries(cells).map(([name, value]) => [name.startsWith('data.') ? name.slice(5) : name, value]),
  )
  const data = nestColumns(columns, name => !OWN_FIELDS.has(name))
  if (Object.keys(data).length > 0) event.data = data
  return event
}

/** A row of `kontor export events`. Its `payload` is the `data` of a tracking event. */
function readExportedEvent(row: JsonObject, text: string): string {
  const facts: JsonObject = { event_type: row.event_type, occurred_at: row.occurred_at }
  for (const name of IDS) if (row[name] !== null && row[name] !== undefined) facts[name] = row[name]
  facts.event_id ??= row.inbound_event_id ?? row.id
  const payload = objectFields(text).findLast(([name]) => name === 'payload')![1]
  return `${JSON.stringify(facts).slice(0, -1)},"data":${payload}}`
}
