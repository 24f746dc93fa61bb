import assert from 'node:assert/strict'
import { test } from 'node:test'
import { diagnose, LIMITS } from '../../src/admin/doctor.ts'
import { openSecrets } from '../../src/admin/secrets.ts'
import type { Entry } from '../../src/domain/entries/entry.ts'
import { newEntryId } from '../../src/domain/ids.ts'
import { DAY_MS } from '../../src/domain/time.ts'
import { initializePostgresLog, openPostgresLog } from '../../src/log/postgres/log.ts'
import { openPool } from '../../src/postgres/database.ts'
import { ensurePartitions, ensurePartitionsFor } from '../../src/postgres/partitions.ts'
import { openedAdmin } from '../admin/opened.ts'
import { kontor, useDatabase } from './kontor.ts'

const { pool, admin, secrets, url } = await openedAdmin()
const log = openPostgresLog({ pool })
await ensurePartitions(pool, new Date())
await initializePostgresLog(pool, 4)
const tenant = await admin.tenants.create({ name: 'acme' })
const source = await admin.sources.create({ tenant: tenant.id, type: 'webhook', signing_secret: 'generate' })
useDatabase(url, { KONTOR_SECRET_KEY: '01'.repeat(32) })

type Options = Parameters<typeof diagnose>[0]

/** The findings by code, without the one about durability: the test cluster is not durable on purpose. */
async function found(options: Partial<Options> = {}): Promise<Map<string, string>> {
  const findings = await diagnose({
    ...{
      pool,
      log,
      secrets,
      hasSecretKey: true,
      now: () => new Date(),
      disk: async () => null,
      dataDir: null,
      minFreeDisk: 0.05,
      maxBacklog: null,
      processedRetentionMs: 90 * DAY_MS,
    },
    ...options,
  })
  for (const { what, means, help } of findings) for (const words of [what, means, help]) assert.notEqual(words, '')
  const byCode = Map.groupBy(findings, ({ code }) => code as string)
  const words = (of: typeof findings) => of.map(({ what, help }) => `${what} → ${help}`).join('\n')
  return new Map([...byCode].map(([code, of]) => [code, words(of)]))
}

async function append(receivedAt: Date) {
  const entry: Entry = {
    ...{ id: newEntryId(receivedAt.getTime()), tenantId: 1, kind: 'events', orderingKey: 'key' },
    ...{ receivedAt, context: '{}', body: '{}' },
  }
  await log.append([{ entry, claim: null }])
}

/** Checks that the finding is reported during the problem, and not afterwards. */
async function findsOnly(code: string, words: RegExp, { make, undo }: Record<'make' | 'undo', string>) {
  await pool.query(make)
  const codes = await found().finally(() => pool.query(undo))
  assert.match(codes.get(code) ?? `${code} was not found`, words)
  assert.ok(!(await found()).has(code), `${code} is found where it is not`)
}

const ENTRY = `gen_random_uuid(), 1, 'events', 'key', now() - interval '3 hours'`

test('reports a missing server, a server without a worker, and nothing if both run', async () => {
  assert.match((await found()).get('no_server')!, /→ kontor start$/)
  // Without it, the command would create and start another database.
  assert.match((await found({ dataDir: '/srv/kontor' })).get('no_server')!, /→ kontor start --data '\/srv\/kontor'$/)
  const connected = (name: string) => openPool({ connection: { url }, max: 1, name, onError: () => {} })
  const server = connected('kontor')
  const worker = connected('kontor worker')
  try {
    await server.query('select 1')
    assert.match((await found()).get('no_worker')!, /→ kontor start --surfaces worker$/)
    const embedded = await found({ dataDir: "/srv/ada's" })
    assert.match(embedded.get('no_worker')!, /Stop the server.* --data '\/srv\/ada'\\''s'$/)
    await worker.query('select 1')
    const left = [...(await found()).keys()]
    const { rows } = await pool.query<{ fsync: string }>('show fsync')
    assert.deepEqual(left, rows[0]!.fsync === 'off' ? ['not_durable'] : [])
  } finally {
    await Promise.all([server.end(), worker.end()])
  }
})

test('reports an old backlog with its age, and a backlog near its limit', async () => {
  await append(new Date(Date.now() - 10 * 60_000))
  assert.match((await found()).get('backlog_old')!, /^One unprocessed entry .* for 10 min/)
  assert.match((await found({ maxBacklog: 1 })).get('backlog_full')!, /KONTOR_MAX_BACKLOG is 1\./)
  assert.ok(!(await found({ maxBacklog: 1_000 })).has('backlog_full'))
  await pool.query('delete from log')
  assert.ok(!(await found()).has('backlog_old'))
})

test('reports a stuck partition and repeatedly retried entries', async () => {
  await findsOnly('partition_stuck', /Partition postgres\/3 .*division by zero/, {
    make: `insert into stalled_partitions values ('postgres/3', now(), 'division by zero')`,
    undo: 'delete from stalled_partitions',
  })
  const { rows } = await pool.query<{ name: string }>(
    `select attname as name from pg_attribute where attrelid = 'parked_entries'::regclass and attnum = 1`,
  )
  await findsOnly('entries_retried', /for 3 h and failed 7 times.*no such unit/, {
    make: `insert into parked_entries
             (${rows[0]!.name}, id, tenant_id, kind, ordering_key, received_at, context, body, attempts, next_attempt_at, last_error)
           select 'postgres/1', ${ENTRY}, '{}', '{}', 7, now(), 'no such unit'`,
    undo: 'delete from parked_entries',
  })
})

test('reports a transaction that blocks the workers, and one that only prevents vacuum', async () => {
  const limits = { ...LIMITS, transactionS: 0, snapshotS: 0 }
  const other = openPool({ connection: { url }, max: 1, name: 'another program', onError: () => {} })
  const client = await other.connect()
  try {
    await client.query('begin isolation level repeatable read')
    const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid from tenants')
    const pid = rows[0]!.pid
    const ending = new RegExp(`Process ${pid} \\(another program.*pg_terminate_backend\\(${pid}\\)`)
    assert.match((await found({ limits })).get('vacuum_held')!, ending)
    await client.query('select pg_current_xact_id()')
    assert.match((await found({ limits })).get('transaction_open')!, ending)
    assert.ok(!(await found()).has('transaction_open'))
  } finally {
    await client.query('rollback')
    client.release()
    await other.end()
  }
})

test('reports an increasing number of dead letters', () =>
  findsOnly('dead_letters_growing', /1 entries could not be applied.*no such unit → kontor dead-letters/, {
    make: `insert into dead_letters
             (tenant_id, id, kind, ordering_key, reason, error, attempts, received_at, context, body)
           values (1, gen_random_uuid(), 'events', 'key', 'failed', 'no such unit', 8, now(), '{}', '{}')`,
    undo: 'delete from dead_letters',
  }))

test('mentions dead letters that are no finding', async () => {
  await pool.query(`insert into dead_letters
             (tenant_id, id, kind, ordering_key, reason, error, attempts, received_at, context, body)
           values (1, gen_random_uuid(), 'events', 'key', 'rejected', 'event is required', 1, now(), '{}', '{}')`)
  const { out, err } = await kontor('doctor').finally(() => pool.query('delete from dead_letters'))
  assert.doesNotMatch(out, /dead_letters/)
  assert.match(
    err,
    /^Open dead letters: 1\. Open dead letters alone are not a finding\. To list them, run `kontor dead-letters list`\.$/m,
  )
  assert.doesNotMatch((await kontor('doctor')).err, /dead letter/i)
})

test('reports a silent source, one that is over its budget for hours, and one whose secret cannot be decrypted', async () => {
  const days = [2, 3, 4].map(n => new Date(Date.now() - n * DAY_MS))
  await ensurePartitionsFor(pool, 'receipts', days)
  const times = days.map(day => `'${day.toISOString()}'::timestamptz`).join(', ')
  await findsOnly('source_silent', new RegExp(`${source.id}.*nothing for 2 days.*source test`), {
    make: `insert into receipts (tenant_id, source_id, id, received_at, outcome)
           select 1, '${source.id}', gen_random_uuid(), at, 'processed' from unnest(array[${times}]) as at`,
    undo: 'delete from receipts',
  })
  await findsOnly(
    'overflow_old',
    new RegExp(`5 events of source ${source.id}.*for 3 h.*"rate_limit":\\{"events":18000,"per_seconds":60`),
    {
      make: `insert into overflow
             (source_id, id, tenant_id, kind, ordering_key, received_at, items, context, body_bytes, body)
           select '${source.id}', ${ENTRY}, 5, '{}', 2, '{}'`,
      undo: 'delete from overflow',
    },
  )
  const others = openSecrets([Buffer.alloc(32, 9)])
  assert.match((await found({ secrets: others })).get('secrets_closed')!, new RegExp(source.id))
  const without = await found({ secrets: others, hasSecretKey: false })
  assert.match(without.get('secrets_unchecked')!, /cannot check one signing secret.*KONTOR_SECRET_KEY/)
  assert.equal(without.has('secrets_closed'), false)
})

test('reports a failing destination, a disabled one, and an archive that cannot be written', async () => {
  const { id } = await admin.destinations.create({ tenant: tenant.id, url: 'https://203.0.113.7/hooks' })
  await findsOnly('destination_failing', new RegExp(`${id}.*nothing for 2 h: answered 500.*deliveries ${id}`), {
    make: `update destination_states set failing_since = now() - interval '2 hours', last_error = 'answered 500'`,
    undo: 'update destination_states set failing_since = null',
  })
  await findsOnly('destination_disabled', /It answered 410 Gone/, {
    make: `update destinations set enabled = false, disabled_reason = 'It answered 410 Gone.'`,
    undo: 'update destinations set enabled = true, disabled_reason = null',
  })
  await findsOnly('archive_failing', /no such bucket → .*archive status/, {
    make: `with on_now as (update archive_state set enabled = true)
           update archive_progress set error = 'no such bucket', failed_at = now()`,
    undo: 'with off_now as (update archive_state set enabled = false) update archive_progress set error = null',
  })
  await admin.destinations.delete(id)
})

test('reports different clocks, blocked retention, and a nearly full disk', async () => {
  const ahead = await found({ now: () => new Date(Date.now() + 365 * DAY_MS) })
  assert.match(ahead.get('clock_off')!, /365 days ahead of PostgreSQL's, which all servers use/)
  const behind = await found({ now: () => new Date(Date.now() - 60_000) })
  assert.match(behind.get('clock_off')!, /60 s behind/)
  await append(new Date(Date.now() + 2 * DAY_MS))
  await append(new Date())
  assert.match(
    (await found()).get('clock_off')!,
    /entries whose time is 2 days later than PostgreSQL's clock\. .*It was ahead when the entries were accepted, or it is behind now/,
  )
  // After an hour of entries with the corrected clock:
  await append(new Date(Date.now() - 2 * 3_600_000))
  assert.ok(!(await found()).has('clock_off'))
  await pool.query('delete from log')
  await findsOnly('retention_held', /does not delete expired data: the clock jumped/, {
    make: `insert into retention_clock (trusted_at, held_since, held_reason) values (now(), now(), 'the clock jumped')`,
    undo: 'delete from retention_clock',
  })
  const full = { path: '/srv/kontor', freeBytes: 3e9, totalBytes: 100e9 }
  assert.match(
    (await found({ disk: async () => full })).get('disk_low')!,
    /3,000 MB \(3\.0%\) are free on the disk of \/srv\/kontor/,
  )
  assert.ok(!(await found({ disk: async () => ({ ...full, freeBytes: 30e9 }) })).has('disk_low'))
})

test('reports entries in a stream that no worker has read for a minute, even without NATS', async () => {
  const make = `
    insert into jetstream_streams (name, created, partitions, servers, unread, unread_since) values
      ('kontor', 'x', 1, 'nats-1:4222', 1543, now() - interval '61 seconds'),
      ('busy', 'x', 1, 'nats-1:4222', 7, now() - interval '30 seconds');
    insert into jetstream_cursors (stream, partition, updated_at) values
      ('kontor', 0, now() - interval '2 hours'), ('busy', 0, now() - interval '2 hours');
    insert into jetstream_writers (stream, process, name) values ('kontor', gen_random_uuid(), 'node-1')`
  const undo = 'delete from jetstream_streams; delete from jetstream_cursors; delete from jetstream_writers'
  const words = /^1,543 entries in the stream kontor at nats-1:4222 were unprocessed .+ for 2 h\. → [^\n]+$/
  await findsOnly('nats_unread', words, { make, undo })
  await pool.query(make)
  const { streams }: { streams: { name: string; unread: number; writers: { name: string }[] }[] } = (
    await kontor('status')
  ).json()
  await pool.query(undo)
  assert.deepEqual(
    streams.map(({ name, unread, writers }) => [name, unread, writers.map(writer => writer.name)]),
    [
      ['busy', 7, []],
      ['kontor', 1543, ['node-1']],
    ],
  )
})

test('reports missing partitions for tomorrow, and claims that were deleted too early', async () => {
  const { rows } = await pool.query<{ name: string }>(
    `select inhrelid::regclass::text as name from pg_inherits where inhparent = 'archive'::regclass`,
  )
  await pool.query(`drop table ${rows.map(({ name }) => name).join(', ')}`)
  assert.match((await found()).get('partitions_missing')!, /in archive\./)
  await ensurePartitions(pool, new Date())
  assert.ok(!(await found()).has('partitions_missing'))

  const day = new Date(Date.now() - 25 * DAY_MS)
  await ensurePartitionsFor(pool, 'operations', [day])
  const at = `'${day.toISOString()}'::timestamptz`
  await findsOnly('claims_missing', new RegExp(`idempotency keys of ${day.toISOString().slice(0, 10)}`), {
    make: `insert into operations (tenant_id, id, received_at, status, entity_type)
           values (1, gen_random_uuid(), ${at}, 'applied', 'product')`,
    undo: 'delete from operations',
  })
})

test('reports a schema of another version or no schema; the command prints all findings and exits with 1', async () => {
  await pool.query(`insert into schema_migrations (name, checksum) values ('9999_later.sql', 'x')`)
  assert.match((await found()).get('schema_newer')!, /9999_later/)
  await pool.query(
    `delete from schema_migrations where name >= (select max(name) from schema_migrations where name < '9')`,
  )
  const old = await kontor('doctor', '--json')
  assert.equal(old.code, 1)
  const report: { ok: boolean; findings: { code: string }[] } = old.json()
  assert.equal(report.ok, false)
  assert.ok(report.findings.some(({ code }) => code === 'schema_old'))
  // A read-only command changes nothing: a server of the older version may be using the database.
  const migrations = async () => (await pool.query('select name from schema_migrations order by name')).rows
  const before = await migrations()
  const list = await kontor('tenant', 'list')
  assert.equal(list.code, 1)
  assert.match(list.err, /older version of Kontor\. Missing migrations: \d{4}_\w+\.sql\. .*`kontor migrate`/)
  for (const words of [
    ['listen', 'src_any'],
    ['trigger', 'page_view'],
    ['alert', 'list'],
    ['erase', '--tenant', 'x', '--email', 'a@b.c', '--dry-run'],
  ]) {
    const { code, err } = await kontor(...words)
    assert.deepEqual([code, /older version of Kontor/.test(err)], [1, true], `${words}: ${err}`)
  }
  const status = await kontor('status')
  assert.match(status.err, /`kontor migrate`/)
  const { schema, tenants }: { schema: string; tenants: null } = status.json()
  assert.deepEqual({ schema, tenants }, { schema: before.at(-1)?.name ?? null, tenants: null })
  assert.deepEqual(await migrations(), before)
  await pool.query('drop table schema_migrations')
  const text = await kontor('doctor')
  assert.equal(text.code, 1)
  assert.match(text.out, /schema_missing\n {2}The database has no tables of Kontor\.\n.*\n {2}→ kontor start/)
  process.env.DATABASE_URL = 'postgres://kontor@127.0.0.1:1/kontor'
  const away = await kontor('doctor')
  assert.equal(away.code, 1)
  assert.match(away.out, /^database_away\n {2}PostgreSQL cannot be reached/)
  delete process.env.DATABASE_URL
  const nowhere = await kontor('doctor', '--json', '--data', '/nowhere/at/all')
  assert.deepEqual([nowhere.code, JSON.parse(nowhere.out).findings[0].code], [1, 'database_missing'])
})
