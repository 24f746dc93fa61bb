import assert from 'node:assert/strict'
import { appendFile, chown, mkdir, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { accountForNewCluster, isRoot } from '../../embedded-postgres/account.ts'
import { EmbeddedError, joinCluster, ownCluster } from '../../embedded-postgres/cluster.ts'
import { eventually } from '../eventually.ts'
import { findPostmasterIn, query, silent, stoppedCluster, temporaryDirectory } from './directories.ts'
import { startProcess } from './process.ts'

test('the first start creates a durable UTF-8 database, and the next one finds its data', async t => {
  const dataDir = join(await temporaryDirectory(t, 'data'), 'data')
  const first = await ownCluster({ dataDir, log: silent, name: 'shop' })
  assert.equal(first.state, 'initialized')
  const shown = await query(
    first.connection,
    `select current_database(), current_setting('fsync'), current_setting('synchronous_commit'),
      current_setting('full_page_writes'), current_setting('server_encoding'), current_setting('listen_addresses'),
      current_setting('timezone'), datlocale, datlocprovider from pg_database where datname = current_database()`,
  )
  assert.deepEqual(shown, ['shop', 'on', 'on', 'on', 'UTF8', '', 'UTC', 'C.UTF-8', 'b'])
  await query(first.connection, 'create table kept as select 42 as answer')
  await first.stop()
  assert.equal(await findPostmasterIn(dataDir), null)

  const second = await ownCluster({ dataDir, log: silent, name: 'shop' })
  assert.equal(second.state, 'started')
  assert.deepEqual(await query(second.connection, 'select answer from kept'), [42])
  // A large log is rotated while PostgreSQL runs, and logging continues in the same file.
  const logFile = join(dataDir, 'postgres', 'postgres.log')
  await appendFile(logFile, 'x'.repeat(10 * 1024 ** 2))
  await eventually('the log to be put aside', async () => (await stat(logFile)).size === 0)
  assert.match(await readFile(`${logFile}.1`, 'utf8'), /database system is ready.*x{99}/s)
  await second.stop()
  assert.match(await readFile(logFile, 'utf8'), /database system is shut down\s*$/)
})

test('the password is random, unreadable for other users, and required', async t => {
  const dataDir = await stoppedCluster(t)
  const { connection, stop } = await ownCluster({ dataDir, log: silent })
  const file = join(dataDir, 'postgres', 'password')
  assert.equal((await stat(file)).mode & 0o777, 0o600)
  assert.equal((await readFile(file, 'utf8')).trim(), connection.password)
  assert.ok(connection.password.length >= 32)
  await assert.rejects(query({ ...connection, password: 'guessed' }, 'select 1'), { code: '28P01' })
  await stop()
})

if (isRoot()) {
  test('if started as root, PostgreSQL runs as another user, without root’s groups', async t => {
    const dataDir = await stoppedCluster(t)
    const { stop } = await ownCluster({ dataDir, log: silent })
    const { uid } = (await accountForNewCluster())!
    const { pid } = (await findPostmasterIn(dataDir))!
    assert.notEqual(uid, 0)
    assert.equal((await stat(`/proc/${pid}`)).uid, uid)
    const status = await readFile(`/proc/${pid}/status`, 'utf8')
    assert.match(status, /^Groups:\s*$/m)
    await stop()
  })
}

test('a second server is refused with the first one’s pid, and a command joins the running cluster', async t => {
  const dataDir = await stoppedCluster(t)
  const server = await ownCluster({ dataDir, log: silent })
  await assert.rejects(
    ownCluster({ dataDir, log: silent }),
    (error: Error) => error instanceof EmbeddedError && error.message.includes(`process ${process.pid}`),
  )
  const other = startProcess(t, 'own', dataDir)
  assert.match((await other.answer).refused ?? '', /Another server/)

  const command = await joinCluster({ dataDir, log: silent })
  assert.equal(command.state, 'adopted')
  await query(command.connection, 'create table made_by_command ()')
  await command.stop()
  assert.deepEqual(await query(server.connection, 'select count(*)::int from made_by_command'), [0])
  await server.stop()
  assert.equal(await findPostmasterIn(dataDir), null)
})

test('commands without a server share one cluster, and the last one stops it', async t => {
  const dataDir = join(await temporaryDirectory(t, 'data'), 'data')
  const both = [startProcess(t, 'join', dataDir), startProcess(t, 'join', dataDir)] as const
  const answers = await Promise.all(both.map(({ answer }) => answer))
  assert.deepEqual(answers.map(({ state }) => state).sort(), ['adopted', 'initialized'])
  const starter = answers[0]!.state === 'initialized' ? 0 : 1
  await both[starter]!.stop()
  assert.deepEqual(await query(answers[1 - starter]!.connection, 'select 1'), [1])
  await both[1 - starter]!.stop()
  assert.equal(await findPostmasterIn(dataDir), null)
})

test('a server takes over the cluster that a command started', async t => {
  const dataDir = await stoppedCluster(t)
  const command = await joinCluster({ dataDir, log: silent })
  const server = await ownCluster({ dataDir, log: silent })
  assert.equal(server.state, 'adopted')
  await command.stop()
  assert.deepEqual(await query(server.connection, 'select 1'), [1])
  await server.stop()
  assert.equal(await findPostmasterIn(dataDir), null)
})

test('a long path with spaces, quotes and commas works', async t => {
  const name = `it's a "long", path ${'x'.repeat(150)}`
  const dataDir = join(await temporaryDirectory(t, name), name)
  const { connection, stop } = await ownCluster({ dataDir, log: silent })
  assert.deepEqual(await query(connection, 'select current_setting($$data_directory$$)'), [
    join(dataDir, 'postgres', 'data'),
  ])
  const socketDirectory = await stat(connection.host)
  assert.equal(socketDirectory.mode & 0o777, 0o700)
  await stop()
  await assert.rejects(stat(connection.host), { code: 'ENOENT' })
})

test('data of another PostgreSQL major version is refused with advice', async t => {
  const dataDir = join(await temporaryDirectory(t, 'data'), 'data')
  const home = join(dataDir, 'postgres')
  await mkdir(join(home, 'data'), { recursive: true })
  await writeFile(join(home, 'password'), 'secret')
  await writeFile(join(home, 'data', 'PG_VERSION'), '16\n')
  if (isRoot()) await chown(join(home, 'data'), 65_534, 65_534)
  await assert.rejects(ownCluster({ dataDir, log: silent }), /written by PostgreSQL 16.*pg_upgrade/)
})

test('a data directory that is a file is refused by that reason', async t => {
  const dataDir = join(await temporaryDirectory(t, 'data'), 'file')
  await writeFile(dataDir, 'x')
  await assert.rejects(ownCluster({ dataDir, log: silent }), /file is not a directory\. Use another data directory/)
})

test('a data directory that links to a missing cluster is refused, not initialized again', async t => {
  const dataDir = join(await temporaryDirectory(t, 'data'), 'data')
  await mkdir(dataDir)
  await symlink(join(dataDir, 'gone'), join(dataDir, 'postgres'))
  await assert.rejects(ownCluster({ dataDir, log: silent }), EmbeddedError)
  assert.deepEqual(await readdir(dataDir), ['postgres', 'usage'])
})
