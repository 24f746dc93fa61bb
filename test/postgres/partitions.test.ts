import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type pg from 'pg'
import { DAY_MS } from '../../src/domain/time.ts'
import { nextClock, retentionJob } from '../../src/jobs/retention.ts'
import { openPool } from '../../src/postgres/database.ts'
import {
  computePeriod,
  dropPartitionsBefore,
  ensurePartitions,
  ensurePartitionsFor,
  isMissingPartition,
  type PartitionedTable,
  partitionedTables,
} from '../../src/postgres/partitions.ts'
import { retentionHeldBy } from '../../src/store/entries/retention-clock.ts'
import { testDatabase } from '../database.ts'

const NOW = new Date('2026-05-15T12:00:00Z')
const inDays = (days: number) => new Date(NOW.getTime() + days * DAY_MS)

let database: Awaited<ReturnType<typeof testDatabase>>
let pool: pg.Pool
before(async () => {
  database = await testDatabase()
  pool = openPool({ connection: { url: database.url }, max: 8, name: 'partitions', onError: () => undefined })
})
after(async () => {
  await pool.end()
  await database.drop()
})

async function listPartitions(table: string): Promise<string[]> {
  const { rows } = await pool.query<{ name: string }>(
    `select inhrelid::regclass::text as name from pg_inherits where inhparent = $1::regclass order by 1`,
    [table],
  )
  return rows.map(row => row.name).filter(name => /_p\d+$/.test(name))
}

const allPartitions = async () => (await Promise.all(partitionedTables.map(listPartitions))).flat().sort()

const insertLog = (at: Date, id = 'gen_random_uuid()') =>
  pool.query(
    `insert into log (partition, ord, id, tenant_id, kind, ordering_key, received_at, context, body_bytes, body)
     values (0, 0, ${id}, 1, 'record', 'k', $1, '{}', 2, '{}')`,
    [at],
  )

test('partitions are created in advance, and only once by any number of nodes', async () => {
  const made = await Promise.all(Array.from({ length: 6 }, () => ensurePartitions(pool, NOW)))
  assert.deepEqual(made.flat().sort(), await allPartitions())
  assert.deepEqual(await ensurePartitions(pool, NOW), [])
  for (const days of [-1, 0, 1, 6]) await insertLog(inDays(days))
})

test('every partition has the indexes and constraints of its table', async () => {
  const { rows } = await pool.query<{ partition: string; own: number; parent: number }>(
    `select i.inhrelid::regclass::text as partition,
            (select count(*)::int from pg_index where indrelid = i.inhrelid) as own,
            (select count(*)::int from pg_index where indrelid = i.inhparent) as parent
     from pg_inherits i join pg_class c on c.oid = i.inhparent where c.relkind = 'p'`,
  )
  for (const { partition, own, parent } of rows) assert.equal(own, parent, partition)
})

test('every partition is vacuumed soon after rows are added, however large it is', async () => {
  const { rows } = await pool.query<{ name: string; options: string[] | null }>(
    'select relname as name, reloptions as options from pg_class where relname = any($1)',
    [await allPartitions()],
  )
  for (const { name, options } of rows)
    assert.ok(options?.includes('autovacuum_vacuum_insert_scale_factor=0'), `${name}: ${options}`)
})

test('a row outside all partitions is distinguished from other errors', async () => {
  await assert.rejects(insertLog(inDays(500)), isMissingPartition)
  await assert.rejects(insertLog(NOW, 'null'), error => !isMissingPartition(error))
})

test('partitions for the coming days are created every day', async () => {
  for (const days of [1, 2, 3]) {
    const made = await ensurePartitions(pool, inDays(days))
    assert.ok(made.includes(`log_p${computePeriod('log', inDays(days + 7))}`), made.join())
  }
  await insertLog(inDays(9))
})

test('only partitions entirely before a moment are dropped', async () => {
  const before = await listPartitions('log')
  const dropped = await dropPartitionsBefore(pool, 'log', NOW)
  const expected = before.filter(name => Number(/\d+$/.exec(name)![0]) < computePeriod('log', NOW))
  assert.deepEqual(dropped.toSorted(), expected)
  assert.ok(expected.length > 0)
  assert.deepEqual(
    await listPartitions('log'),
    before.filter(name => !expected.includes(name)),
  )
  await insertLog(NOW)
})

test('a drop that cannot lock the table gives up instead of blocking others', async () => {
  await ensurePartitions(pool, inDays(-5))
  const reader = await pool.connect()
  try {
    await reader.query('begin')
    await reader.query('select count(*) from log')
    await assert.rejects(dropPartitionsBefore(pool, 'log', inDays(-3)), /lock timeout/)
    await insertLog(NOW)
  } finally {
    await reader.query('rollback')
    reader.release()
  }
  assert.ok((await dropPartitionsBefore(pool, 'log', inDays(-3))).length > 0)
})

const day = (days: number) => days * DAY_MS
const settings = {
  logRetentionMs: day(7),
  operationsRetentionMs: day(30),
  receiptsRetentionMs: day(30),
  archiveRetentionMs: day(30),
  deliveriesRetentionMs: day(30),
  processedRetentionMs: day(90),
  eventsRetentionMs: null,
  deadLettersRetentionMs: day(90),
}
const warnings: unknown[] = []
const logger = { warn: (facts: object) => warnings.push(facts) }
const retentionAt = (now: Date, oldestUnread: Date | null = null) =>
  retentionJob({
    ...{ pool, settings, logger },
    now: async () => now,
    oldestUnread: async () => oldestUnread,
  }).run()
const earliest = async (table: PartitionedTable) =>
  Math.min(...(await listPartitions(table)).map(name => Number(/\d+$/.exec(name)![0])))
const makeOld = async () => {
  for (const days of [-100, -70, -40, -20, -10, 0]) await ensurePartitions(pool, inDays(days))
}

test('retention keeps each table for its time, keys for thirty days, and unread entries', async () => {
  await makeOld()
  const oldestUnread = inDays(-20)
  await retentionAt(NOW, oldestUnread)
  assert.equal(await earliest('log'), computePeriod('log', oldestUnread))
  assert.ok((await earliest('operations')) >= computePeriod('operations', inDays(-30)))
  assert.equal(await earliest('idempotency_keys'), computePeriod('idempotency_keys', inDays(-30)))
  assert.equal(await earliest('processed_events'), computePeriod('processed_events', inDays(-90)))
  assert.ok((await earliest('events')) <= computePeriod('events', inDays(-100)))
})

test('retention keeps the data that an entry waiting for its retry needs', async () => {
  await makeOld()
  await pool.query(
    `insert into parked_entries (partition, id, tenant_id, kind, ordering_key, received_at, context, body, attempts, next_attempt_at)
     values ('postgres/0', gen_random_uuid(), 1, 'record', 'k', $1, '{}', '{}', 1, now())`,
    [inDays(-70)],
  )
  await retentionAt(NOW)
  for (const table of ['operations', 'receipts', 'archive'] as const)
    assert.equal(await earliest(table), computePeriod(table, inDays(-70)), table)
  await pool.query('delete from parked_entries')
  await retentionAt(NOW)
  assert.ok((await earliest('receipts')) >= computePeriod('receipts', inDays(-30)))
})

test('a locked table does not prevent retention of the others', async () => {
  await makeOld()
  const reader = await pool.connect()
  try {
    await reader.query('begin')
    await reader.query('select count(*) from operations')
    await assert.rejects(retentionAt(NOW), /lock timeout/)
  } finally {
    await reader.query('rollback')
    reader.release()
  }
  assert.ok((await earliest('operations')) < computePeriod('operations', inDays(-30)))
  assert.ok((await earliest('archive')) >= computePeriod('archive', inDays(-30)))
})

test('after the clock jumped, nothing is dropped until a day has passed or it was corrected', async () => {
  const partitions = await allPartitions()
  warnings.length = 0
  await retentionAt(inDays(365))
  await retentionAt(inDays(365.5))
  assert.deepEqual(await allPartitions(), partitions)
  assert.equal(warnings.length, 2)
  assert.match((await retentionHeldBy(pool))!, /2026-05-15.*2027-05-16/)
  await retentionAt(NOW)
  assert.equal(await retentionHeldBy(pool), null)
  const held = nextClock({ trustedAt: NOW, heldSince: null, heldReason: null }, inDays(20))
  assert.deepEqual(nextClock(held, inDays(21)), { trustedAt: inDays(21), heldSince: null, heldReason: null })
})

test('nothing is dropped while the clock is far ahead of the newest entry', async () => {
  await insertLog(NOW)
  const partitions = await allPartitions()
  for (const days of [100, 101.5]) await retentionAt(inDays(days))
  assert.match((await retentionHeldBy(pool))!, /newest entry/)
  assert.deepEqual(await allPartitions(), partitions)
  await retentionAt(NOW)
})

test('dead letters are deleted after their retention time', async () => {
  const insert = (failedAt: Date) =>
    pool.query(
      `insert into dead_letters (tenant_id, id, kind, ordering_key, reason, error, attempts, received_at, failed_at, context, body)
       values (1, gen_random_uuid(), 'record', 'k', 'failed', 'x', 1, $1, $1, '{}', '{}')`,
      [failedAt],
    )
  for (const days of [-91, -89]) await insert(inDays(days))
  await retentionAt(NOW)
  const { rows } = await pool.query('select failed_at from dead_letters')
  assert.deepEqual(rows, [{ failed_at: inDays(-89) }])
})

test('rows of three hundred backdated months share few partitions, and each fits into one', async () => {
  await ensurePartitions(pool, new Date())
  const months = Array.from({ length: 312 }, (_, i) => new Date(Date.UTC(2000, i, 15)))
  const future = new Date(Date.UTC(new Date().getUTCFullYear() + 5, 6, 1))
  // In any order, and some of them alone.
  await ensurePartitionsFor(pool, 'events', [months[200]!])
  await ensurePartitionsFor(pool, 'events', [...months, future].reverse())
  for (const at of [...months, future])
    await pool.query(
      `insert into events (tenant_id, id, occurred_at, received_at, event_type, conversion, source, payload)
       values (1, gen_random_uuid(), $1, now(), 'x', false, 'tracking', '{}')`,
      [at],
    )
  const { rows } = await pool.query(`select from pg_inherits where inhparent = 'events'::regclass`)
  assert.ok(rows.length < 60, `${rows.length} partitions`)
  await dropPartitionsBefore(pool, 'events', new Date('2020-01-01T00:00:00Z'))
  const left = await pool.query('select min(occurred_at) as first from events')
  assert.deepEqual(left.rows, [{ first: new Date('2020-01-15T00:00:00Z') }])
})

test('the partition of all events before 2000 ends at midnight UTC', async () => {
  await ensurePartitionsFor(pool, 'events', [new Date('2000-01-01T01:00Z')])
  for (const at of ['1999-12-31T23:30Z', '2000-01-01T00:00Z'])
    await pool.query(
      `insert into events (tenant_id, id, occurred_at, received_at, event_type, conversion, source, payload)
       values (1, gen_random_uuid(), $1, now(), 'zone', false, 'tracking', '{}')`,
      [at],
    )
  const { rows } = await pool.query<{ table: string }>(
    `select tableoid::regclass::text as table from events where event_type = 'zone' order by occurred_at`,
  )
  assert.deepEqual(
    rows.map(row => row.table),
    ['events_before_2000', 'events_from_20000101'],
  )
})
