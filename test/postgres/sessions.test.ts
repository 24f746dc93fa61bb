import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { after, before, test } from 'node:test'
import pg from 'pg'
import { from as copyFrom } from 'pg-copy-streams'
import { endStuckSessions, inTransaction, isUnavailable, openPool } from '../../src/postgres/database.ts'
import { listenForNotices } from '../../src/postgres/notices.ts'
import { testDatabase } from '../database.ts'
import { eventually } from '../eventually.ts'
import { startPooler } from '../pooler.ts'

let database: Awaited<ReturnType<typeof testDatabase>>
let pool: pg.Pool
const open = (url: string, name: string) =>
  openPool({
    ...{ connection: { url }, max: 2, name, onError: () => undefined },
    transactionLimits: { lockMs: 30_000, statementMs: 120_000 },
  })
before(async () => {
  database = await testDatabase()
  pool = open(database.url, 'kontor test')
  await pool.query('create table written (n int); create table held (n int)')
})
after(async () => {
  await pool.end()
  await database.drop()
})

const limitsIn = (own: pg.Pool) =>
  inTransaction(own, async client => {
    const { rows } = await client.query<{ limits: string }>(
      `select concat_ws(' ', current_setting('idle_in_transaction_session_timeout'), current_setting('lock_timeout'),
         current_setting('statement_timeout')) as limits`,
    )
    return rows[0]!.limits
  })

test('every transaction has its limits and every connection its keepalives, whatever the server’s defaults', async () => {
  await pool.query(
    `alter database ${new URL(database.url).pathname.slice(1)} set idle_in_transaction_session_timeout = 0`,
  )
  const own = open(database.url, 'kontor test')
  assert.equal(await limitsIn(own), '10s 30s 2min')
  const { rows } = await own.query(`select name, setting from pg_settings where name ~ '^tcp_(keep|user)' order by 1`)
  assert.deepEqual(
    rows.map(({ setting }) => setting),
    ['3', '15', '5', '30000'],
  )
  await own.end()
})

test('the pool uses the host that accepts writes; without one, the database is unavailable', async () => {
  const away = new URL(database.url)
  away.port = '1'
  const name = away.pathname.slice(1)
  const own = openPool({
    ...{ connection: { url: [away.href, database.url] }, max: 2, name: 'kontor test' },
    onError: () => undefined,
  })
  const written = () => own.query('insert into written values (1) returning n')
  const endSessions = () =>
    pool.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
       where datname = current_database() and pid <> pg_backend_pid() and application_name = 'kontor test'`,
    )
  assert.equal((await written()).rowCount, 1)
  await pool.query(`alter database ${name} set default_transaction_read_only = on`)
  await endSessions()
  await eventually('an outage that names the host', () =>
    written().then(
      () => false,
      error => {
        assert.ok(isUnavailable(error), error)
        return /127\.0\.0\.1:\d+ \(read-only\)/.test(error.message)
      },
    ),
  )
  await pool.query(
    `begin; set transaction read write; alter database ${name} reset default_transaction_read_only; commit`,
  )
  await eventually('a host that can be written to', () =>
    written().then(
      () => true,
      error => {
        assert.ok(isUnavailable(error), error)
        return false
      },
    ),
  )
  await own.end()
})

test('transaction limits apply behind a transaction pooler', async t => {
  const pooler = await startPooler(t, database.url)
  if (!pooler) return
  const own = open(pooler.url, 'kontor test')
  assert.equal(await limitsIn(own), '10s 30s 2min')
  await own.end()
  await pooler.stop()
})

test('a session that hangs after a write is terminated; one that waits for a lock or only reads is not', async t => {
  const connect = async (name: string) => {
    const client = new pg.Client({ connectionString: database.url, application_name: name })
    client.on('error', () => {})
    await client.connect()
    t.after(() => client.end())
    return client
  }
  const names = ['kontor', 'kontor worker', 'kontor', 'other', 'kontor']
  const clients = await Promise.all(names.map(connect))
  const [copying, idle, reading, other, waiting] = clients
  // An interrupted COPY: more rows than a buffer holds, and no end.
  const copy = copying!.query(copyFrom('copy written from stdin'))
  copy.on('error', () => {})
  copy.write('1\n'.repeat(100_000))
  await idle!.query('begin')
  await idle!.query('insert into held values (2)')
  await reading!.query('begin')
  await reading!.query('select 1')
  await other!.query('begin')
  await other!.query('create temp table own (n int)')
  await waiting!.query('begin')
  await waiting!.query('create temp table own (n int)')
  const waited = waiting!.query('lock table held in access exclusive mode')
  // Excludes other sessions in the same database, such as autovacuum.
  const { rows: sessions } = await pool.query<{ pid: number }>(
    'select pid from pg_stat_activity where datname = current_database() and application_name = any ($1)',
    [names],
  )
  const ownPids = sessions.map(({ pid }) => pid)
  assert.equal(ownPids.length, clients.length)
  const written = async (more = '') => {
    const { rows } = await pool.query<{ name: string }>(
      `select application_name as name from pg_stat_activity
       where pid = any ($1) and backend_xid is not null ${more} order by 1`,
      [ownPids],
    )
    return rows.map(({ name }) => name)
  }
  await eventually(
    'all to wait: three for their client, one for the lock',
    async () => (await written()).length === 4 && (await written(`and wait_event_type = 'Client'`)).length === 3,
  )

  assert.equal(await endStuckSessions(pool, 60_000), 0)
  assert.equal(await endStuckSessions(pool, 0), 2)
  await waited
  await assert.rejects(idle!.query('select 1'), isUnavailable)
  await reading!.query('commit')
  // Terminating a session takes a moment.
  await eventually('the others to remain', async () => (await written()).join() === 'kontor,other')
})

test('a listener has one connection, even after the previous one broke during LISTEN', async () => {
  const own = openPool({ connection: { url: database.url }, max: 4, name: 'listening', onError: () => {} })
  let connections = 0
  const breaking: Pick<pg.Pool, 'connect'> = {
    connect: async () => {
      const client = await own.connect()
      if (++connections > 1) return client
      const query = client.query.bind(client) as (text: string) => Promise<unknown>
      const broken = async () => {
        const failing = query('select pg_sleep(10)')
        const { stream } = (client as unknown as { connection: { stream: Socket } }).connection
        stream.destroy(new Error('read ECONNRESET'))
        return failing
      }
      return Object.assign(client, { query: broken }) as unknown as pg.PoolClient
    },
  }
  const heard = Promise.withResolvers<void>()
  const listening = listenForNotices(breaking as pg.Pool, 'broken_once', heard.resolve)
  await eventually('the listener to be connected', async () => {
    const { rowCount } = await own.query(
      `select from pg_stat_activity where application_name = 'listening' and query = 'listen broken_once'`,
    )
    return rowCount! > 0
  })
  await own.query('notify broken_once')
  await heard.promise
  await listening.stop()
  await own.end()
  assert.equal(connections, 2)
})
