import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  arrayItems,
  arrayItemsOfField,
  MAX_DEPTH,
  objectFields,
  openJson,
  parseJson,
  sanitize,
  storable,
  unstorablePointers,
} from '../../src/domain/json.ts'

/** Strings of any UTF-16 units: control characters, lone surrogates, quotes and backslashes included. */
const anyText = fc
  .array(
    fc.oneof(
      fc.integer({ min: 0, max: 0xffff }),
      fc.constantFrom(0, 0x22, 0x5c, 0x75, 0x30, 0xd83d, 0xde00, 0x2c, 0x5b, 0x7d),
    ),
    { maxLength: 12 },
  )
  .map(units => String.fromCharCode(...units))

const anyValue = fc.letrec<{ value: unknown }>(tie => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.constantFrom(null, true, false),
    anyText,
    fc.integer(),
    fc
      .double({ noNaN: true, noDefaultInfinity: true })
      .filter(n => !Number.isInteger(n) || Number.isSafeInteger(n)),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(anyText, tie('value'), { maxKeys: 4 }),
  ),
})).value

/** The same value written with whitespace between tokens, with every character escaped, or as JSON.stringify does. */
const anyJson = fc
  .tuple(anyValue, fc.constantFrom('', ' ', '\n\t '), fc.boolean())
  .map(([value, space, escaped]) => {
    const text = JSON.stringify(value, null, space)
    if (!escaped) return text
    return text.replace(/[^\x20-\x7e\s]/g, c => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`)
  })

test('integers beyond 2^53 keep their digits', () => {
  assert.deepEqual(
    parseJson('{"id":820982911946154508,"n":-9007199254740993,"m":9007199254740991,"s":"1"}'),
    {
      id: '820982911946154508',
      n: '-9007199254740993',
      m: 9007199254740991,
      s: '1',
    },
  )
  assert.deepEqual(parseJson('[1234567890123456.5, 0.1234567890123456, 1e20, "12345678901234567890"]'), [
    1234567890123456.5,
    0.1234567890123456,
    1e20,
    '12345678901234567890',
  ])
})

test('parses whatever JSON.parse parses, to the same value', () => {
  fc.assert(fc.property(anyJson, text => assert.deepEqual(parseJson(text), JSON.parse(text))))
})

test('what JSON.parse refuses is a SyntaxError that does not quote the text', () => {
  for (const text of [
    '',
    ' ',
    '{',
    '{"secret":}',
    'nul',
    '[1,]',
    '"a',
    '{"a":1}x',
    '\u0000',
    '01',
    '1e',
    '"\\x"',
  ]) {
    assert.throws(
      () => parseJson(text),
      (error: Error) => error instanceof SyntaxError && !error.message.includes('secret'),
      text,
    )
  }
  fc.assert(
    fc.property(fc.oneof(anyText, fc.string({ unit: fc.constantFrom(...'{}[]",:\\u0e19-.nt ') })), text => {
      let expected: unknown
      try {
        expected = JSON.parse(text)
      } catch {
        assert.throws(() => parseJson(text), SyntaxError)
        return
      }
      assert.deepEqual(parseJson(text), expected)
    }),
  )
})

test('nesting is bounded, brackets inside strings do not count', () => {
  const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth)
  assert.ok(parseJson(nested(MAX_DEPTH)))
  assert.throws(() => parseJson(nested(MAX_DEPTH + 1)), /nested deeper than 200 levels/)
  assert.throws(() => parseJson(nested(1_000_000)), SyntaxError)
  assert.equal(parseJson(JSON.stringify(nested(300))), nested(300))
  assert.ok(parseJson(`[${'[],'.repeat(500)}[]]`))
})

test('a __proto__ key stays an ordinary field', () => {
  const value = parseJson('{"__proto__":{"admin":true},"n":12345678901234567890}') as Record<string, unknown>
  assert.equal(value.admin, undefined)
  assert.equal(Object.getPrototypeOf(value), Object.prototype)
  assert.ok(Object.hasOwn(value, '__proto__'))
})

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
      assert.deepEqual(
        arrayItemsOfField(`{"a":${text}, "b\\u0061tch" :[${text} ,${text}],"z":[${text}]}`, 'batch'),
        [text.trim(), text.trim()],
      )
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

test('text that PostgreSQL cannot hold is found and replaced, the rest is left as it is', () => {
  const cases: [string, string | null][] = [
    ['"plain \\u00e9 é \\ud83d\\ude00 😀"', null],
    ['"a\\\\u0000"', null],
    ['"a\\\\\\u0000"', '"a\\\\\\ufffd"'],
    ['{"k\\u0000":"v"}', '{"k\\ufffd":"v"}'],
    ['"\\ud83d"', '"\\ufffd"'],
    ['"\\ude00\\ud83d"', '"\\ufffd\\ufffd"'],
    ['"\\ud83d\\ud83d\\ude00"', '"\\ufffd\\ud83d\\ude00"'],
    ['"\\uD83D\\u0041"', '"\\ufffd\\u0041"'],
    ['"x\ud83dy"', '"x\ufffdy"'],
    ['"\\ud83d\ude00"', '"\\ufffd\ufffd"'],
    ['{"a":1e308,"b":[1e400,-1e-5000],"c":"1e400"}', '{"a":1e308,"b":[null,null],"c":"1e400"}'],
    ['[0e100000, 1E+0401, 2e-324, 5]', '[null, null, 2e-324, 5]'],
    [`[${'9'.repeat(308)}]`, null],
    [`[-${'9'.repeat(310)},1]`, '[null,1]'],
    [`0.${'1'.repeat(20_000)}`, 'null'],
    [`${'1'.repeat(250)}e90`, 'null'],
  ]
  for (const [text, expected] of cases) {
    assert.equal(storable(text), expected === null, text.slice(0, 80))
    assert.deepEqual(sanitize(text), { text: expected ?? text, sanitized: expected !== null })
  }
})

test('sanitized JSON is storable, keeps its shape, and differs only where it had to', () => {
  fc.assert(
    fc.property(anyJson, text => {
      const { text: clean, sanitized } = sanitize(text)
      assert.equal(sanitized, !storable(text))
      assert.ok(storable(clean))
      assert.equal(unstorablePointers(JSON.parse(clean)).length, 0)
      assert.equal(storable(text), unstorablePointers(JSON.parse(text)).length === 0)
      if (!sanitized) assert.equal(clean, text)
      assert.deepEqual(openJson(text), { value: JSON.parse(clean), text: clean, original: text })
    }),
    { numRuns: 1000 },
  )
})

test('unstorable strings, keys and numbers are named by JSON pointer', () => {
  const text = '{"ok":"x","a/b":["y","\\u0000"],"k\\ud800":{"~":1e999},"n":-1e-900}'
  assert.deepEqual(unstorablePointers(parseJson(text)), ['/a~1b/1', '/k\ufffd', '/k\ufffd/~0', '/n'])
  assert.deepEqual(unstorablePointers(parseJson(`[1, ${'7'.repeat(400)}, 820982911946154508]`)), ['/1'])
})
