import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { joinCluster } from '../../embedded-postgres/cluster.ts'
import { openPool } from '../../src/postgres/database.ts'
import { LOCKS, lock } from '../../src/postgres/locks.ts'
import { findPostmasterIn } from '../embedded-postgres/directories.ts'
import { eventually } from '../eventually.ts'
import { sharedServer } from '../server.ts'
import { hears, kontor, startKontor, startProgram, stop, temporaryDirectory } from './kontor.ts'

const bin = fileURLToPath(new URL('../../bin/kontor.mjs', import.meta.url))

const server = await sharedServer()
after(() => server.close())

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

test('a closed terminal stops a command like SIGTERM, and an import revokes its key', async t => {
  const dataDir = `${await temporaryDirectory(t)}/data`
  await run('tenant', 'create', 'acme', '--data', dataDir)
  const tail = startKontor(t, ['tail', '--tenant', 'acme', '--data', dataDir], {})
  await eventually('PostgreSQL to start', () => findPostmasterIn(dataDir))
  tail.child.kill('SIGHUP')
  await tail.ended
  assert.equal(tail.child.signalCode, null)
  assert.equal(await findPostmasterIn(dataDir), null)

  const tenant = await server.anotherTenant('closed')
  const keys = async () => (await server.admin.keys.list(tenant.id)).filter(key => key.revoked_at === null)
  const before = await keys()
  const file = `${dataDir}/contacts.csv`
  await writeFile(
    file,
    `id,sourceUpdatedAt\n${Array.from({ length: 50_000 }, (_, i) => `c-${i},2026-01-31T12:00:00Z`).join('\n')}\n`,
  )
  const words = ['import', 'contacts', file, '--tenant', tenant.id, '--url', server.url]
  const importing = startKontor(t, words, { DATABASE_URL: server.databaseUrl })
  await eventually('the key of the import', async () => {
    assert.equal(importing.child.exitCode, null, importing.err())
    return (await keys()).length > before.length
  })
  importing.child.kill('SIGHUP')
  assert.equal(await importing.ended, 1)
  assert.match(importing.err(), /Run the same command again to continue/)
  assert.deepEqual(await keys(), before)
})

test('a command stops PostgreSQL when the kontor command that started it is killed', async t => {
  const dataDir = `${await temporaryDirectory(t)}/data`
  await run('tenant', 'create', 'acme', '--data', dataDir)
  // Under npm, the command would also watch its parent process.
  const words = ['-u', 'npm_lifecycle_event', process.execPath, bin, 'tail', '--tenant', 'acme', '--data', dataDir]
  const command = startProgram(t, 'env', words, {})
  await eventually('PostgreSQL to start', () => findPostmasterIn(dataDir))
  command.child.kill('SIGKILL')
  // Its pipes close when the process that it started has ended.
  await command.ended
  assert.equal(await findPostmasterIn(dataDir), null)
})
