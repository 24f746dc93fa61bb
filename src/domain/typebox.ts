// TypeBox's builders for the schemas that Kontor uses. TypeBox has one entry point with 373 modules, which takes 0.24 s of processor
// time in every command, server and thread (docs/decisions/0043-typebox-builders.md). The types are TypeBox's.
import type { Type as TypeBox } from 'typebox'

export type { Static, TObject, TProperties, TSchema, TSchemaOptions } from 'typebox'

type Schema = Record<string, unknown>
type Properties = Record<string, Schema>

// Not enumerable, so that it is in no document and a copy by `...` is required again, as with TypeBox.
const OPTIONAL = '~optional'

function optional(schema: Schema): Schema {
  return Object.defineProperty({ ...schema }, OPTIONAL, { value: true })
}

function object(properties: Properties, options: Schema = {}): Schema {
  const required = Object.keys(properties).filter(name => !(OPTIONAL in properties[name]!))
  return { type: 'object', ...(required.length > 0 && { required }), properties, ...options }
}

function changeProperties(schema: Schema, change: (properties: [string, Schema][]) => [string, Schema][]): Schema {
  return object(Object.fromEntries(change(Object.entries(schema.properties as Properties))))
}

const ofType = (type: string) => (options?: Schema) => ({ type, ...options })

const builders = {
  String: ofType('string'),
  Integer: ofType('integer'),
  Number: ofType('number'),
  Boolean: ofType('boolean'),
  Null: ofType('null'),
  Unknown: (options?: Schema) => ({ ...options }),
  Literal: (value: unknown, options?: Schema) => ({ type: typeof value, const: value, ...options }),
  Enum: (values: unknown[], options?: Schema) => ({ enum: values, ...options }),
  Array: (items: Schema, options?: Schema) => ({ type: 'array', items, ...options }),
  Union: (anyOf: Schema[], options?: Schema) => ({ anyOf, ...options }),
  Record: (key: Schema, value: Schema, options?: Schema) => ({
    type: 'object',
    patternProperties: { [(key.pattern as string | undefined) ?? '^.*$']: value },
    ...options,
  }),
  Object: object,
  Optional: optional,
  Unsafe: (schema: Schema) => (OPTIONAL in schema ? optional(schema) : { ...schema }),
  Partial: (schema: Schema) =>
    changeProperties(schema, properties => properties.map(([name, property]) => [name, optional(property)])),
  Omit: (schema: Schema, names: string[]) =>
    changeProperties(schema, properties => properties.filter(([name]) => !names.includes(name))),
}

export const Type = builders as unknown as Pick<typeof TypeBox, keyof typeof builders>
