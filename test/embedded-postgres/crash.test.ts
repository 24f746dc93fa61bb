import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import pg from 'pg'
import { joinCluster, ownCluster } from '../../embedded-postgres/cluster.ts'
import { homeAt } from '../../embedded-postgres/home.ts'
import { findPostmaster, waitForExit } from '../../embedded-postgres/postmaster.ts'
import { socketPath } from '../../embedded-postgres/socket.ts'
import { eventually } from '../eventually.ts'
import { findPostmasterIn, query, silent, stoppedCluster, temporaryDirectory } from './directories.ts'
import { startProcess } from './process.ts'

test('after kill -9 of the server, PostgreSQL keeps running, and the next server adopts it', async t => {
  const dataDir = await stoppedCluster(t)
  const killed = startProcess(t, 'own', dataDir)
  const { connection } = await killed.answer
  await query(connection, 'create table adopted as select 7 as n')
  const before = await findPostmasterIn(dataDir)
  await killed.crashWithGroup() // to the whole process group, as a terminal does with Ctrl-C

  const server = await ownCluster({ dataDir, log: silent })
  assert.equal(server.state, 'adopted')
  assert.deepEqual(server.connection, connection)
  assert.equal((await findPostmasterIn(dataDir))?.pid, before?.pid)
  assert.deepEqual(await query(server.connection, 'select n from adopted'), [7])
  await server.stop()
  assert.equal(await findPostmasterIn(dataDir), null)
})

test('after kill -9 of the server and PostgreSQL, the next server recovers the committed data', async t => {
  const dataDir = await stoppedCluster(t)
  const killed = startProcess(t, 'own', dataDir)
  const { connection } = await killed.answer
  const client = new pg.Client(connection)
  client.on('error', silent)
  await client.connect()
  await client.query('create table recovered as select generate_series(1, 1000) as n')
  const busy = client.query('select sum(n) from generate_series(1, 1e12) n').catch(silent)
  const running = `select count(*)::int from pg_stat_activity where state = 'active' and query like 'select sum%'`
  await eventually('the long query to run', async () => (await query(connection, running))[0] === 1)
  // The server first, because it would restart PostgreSQL. A backend that runs a query does not notice that its main process has
  // died.
  await killed.crash()
  const postmaster = (await findPostmasterIn(dataDir))!
  process.kill(postmaster.pid, 'SIGKILL')
  await waitForExit(postmaster, 60_000)

  const server = await ownCluster({ dataDir, log: silent })
  assert.equal(server.state, 'started')
  assert.deepEqual(await query(server.connection, 'select count(*)::int from recovered'), [1000])
  await busy
  await server.stop()
})

test('PostgreSQL starts although another process has the pid of a stale pid file', async t => {
  const dataDir = await stoppedCluster(t)
  const first = await ownCluster({ dataDir, log: silent })
  const pidFile = join(dataDir, 'postgres', 'data', 'postmaster.pid')
  const written = await readFile(pidFile, 'utf8')
  await first.stop()
  // This process plays the one that has the recycled pid.
  await writeFile(pidFile, written.replace(/^\d+/, String(process.pid)))
  const usage = join(dataDir, 'usage', 'users.json')
  await writeFile(usage, JSON.stringify([{ id: 'x', role: 'server', pid: process.pid, started: 'at another time' }]))
  const second = await ownCluster({ dataDir, log: silent })
  assert.equal(second.state, 'started')
  assert.deepEqual(await query(second.connection, 'select 1'), [1])
  await second.stop()
})

test('a socket that answers for a moment after PostgreSQL has died does not count as running', async t => {
  const home = homeAt(await temporaryDirectory(t))
  await mkdir(home.data)
  const { pid } = spawnSync(process.execPath, ['--version'])
  await writeFile(join(home.data, 'postmaster.pid'), [pid, home.data, '0', '5432', home.directory, ''].join('\n'))
  let asked = 0
  const left = createServer(() => {
    if (++asked === 2) left.close()
  })
  await new Promise<void>(resolve => left.listen(socketPath(home.directory, 5432), resolve))
  assert.equal(await findPostmaster(home), null)
  assert.equal(asked, 2)
})

test('a start waits for a PostgreSQL that is shutting down, then starts it again', async t => {
  const dataDir = await stoppedCluster(t)
  const killed = startProcess(t, 'own', dataDir)
  const client = new pg.Client((await killed.answer).connection)
  await client.connect()
  await killed.crash()
  process.kill((await findPostmasterIn(dataDir))!.pid, 'SIGTERM') // smart: it waits for our client
  await eventually('PostgreSQL to be stopping', async () => (await findPostmasterIn(dataDir))?.status === 'stopping')

  const starting = ownCluster({ dataDir, log: silent })
  await client.query('select 1')
  await client.end()
  const server = await starting
  assert.equal(server.state, 'started')
  assert.deepEqual(await query(server.connection, 'select 1'), [1])
  await server.stop()
})

test('kill -9 during initialization does not block the next start', async t => {
  // On a busy machine initdb may finish before the kill: then the test tries again.
  const dataDir = await eventually('an initialization to be killed', () => killDuringInitialization(t))

  const command = await joinCluster({ dataDir, log: silent })
  assert.equal(command.state, 'initialized')
  assert.deepEqual(await query(command.connection, 'select 1'), [1])
  await command.stop()
  const again = await joinCluster({ dataDir, log: silent })
  assert.equal(again.state, 'started')
  await again.stop()
})

test('a failed start is reported with the end of PostgreSQL’s log', async t => {
  const dataDir = await stoppedCluster(t)
  const settings = { shared_preload_libraries: 'no_such_library' }
  await assert.rejects(
    ownCluster({ dataDir, log: silent, settings }),
    /did not start.*postgres\.log[\s\S]*no_such_library/,
  )
  const server = await ownCluster({ dataDir, log: silent })
  assert.equal(server.state, 'started')
  await server.stop()
})

/** Kills a server while initdb runs and returns its data directory; null if initdb had finished. */
async function killDuringInitialization(t: TestContext): Promise<string | null> {
  const dataDir = join(await temporaryDirectory(t, 'data'), 'data')
  const server = startProcess(t, 'own', dataDir)
  const findPartial = async () => (await readdir(dataDir).catch(() => [])).find(name => name.includes('.partial-'))
  const listFiles = (...path: string[]) => readdir(join(dataDir, ...path)).catch(() => [] as string[])
  await eventually('initdb to have started', async () => {
    const name = await findPartial()
    return name ? (await listFiles(name, 'data')).includes('base') : (await listFiles()).includes('postgres')
  })
  await server.crash()
  return (await findPartial()) ? dataDir : null
}
