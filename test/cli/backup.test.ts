import assert from 'node:assert/strict'
import { appendFile, open, readdir, readFile, stat, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { pino } from 'pino'
import { readConfig } from '../../src/config/config.ts'
import { openPostgresLog } from '../../src/log/postgres/log.ts'
import { inTransaction, openPool } from '../../src/postgres/database.ts'
import { applyMigrations } from '../../src/postgres/migrate.ts'
import { type Runtime, startRuntime } from '../../src/runtime/runtime.ts'
import { startWorkers } from '../../src/runtime/workers.ts'
import { testDatabase } from '../database.ts'
import { makeSource } from '../inbound/source.ts'
import { isLong } from '../long.ts'
import { startServer, TEST_SECRET_KEY, type TestServer } from '../server.ts'
import { settled } from '../settled.ts'
import { kontor, temporaryDirectory } from './kontor.ts'

const WITHOUT_WORKERS = 'data,events,inbound,console'
const logger = pino({ level: 'silent' })

let server: TestServer
/** The second test continues on the server that the first one restored. */
let restoredServer: Awaited<ReturnType<typeof serve>> & { databaseUrl: string }
const closers: (() => Promise<unknown>)[] = []
before(async () => {
  server = await startServer({ KONTOR_SURFACES: WITHOUT_WORKERS })
  process.env.KONTOR_SECRET_KEY = TEST_SECRET_KEY
})
after(async () => {
  delete process.env.KONTOR_SECRET_KEY
  delete process.env.DATABASE_URL
  for (const close of closers.reverse()) await close()
  await server.close()
})

/** Runs a command with DATABASE_URL set to this database. */
async function kontorOn(url: string, ...words: string[]) {
  process.env.DATABASE_URL = url
  const answer = await kontor(...words)
  delete process.env.DATABASE_URL
  return answer
}

async function emptyDatabase() {
  const database = await testDatabase({ empty: true })
  const pool = openPool({ connection: { url: database.url }, max: 2, name: 'test', onError: () => {} })
  closers.push(database.drop, () => pool.end())
  return { url: database.url, pool }
}

/** A server on a restored database, with the keys of the first server. */
async function serve(url: string, surfaces?: string) {
  const config = readConfig({
    ...{ DATABASE_URL: url, KONTOR_OPS_PORT: 'off', KONTOR_PORT: '0', KONTOR_SECRET_KEY: TEST_SECRET_KEY },
    ...(surfaces && { KONTOR_SURFACES: surfaces }),
  })
  const runtime = await startRuntime({ config, connection: { url }, log: logger })
  let isOpen = true
  const close = async () => {
    if (isOpen) await runtime.close()
    isOpen = false
  }
  closers.push(close)
  return { url: runtime.url, close }
}

const runWorkers = (url: string) =>
  startWorkers(
    { connection: { url }, workers: 2, eventsFloorMs: null, eventsRetentionMs: null, nats: null },
    { logger, onAppend: () => () => true },
  )

type Served = Pick<Runtime, 'url'>

// biome-ignore lint/suspicious/noExplicitAny: tests look into answers freely
type Answered = { status: number; body: any }

async function call({ url }: Served, key: string, path: string, body?: unknown, headers = {}): Promise<Answered> {
  const response = await fetch(url + path, {
    ...(body !== undefined && { method: 'POST', body: JSON.stringify(body) }),
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
  })
  return { status: response.status, body: await response.json() }
}

const product = (n: number) => ({
  ...{ entityType: 'product', id: `p-${n}`, sourceUpdatedAt: '2026-01-31T12:00:00Z' },
  data: { sku: `SKU-${n}`, name: `Mug ${n}`, price: n },
})
const writeProduct = (at: Served, n: number) =>
  call(at, server.tenant.privateKey, '/v1/products', product(n), { 'x-idempotency-key': `key-${n}` })
const track = (at: Served, n: number) =>
  call(at, server.tenant.trackingKey, '/v1/track/', {
    ...{ event_type: n % 5 === 0 ? 'purchase' : 'page_view', event_id: `e-${n}`, visitor: `v-${n % 3}` },
    data: { n, amount: n, currency: 'EUR' },
  })

const LISTS = ['/v1/products', '/v1/events', '/v1/conversions', '/v1/events/lookup?event_id=e-1']
const readAll = (at: Served, paths: string[] = LISTS) =>
  Promise.all(paths.map(path => call(at, server.tenant.privateKey, path)))

const eventCounts = async (pool: TestServer['pool']) => {
  const { rows } = await pool.query<{ n: number; count: number }>(
    `select (payload::jsonb ->> 'n')::int as n, count(*) from events group by 1 order by 1`,
  )
  return rows
}

test('a restored server returns the same data, processes pending entries once, and still recognizes duplicates', async t => {
  const source = await makeSource(server, { signing_secret: 'generate' })
  const url = 'https://203.0.113.7/hooks'
  const { id: destination } = await server.admin.destinations.create({ tenant: server.tenant.id, url })
  for (let n = 1; n <= 10; n++) await Promise.all([writeProduct(server, n), track(server, n)])
  const workers = await runWorkers(server.databaseUrl)
  await server.settled().finally(() => workers.stop())
  // Nothing is processed from here on. The positions are as high as in a cluster that has been busy for years.
  const queued = (await writeProduct(server, 11)).body
  await Promise.all([track(server, 11), track(server, 12)])
  const years = `(xid::text::numeric + 5000000000)::text::xid8`
  await server.pool.query(`update log set xid = ${years}`)
  await server.pool.query(`update log_cursors set xid = ${years} where xid <> '0'`)

  const file = join(await temporaryDirectory(t), 'kontor.backup')
  const taken = await kontorOn(server.databaseUrl, 'backup', '--to', file)
  assert.equal(taken.code, 0, taken.err)
  const summary: Record<string, unknown> = taken.json()
  assert.deepEqual(Object.keys(summary), [...['file', 'bytes', 'tenants', 'records', 'events', 'taken_at', 'version']])
  assert.equal(summary.bytes, (await stat(file)).size)
  assert.deepEqual([summary.tenants, summary.records, summary.events], [1, 10, 10])
  assert.deepEqual((await kontor('backup', 'verify', file)).json(), summary)
  assert.ok(!(await readFile(file)).includes(Buffer.from(TEST_SECRET_KEY)))

  const target = await emptyDatabase()
  const restored = await kontorOn(target.url, 'restore', '--from', file)
  assert.equal(restored.code, 0, restored.err)
  assert.deepEqual(restored.json(), { ...summary, waiting: 3 })
  // The copy must not send anything on behalf of the original.
  assert.match(restored.err, /destination is disabled/)
  const sending = await target.pool.query('select id, enabled from destinations')
  assert.deepEqual(sending.rows, [{ id: destination, enabled: false }])

  const paths = [...LISTS, `/v1/operations/${queued.operationId}`]
  const working = await serve(target.url, WITHOUT_WORKERS)
  restoredServer = { ...working, databaseUrl: target.url }
  assert.deepEqual(await readAll(working, paths), await readAll(server, paths))
  closers.push((await runWorkers(target.url)).stop)
  await settled(target.pool)
  const expected = Array.from({ length: 12 }, (_, i) => ({ n: i + 1, count: 1 }))
  assert.deepEqual(await eventCounts(target.pool), expected)
  assert.equal((await call(working, server.tenant.privateKey, '/v1/products/SKU-11')).status, 200)

  for (let n = 1; n <= 12; n++) {
    await track(working, n)
    if (n > 11) continue
    const { status, body } = await writeProduct(working, n)
    assert.deepEqual({ status, duplicate: body.duplicate }, { status: 200, duplicate: true })
  }
  await writeProduct(working, 12)
  await settled(target.pool)
  assert.deepEqual(await eventCounts(target.pool), expected)
  // Sequences continue where they were, and the source's secret can be decrypted.
  await call(working, server.tenant.trackingKey, '/v1/track/', { event_type: 'page_view', visitor: 'new' })
  const inbound = await fetch(working.url + source.path, { method: 'POST', body: '{}' })
  assert.equal(inbound.status, 401)
  await settled(target.pool)
  const { rows } = await target.pool.query('select id, error from dead_letters')
  assert.deepEqual(rows, [])
})

test('a backup under load contains everything acknowledged before it, and repeated requests add nothing', async t => {
  const busy = restoredServer
  const file = join(await temporaryDirectory(t), 'kontor.backup')
  let last = 100
  let isOver = false
  const send = async () => {
    while (!isOver) {
      const n = ++last
      await Promise.all([writeProduct(busy, n), track(busy, n)])
    }
  }
  const senders = Array.from({ length: 4 }, send)
  while (last < 160) await track(busy, 0)
  const acknowledged = last - senders.length
  const taken = await kontorOn(busy.databaseUrl, 'backup', '--to', file)
  assert.equal(taken.code, 0, taken.err)
  isOver = true
  await Promise.all(senders)
  await busy.close()

  const target = await emptyDatabase()
  const restored = await kontorOn(target.url, 'restore', '--from', file)
  assert.equal(restored.code, 0, restored.err)
  const copy = await serve(target.url)
  await settled(target.pool)
  const counts = new Map((await eventCounts(target.pool)).map(({ n, count }) => [n, count]))
  for (let n = 101; n <= acknowledged; n++) assert.equal(counts.get(n), 1, `event ${n}`)
  const sent = Array.from({ length: last - 100 }, (_, i) => i + 101)
  for (let i = 0; i < sent.length; i += 20)
    await Promise.all(sent.slice(i, i + 20).map(n => Promise.all([writeProduct(copy, n), track(copy, n)])))
  await settled(target.pool)
  const after = (await eventCounts(target.pool)).filter(({ n }) => n > 100)
  assert.deepEqual(
    after,
    sent.map(n => ({ n, count: 1 })),
  )
  const { rows } = await target.pool.query<{ count: number }>(
    `select count(*) from operations where record_id = any($1)`,
    [sent.map(n => `p-${n}`)],
  )
  assert.equal(rows[0]!.count, sent.length)
  await copy.close()
})

test('a truncated, changed or newer backup is rejected, and nothing is restored', async t => {
  const directory = await temporaryDirectory(t)
  const file = join(directory, 'kontor.backup')
  const words = ['backup', '--to', file, '--include-secret-key']
  assert.equal((await kontorOn(server.databaseUrl, ...words)).code, 0)
  const bytes = await readFile(file)
  const broken = join(directory, 'broken.backup')
  const target = await emptyDatabase()
  const refuses = async (pattern: RegExp, { restoring = false } = {}) => {
    const answer = restoring
      ? await kontorOn(target.url, 'restore', '--from', broken)
      : await kontor('backup', 'verify', broken)
    assert.deepEqual({ code: answer.code, out: answer.out }, { code: 1, out: '' })
    assert.match(answer.err, pattern)
  }

  const places = [0, 15, 16, 17, 20, 30, bytes.length - 1, bytes.length - 6, bytes.length - 20]
  const some = isLong ? 60 : 10
  const spread = Array.from({ length: some }, (_, i) => Math.floor((bytes.length * i) / some))
  for (const place of [...places, ...spread]) {
    const flipped = Buffer.from(bytes)
    flipped[place]! ^= 1 << (place % 8)
    await writeFile(broken, flipped)
    await refuses(/is damaged|no valid end|not a Kontor backup|newer version/)
  }
  for (const length of [0, 5, 40, Math.floor(bytes.length / 2), bytes.length - 1]) {
    await writeFile(broken, bytes)
    await truncate(broken, length)
    await refuses(/no valid end|not a Kontor backup/)
  }
  await writeFile(broken, bytes)
  await appendFile(broken, 'x')
  await refuses(/no valid end/)
  await writeFile(broken, Buffer.concat([Buffer.from('kontor backup 9\n'), bytes.subarray(16)]))
  await refuses(/created by a newer version .* its format is 9/, { restoring: true })

  // Detected only after most of the file has been copied.
  const late = Buffer.from(bytes)
  late[Math.floor(bytes.length * 0.8)]! ^= 4
  await writeFile(broken, late)
  await refuses(/is damaged at byte/, { restoring: true })
  const left = await target.pool.query('select from pg_class where relnamespace = current_schema()::regnamespace')
  assert.equal(left.rowCount, 0)

  await server.pool.query(`insert into schema_migrations (name, checksum) values ('9999_later.sql', 'x')`)
  try {
    assert.equal((await kontorOn(server.databaseUrl, 'backup', '--to', broken)).code, 0)
  } finally {
    await server.pool.query(`delete from schema_migrations where name = '9999_later.sql'`)
  }
  await refuses(/newer version .* migration 9999_later\.sql/, { restoring: true })

  // An intact file is still restored afterwards. A second restore is rejected, and so is a database of another program.
  const restored = await kontorOn(target.url, 'restore', '--from', file)
  assert.equal(restored.code, 0, restored.err)
  const again = await kontorOn(target.url, 'restore', '--from', file)
  assert.equal(again.code, 1)
  assert.match(again.err, /not empty/)
})

test('a backup of another cluster is restored with the unread entries of its log', async t => {
  const old = await emptyDatabase()
  await inTransaction(old.pool, async client => {
    await applyMigrations(client)
    await client.query(`insert into tenants (name) values ('acme')`)
    await client.query(`create table log_p1 partition of log for values from ('2026-01-31') to ('2026-02-01')`)
    // The cursor is at the second of three entries. The transaction ids are those of another cluster.
    await client.query(`insert into log_cursors (partition, xid, ord) values (0, '9000000001', 0)`)
    await client.query(
      `insert into log select 0, (9000000000 + n)::text::xid8, 0, gen_random_uuid(), 1, 'record', 'key', '2026-01-31', '{}', 3000000, repeat(n::text, 3000000)
       from generate_series(0, 2) n`,
    )
  })
  const file = join(await temporaryDirectory(t), 'old.backup')
  const taken = await kontorOn(old.url, 'backup', '--to', file)
  assert.equal(taken.code, 0, taken.err)
  const target = await emptyDatabase()
  const restored = await kontorOn(target.url, 'restore', '--from', file)
  assert.equal(restored.code, 0, restored.err)
  assert.equal((restored.json() as { waiting: number }).waiting, 1)
  assert.deepEqual((await kontorOn(target.url, 'migrate')).json(), { applied: [] })
  const log = openPostgresLog({ pool: target.pool })
  const take = () =>
    inTransaction(target.pool, async client => {
      const taken = await log.take(client, { maxPartitions: 1, maxEntries: 10, alsoPartitions: [] })
      await log.advance(client, taken)
      return taken.flatMap(({ entries }) => entries).length
    })
  assert.deepEqual([await take(), await take()], [1, 0])
})

test('if the file cannot be written, the existing file stays and no partial file remains', async t => {
  const directory = await temporaryDirectory(t)
  const file = join(directory, 'kontor.backup')
  await writeFile(file, 'yesterday')
  const client = await server.pool.connect()
  try {
    // The table cannot be locked, so the backup fails.
    await client.query('begin; lock table tenants in access exclusive mode')
    const url = `${server.databaseUrl}?options=${encodeURIComponent('-c lock_timeout=100ms')}`
    await assert.rejects(kontorOn(url, 'backup', '--to', file))
  } finally {
    await client.query('rollback')
    client.release()
  }
  delete process.env.DATABASE_URL
  assert.deepEqual(await readdir(directory), ['kontor.backup'])
  assert.equal(await readFile(file, 'utf8'), 'yesterday')
  const nowhere = await kontor('backup', '--to', file, '--data', join(directory, 'nothing'))
  assert.equal(nowhere.code, 1)
  assert.match(nowhere.err, /no database in/)
  assert.equal((await kontor('backup')).code, 2)
  for (const path of [join(directory, 'no', 'such.backup'), directory]) {
    const answer = await kontorOn(server.databaseUrl, 'backup', '--to', path)
    assert.match(answer.err, /cannot be written: no such file or directory|is not a regular file/)
    assert.equal((await kontor('restore', '--from', path)).code, 1)
  }
})

test('a backup is restored into a new data directory, with the secret key if included, and can be backed up again', async t => {
  const directory = await temporaryDirectory(t)
  const file = join(directory, 'kontor.backup')
  const taken = await kontorOn(server.databaseUrl, 'backup', '--to', file, '--include-secret-key')
  const handle = await open(file)
  assert.equal((await handle.stat()).mode & 0o077, 0)
  await handle.close()
  delete process.env.KONTOR_SECRET_KEY
  const refused = await kontor('restore', '--from', file, '--data', directory)
  assert.equal(refused.code, 1)
  assert.match(refused.err, /is not empty: it contains "kontor.backup"/)
  assert.deepEqual(await readdir(directory), ['kontor.backup'])
  const data = join(directory, 'data')
  const restored = await kontor('restore', '--from', file, '--data', data)
  assert.equal(restored.code, 0, restored.err)
  assert.doesNotMatch(restored.err, /signing secret/)
  assert.equal((await readFile(join(data, 'secret.key'), 'utf8')).trim(), TEST_SECRET_KEY)
  const again = await kontor('backup', '--to', join(directory, 'again.backup'), '--data', data)
  assert.equal(again.code, 0, again.err)
  const facts = ({ tenants, records, events }: Record<string, unknown>) => ({ tenants, records, events })
  assert.deepEqual(facts(again.json()), facts(taken.json()))
})

test('a backup taken after an erasure contains nothing of the person; an older one does until they are erased again', async t => {
  // With a database of its own: the log of the other tests has entries that no worker reads.
  const own = await startServer()
  t.after(() => own.close())
  const post = async (path: string, key: string, body: object) =>
    assert.ok((await own.request(path, { method: 'POST', key, body: JSON.stringify(body) })).status < 300)
  const contact = { entityType: 'contact', id: 'c-erased', sourceUpdatedAt: '2026-01-31T12:00:00Z' }
  const data = { email: 'erased@example.com', phone: '+49 30 4711' }
  await post('/v1/contacts', own.tenant.privateKey, { ...contact, data })
  await post('/v1/track/', own.tenant.trackingKey, {
    ...{ event_type: 'login', visitor: 'v-erased', data: { email: 'erased@example.com' } },
  })
  await own.settled()
  const directory = await temporaryDirectory(t)
  const restore = async (name: string) => {
    const target = await emptyDatabase()
    assert.equal((await kontorOn(target.url, 'restore', '--from', join(directory, name))).code, 0)
    return target
  }
  /** The tables that mention the person. */
  const findTraces = async ({ pool }: Awaited<ReturnType<typeof emptyDatabase>>) => {
    const { rows: tables } = await pool.query<{ name: string }>(
      `select relname as name from pg_class where relkind in ('r', 'p') and not relispartition and relnamespace = 'public'::regnamespace`,
    )
    const found: string[] = []
    for (const { name: table } of tables) {
      const { rows } = await pool.query(
        `select from ${table} t where t::text like '%erased@example.com%' or t::text like '%+49 30 4711%' limit 1`,
      )
      if (rows.length > 0) found.push(table)
    }
    return found
  }
  const backup = (name: string) => kontorOn(own.databaseUrl, 'backup', '--to', join(directory, name))
  assert.equal((await backup('before')).code, 0)
  const erase = ['erase', '--tenant', own.tenant.id, '--email', 'erased@example.com']
  assert.equal((await kontorOn(own.databaseUrl, ...erase)).code, 0)
  assert.equal((await backup('after')).code, 0)
  assert.deepEqual(await findTraces(await restore('after')), [])
  const older = await restore('before')
  const traces = await findTraces(older)
  assert.ok(traces.includes('events') && traces.includes('records') && traces.includes('log'), String(traces))
  assert.equal((await kontorOn(older.url, ...erase)).code, 0)
  assert.deepEqual(await findTraces(older), [])
})
