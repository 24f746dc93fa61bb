import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { findUnstorable, MAX_DEPTH, openJson, parseJson, storable } from '../../../src/domain/json/json.ts'
import { runs } from '../../long.ts'
import { anyJson, anyText, sanitize } from './any-json.ts'

test('integers beyond 2^53 keep their digits', () => {
  assert.deepEqual(parseJson('{"id":820982911946154508,"n":-9007199254740993,"m":9007199254740991,"s":"1"}'), {
    id: '820982911946154508',
    n: '-9007199254740993',
    m: 9007199254740991,
    s: '1',
  })
  assert.deepEqual(parseJson('[1234567890123456.5, 0.1234567890123456, 1e20, "12345678901234567890"]'), [
    1234567890123456.5,
    0.1234567890123456,
    1e20,
    '12345678901234567890',
  ])
})

test('parses everything that JSON.parse parses, to the same value', () => {
  fc.assert(fc.property(anyJson, text => assert.deepEqual(parseJson(text), JSON.parse(text))))
})

function exactDigits(_key: string, value: unknown, context?: { source: string }): unknown {
  const wide = Number.isInteger(value) && !Number.isSafeInteger(value)
  return wide && /^-?\d+$/.test(context!.source) ? context!.source : value
}

/** Tokens in random order; numbers can exceed 2^53. */
const almostJson = fc
  .array(fc.constantFrom(...'{}[]",:\\u0e19-.nt ', '90071992547409', '"a":', '1234567890123456789', 'null'))
  .map(tokens => tokens.join(''))

test('text that JSON.parse rejects is a SyntaxError that does not quote the text', () => {
  for (const text of ['', ' ', '{', '{"secret":}', 'nul', '[1,]', '"a', '{"a":1}x', '\u0000', '01', '1e', '"\\x"']) {
    assert.throws(
      () => parseJson(text),
      (error: Error) => error instanceof SyntaxError && !error.message.includes('secret'),
      text,
    )
  }
  fc.assert(
    fc.property(fc.oneof(anyText, almostJson), text => {
      let expected: unknown
      try {
        expected = JSON.parse(text, exactDigits)
      } catch {
        assert.throws(() => parseJson(text), SyntaxError)
        return
      }
      const value = parseJson(text)
      if (storable(text)) assert.deepEqual(value, expected)
    }),
    { numRuns: runs(2000) },
  )
})

test('nesting is limited, brackets inside strings do not count', () => {
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

test('text that PostgreSQL cannot store is found and replaced, other text is unchanged', () => {
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

test('sanitized JSON is storable, keeps its structure, and differs only where necessary', () => {
  fc.assert(
    fc.property(anyJson, text => {
      const { text: clean, sanitized } = sanitize(text)
      assert.equal(sanitized, !storable(text))
      assert.ok(storable(clean))
      assert.equal(findUnstorable(JSON.parse(clean)).length, 0)
      assert.equal(storable(text), findUnstorable(JSON.parse(text)).length === 0)
      if (!sanitized) assert.equal(clean, text)
      const opened = openJson(text)
      assert.deepEqual(opened, {
        ...{ value: JSON.parse(clean), text: clean, original: text },
        ...{ plain: opened.plain, isTooDeep: false },
      })
      if (opened.plain) assert.deepEqual(openJson(text, true), opened)
      if (sanitized) assert.ok(!opened.plain)
    }),
    { numRuns: runs(1000) },
  )
})

test('only text that needs no sanitizing is plain, and a normal event is plain', () => {
  const plain = (text: string) => openJson(text).plain
  assert.ok(plain('{"type":"track","properties":{"price":12.9,"ids":["a\\"b",1]},"at":"2026-01-31T09:30:00.000Z"}'))
  assert.ok(!plain('{"id":820982911946154508}'))
  assert.ok(!plain('{"n":1e999}'))
  assert.ok(!plain('{"s":"\\u0000"}'))
})

test('unstorable strings, keys and numbers are reported by JSON pointer, with the reason', () => {
  const text = '{"ok":"x","a/b":["y","\\u0000"],"k\\ud800":{"~":1e999},"n":-1e-900}'
  assert.deepEqual(findUnstorable(parseJson(text)), [
    { pointer: '/a~1b/1', message: 'contains a NUL character' },
    { pointer: '/k\ufffd', message: 'has a name that contains an unpaired surrogate' },
    { pointer: '/k\ufffd/~0', message: 'is a number out of range' },
    { pointer: '/n', message: 'is a number out of range' },
  ])
  assert.deepEqual(findUnstorable(parseJson(`[1, ${'7'.repeat(400)}, 820982911946154508]`)), [
    { pointer: '/1', message: 'is a number out of range' },
  ])
})
