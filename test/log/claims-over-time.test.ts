import assert from 'node:assert/strict'
import { after, afterEach, before, mock, test } from 'node:test'
import { DAY_MS } from '../../src/domain/time.ts'
import { findFirstUse } from '../../src/log/postgres/claims.ts'
import { openPostgresLog } from '../../src/log/postgres/log.ts'
import { computePeriod, dropPartitionsBefore } from '../../src/postgres/partitions.ts'
import { anAppend, bodies, readAll } from './entries.ts'
import { openTestLog } from './open.ts'

const SECOND_MS = 1_000

let opened: Awaited<ReturnType<typeof openTestLog>>
before(async () => {
  opened = await openTestLog({ now: () => new Date() })
})
after(() => opened.close())
afterEach(async () => {
  mock.timers.reset()
  await readAll(opened.log, opened.pool)
})

/** Fixes the clock for claims at a moment. */
function at(moment: number) {
  mock.timers.reset()
  mock.timers.enable({ apis: ['Date'], now: moment })
}

/** The start of the next period of idempotency keys. */
function periodStart(): number {
  return (computePeriod('idempotency_keys', new Date()) + 1) * 10 * DAY_MS
}

test('a key used just before a period starts is a duplicate just after', async () => {
  const { log } = opened
  const first = anAppend({}, 'over midnight')
  at(periodStart() - SECOND_MS)
  assert.deepEqual(await log.append([first]), [{ duplicateOf: null }])
  mock.timers.setTime(Date.now() + 2 * SECOND_MS)
  const [again] = await log.append([anAppend({}, 'over midnight')])
  assert.equal(again!.duplicateOf?.operationId, first.entry.id)
})

test('of two nodes that claim a key at the same time on both sides of a period start, one wins', async () => {
  const { log } = opened
  const start = periodStart()
  for (let round = 0; round < 20; round++) {
    const key = `either side ${round}`
    // Both statements run at the same time; each has read its own clock.
    at(start - SECOND_MS)
    const before = log.append([anAppend({}, key)])
    await new Promise(resolve => setImmediate(resolve))
    mock.timers.setTime(start + SECOND_MS)
    const after = log.append([anAppend({}, key)])
    const results = (await Promise.all([before, after])).flat()
    assert.equal(results.filter(({ duplicateOf }) => duplicateOf === null).length, 1)
  }
})

test('a key stays used while its partition exists, even if PostgreSQL’s clock is a year ahead', async () => {
  const { log, pool } = opened
  const first = anAppend({ body: 'first' }, 'old')
  await log.append([first])
  // To a clock that is a year ahead, the key looks a year old.
  await pool.query(`update idempotency_keys set created_at = now() - interval '1 year' where key = 'old'`)
  at(Date.now() + 365 * DAY_MS)
  const [again] = await log.append([anAppend({ body: 'again' }, 'old')])
  assert.equal(again!.duplicateOf?.operationId, first.entry.id)
  assert.equal((await findFirstUse(pool, first.entry.tenantId, 'old'))?.operationId, first.entry.id)
  mock.timers.reset()
  assert.deepEqual(bodies(await readAll(log, pool)), ['first'])
})

test('dropping a partition deletes its keys, at the earliest thirty days after their use', async () => {
  const { log, pool } = opened
  await log.append([anAppend({}, 'dropped')])
  const used = Date.now()
  await dropPartitionsBefore(pool, 'idempotency_keys', new Date(used))
  assert.notEqual((await log.append([anAppend({}, 'dropped')]))[0]!.duplicateOf, null)
  // The arguments that the retention job passes 40 days later.
  await dropPartitionsBefore(pool, 'idempotency_keys', new Date(used + 10 * DAY_MS))
  const { rows } = await pool.query(`select from idempotency_keys where key = 'dropped'`)
  assert.equal(rows.length, 0)
  assert.deepEqual(await log.append([anAppend({}, 'dropped')]), [{ duplicateOf: null }])
})

test('appends continue when the clock jumps weeks ahead', async () => {
  const { log, pool } = opened
  at(Date.now() + 60 * DAY_MS)
  assert.deepEqual(await log.append([anAppend({ body: 'future' })]), [{ duplicateOf: null }])
  assert.deepEqual(await log.append([anAppend({ body: 'with a key' }, 'future')]), [{ duplicateOf: null }])
  mock.timers.reset()
  assert.deepEqual(bodies(await readAll(log, pool)).sort(), ['future', 'with a key'])
})

test('a claim alone creates its partition when the clock jumps weeks ahead', async () => {
  const { log, pool } = opened
  at(Date.now() + 200 * DAY_MS)
  assert.deepEqual(await log.append([anAppend({ body: 'far' }, 'far')]), [{ duplicateOf: null }])
  mock.timers.reset()
  assert.deepEqual(bodies(await readAll(log, pool)), ['far'])
})

test('a node with a wrong clock claims keys by PostgreSQL’s clock', async () => {
  const { pool } = opened
  const log = openPostgresLog({ pool })
  at(Date.now() - 365 * DAY_MS)
  const first = anAppend({ receivedAt: new Date() }, 'wrong node')
  await log.append([first])
  mock.timers.reset()
  const { rows } = await pool.query(`select period from idempotency_keys where key = 'wrong node'`)
  assert.deepEqual(rows, [{ period: computePeriod('idempotency_keys', new Date()) }])
  const [again] = await log.append([anAppend({}, 'wrong node')])
  assert.equal(again!.duplicateOf?.operationId, first.entry.id)
})
