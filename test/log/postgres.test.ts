import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import type { Entry } from '../../src/domain/entries/entry.ts'
import { openPostgresLog } from '../../src/log/postgres/log.ts'
import { openPool } from '../../src/postgres/database.ts'
import { logContract } from './contract.ts'
import { anAppend, readAll } from './entries.ts'
import { openTestLog } from './open.ts'

logContract('PostgreSQL', openTestLog, { claims: true, kind: 'record' })

test('counting unread entries does not read the others, even without statistics', async t => {
  const { url, log, pool, close } = await openTestLog()
  // One connection: its own statistics show what it has read.
  const own = openPool({ connection: { url }, max: 1, name: 'counting', onError: () => undefined })
  t.after(async () => {
    await own.end()
    await close()
  })
  for (let i = 0; i < 5; i++)
    await log.append(Array.from({ length: 1_000 }, (_, n) => anAppend({ orderingKey: `${n}`, kind: 'events' })))
  assert.equal((await readAll(log, pool)).length, 5_000)
  const counting = openPostgresLog({ pool: own })
  const read = async () => {
    await own.query('select pg_stat_force_next_flush()')
    const { rows } = await own.query<{ read: number }>(
      `select (sum(seq_tup_read) + sum(coalesce(idx_tup_fetch, 0)))::bigint as read from pg_stat_user_tables where relname ~ '^log_p'`,
    )
    return rows[0]!.read
  }
  const before = await read()
  assert.ok((await counting.lag()).every(({ entries }) => entries === 0))
  assert.deepEqual(await counting.unread(1, null), { entries: 0, oldestAt: null })
  assert.deepEqual((await counting.unreadWith(1, { text: 'x', isWanted: () => true })).entries, [])
  assert.equal((await read()) - before, 0)
})

test('bodies of every size are read, found and forgotten as received, compressed or not', async t => {
  const { log, pool, close, readable } = await openTestLog()
  t.after(close)
  const wrap = (filler: string) => JSON.stringify({ filler, id: 'm-ä-7', email: 'Ann@x.example' })
  const kinds = {
    small: wrap('x'),
    'below the limit': wrap('x'.repeat(1_950)),
    compressible: wrap('käse 🧀 '.repeat(3_000)),
    incompressible: wrap(randomBytes(3_000).toString('base64')),
    'over a megabyte': wrap('y'.repeat(1_100_000)),
  }
  const appends = Object.entries(kinds).map(([kind, body]) => anAppend({ orderingKey: kind, kind: 'events', body }))
  await log.append(appends)
  await log.append([anAppend({ orderingKey: 'claimed', kind: 'events', body: kinds.compressible }, 'claim-1')])
  await readable()
  const { rows } = await pool.query<{ key: string }>(
    `select ordering_key as key from log where packed is not null and body = ''`,
  )
  assert.deepEqual(rows, [{ key: 'compressible' }])

  for (const { entry } of appends) assert.deepEqual(await log.find(1, entry.id), entry)
  const found = async (text: string, isWanted = (_: Entry) => true) =>
    (await log.unreadWith(1, { text, isWanted })).entries.map(entry => entry.orderingKey).sort()
  assert.deepEqual(await found('"id":"m-ä-7"'), [...Object.keys(kinds), 'claimed'].sort())
  assert.deepEqual(await found('m-ä-8'), [])
  assert.deepEqual(await found('🧀'), ['claimed', 'compressible'])
  assert.deepEqual(await found('🧀', ({ orderingKey }) => orderingKey === 'claimed'), ['claimed'])

  const read = await readAll(log, pool)
  assert.deepEqual(
    new Map(read.map(({ orderingKey, body }) => [orderingKey, body])),
    new Map([...Object.entries(kinds), ['claimed', kinds.compressible]]),
  )
  const wanted = {
    orderingKeys: ['small'],
    patterns: ['%ann@x.example%'],
    isWanted: (body: string) => body.includes('🧀'),
  }
  const names = await log.findRead(1, wanted)
  const keys = new Map(read.map(({ id, orderingKey }) => [id, orderingKey]))
  assert.deepEqual(names.map(({ id }) => keys.get(id)).sort(), ['claimed', 'compressible', 'small'])
  assert.equal(await log.forget(pool, 1, names), 3)
})
