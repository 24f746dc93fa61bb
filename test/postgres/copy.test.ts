import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, test } from 'node:test'
import fc from 'fast-check'
import type pg from 'pg'
import { hexArray, int4Array } from '../../src/postgres/binary.ts'
import { boolean, copyTable, int2, int4, int8, text, timestamp, uuid } from '../../src/postgres/copy.ts'
import { openPool, withClient } from '../../src/postgres/database.ts'
import { testDatabase } from '../database.ts'
import { runs } from '../long.ts'

let database: Awaited<ReturnType<typeof testDatabase>>
let pool: pg.Pool
before(async () => {
  database = await testDatabase()
  pool = openPool({ connection: { url: database.url }, max: 2, name: 'copy', onError: () => undefined })
  await pool.query(`create table copied (n int, a boolean, b smallint, c int, d bigint, e timestamptz, f uuid, g text)`)
})
after(async () => {
  await pool.end()
  await database.drop()
})

type Copied = {
  a: boolean
  b: number
  c: number
  d: number | null
  e: Date
  f: string | null
  g: string | null
}

const copyAll = copyTable<Copied, { from: number }>('copied', {
  n: int4((_row, index, { from }) => from + index),
  a: boolean(row => row.a),
  b: int2(row => row.b),
  c: int4(row => row.c),
  d: int8(row => row.d),
  e: timestamp(row => row.e),
  f: uuid(row => row.f),
  g: text(row => row.g),
})

async function copyAndRead(rows: Copied[]): Promise<Copied[]> {
  return withClient(pool, async client => {
    await client.query('begin')
    await copyAll(client, rows, { from: 1 })
    const found = await client.query<Copied>('select a, b, c, d, e, f, g from copied order by n')
    await client.query('rollback')
    return found.rows
  })
}

const anyText = fc.string({ unit: 'binary', maxLength: 120 }).filter(value => !value.includes('\0'))

const anyRow: fc.Arbitrary<Copied> = fc.record(
  {
    a: fc.boolean(),
    b: fc.integer({ min: -32_768, max: 32_767 }),
    c: fc.integer(),
    d: fc.option(fc.maxSafeInteger()),
    e: fc.date({
      min: new Date('0001-01-01T00:00:00Z'),
      max: new Date('9999-12-31T23:59:59.999Z'),
      noInvalidDate: true,
    }),
    f: fc.option(fc.uuid()),
    g: fc.option(anyText),
  },
  { noNullPrototype: true },
)

test('every value is read from the table as it was written', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(anyRow, { maxLength: 30 }), async rows => {
      assert.deepEqual(await copyAndRead(rows), rows)
    }),
    { numRuns: runs(60) },
  )
})

test('values larger than a buffer, and smaller ones after them, are complete', async () => {
  const row = (g: string) => ({ a: true, b: 1, c: 2, d: 3, e: new Date(0), f: randomUUID(), g })
  for (const size of [5_000_000, 10, 70_000, 0, 1]) {
    const rows = [row('é'.repeat(size)), row('x'.repeat(size)), row('€\t\n\\N')]
    assert.deepEqual(await copyAndRead(rows), rows)
  }
})

test('a lone surrogate becomes a replacement character', async () => {
  const row = { a: true, b: 1, c: 2, d: null, e: new Date(0), f: randomUUID(), g: 'a\ud800b' }
  assert.equal((await copyAndRead([row]))[0]!.g, 'a\ufffdb')
})

test('the connection stays usable after PostgreSQL rejects a row', async () => {
  await withClient(pool, async client => {
    const copyTexts = copyTable<string>('copied', { g: text(row => row) })
    const copy = (value: string) => copyTexts(client, [value])
    await assert.rejects(copy('a\0b'), { code: '22021' })
    await copy('good')
    const { rows } = await client.query('delete from copied returning g')
    assert.deepEqual(rows, [{ g: 'good' }])
  })
})

test('binary arrays work as parameters', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(fc.integer(), fc.uuid()), { maxLength: 20 }), async pairs => {
      const { rows } = await pool.query<{ i: number; u: string }>(
        'select i, u from unnest($1::int[], $2::uuid[]) as p (i, u)',
        [int4Array(pairs.map(([i]) => i)), hexArray(pairs.map(([, u]) => u.replaceAll('-', '')))],
      )
      assert.deepEqual(
        rows.map(row => [row.i, row.u]),
        pairs,
      )
    }),
    { numRuns: runs(40) },
  )
})
