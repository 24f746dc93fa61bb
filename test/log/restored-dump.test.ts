import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { initializePostgresLog } from '../../src/log/postgres/log.ts'
import { inTransaction, type RestartTransaction } from '../../src/postgres/database.ts'
import { anAppend, asReader, bodies, EVERYTHING, readAll } from './entries.ts'
import { openTestLog, PARTITIONS } from './open.ts'

let opened: Awaited<ReturnType<typeof openTestLog>>
before(async () => {
  opened = await openTestLog()
})
after(() => opened.close())

let again: (() => Promise<void>) | null = null
function refused(error: RestartTransaction): boolean {
  again = error.prepare
  return true
}

const numbered = (from: number, count: number) =>
  Array.from({ length: count }, (_, i) => anAppend({ orderingKey: `key-${i % 11}`, body: String(from + i) }))

/** Changes the log as if it came from a dump of another server, whose transaction counter was far higher or lower. */
async function asFromAnotherServer(by = 5_000_000_000) {
  const shift = `greatest(xid::text::numeric + ${by}, 1)::text::xid8`
  await opened.pool.query(`update log set xid = ${shift}`)
  await opened.pool.query(`update log_cursors set xid = ${shift} where xid <> '0'`)
  await opened.pool.query(`update log_epochs set database = 'another ' || database`)
}

test('after a restore into another server, read entries stay read and the others are read once, in order', async () => {
  const { log, pool } = opened
  await log.append(numbered(0, 50))
  await readAll(log, pool)
  await log.append(numbered(50, 50))
  await log.append(numbered(100, 50))
  await asFromAnotherServer()
  await initializePostgresLog(pool, PARTITIONS)
  await log.append(numbered(150, 50))

  const read = await readAll(log, pool)
  assert.deepEqual(
    bodies(read)
      .map(Number)
      .sort((a, b) => a - b),
    Array.from({ length: 150 }, (_, i) => 50 + i),
  )
  for (const group of Map.groupBy(read, entry => entry.orderingKey).values()) {
    const order = bodies(group).map(Number)
    assert.deepEqual(
      order,
      order.toSorted((a, b) => a - b),
    )
  }
})

test('when the database is replaced while in use, no entry is lost, hidden or read twice', async () => {
  const { log, pool } = opened
  const { rows: before } = await pool.query<{ version: number }>('select version from config_version')
  for (const [round, by] of [5_000_000_000, -400, 7_000_000_000, -300].entries()) {
    const from = round * 100
    await log.append(numbered(from, 10))
    await asFromAnotherServer(by)
    // Each of these may come first after the change: an append with or without a key, an append in a transaction, or a take.
    if (round === 0) await log.append(numbered(from + 10, 10))
    else if (round === 1) await log.append([anAppend({ body: String(from + 10) }, `key ${round}`)])
    else if (round === 2)
      await assert.rejects(
        inTransaction(pool, client => log.append(numbered(from + 10, 10), { client })),
        refused,
      )
    else
      await assert.rejects(
        asReader(pool, client => log.take(client, EVERYTHING)),
        refused,
      )
    await again?.()
    again = null
    await log.append(numbered(from + 50, 10))
    assert.ok((await log.lag()).some(({ entries }) => entries > 0))
    const read = bodies(await readAll(log, pool)).map(Number)
    const appended = [[0, 10], ...(round === 0 ? [[10, 10]] : round === 1 ? [[10, 1]] : []), [50, 10]]
    assert.deepEqual(
      read.sort((a, b) => a - b),
      appended.flatMap(([first, count]) => Array.from({ length: count! }, (_, i) => from + first! + i)),
    )
  }
  const { rows: after } = await pool.query<{ version: number }>('select version from config_version')
  assert.ok(after[0]!.version > before[0]!.version + 1_000, 'nodes discard what they cached of the old cluster')
})

test('nodes that start on a restored database at the same time lose nothing', async () => {
  const { log, pool } = opened
  for (let round = 0; round < 10; round++) {
    await log.append(numbered(round * 100, 30))
    await asFromAnotherServer()
    await Promise.all(Array.from({ length: 4 }, () => initializePostgresLog(pool, PARTITIONS)))
    assert.equal((await readAll(log, pool)).length, 30)
  }
})

test('a start on a log that was not restored changes nothing', async () => {
  const { log, pool } = opened
  await log.append(numbered(0, 10))
  const cursors = () => pool.query('select partition, xid, ord from log_cursors order by partition')
  const entries = () => pool.query('select xid, ord, id from log order by xid, ord')
  const before = [(await cursors()).rows, (await entries()).rows]
  assert.equal(await initializePostgresLog(pool, PARTITIONS), PARTITIONS)
  assert.deepEqual([(await cursors()).rows, (await entries()).rows], before)
})

test('the number of partitions is fixed by the first start', async () => {
  assert.equal(await initializePostgresLog(opened.pool, 64), PARTITIONS)
})
