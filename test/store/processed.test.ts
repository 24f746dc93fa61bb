import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type pg from 'pg'
import { newEntryId } from '../../src/domain/ids.ts'
import { inTransaction, isConflict, openPool, withClient } from '../../src/postgres/database.ts'
import { ensurePartitions } from '../../src/postgres/partitions.ts'
import { claimEvents, findProcessed, processedKey } from '../../src/store/inbound/processed.ts'
import { testDatabase } from '../database.ts'
import { eventually } from '../eventually.ts'

const NOW = new Date('2026-05-15T12:00:00Z')

let database: Awaited<ReturnType<typeof testDatabase>>
let pool: pg.Pool
before(async () => {
  database = await testDatabase()
  pool = openPool({ connection: { url: database.url }, max: 4, name: 'processed', onError: () => undefined })
  await ensurePartitions(pool, NOW)
})
after(async () => {
  await pool.end()
  await database.drop()
})

const claim = (name: string, tenantId = 1) => ({
  tenantId,
  key: processedKey(null, name),
  eventId: newEntryId(NOW.getTime()),
})

const claimed = (claims: ReturnType<typeof claim>[], now = NOW) =>
  inTransaction(pool, client => claimEvents(client, claims, now))

test('an event is claimed once per tenant', async () => {
  assert.equal((await claimed([claim('once'), claim('other')])).size, 0)
  const again = claim('once')
  assert.deepEqual([...(await claimed([claim('fresh'), again]))], [again.eventId])
  assert.equal((await claimed([claim('once', 2)])).size, 0)
})

test('a repeat in the next period is a duplicate', async () => {
  await claimed([claim('from May')])
  const repeat = claim('from May')
  assert.deepEqual([...(await claimed([repeat], new Date('2026-06-20T00:00:00Z')))], [repeat.eventId])
})

test('an event claimed while the clock was ahead is a duplicate after the clock is corrected', async () => {
  await claimed([claim('ahead')], new Date('2026-06-20T00:00:00Z'))
  const repeat = claim('ahead')
  assert.deepEqual([...(await claimed([repeat]))], [repeat.eventId])
})

test('two machines whose clocks are on different sides of midnight detect the same duplicate', async () => {
  const after = new Date('2026-06-01T00:00:10Z')
  const before = new Date('2026-05-31T23:59:50Z')
  await claimed([claim('midnight')], after)
  const repeat = claim('midnight')
  assert.deepEqual([...(await claimed([repeat], before))], [repeat.eventId])
  assert.equal((await findProcessed(pool, [repeat])).length, 2)
})

test('a plan made for a few claims is also fast for many', async () => {
  const some = (from: number, count: number) => Array.from({ length: count }, (_, i) => claim(`plan ${from + i}`, 7))
  await claimed(some(0, 100))
  await pool.query('analyze processed_events')
  await withClient(pool, async client => {
    const transaction = async (claims: ReturnType<typeof claim>[]) => {
      await client.query('begin')
      const before = await pagesRead(client)
      await claimEvents(client, claims, NOW)
      const pages = (await pagesRead(client)) - before
      await client.query('commit')
      return pages
    }
    for (let n = 0; n < 10; n++) await transaction(some(100 + n, 1))
    await transaction(some(1_000, 20_000))
    const pages = await transaction(some(50_000, 10))
    assert.ok(pages < 150, `${pages} pages were read to claim 10 events`)
  })
})

async function pagesRead(client: pg.PoolClient): Promise<number> {
  const { rows } = await client.query<{ pages: number }>(
    `select sum(pg_stat_get_xact_blocks_fetched(oid))::int as pages from pg_class where relname ~ '^processed_events'`,
  )
  return rows[0]!.pages
}

test('of two workers that claim one key at the same time, the second restarts and then finds the duplicate', async () => {
  const first = claim('race')
  const second = claim('race')
  let outcome: Promise<unknown> | undefined
  await inTransaction(pool, async client => {
    await claimEvents(client, [first, claim('beside')], NOW)
    outcome = claimed([second]).then(
      () => 'claimed',
      error => error,
    )
    await eventually('the second worker to wait for the first', async () => {
      const { rows } = await pool.query(`select 1 from pg_locks where not granted and locktype = 'transactionid'`)
      return rows.length > 0
    })
  })
  assert.ok(isConflict(await outcome))
  assert.deepEqual([...(await claimed([second]))], [second.eventId])
})
