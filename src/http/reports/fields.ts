import { type Static, type TObject, Type } from 'typebox'
import { stripNamespaces } from '../../domain/billing/namespace.ts'
import { majorText, toMajor } from '../../domain/money.ts'

// Reports return amounts in minor units. Responses contain the marked fields in major units.
const MONEY = 'x-money'

export const money = (description?: string) =>
  Type.Number({ [MONEY]: true, ...(description !== undefined && { description }) })
export const maybe = <T extends Parameters<typeof Type.Union>[0][number]>(schema: T) =>
  Type.Union([schema, Type.Null()])
export const Text = Type.String()
export const MaybeText = maybe(Text)
// Reports return instants as milliseconds or dates. Responses contain ISO 8601.
export const time = (description?: string) =>
  Type.Unsafe<number | Date>(Type.String({ format: 'timestamp', ...(description !== undefined && { description }) }))
export const Time = time()
export const MaybeTime = maybe(Time)
export const Count = Type.Integer({ minimum: 0 })
export const Share = Type.Number({ minimum: 0, description: 'A fraction of 1' })

type Camel<Name extends string> = Name extends `${infer First}_${infer Rest}`
  ? `${First}${Capitalize<Camel<Rest>>}`
  : Name

/** A row of a report: camel-case names, amounts in minor units. */
export type Row<Schema extends TObject> = {
  [Name in keyof Static<Schema> as Camel<Name & string>]: Static<Schema>[Name]
}

/** Formats a row as JSON: amounts as numbers in major units, instants as ISO 8601. */
export function jsonRow(schema: TObject, row: object, currency: string): Record<string, unknown> {
  return mapFields(schema, row, (value, isMoney) => {
    if (!isMoney || value === null) return timeOr(value)
    return typeof value === 'string' ? Number(value) : toMajor(value as number, currency)
  })
}

/** Formats a row for CSV: amounts with all digits. */
export function textRow(schema: TObject, row: object, currency: string): Record<string, string> {
  return mapFields(schema, row, (value, isMoney) => {
    if (value === null || value === undefined) return ''
    if (Array.isArray(value)) return value.join('; ')
    if (!isMoney || typeof value === 'string') return String(timeOr(value))
    return majorText(value as number, currency)
  })
}

function mapFields<T>(
  schema: TObject,
  row: object,
  present: (value: unknown, isMoney: boolean) => T,
): Record<string, T> {
  const values = row as Record<string, unknown>
  const result: Record<string, T> = {}
  for (const { name, source, isTime, isMoney } of fieldsOf(schema)) {
    const value = shownIds(values[source])
    result[name] = present(isTime && typeof value === 'number' ? new Date(value) : value, isMoney)
  }
  return result
}

/** Removes namespaces from ids. */
function shownIds(value: unknown): unknown {
  if (typeof value === 'string') return stripNamespaces(value)
  return Array.isArray(value) ? value.map(shownIds) : value
}

type Field = { name: string; source: string; isTime: boolean; isMoney: boolean }
const fieldsBySchema = new WeakMap<TObject, Field[]>()

function fieldsOf(schema: TObject): Field[] {
  const known = fieldsBySchema.get(schema)
  if (known) return known
  const fields = Object.entries(schema.properties).map(([name, field]) => ({
    name,
    source: name.replaceAll(/_(.)/g, (_, letter: string) => letter.toUpperCase()),
    isTime: isMarked(field, ['format', 'timestamp']),
    isMoney: isMarked(field, [MONEY, true]),
  }))
  fieldsBySchema.set(schema, fields)
  return fields
}

function timeOr(value: unknown): unknown {
  return value instanceof Date ? value.toISOString() : value
}

type Marked = Record<string, unknown> & { anyOf?: Record<string, unknown>[] }

function isMarked(field: unknown, [key, value]: [string, unknown]): boolean {
  const schema = field as Marked
  return (schema.anyOf?.[0] ?? schema)[key] === value
}
