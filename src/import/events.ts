import { hash } from 'node:crypto'
import { inspect, MAX_ITEM_BYTES, openBody } from '../domain/events/normalize/normalize.ts'
import { isObject, type JsonObject, objectFields } from '../domain/json/json.ts'
import { type Mapping, mapped, timestampOf, type WrongValue } from './mapping.ts'
import { nested } from './records.ts'
import { type Read, type Reading, type Row, rowByRow } from './row.ts'

export const EVENT_FIELDS = [
  ...['event_type', 'visitor', 'session_id', 'user_id', 'event_id', 'occurred_at', 'data'],
] as const

const OWN_FIELDS = new Set<string>(EVENT_FIELDS)
const IDS = ['visitor', 'session_id', 'user_id', 'event_id']

/** Reads tracking events: with a map, as bodies of POST /v1/track, as rows of an export, or by column names. */
export function eventReading({ mapping, time }: { mapping: Mapping | null; time: Date }): Reading {
  return rowByRow(row => {
    const wrong: WrongValue[] = []
    const event = mapping ? mapped(mapping, row.cells, time, wrong) : eventOf(row)
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
  const { faults } = inspect(openBody(`[${text}]`), { route: 'cdp', kind: 'batch', ip: null, headers: {} })
  const [fault] = faults
  if (fault) return { line, column: columnOf(fault.pointer), reason: fault.message }
  return { line, id: String(id), text }
}

const columnOf = (pointer: string) => pointer.split('/').slice(2).join('.') || null

function eventOf(row: Row): JsonObject | string {
  const { cells, text } = row
  if (text === undefined) return eventOfColumns(cells)
  if (isObject(cells.payload) && typeof cells.received_at === 'string') return eventOfExport(cells, text)
  return text.trim()
}

/** A column that is not an event field becomes `data.<column>`. */
function eventOfColumns(cells: JsonObject): JsonObject {
  const event: JsonObject = {}
  for (const name of EVENT_FIELDS) if (name !== 'data' && cells[name] !== undefined) event[name] = cells[name]
  const at = event.occurred_at
  if (typeof at === 'string') event.occurred_at = timestampOf(at.trim()) ?? at
  const columns = Object.fromEntries(
    Object.entries(cells).map(([name, value]) => [name.startsWith('data.') ? name.slice(5) : name, value]),
  )
  const data = nested(columns, name => !OWN_FIELDS.has(name))
  if (Object.keys(data).length > 0) event.data = data
  return event
}

/** A row of `kontor export events`. Its `payload` is the `data` of a tracking event. */
function eventOfExport(row: JsonObject, text: string): string {
  const facts: JsonObject = { event_type: row.event_type, occurred_at: row.occurred_at }
  for (const name of IDS) if (row[name] !== null && row[name] !== undefined) facts[name] = row[name]
  facts.event_id ??= row.inbound_event_id ?? row.id
  const payload = objectFields(text).findLast(([name]) => name === 'payload')![1]
  return `${JSON.stringify(facts).slice(0, -1)},"data":${payload}}`
}
