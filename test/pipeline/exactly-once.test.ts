import assert from 'node:assert/strict'
import { after, afterEach, before, test } from 'node:test'
import type { Log } from '../../src/log/log.ts'
import { openPostgresLog } from '../../src/log/postgres/log.ts'
import { openTransactions } from '../../src/pipeline/transaction.ts'
import { isDeadlock, openPool } from '../../src/postgres/database.ts'
import { lockTenants, TENANT_LOCKS } from '../../src/postgres/locks.ts'
import { eventually } from '../eventually.ts'
import { anAppend } from '../log/entries.ts'
import { asOnlyKind, effectKind, openPipeline, type Pipeline, texts } from './effects.ts'

let pipeline: Pipeline
before(async () => {
  pipeline = await openPipeline()
})
afterEach(() => pipeline.reset())
after(() => pipeline.close())

const KEYS = 23
const ENTRIES = 1_500

async function appendMany(log: Log = pipeline.log) {
  for (let from = 0; from < ENTRIES; from += 50) {
    await log.append(
      Array.from({ length: 50 }, (_, i) =>
        anAppend({ orderingKey: `key-${(from + i) % KEYS}`, ...texts(String(from + i)) }),
      ),
    )
  }
}

async function assertEachOnceInOrder() {
  const effects = await pipeline.effects()
  assert.equal(Object.keys(effects).length, KEYS)
  for (const [key, applied] of Object.entries(effects)) {
    const first = Number(key.slice(4))
    const expected = Array.from({ length: ENTRIES }, (_, i) => i).filter(i => i % KEYS === first)
    assert.deepEqual(applied.map(Number), expected)
  }
}

test('three consumers on one log: every entry takes effect once, and each key in its order', async () => {
  for (let i = 0; i < 3; i++) pipeline.start()
  await appendMany()
  await pipeline.settled()
  await assertEachOnceInOrder()
})

test('after a deadlock, a transaction of the same tenants waits for the profile lock before it writes anything', async () => {
  const { pool, log } = pipeline
  const LOCKS = { own: 98, others: 99 }
  const [isHolding, isAwaited] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const kind: ReturnType<typeof effectKind> = {
    ...effectKind(),
    async apply({ client, profileLock }) {
      await profileLock!.prepare()
      await client.query('select pg_advisory_xact_lock($1)', [LOCKS.own])
      isHolding.resolve()
      await isAwaited.promise
      await client.query(`set local deadlock_timeout = '10ms'`)
      await client.query('select pg_advisory_xact_lock($1)', [LOCKS.others])
    },
  }
  const logger = { error: () => {}, warn: () => {} }
  const runTransaction = openTransactions({ pool, log, logger, ...asOnlyKind(kind) })
  const run = () => runTransaction({ careful: false, alone: false, load: 'light', onTaken: () => {} })
  const waits = (objid: number) =>
    eventually(`a session to wait for lock ${objid}`, async () => {
      const { rowCount } = await pool.query(
        `select from pg_locks where locktype = 'advisory' and objid = $1 and not granted`,
        [objid],
      )
      return rowCount === 1
    })
  const append = anAppend(texts('x'))
  await log.append([append])
  await pipeline.readable()
  const other = await pool.connect()
  try {
    await other.query(`begin; set local deadlock_timeout = '10min'`)
    await other.query('select pg_advisory_xact_lock($1)', [LOCKS.others])
    const first = run()
    await isHolding.promise
    const waiting = other.query('select pg_advisory_xact_lock($1)', [LOCKS.own])
    await waits(LOCKS.own)
    isAwaited.resolve()
    await assert.rejects(first, isDeadlock)
    await waiting
    await other.query('rollback; begin')
    await lockTenants(other, TENANT_LOCKS.profiles, [append.entry.tenantId])
    const second = run()
    await waits(append.entry.tenantId)
    await other.query('rollback')
    assert.equal(await second, 1)
  } finally {
    other.release(true)
  }
})

test('transactions that fail in the middle write nothing and lose nothing', async () => {
  let applications = 0
  const kind = effectKind()
  const flaky = {
    ...kind,
    async apply(...[transaction, units]: Parameters<typeof kind.apply>) {
      await kind.apply(transaction, units)
      // As if the database failed after the work and before the commit.
      if (++applications % 2 === 1 && applications < 40) {
        throw Object.assign(new Error('gone'), { code: '40001' })
      }
    },
  }
  for (let i = 0; i < 3; i++) pipeline.start({ kind: flaky })
  await appendMany()
  await pipeline.settled()
  await assertEachOnceInOrder()
})

test('connections that break in the middle write nothing and lose nothing', async t => {
  // The writer has a pool of its own. A connection of a shared pool could change hands between being found and being terminated.
  const writers = openPool({
    ...{ connection: { url: pipeline.url }, max: 2, name: 'log writer' },
    onError: () => undefined,
  })
  t.after(() => writers.end())
  const log = openPostgresLog({ pool: writers })
  for (let i = 0; i < 2; i++) pipeline.start({ log: { ...pipeline.log, onAppend: log.onAppend } })
  let isWritten = false
  const written = appendMany(log).then(() => {
    isWritten = true
  })
  const breakConnections = async () => {
    const { rowCount } = await pipeline.pool.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
       where datname = current_database() and pid <> pg_backend_pid() and backend_xid is not null
         and application_name = 'log test'`,
    )
    return rowCount! > 0
  }
  for (let i = 0; i < 5; i++)
    await eventually('a transaction to break', async () => (await breakConnections()) || isWritten)
  await written
  await pipeline.settled()
  await assertEachOnceInOrder()
})

test('a stopped consumer finishes its transaction, and another continues from there', async () => {
  const first = pipeline.start()
  const written = appendMany()
  await eventually('the first effect', async () => Object.keys(await pipeline.effects()).length > 0)
  await first.stop()
  pipeline.start()
  await written
  await pipeline.settled()
  await assertEachOnceInOrder()
})

test('an entry appended by another process is found without a wake-up', async () => {
  // Without notifications, an append does not wake the workers.
  pipeline.start({ log: { ...pipeline.log, onAppend: () => () => {} } })
  await pipeline.log.append([anAppend({ orderingKey: 'quiet', ...texts('a') })])
  await pipeline.settled()
  assert.deepEqual(await pipeline.effects(), { quiet: ['a'] })
})

const numbered = (name: string, count: number) => Array.from({ length: count }, (_, i) => `${name} ${i}`)

test('a large entry is applied in portions, each once and in order despite failures; other entries do not wait for all portions', async () => {
  const [large, behind] = [numbered('large', 1_700), numbered('behind', 600)]
  // Some of these are in the same partition, and in the same take.
  const others = Array.from({ length: 40 }, (_, i) => `other-${i}`)
  await pipeline.log.append([
    anAppend({ orderingKey: 'large', ...texts(...large) }),
    anAppend({ orderingKey: 'large', ...texts(...behind) }),
    ...others.map(orderingKey => anAppend({ orderingKey, ...texts('after') })),
    anAppend({ orderingKey: 'large', ...texts('last') }),
  ])
  const kind = effectKind(text => text === 'large 1200')
  const sizes: number[] = []
  const flaky = {
    ...kind,
    async apply(...[transaction, units]: Parameters<typeof kind.apply>) {
      await kind.apply(transaction, units)
      sizes.push(units.filter(({ work }) => work.text.startsWith('large')).length)
      if (sizes.length % 2 === 1 && sizes.length < 12) throw Object.assign(new Error('gone'), { code: '40001' })
    },
  }
  pipeline.start({ kind: flaky })
  await pipeline.settled()
  const effects = await pipeline.effects()
  assert.deepEqual(effects.large, [...large.filter(text => text !== 'large 1200'), ...behind, 'last'])
  assert.deepEqual(
    (await pipeline.deadLetters()).map(({ body }) => body),
    ['["large 1200"]'],
  )
  assert.ok(Math.max(...sizes) <= 500, `${Math.max(...sizes)} at once`)
  const { rows } = await pipeline.pool.query<{ others: number; large: number }>(
    `select max(n) filter (where body = 'after') as others, max(n) filter (where body like 'large%') as large from effects`,
  )
  assert.ok(rows[0]!.others < rows[0]!.large, 'other entries waited for the last portion')
})
