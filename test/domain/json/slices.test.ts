import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { arrayItems, arrayItemsOfField, objectFields, withoutField } from '../../../src/domain/json/json.ts'
import { anyJson } from './any-json.ts'

test('object fields and array items are the raw text of their values', () => {
  assert.deepEqual(objectFields(' { "a" : 1.50 , "b\\u0041" : [ 1, "}" ] , "a": {"x":"\\""} } '), [
    ['a', '1.50'],
    ['bA', '[ 1, "}" ]'],
    ['a', '{"x":"\\""}'],
  ])
  assert.deepEqual(objectFields('{}'), [])
  assert.deepEqual(arrayItems('[ ]'), [])
  assert.deepEqual(arrayItems('{"batch":[1 , {"a":2}]}', 9), ['1', '{"a":2}'])
  assert.deepEqual(arrayItemsOfField('{"batch":[1],"batch":[2]}', 'batch'), ['2'])
  fc.assert(
    fc.property(anyJson, text => {
      const value = JSON.parse(text)
      assert.deepEqual(arrayItemsOfField(`{"a":${text}, "b\\u0061tch" :[${text} ,${text}],"z":[${text}]}`, 'batch'), [
        text.trim(),
        text.trim(),
      ])
      if (Array.isArray(value)) {
        assert.deepEqual(
          arrayItems(text).map(raw => JSON.parse(raw)),
          value,
        )
      } else if (typeof value === 'object' && value !== null) {
        assert.deepEqual(
          new Map(objectFields(text).map(([key, raw]) => [key, JSON.parse(raw)])),
          new Map(Object.entries(value)),
        )
      }
    }),
  )
})

test('a field is extracted from any position', () => {
  const cases: [string, string][] = [
    ['{"writeKey":"k"}', '{}'],
    ['{ "writeKey" : "k" , "a":1}', '{ "a":1}'],
    ['{"a":1, "writeKey":"k" }', '{"a":1}'],
    ['{"a":1,"writeKey":"k","b":{"writeKey":2}}', '{"a":1,"b":{"writeKey":2}}'],
    ['{"writeKey":1,"a":1,"write\\u004bey":[2]}', '{"a":1}'],
    ['{"writeKey":1,"writeKey":[2]}', '{}'],
    ['{"a":"writeKey"}', '{"a":"writeKey"}'],
  ]
  for (const [text, expected] of cases) assert.equal(withoutField(text, 'writeKey'), expected)
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.constantFrom('a', 'b', 'cut'), anyJson)), fields => {
      const text = (of: typeof fields) => `{${of.map(([key, value]) => `"${key}": ${value} `).join(',')}}`
      assert.deepEqual(
        JSON.parse(withoutField(text(fields), 'cut')),
        JSON.parse(text(fields.filter(([key]) => key !== 'cut'))),
      )
    }),
  )
})
