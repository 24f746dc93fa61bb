import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { initialisePostgresLog } from '../../src/log/postgres/initialise.ts'
import { anAppend, bodies, readAll } from './entries.ts'
import { openTestLog, PARTITIONS } from './open.ts'

let opened: Awaited<ReturnType<typeof openTestLog>>
before(async () => {
  opened = await openTestLog()
})
after(() => opened.close())

const numbered = (from: number, count: number) =>
  Array.from({ length: count }, (_, i) => anAppend({ orderingKey: `key-${i % 11}`, body: String(from + i) }))

/** Leaves the log as a dump of a server with a far higher transaction counter would. */
async function asFromAnotherServer() {
  const shift = `(xid::text::numeric + 5000000000)::text::xid8`
  await opened.pool.query(`update log set xid = ${shift}`)
  await opened.pool.query(`update log_cursors set xid = ${shift} where xid <> '0'`)
}

test('after a restore into another server, what was read stays read and the rest is read once, in order', async () => {
  const { log, pool } = opened
  await log.append(numbered(0, 50))
  await readAll(log, pool)
  await log.append(numbered(50, 50))
  await log.append(numbered(100, 50))
  await asFromAnotherServer()
  await initialisePostgresLog(pool, PARTITIONS)
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

test('several nodes that start on a restored database together lose nothing', async () => {
  const { log, pool } = opened
  for (let round = 0; round < 10; round++) {
    await log.append(numbered(round * 100, 30))
    await asFromAnotherServer()
    await Promise.all(Array.from({ length: 4 }, () => initialisePostgresLog(pool, PARTITIONS)))
    assert.equal((await readAll(log, pool)).length, 30)
  }
})

test('a start on a log that was not restored changes nothing', async () => {
  const { log, pool } = opened
  await log.append(numbered(0, 10))
  const cursors = () => pool.query('select partition, xid, ord from log_cursors order by partition')
  const entries = () => pool.query('select xid, ord, id from log order by xid, ord')
  const before = [(await cursors()).rows, (await entries()).rows]
  assert.equal(await initialisePostgresLog(pool, PARTITIONS), PARTITIONS)
  assert.deepEqual([(await cursors()).rows, (await entries()).rows], before)
})

test('the number of partitions stays what it was at the beginning', async () => {
  assert.equal(await initialisePostgresLog(opened.pool, 64), PARTITIONS)
})
