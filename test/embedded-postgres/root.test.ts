import assert from 'node:assert/strict'
import { chmod, chown, lstat, mkdir, readdir, readlink, realpath, rename, rm, stat, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { test } from 'node:test'
import { inaccessiblePart, isRoot } from '../../embedded-postgres/account.ts'
import { reachableRoot, run } from '../../embedded-postgres/binaries.ts'
import { joinCluster, ownCluster } from '../../embedded-postgres/cluster.ts'
import { listClusters, removeCluster } from '../../embedded-postgres/clusters.ts'
import { chooseLocation, findHome } from '../../embedded-postgres/home.ts'
import { findPostmasterIn, query, silent, temporaryDirectory } from './directories.ts'
import { startProcess } from './process.ts'

const ordinaryUser = { name: 'nobody', uid: 65534, gid: 65534 }
const here = new URL('.', import.meta.url).pathname

if (isRoot()) {
  test('if PostgreSQL’s user cannot enter the data directory, the cluster is in the system directory, and a link in the data directory selects it', async t => {
    const directory = await temporaryDirectory(t, 'closed/data')
    const systemDirectory = join(directory, 'system')
    const dataDir = join(directory, 'closed', 'data')
    await mkdir(dataDir, { recursive: true })
    await chmod(join(directory, 'closed'), 0o700)
    const messages: string[] = []
    const options = { dataDir, systemDirectory, log: (message: string) => messages.push(message) }

    const first = await ownCluster(options)
    assert.equal(first.state, 'initialized')
    const entrance = join(dataDir, 'postgres')
    assert.ok((await lstat(entrance)).isSymbolicLink())
    const target = await readlink(entrance)
    assert.ok(target.startsWith(join(systemDirectory, 'clusters')))
    assert.ok(messages.some(message => message.includes(target)))
    await query(first.connection, 'create table kept ()')
    const running = (await listClusters(systemDirectory))[0]!
    assert.deepEqual(
      { ...running, bytes: running.bytes > 2 ** 20 },
      {
        ...{ name: basename(target), directory: target, bytes: true },
        ...{ dataDir: await realpath(dataDir), isLinked: true, isRunning: true },
      },
    )
    assert.match((await removeCluster(running))!, /is running/)
    await first.stop()
    assert.match((await removeCluster(running))!, /closed\/data\/postgres points to/)

    const second = await ownCluster(options)
    assert.equal(second.state, 'started')
    assert.deepEqual(await query(second.connection, 'select count(*)::int from kept'), [0])
    await second.stop()

    await rename(dataDir, `${dataDir}-moved`)
    await mkdir(dataDir)
    assert.equal(await findHome(dataDir), null)
    assert.notEqual((await chooseLocation(dataDir, systemDirectory, silent)).target, target)

    // The new path is recorded at the next use, and another data directory at the old path changes nothing.
    const moved = await joinCluster({ ...options, dataDir: `${dataDir}-moved` })
    await moved.stop()
    const [cluster] = await listClusters(systemDirectory)
    assert.deepEqual([cluster!.dataDir, cluster!.isLinked], [`${await realpath(dataDir)}-moved`, true])
    await rm(join(target, 'data-directory'))
    assert.match((await removeCluster(cluster!))!, /unknown which data directory/)
    await writeFile(join(target, 'data-directory'), `${dataDir}-moved`)
    await rm(`${dataDir}-moved`, { recursive: true })
    assert.equal((await listClusters(systemDirectory))[0]!.isLinked, false)
    assert.equal(await removeCluster(cluster!), null)
    assert.deepEqual(await readdir(join(systemDirectory, 'clusters')), [])
    assert.deepEqual(await listClusters(systemDirectory), [])
  })

  test('programs that PostgreSQL’s user cannot reach are copied once to the system directory', async t => {
    const directory = await temporaryDirectory(t)
    const native = join(directory, 'hidden', 'native')
    for (const part of ['bin', 'lib', 'share/postgresql']) await mkdir(join(native, part), { recursive: true })
    await writeFile(join(native, 'share/postgresql/postgres.bki'), 'words', { mode: 0o600 })
    for (const name of ['postgres', 'initdb']) {
      await writeFile(join(native, 'bin', name), '#!/bin/sh\nid -u', { mode: 0o700 })
    }
    await chmod(join(directory, 'hidden'), 0o700)
    const system = join(directory, 'system')
    const messages: string[] = []
    const find = () => reachableRoot({ native, version: '18.0.0' }, ordinaryUser, system, line => messages.push(line))

    const root = await find()
    const ran = await run(ordinaryUser, '/bin/sh', [
      '-c',
      '"$0" && cat "$1"',
      join(root, 'bin/postgres'),
      join(root, 'share/postgresql/postgres.bki'),
    ])
    assert.deepEqual(ran, { status: 0, output: `${ordinaryUser.uid}\nwords` })
    assert.equal(await find(), root)
    assert.equal(messages.length, 1)
    assert.deepEqual(await readdir(system), [basename(root)])
  })
}

const isOpenToAll = isRoot() && (await inaccessiblePart(here, ordinaryUser, 0o5)) === null
if (isOpenToAll) {
  test('an ordinary user runs PostgreSQL as that user, and root can use the data afterwards', async t => {
    const directory = await temporaryDirectory(t, 'home/data')
    const ordinaryHome = join(directory, 'home')
    await mkdir(ordinaryHome)
    await chmod(ordinaryHome, 0o700)
    await chown(ordinaryHome, ordinaryUser.uid, ordinaryUser.gid)
    const dataDir = join(ordinaryHome, 'data')
    const server = startProcess(t, 'own', dataDir, {
      uid: ordinaryUser.uid,
      gid: ordinaryUser.gid,
      cwd: ordinaryHome,
      env: { HOME: ordinaryHome },
    })
    const { state, connection } = await server.answer
    assert.equal(state, 'initialized')
    await query(connection, 'create table kept ()')
    const { pid } = (await findPostmasterIn(dataDir))!
    assert.equal((await stat(`/proc/${pid}`)).uid, ordinaryUser.uid)
    await server.stop()

    const asRoot = await ownCluster({ dataDir, log: silent })
    assert.equal(asRoot.state, 'started')
    assert.deepEqual(await query(asRoot.connection, 'select count(*)::int from kept'), [0])
    await asRoot.stop()
  })
}

test('the first inaccessible directory of a path is found from the modes', async t => {
  const directory = await temporaryDirectory(t)
  const inner = join(directory, 'a', 'b')
  await mkdir(inner, { recursive: true })
  const other = { name: 'other', uid: 54_321, gid: 54_321 }
  const owner = { name: 'owner', uid: (await stat(inner)).uid, gid: 54_321 }
  await chmod(join(directory, 'a'), 0o700)
  await chmod(inner, 0o755)
  assert.equal(await inaccessiblePart(inner, other, 0o1), join(directory, 'a'))
  assert.equal(await inaccessiblePart(inner, owner, 0o7), null)
  await chmod(join(directory, 'a'), 0o711)
  assert.equal(await inaccessiblePart(inner, other, 0o1), null)
  assert.equal(await inaccessiblePart(inner, other, 0o3), inner)
})
