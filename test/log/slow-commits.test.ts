import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { inTransaction } from '../../src/postgres/database.ts'
import { anAppend, bodies, readAll, takeOnce } from './entries.ts'
import { openTestLog } from './open.ts'

let opened: Awaited<ReturnType<typeof openTestLog>>
before(async () => {
  opened = await openTestLog()
})
after(() => opened.close())

/** Appends in a transaction that stays open until `commit` or `rollback`. */
async function slowAppend(body: string) {
  const { log, pool } = opened
  const appended = Promise.withResolvers<void>()
  const end = Promise.withResolvers<void>()
  const ended = inTransaction(pool, async client => {
    await log.append([anAppend({ body })], { client })
    appended.resolve()
    await end.promise
  })
  await Promise.race([appended.promise, ended])
  return {
    async commit() {
      end.resolve()
      await ended
    },
    async rollback() {
      end.reject(new Error('rolled back'))
      await assert.rejects(ended, /rolled back/)
    },
  }
}

test('a reader does not read past an append that is not yet committed', async () => {
  const { log, pool } = opened
  const slow = await slowAppend('slow')
  await log.append([anAppend({ body: 'fast' })])
  assert.deepEqual(await takeOnce(log, pool), [])
  await slow.commit()
  assert.deepEqual(bodies(await readAll(log, pool)), ['slow', 'fast'])
})

test('a reader skips an append that was rolled back', async () => {
  const { log, pool } = opened
  const failing = await slowAppend('never')
  await log.append([anAppend({ body: 'good' })])
  await failing.rollback()
  assert.deepEqual(bodies(await readAll(log, pool)), ['good'])
})

test('a transaction that started earlier and appends later is not skipped', async () => {
  const { log, pool } = opened
  await inTransaction(pool, async client => {
    // It has its transaction id now, lower than that of the next append.
    await client.query('select pg_current_xact_id()')
    await log.append([anAppend({ body: 'second' })])
    assert.deepEqual(await takeOnce(log, pool), [])
    await log.append([anAppend({ body: 'first' })], { client })
  })
  assert.deepEqual(bodies(await readAll(log, pool)), ['first', 'second'])
})

test('readers that run during appends read each entry once, in order', async () => {
  const { log, pool } = opened
  const writers = Array.from({ length: 4 }, async (_, writer) => {
    for (let i = 0; i < 40; i++) {
      const append = anAppend({ orderingKey: `writer-${writer}`, body: `${writer}:${i}` })
      // Some appends are in transactions that stay open for a while.
      if (i % 3 === 0) {
        await inTransaction(pool, async client => {
          await log.append([append], { client })
          await client.query('select pg_sleep(0.003)')
        })
      } else await log.append([append])
    }
  })
  let writing = true
  const written = Promise.all(writers).then(() => {
    writing = false
  })
  const read: string[] = []
  const reader = async () => {
    while (writing) {
      const taken = await takeOnce(log, pool, { maxPartitions: 2, maxEntries: 5, alsoPartitions: [] })
      read.push(...bodies(taken.flatMap(partition => partition.entries)))
    }
  }
  await Promise.all([written, reader(), reader(), reader()])
  read.push(...bodies(await readAll(log, pool)))
  for (let writer = 0; writer < 4; writer++) {
    const own = read.filter(body => body.startsWith(`${writer}:`))
    assert.deepEqual(
      own,
      Array.from({ length: 40 }, (_, i) => `${writer}:${i}`),
    )
  }
})
