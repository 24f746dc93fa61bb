import { isObject, type JsonObject } from '../domain/json/json.ts'
import { parseTimestamp } from '../domain/time.ts'
import { FileError } from './rows.ts'

/** Maps columns to fields: `{"id": "Handle", "sourceUpdatedAt": "now", "data": {"price": {"from": "Price", "as": "number"}}}`. */
export type Mapping = { [field: string]: Field | Mapping }

const TYPES = ['text', 'number', 'boolean', 'timestamp', 'json'] as const
type Type = (typeof TYPES)[number]
type Field = { from: string; as: Type } | { value: unknown } | { now: true }

/** A value that does not have the type that the map declares. */
export type WrongValue = { column: string; reason: string }

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
    else if (typeof spec.from === 'string')
      mapping[name] = { from: spec.from, as: parseType(spec.as, at, errors) }
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
export function applyMapping(
  mapping: Mapping,
  cells: JsonObject,
  time: Date,
  wrong: WrongValue[],
): JsonObject {
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
      return (
        (text === null ? (typeof value === 'number' ? value : undefined) : parseNumber(text)) ??
        refuse('a number')
      )
    case 'boolean':
      return typeof value === 'boolean'
        ? value
        : (BOOLEANS[String(value).trim().toLowerCase()] ?? refuse('a boolean'))
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
