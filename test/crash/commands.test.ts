import assert from 'node:assert/strict'
import { access } from 'node:fs/promises'
import { after, before, type TestContext, test } from 'node:test'
import type pg from 'pg'
import { openPool } from '../../src/postgres/database.ts'
import { schemaState } from '../../src/postgres/migrate.ts'
import { kontor, startKontor, temporaryDirectory } from '../cli/kontor.ts'
import { testDatabase } from '../database.ts'
import { openWire } from '../events/wire.ts'
import { eventually } from '../eventually.ts'
import { makeSource } from '../inbound/source.ts'
import { isLong } from '../long.ts'
import { type OwnServer, startServer, TEST_SECRET_KEY } from '../server.ts'

// Commands that change much are killed after the n-th message that they send to PostgreSQL: early, and close to their end (`at`). In a
// long run n grows from 2 until a run ends by itself. After each kill the data must be as before, or as after; and the same command, run
// again, must complete the work.
const GROWTH = 1.6
const FIRST_STEP = 2

let server: OwnServer
before(async () => {
  server = await startServer()
})
after(() => server.close())

type Killed = {
  words: string[]
  /** The numbers of messages after which it is killed. */
  at: number[]
  databaseUrl?: string
  /** The message of a run that finds nothing to do, because the one before was killed after its work. */
  isDone?: RegExp
}

/** Kills the command at each step, and then lets it complete its work. `check` is called after each kill. */
async function killAtEachStep(
  t: TestContext,
  { words, at, databaseUrl = server.databaseUrl, isDone }: Killed,
  check: () => Promise<void>,
): Promise<void> {
  const url = new URL(databaseUrl)
  let sent = 0
  let onSent = () => {}
  const wire = await openWire(
    { host: url.hostname, port: Number(url.port) },
    {
      onSent: () => {
        sent++
        onSent()
      },
    },
  )
  t.after(wire.close)
  url.port = String(wire.port)
  let kills = 0
  for (const step of isLong ? growingSteps() : at) {
    sent = 0
    const run = startKontor(t, words, { DATABASE_URL: url.href, KONTOR_SECRET_KEY: TEST_SECRET_KEY })
    onSent = () => {
      if (sent === step) run.child.kill('SIGKILL')
    }
    const code = await run.ended
    if (run.child.signalCode === null) {
      assert.ok(isLong, `${words[0]} sends fewer than ${step} messages`)
      assert.ok(code === 0 || isDone?.test(run.err()), run.err())
      break
    }
    kills++
    await check()
  }
  assert.ok(kills > 0, 'it was killed at least once')
  if (isLong) return
  // In this process, because loading the command takes most of the time of a run.
  const { code, err } = await kontorOn(databaseUrl, ...words)
  assert.ok(code === 0 || isDone?.test(err), err)
}

function* growingSteps(): Generator<number> {
  for (let step = FIRST_STEP; ; step = Math.ceil(step * GROWTH)) yield step
}

async function kontorOn(databaseUrl: string, ...words: string[]) {
  Object.assign(process.env, { DATABASE_URL: databaseUrl, KONTOR_SECRET_KEY: TEST_SECRET_KEY })
  try {
    return await kontor(...words)
  } finally {
    delete process.env.DATABASE_URL
    delete process.env.KONTOR_SECRET_KEY
  }
}

async function emptyDatabase(t: TestContext) {
  const { url, drop } = await testDatabase({ empty: true })
  t.after(() => drop())
  return {
    url,
    async withPool<T>(work: (pool: pg.Pool) => Promise<T>): Promise<T> {
      const pool = openPool({ connection: { url }, max: 1, name: 'kontor test', onError: () => {} })
      return work(pool).finally(() => pool.end())
    },
  }
}

const rowsIn = async (sql: string, values: unknown[] = []) => (await server.pool.query(sql, values)).rows

test('a killed migration leaves an empty or a complete schema, and the next one completes it', async t => {
  const database = await emptyDatabase(t)
  await killAtEachStep(t, { words: ['migrate'], at: [8], databaseUrl: database.url }, async () => {
    const state = await database.withPool(schemaState)
    assert.ok(state === 'empty' || state === 'current', JSON.stringify(state))
  })
  assert.equal(await database.withPool(schemaState), 'current')
})

test('a killed backup leaves no file of its name or a complete one; a killed restore changes nothing', async t => {
  const { tenant } = server
  for (let i = 0; i < 20; i++)
    await server.request('/v1/track', {
      ...{ method: 'POST', key: tenant.trackingKey },
      body: JSON.stringify({ event_type: 'kept', event_id: `backup-${i}` }),
    })
  await server.settled()
  const file = `${await temporaryDirectory(t)}/kontor.backup`
  await killAtEachStep(t, { words: ['backup', '--to', file], at: [20, 120] }, async () => {
    const exists = await access(file).then(
      () => true,
      () => false,
    )
    if (exists) assert.equal((await kontor('backup', 'verify', file)).code, 0)
  })
  assert.equal((await kontor('backup', 'verify', file)).code, 0)

  const database = await emptyDatabase(t)
  await killAtEachStep(
    t,
    { words: ['restore', '--from', file], at: [20, 720], databaseUrl: database.url },
    async () => {
      const { rows } = await database.withPool(pool => pool.query(`select to_regclass('public.events') as events`))
      assert.equal(rows[0].events, null)
    },
  )
  const { rows } = await database.withPool(pool =>
    pool.query(`select count(*)::int as events from events where event_type = 'kept'`),
  )
  assert.equal(rows[0].events, 20)
})

test('a killed erasure is completed, and erases no one else', async t => {
  const tenant = await server.anotherTenant('erasing')
  const identify = (user: string) =>
    server.request('/v1/identify', {
      ...{ method: 'POST', key: tenant.trackingKey },
      body: JSON.stringify({ userId: user, messageId: user, traits: { email: `${user}@example.com` } }),
    })
  for (const user of ['ada', 'ben']) assert.equal((await identify(user)).status, 200)
  await server.settled()
  const eventsOf = async (user: string) =>
    (await rowsIn(`select from events where tenant_id = $1 and user_id = $2`, [tenant.id.slice(4), user])).length
  const words = ['erase', '--tenant', tenant.id, '--email', 'ada@example.com', '--yes']
  await killAtEachStep(t, { words, at: [20, 120], isDone: /No matching person/ }, async () =>
    assert.equal(await eventsOf('ben'), 1),
  )
  await eventually('the erasure to be complete', async () => (await eventsOf('ada')) === 0)
  assert.equal(await eventsOf('ben'), 1)
})

test('dead letters whose replay is killed take effect once', async t => {
  const source = await makeSource(server)
  await server.pool.query(`alter table events add constraint held check (event_type <> 'held') not valid`)
  const ids = Array.from({ length: 8 }, (_, i) => `dead-${i}`)
  for (const id of ids) await source.post({ inbound_event_id: id, event_type: 'held', payload: {} })
  const waiting = async () => (await server.admin.deadLetters.list({ tenant: server.tenant.id, limit: 100 })).length
  await eventually('the dead letters', async () => {
    // Workers update the same rows in another order.
    await server.pool.query('update parked_entries set next_attempt_at = now()').catch(() => {})
    return (await waiting()) === ids.length
  })
  await server.pool.query('alter table events drop constraint held')
  const stored = () => rowsIn(`select inbound_event_id from events where event_type = 'held'`)
  await killAtEachStep(t, { words: ['dead-letters', 'replay', '--source', source.id], at: [30] }, async () => {
    await server.settled()
    const found = (await stored()).map(row => row.inbound_event_id)
    assert.equal(new Set(found).size, found.length)
  })
  await server.settled()
  assert.deepEqual((await stored()).map(row => row.inbound_event_id).sort(), ids)
})

test('a killed purge is completed by the server, and deletes nothing of other keys', async t => {
  const tenant = await server.anotherTenant('purging')
  const { id, key } = await server.admin.keys.create({ tenant: tenant.id, kind: 'tracking' })
  const track = (by: string, name: string) =>
    server.request('/v1/track', {
      ...{ method: 'POST', key: by },
      body: JSON.stringify({ event_type: name, visitor: name }),
    })
  for (let i = 0; i < 10; i++) await track(key, 'bad')
  await track(tenant.trackingKey, 'good')
  await server.settled()
  const count = async (type: string) =>
    (await rowsIn('select from events where tenant_id = $1 and event_type = $2', [tenant.id.slice(4), type])).length
  const words = ['events', 'purge', '--tenant', tenant.id, '--key', id, '--since', '2020-01-01T00:00:00Z']
  await killAtEachStep(t, { words, at: [20, 60] }, async () => assert.equal(await count('good'), 1))
  await eventually('the purge to be complete', async () => (await count('bad')) === 0)
  assert.equal(await count('good'), 1)
})
