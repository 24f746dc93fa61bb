import { hash } from 'node:crypto'
import { inspect, MAX_ITEM_BYTES, openBody } from '../domain/events/normalize/normalize.ts'
import { findUnstorable, isObject, type JsonObject, objectFields, storable, UNSTORABLE } from '../domain/json/json.ts'
import type { EntityType } from '../domain/records/records.ts'
import { parseTimestamp } from '../domain/time.ts'
import { FileError, type Read, type Reading, type Row, readEachRow } from './rows.ts'
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
    const { entityType: given } = row.cells
    // A column of that name in a CSV file, or in a file with a map, is only data.
    if (!mapping && row.text !== undefined && given !== undefined && given !== entityType)
      return { line: row.line, column: 'entityType', reason: `must be "${entityType}"` }
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
  if (typeof id !== 'string' || [...id].length > 255) return refuse('id', 'must be a string of 1 to 255 characters')
  if (externalId !== undefined && (typeof externalId !== 'string' || [...externalId].length > 255))
    return refuse('externalId', 'must be a string of 1 to 255 characters')
  if (sourceUpdatedAt === undefined || sourceUpdatedAt === null) return refuse('sourceUpdatedAt', 'is missing')
  if (parseTimestamp(sourceUpdatedAt) === null)
    return refuse('sourceUpdatedAt', `is not an ISO 8601 timestamp: ${JSON.stringify(sourceUpdatedAt).slice(0, 100)}`)
  if (!isObject(data)) return refuse('data', 'must be an object')
  const dataText = fields.dataText ?? JSON.stringify(data)
  const content = `${JSON.stringify({ entityType, id, sourceUpdatedAt, externalId }).slice(0, -1)},"data":${dataText}`
  if (!storable(content))
    return { line, column: null, reason: findUnstorable({ id, externalId, data })[0]?.message ?? UNSTORABLE }
  // The key is a hash of the row, so that importing the same row twice adds nothing.
  const key = `import-${hash('sha256', content, 'hex').slice(0, 40)}`
  return { line, id, text: `${content},"idempotencyKey":"${key}"}` }
}

const BESIDE_DATA = new Set(['entityType', ...RECORD_FIELDS, 'idempotencyKey', 'createdAt', 'updatedAt', 'deleted'])

function readFields({ cells, text }: Row): RecordFields {
  const { id, externalId, sourceUpdatedAt } = cells
  const named = { id: isNumber(id) ? String(id) : id, externalId: externalId ?? undefined, sourceUpdatedAt }
  if (text === undefined) return { ...named, data: nestColumns(cells, name => !ENVELOPE.has(name)) }
  // A row of an export or a body of the API: the data is sent as written, with all digits.
  if (Object.hasOwn(cells, 'data') && cells.data !== null)
    return { ...named, data: cells.data, dataText: objectFields(text).findLast(([name]) => name === 'data')![1] }
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
  const { errors } = inspect(openBody(`[${text}]`), { route: 'cdp', kind: 'batch', ip: null, headers: {} })
  const [error] = errors
  if (error) return { line, ...toWrongValue(error) }
  return { line, id: String(id), text }
}

/** The messages of the API start with the name of the field, which is the column here. */
function toWrongValue({ pointer, message }: { pointer: string; message: string }) {
  const path = pointer.split('/').slice(2)
  const name = `${path.at(-1)} `
  return { column: path.join('.') || null, reason: message.startsWith(name) ? message.slice(name.length) : message }
}

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

/** Maps columns to fields: `{"id": "Handle", "sourceUpdatedAt": "now", "data": {"price": {"from": "Price", "as": "number"}}}`. */
export type Mapping = { [field: string]: Field | Mapping }

const TYPES = ['text', 'number', 'boolean', 'timestamp', 'json'] as const
type Type = (typeof TYPES)[number]
type Field = { from: string; as: Type } | { value: unknown } | { now: true }

/** A value that does not have the type that the map declares. */
type WrongValue = { column: string; reason: string }

/** Parses a map file and reports all its errors together. */
export function parseMapping(text: string, fields: readonly string[]): Mapping {
  let given: unknown
  try {
    given = JSON.parse(text)
  } catch (error) {
    throw new FileError(`The map file is not JSON: ${(error as Error).message}.`)
  }
  if (!isObject(given)) throw new FileError('The map file must contain a JSON object.')
  const errors: string[] = []
  for (const name of Object.keys(given))
    if (!fields.includes(name)) errors.push(`${name} is not a field; the fields are ${fields.join(', ')}`)
  const mapping = parseFields(given, '', errors)
  if (errors.length > 0) throw new FileError(`The map file is invalid:\n  - ${errors.join('\n  - ')}`)
  return mapping
}

function parseFields(given: JsonObject, path: string, errors: string[]): Mapping {
  const mapping: Mapping = {}
  for (const [name, spec] of Object.entries(given)) {
    const at = `${path}${name}`
    if (typeof spec === 'string')
      mapping[name] = spec === 'now' && isTime(at) ? { now: true } : { from: spec, as: 'text' }
    else if (!isObject(spec)) errors.push(`${at} must be the name of a column or {"from": …, "as": …}`)
    else if (Object.hasOwn(spec, 'value')) mapping[name] = { value: spec.value }
    else if (typeof spec.from === 'string') mapping[name] = { from: spec.from, as: parseType(spec.as, at, errors) }
    else mapping[name] = parseFields(spec, `${at}.`, errors)
  }
  return mapping
}

function isTime(field: string): boolean {
  return field === 'sourceUpdatedAt' || field === 'occurred_at'
}

function parseType(as: unknown, at: string, errors: string[]): Type {
  // a column for the whole `data` contains JSON
  if (as === undefined) return at === 'data' ? 'json' : 'text'
  if (TYPES.includes(as as Type)) return as as Type
  errors.push(`${at}: "as" must be one of ${TYPES.join(', ')}`)
  return 'text'
}

function isField(spec: Field | Mapping): spec is Field {
  return 'from' in spec || 'value' in spec || 'now' in spec
}

/** The columns that a mapping reads. */
export function listColumns(mapping: Mapping): string[] {
  return Object.values(mapping).flatMap(spec => {
    if (!isField(spec)) return listColumns(spec)
    return 'from' in spec && typeof spec.from === 'string' ? [spec.from] : []
  })
}

/** The fields of one row. Missing values are omitted; values of the wrong type are added to `wrong`. */
function applyMapping(mapping: Mapping, cells: JsonObject, time: Date, wrong: WrongValue[]): JsonObject {
  const fields: JsonObject = {}
  for (const [name, spec] of Object.entries(mapping)) {
    if (!isField(spec)) {
      const inner = applyMapping(spec, cells, time, wrong)
      if (Object.keys(inner).length > 0) fields[name] = inner
    } else if ('now' in spec) fields[name] = time.toISOString()
    else if ('value' in spec) fields[name] = spec.value
    else {
      const value = convertValue((spec as { from: string }).from, (spec as { as: Type }).as, cells, wrong)
      if (value !== undefined) fields[name] = value
    }
  }
  return fields
}

function convertValue(column: string, as: Type, cells: JsonObject, wrong: WrongValue[]): unknown {
  const value = readPath(cells, column)
  if (value === undefined || value === null || value === '') return undefined
  const text = typeof value === 'string' ? value.trim() : null
  const refuse = (what: string) => {
    wrong.push({ column, reason: `is not ${what}: ${JSON.stringify(value).slice(0, 100)}` })
    return undefined
  }
  switch (as) {
    case 'text':
      return isObject(value) || Array.isArray(value) ? value : String(value)
    case 'number':
      return (text === null ? (typeof value === 'number' ? value : undefined) : parseNumber(text)) ?? refuse('a number')
    case 'boolean':
      return typeof value === 'boolean' ? value : (BOOLEANS[String(value).trim().toLowerCase()] ?? refuse('a boolean'))
    case 'timestamp':
      return parseShopTimestamp(text) ?? refuse('a timestamp')
    case 'json':
      try {
        return text === null ? value : JSON.parse(text)
      } catch {
        return refuse('JSON')
      }
  }
}

const BOOLEANS: Record<string, boolean> = {
  ...{ true: true, yes: true, y: true, 1: true, t: true },
  ...{ false: false, no: false, n: false, 0: false, f: false },
}

const PLAIN_NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?$/

/** Keeps all digits: a number that a double cannot represent is sent as written. */
export function parseNumber(text: string): unknown {
  if (PLAIN_NUMBER.test(text)) return rawJson(text)
  return /^[-+]?\d+(?:\.\d*)?$/.test(text) ? Number(text) : undefined
}

// The type declarations do not contain JSON.rawJSON yet.
const { rawJSON: rawJson } = JSON as unknown as { rawJSON(text: string): unknown }

/** Accepts ISO 8601, and the formats with a space that shops use: `2026-01-31 09:30:00 +0100`, `… UTC`. */
export function parseShopTimestamp(text: string | null): string | undefined {
  if (text === null) return undefined
  const iso = text.replace(
    /^(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d(?::\d\d(?:\.\d+)?)?) ?(?:UTC|Z|([+-]\d\d:?\d\d))?$/,
    '$1T$2$3',
  )
  return parseTimestamp(iso) ? iso : undefined
}

/** A column, or the value at a dotted path of a JSON row. */
function readPath(cells: JsonObject, column: string): unknown {
  if (Object.hasOwn(cells, column)) return cells[column]
  if (!column.includes('.')) return undefined
  let value: unknown = cells
  for (const name of column.split('.')) {
    if (!isObject(value) || !Object.hasOwn(value, name)) return undefined
    value = value[name]
  }
  return value
}
