import assert from 'node:assert/strict'
import { test } from 'node:test'
import { joinCluster } from '../../embedded-postgres/cluster.ts'
import { openPool } from '../../src/postgres/database.ts'
import { LOCKS, lock } from '../../src/postgres/locks.ts'
import { findPostmasterIn } from '../embedded-postgres/directories.ts'
import { eventually } from '../eventually.ts'
import { hears, kontor, startKontor, stop, temporaryDirectory } from './kontor.ts'

async function run(...words: string[]): Promise<string> {
  const { code, out, err } = await kontor(...words)
  assert.equal(code, 0, err)
  return out
}

test('a stopped restore changes nothing, stops PostgreSQL and can be repeated', async t => {
  const directory = await temporaryDirectory(t)
  const [source, target, file] = [`${directory}/source`, `${directory}/target`, `${directory}/kontor.backup`]
  await run('tenant', 'create', 'acme', '--data', source)
  await run('backup', '--to', file, '--data', source)
  const words = ['restore', '--from', file, '--data', target]

  const early = startKontor(t, words, {})
  await hears(early, /Initializing PostgreSQL/)
  assert.equal(await stop(early), 1)
  assert.match(
    early.err(),
    /The restore was stopped\. Nothing was changed, and you can run the same command again\.\n$/,
  )
  assert.equal(await findPostmasterIn(target), null)

  // While this transaction holds the lock, the restore waits in the middle of its own.
  const cluster = await joinCluster({ name: 'kontor', dataDir: target, log: () => {} })
  const pool = openPool({ connection: cluster.connection, max: 2, name: 'kontor test', onError: () => {} })
  try {
    const client = await pool.connect()
    await client.query('begin')
    await lock(client, LOCKS.migration)
    const late = startKontor(t, words, {})
    await eventually('the restore to wait', async () => {
      const { rows } = await pool.query(
        `select from pg_stat_activity where application_name = 'kontor command' and wait_event_type = 'Lock'`,
      )
      return rows.length > 0
    })
    late.child.kill('SIGINT')
    assert.equal(await late.ended, 1)
    assert.match(late.err(), /^The restore was stopped\. .*\n$/)
    client.release(true)
  } finally {
    await pool.end()
    await cluster.stop()
  }
  // The last process that used PostgreSQL has stopped it.
  assert.equal(await findPostmasterIn(target), null)
  assert.match(await run(...words), /"tenants":1/)
  assert.equal(await findPostmasterIn(target), null)
})

test('a stopped demo stops PostgreSQL, and the same command continues', async t => {
  const dataDir = `${await temporaryDirectory(t)}/data`
  const words = ['demo', '--scale', '0.05', '--data', dataDir]
  const demo = startKontor(t, words, {})
  await hears(demo, /Sending one year of demo data/)
  assert.equal(await stop(demo), 1)
  assert.match(demo.err(), /Stopped\. Run the same command again to continue\.\n$/)
  assert.equal(await findPostmasterIn(dataDir), null)
  const again = startKontor(t, words, {})
  assert.equal(await again.ended, 0, again.err())
})
