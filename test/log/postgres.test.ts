import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openPostgresLog } from '../../src/log/postgres/log.ts'
import { openPool } from '../../src/postgres/database.ts'
import { logContract } from './contract.ts'
import { anAppend, readAll } from './entries.ts'
import { openTestLog } from './open.ts'

logContract('PostgreSQL', openTestLog, { claims: true, kind: 'record' })

test('counting unread entries does not read the others, even without statistics', async t => {
  const { url, log, pool, close } = await openTestLog()
  // One connection: its own statistics show what it has read.
  const own = openPool({ connection: { url }, max: 1, name: 'counting', onError: () => undefined })
  t.after(async () => {
    await own.end()
    await close()
  })
  for (let i = 0; i < 5; i++)
    await log.append(Array.from({ length: 1_000 }, (_, n) => anAppend({ orderingKey: `${n}`, kind: 'events' })))
  assert.equal((await readAll(log, pool)).length, 5_000)
  const counting = openPostgresLog({ pool: own })
  const read = async () => {
    await own.query('select pg_stat_force_next_flush()')
    const { rows } = await own.query<{ read: number }>(
      `select (sum(seq_tup_read) + sum(coalesce(idx_tup_fetch, 0)))::bigint as read from pg_stat_user_tables where relname ~ '^log_p'`,
    )
    return rows[0]!.read
  }
  const before = await read()
  assert.ok((await counting.lag()).every(({ entries }) => entries === 0))
  assert.deepEqual(await counting.unread(1, null), { entries: 0, oldestAt: null })
  assert.deepEqual((await counting.unreadWith(1, 'x')).entries, [])
  assert.equal((await read()) - before, 0)
})
