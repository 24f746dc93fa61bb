import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type pg from 'pg'
import { DAY_MS } from '../../src/domain/time.ts'
import { retention } from '../../src/jobs/upkeep.ts'
import { openPool } from '../../src/postgres/database.ts'
import {
  dropPartitionsBefore,
  ensurePartitions,
  isMissingPartition,
  type PartitionedTable,
  partitionedTables,
  periodOf,
} from '../../src/postgres/partitions.ts'
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

async function partitionsOf(table: string): Promise<string[]> {
  const { rows } = await pool.query<{ name: string }>(
    `select inhrelid::regclass::text as name from pg_inherits where inhparent = $1::regclass order by 1`,
    [table],
  )
  return rows.map(row => row.name).filter(name => /_p\d+$/.test(name))
}

const allPartitions = async () => (await Promise.all(partitionedTables.map(partitionsOf))).flat().sort()

const insertLog = (at: Date, id = 'gen_random_uuid()') =>
  pool.query(
    `insert into log (partition, ord, id, tenant_id, kind, ordering_key, received_at, context, body_bytes, body)
     values (0, 0, ${id}, 1, 'record', 'k', $1, '{}', 2, '{}')`,
    [at],
  )

test('partitions are made ahead of need, once, by however many nodes', async () => {
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

test('a row outside all partitions is told apart from other faults', async () => {
  await assert.rejects(insertLog(inDays(500)), isMissingPartition)
  await assert.rejects(insertLog(NOW, 'null'), error => !isMissingPartition(error))
})

test('the coming days are made while the days go by', async () => {
  for (const days of [1, 2, 3]) {
    const made = await ensurePartitions(pool, inDays(days))
    assert.ok(made.includes(`log_p${periodOf('log', inDays(days + 7))}`), made.join())
  }
  await insertLog(inDays(9))
})

test('what lies wholly before a moment is dropped, and nothing else', async () => {
  const before = await partitionsOf('log')
  const dropped = await dropPartitionsBefore(pool, 'log', NOW)
  const expected = before.filter(name => Number(/\d+$/.exec(name)![0]) < periodOf('log', NOW))
  assert.deepEqual(dropped.toSorted(), expected)
  assert.ok(expected.length > 0)
  assert.deepEqual(
    await partitionsOf('log'),
    before.filter(name => !expected.includes(name)),
  )
  await insertLog(NOW)
})

test('a drop that cannot have the table waits for a better time instead of holding others up', async () => {
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

test('retention: each table as long as it is to be kept, keys thirty days, and what is not yet read stays', async () => {
  const day = (days: number) => days * DAY_MS
  for (const days of [-100, -70, -40, -20, -10, 0]) await ensurePartitions(pool, inDays(days))
  const settings = {
    logRetentionMs: day(7),
    operationsRetentionMs: day(30),
    receiptsRetentionMs: day(30),
    archiveRetentionMs: day(30),
    processedRetentionMs: day(90),
    eventsRetentionMs: null,
  }
  const oldestUnread = inDays(-20)
  const job = retention(
    pool,
    settings,
    () => NOW,
    async () => oldestUnread,
  )
  await job.run()
  const earliest = async (table: PartitionedTable) =>
    Math.min(...(await partitionsOf(table)).map(name => Number(/\d+$/.exec(name)![0])))
  assert.equal(await earliest('log'), periodOf('log', oldestUnread))
  assert.ok((await earliest('operations')) >= periodOf('operations', inDays(-30)))
  assert.equal(await earliest('idempotency_keys'), periodOf('idempotency_keys', inDays(-30)))
  assert.equal(await earliest('processed_events'), periodOf('processed_events', inDays(-90)))
  assert.ok((await earliest('events')) <= periodOf('events', inDays(-100)))
})
