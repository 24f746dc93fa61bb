import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import fc from 'fast-check'
import pg from 'pg'
import { MAX_DEPTH, storable } from '../../../src/domain/json/json.ts'
import { testDatabase } from '../../database.ts'
import { runs } from '../../long.ts'
import { anyJson, sanitize } from './any-json.ts'

let database: Awaited<ReturnType<typeof testDatabase>>
let client: pg.Client

before(async () => {
  database = await testDatabase()
  client = new pg.Client(database.url)
  await client.connect()
})

after(async () => {
  await client.end()
  await database.drop()
})

async function stores(text: string): Promise<boolean> {
  try {
    await client.query('select $1::jsonb', [text])
    return true
  } catch {
    return false
  }
}

test('PostgreSQL accepts sanitized and storable text', async () => {
  const number = fc
    .tuple(fc.bigInt(), fc.integer({ min: -420, max: 420 }), fc.constantFrom('', '-'))
    .map(([digits, exponent, sign]) => `[${sign}${digits < 0n ? -digits : digits}e${exponent}]`)
  await fc.assert(
    fc.asyncProperty(fc.oneof(anyJson, number), async text => {
      if (storable(text)) assert.ok(await stores(text), text)
      else assert.ok(await stores(sanitize(text).text), text)
    }),
    { numRuns: runs(300) },
  )
  for (const text of [
    '['.repeat(MAX_DEPTH) + ']'.repeat(MAX_DEPTH),
    `[1e308,5e-324,-1e-400,${'9'.repeat(308)},0.${'1'.repeat(998)}]`,
    '{"__proto__":{"":""},"😀":"\\ud83d\\ude00\\u0001"}',
  ]) {
    assert.ok(storable(text))
    assert.ok(await stores(text), text)
  }
})

test('PostgreSQL rejects unstorable text', async () => {
  for (const text of ['"\\u0000"', '{"\\u0000":1}', '"\\ud800"', '"\\udc00"', '"\\ud83d\\u0041"', '[1e200000]']) {
    assert.ok(!storable(text))
    assert.ok(!(await stores(text)), text)
    assert.ok(await stores(sanitize(text).text), text)
  }
})
