import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Type as TypeBox } from 'typebox'
import { Type } from '../../src/domain/typebox.ts'

const options = { description: 'd', default: 1 }

/** Each builder with and without options, and what builders do with the schemas of others. */
const SCHEMAS: Record<keyof typeof Type, (type: typeof Type) => unknown[]> = {
  String: type => [type.String(), type.String({ ...options, format: 'uuid' })],
  Integer: type => [type.Integer(), type.Integer(options)],
  Number: type => [type.Number(), type.Number(options)],
  Boolean: type => [type.Boolean(), type.Boolean(options)],
  Null: type => [type.Null(), type.Null(options)],
  Unknown: type => [type.Unknown(), type.Unknown(options)],
  Literal: type => [type.Literal('a'), type.Literal(1), type.Literal(true, options)],
  Enum: type => [type.Enum(['a', 'b']), type.Enum(['a'], options)],
  Array: type => [type.Array(type.String()), type.Array(type.Optional(type.String()), options)],
  Union: type => [type.Union([type.String(), type.Null()]), type.Union([type.String()], options)],
  Record: type => [
    type.Record(type.String(), type.Number()),
    type.Record(type.String({ maxLength: 5 }), type.Number(), options),
    type.Record(type.String({ pattern: '^a$' }), type.Number()),
  ],
  Object: type => [
    type.Object({}),
    type.Object({ a: type.String(), b: type.Optional(type.Null()) }, { ...options, additionalProperties: false }),
    type.Object({ a: type.Optional(type.String()) }),
  ],
  Optional: type => [
    type.Optional(type.String(options)),
    // A copy is no longer optional.
    type.Object({ a: { ...type.Optional(type.String()) }, b: type.Optional(type.Optional(type.String())) }),
  ],
  Unsafe: type => [
    type.Unsafe<object>(type.Object({ a: type.String() }, options)),
    type.Object({ a: type.Unsafe<string>(type.Optional(type.String())), b: type.Unsafe<string>(type.String()) }),
  ],
  Partial: type => [type.Partial(type.Object({ a: type.String(), b: type.Optional(type.String()) }))],
  Omit: type => [type.Omit(type.Object({ a: type.String(), b: type.String(), c: type.Optional(type.Null()) }), ['a'])],
}

for (const [name, schemas] of Object.entries(SCHEMAS))
  test(`Type.${name} builds the same schema as TypeBox`, () => {
    assert.deepEqual(JSON.stringify(schemas(Type)), JSON.stringify(schemas(TypeBox)))
  })

test('a schema is not changed when it becomes optional', () => {
  const text = Type.String()
  Type.Optional(text)
  assert.deepEqual(Type.Object({ text }).required, ['text'])
})
