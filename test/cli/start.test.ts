import assert from 'node:assert/strict'
import { readFile, stat, writeFile } from 'node:fs/promises'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { openPool } from '../../src/postgres/database.ts'
import { testDatabase } from '../database.ts'
import { openWire } from '../events/wire.ts'
import { eventually } from '../eventually.ts'
import { isLong } from '../long.ts'
import {
  canChangeUser,
  END_OF_BANNER,
  hears,
  kontor,
  START_SETTINGS,
  startKontor,
  startKontorInShell,
  startProgram,
  stop,
  stopsFrozen,
  temporaryDirectory,
} from './kontor.ts'

const bin = fileURLToPath(new URL('../../bin/kontor.mjs', import.meta.url))

const isRoot = process.getuid?.() === 0
const settings = START_SETTINGS
const changesUser = await canChangeUser()

/** Runs the curl commands of the banner and returns their responses. */
async function tryLines(banner: string): Promise<{ line: string; status: number; body: never }[]> {
  const answers = []
  const [, file] = /^ {4}\. '(.+)'$/m.exec(banner) ?? []
  const variables = Object.fromEntries(
    file ? (await readFile(file, 'utf8')).split('\n').map(line => line.split(/=(.*)/s, 2)) : [],
  )
  for (const line of banner.split('\n').filter(text => text.startsWith('    curl '))) {
    const words = [...line.trim().matchAll(/'([^']*)'|"([^"]*)"|(\S+)/g)].map(
      ([, quoted, expanded, plain]) => quoted ?? expanded?.replace(/\$(\w+)/, (_, name) => variables[name]) ?? plain!,
    )
    const url = words[1]!
    const after = (flag: string) => words.flatMap((word, i) => (word === flag ? [words[i + 1]!] : []))
    const headers = after('-H').map(header => header.split(/: (.*)/s, 2) as [string, string])
    const body = after('-d')[0]
    const response = await fetch(url, { headers, ...(body && { method: 'POST', body }) })
    const answer = { line, status: response.status, body: (await response.json()) as never }
    answers.push({ ...answer, ...(isQueued(answer.body) && { body: await awaitOutcome(response, headers) }) })
  }
  return answers
}

const isQueued = ({ status }: { status?: string }) => status === 'queued'

/** On a busy machine, a write may wait longer than requested. */
function awaitOutcome(written: Response, headers: [string, string][]): Promise<never> {
  const operation = new URL(written.headers.get('location')!, written.url)
  return eventually(`${operation} to be applied`, async () => {
    const body = (await (await fetch(operation, { headers })).json()) as never
    return isQueued(body) ? null : body
  })
}

test('the first start waits for PostgreSQL and prints keys with working commands; the next start prints none, logs an outage once, and stops in time while PostgreSQL hangs', async t => {
  const database = await testDatabase({ partitioned: true })
  t.after(() => database.drop())
  const url = new URL(database.url)
  const wire = await openWire({ host: url.hostname, port: Number(url.port) })
  t.after(wire.close)
  url.port = String(wire.port)
  wire.cut()
  const dataDir = `${await temporaryDirectory(t)}/data`
  const env = { ...settings, DATABASE_URL: url.href, KONTOR_DATA_DIR: dataDir, KONTOR_USER: 'nobody' }
  const first = startKontor(t, ['start', '--port', '0'], env)
  await hears(first, /PostgreSQL is unreachable: .* Waiting up to 60 s/)
  wire.reconnect()
  await hears(first, changesUser ? /Started as root\. Kontor now runs as nobody\./ : END_OF_BANNER)
  const banner = first.err()
  // Without a terminal, keys are not written to the log.
  assert.doesNotMatch(banner, /adm_\w|private-\w{38}|trk_\w{38}|tok_\w{38}/)
  assert.match(banner, /\/docs/)
  assert.match(banner, new RegExp(`in the file ${dataDir}/keys`))
  const written = await readFile(`${dataDir}/keys`, 'utf8')
  for (const key of [/private-\w{38}/, /trk_\w{38}/, /tok_\w{38}/, /adm_\w{38}/]) assert.match(written, key)
  assert.equal((await stat(`${dataDir}/keys`)).mode & 0o777, 0o600)
  if (changesUser) assert.match(await readFile(`/proc/${first.child.pid}/status`, 'utf8'), /^Uid:(\t65534){4}$/m)
  assert.ok(!banner.includes(new URL(database.url).password))
  assert.equal(first.out(), '')

  const answers = await tryLines(banner)
  assert.deepEqual(
    answers.map(({ status }) => status),
    [202, 200, 200, 200, 200],
  )
  assert.equal((answers[0]!.body as { status: string }).status, 'applied')
  assert.equal((answers[1]!.body as { id: string }).id, 'c-1')
  assert.equal(await stop(first), 0)

  const second = startKontor(t, ['start', '--port', '0'], {
    ...env,
    ...{ KONTOR_DRAIN_TIMEOUT: '1s', KONTOR_LOG_LEVEL: 'info' },
  })
  await hears(second, END_OF_BANNER)
  assert.doesNotMatch(second.err(), /private-\w|trk_|adm_|tok_/)
  assert.match(second.err(), /key create/)
  wire.cut()
  await hears(second, /"job":"overflow drain".*a job is waiting for storage/)
  await hears(second, /the pipeline waits for the database/)
  wire.reconnect()
  await hears(second, /"job":"overflow drain".*a job continues/)
  assert.equal(second.err().match(/"job":"overflow drain".*a job is waiting/g)!.length, 1)
  assert.doesNotMatch(second.err(), /"stack"/)

  const pool = openPool({
    ...{ connection: { url: database.url }, max: 1, name: 'kontor test', onError: () => undefined },
  })
  const countEvents = async () =>
    (await pool.query(`select count(*)::int as n from log where kind = 'events'`)).rows[0].n
  const before = await countEvents()
  const address = /http:\/\/localhost:\d+/.exec(second.err())![0]
  const key = /TRACKING_KEY=(.+)/.exec(written)![1]
  await eventually('an event to be acknowledged', async () => {
    const body = JSON.stringify({ event_type: 'page_view' })
    return (await fetch(`${address}/v1/track/?key=${key}`, { method: 'POST', body })).status === 200
  })
  wire.freeze()
  assert.equal(await stop(second), 3)
  wire.cut()
  assert.match(second.err(), /Shutdown took longer than 2 s .*Acknowledged data is safe/)
  const after = await countEvents()
  await pool.end()
  assert.ok(after > before)
})

test('commands work on an empty data directory, and beside a running server', async t => {
  const dataDir = `${await temporaryDirectory(t)}/data dir`
  const run = async (...words: string[]) => {
    const { code, out, err } = await kontor(...words, '--data', dataDir)
    return { code, answer: out && JSON.parse(out), err }
  }
  const status = async () => {
    const { code, out } = await kontor('status', '--data', dataDir)
    const { running, pid, tenants, dead_letters, url } = JSON.parse(out) as Record<string, unknown>
    return { code, running, pid, tenants, dead_letters, url }
  }
  assert.equal((await status()).running, false)
  const made = await run('tenant', 'create', 'acme')
  assert.deepEqual([made.code, made.answer.name], [0, 'acme'], made.err)

  const server = startKontor(t, ['start', '--port', '0', '--data', dataDir], settings)
  await hears(server, END_OF_BANNER)
  const key = await run('key', 'create', '--tenant', 'acme', '--kind', 'tracking')
  assert.equal(key.code, 0, key.err)
  if (isRoot) await hears(server, /Running as root, /)
  const running = await status()
  assert.equal(running.code, 0)
  assert.equal(running.pid, server.child.pid)
  assert.equal(running.tenants, 2)
  assert.equal(running.dead_letters, 0)

  const tracked = await fetch(`${running.url}/v1/track/?key=${key.answer.key}`, {
    method: 'POST',
    body: JSON.stringify({ event_type: 'page_view' }),
  })
  assert.deepEqual([tracked.status, await tracked.json()], [200, {}])

  const rival = startKontor(t, ['start', '--port', '0', '--data', dataDir], settings)
  assert.equal(await rival.ended, 1)
  assert.match(rival.err(), /Another server .*--data or KONTOR_DATA_DIR/s)

  assert.equal(await stop(server), 0)
  assert.equal((await status()).running, false)
  if (changesUser) return
  const again = startKontor(t, ['start', '--port', '0', '--data', dataDir], { ...settings, KONTOR_DRAIN_TIMEOUT: '1s' })
  await hears(again, END_OF_BANNER)
  await stopsFrozen(t, again, dataDir)
})

test('a data directory that cannot be created is reported at once', async t => {
  const server = startKontor(t, ['start', '--port', '0', '--data', '/proc/x'], settings)
  assert.equal(await server.ended, 1)
  assert.match(server.err(), /\/proc\/x cannot be .*\nNo directory can be created there\. Use another data directory\./)
})

test('an address that this machine does not have, or an unknown host name, is reported at once with its settings', async t => {
  const database = await testDatabase({ partitioned: true })
  t.after(() => database.drop())
  const env = { ...settings, DATABASE_URL: database.url, KONTOR_DATA_DIR: await temporaryDirectory(t) }
  const ofOperations = (host: string) => ({ KONTOR_OPS_HOST: host })
  const runs: [host: string, words: string[], more: Record<string, string>][] = []
  // The first address is reserved for documentation, and the name is never assigned.
  for (const host of ['203.0.113.7', 'nope.invalid'])
    runs.push([host, ['--host', host], {}], [host, [], ofOperations(host)])
  // Without a given port, an operations port in use is only a warning.
  runs.push(['203.0.113.7', [], { ...ofOperations('203.0.113.7'), KONTOR_OPS_PORT: '' }])
  if (isLong) runs.push(['nope.invalid', ['--host', 'nope.invalid'], { KONTOR_PROCESSES: '2' }])
  for (const [host, words, more] of runs) {
    const server = startKontor(t, ['start', '--port', '0', ...words], { ...env, ...more })
    assert.equal(await server.ended, 1, server.err())
    assert.match(
      server.err(),
      /^This machine cannot listen on (\S+): [a-zA-Z ,]+\. Choose another address with --host or KONTOR_HOST \(KONTOR_OPS_HOST for the operations port\)\.\n$/,
    )
    assert.ok(server.err().includes(` ${host}: `))
  }
})

test('a server whose log is no longer read stops cleanly', async t => {
  const database = await testDatabase({ partitioned: true })
  t.after(() => database.drop())
  const server = startKontor(t, ['start', '--port', '0'], {
    ...{ ...settings, DATABASE_URL: database.url },
    KONTOR_DATA_DIR: await temporaryDirectory(t),
  })
  await hears(server, END_OF_BANNER)
  server.child.stderr!.destroy()
  assert.equal(await stop(server), 0)
})

test('a stop ends in time while PostgreSQL hangs during the start', async t => {
  const env = { ...settings, KONTOR_DRAIN_TIMEOUT: '1s' }
  const database = await testDatabase()
  t.after(() => database.drop())
  const target = new URL(database.url)
  const wire = await openWire({ host: target.hostname, port: Number(target.port) })
  t.after(wire.close)
  target.port = String(wire.port)
  wire.freeze()
  const starting = startKontor(t, ['start', '--port', '0'], { ...env, DATABASE_URL: target.href })
  // It has loaded and waits for PostgreSQL.
  await eventually('it to connect', () => wire.connections() > 0)
  assert.equal(await stop(starting), 3)
})

test('a server whose clock is a year behind uses the time of PostgreSQL; a port in use is reported; a server stops when its npm or kontor parent process ends', async t => {
  const database = await testDatabase({ partitioned: true })
  t.after(() => database.drop())
  const env = { ...settings, DATABASE_URL: database.url }
  const directory = await temporaryDirectory(t)
  const clockFile = `${directory}/clock`
  await writeFile(clockFile, String(-365 * 86_400_000))
  const preload = new URL('../../torture/deployment/clock-preload.mjs', import.meta.url)
  const first = startKontorInShell(t, ['start', '--port', '0'], {
    ...env,
    KONTOR_DATA_DIR: `${directory}/data`,
    npm_lifecycle_event: 'start',
    NODE_OPTIONS: `--import ${preload}`,
    TORTURE_CLOCK_FILE: clockFile,
  })
  const [, port] = await hears(first, /running at http:\/\/localhost:(\d+)/)
  await hears(first, END_OF_BANNER)
  const results = await eventually('events to be listed', async () => {
    const { body } = (await tryLines(first.err())).at(-1)!
    const { results } = body as { results: { received_at: string; occurred_at: string }[] }
    return results.length > 0 && results
  })
  const isOfToday = (at: string) => assert.ok(Math.abs(Date.now() - Date.parse(at)) < 86_400_000, at)
  for (const { received_at, occurred_at } of results) for (const at of [received_at, occurred_at]) isOfToday(at)
  const url = /http:\/\/localhost:\d+/.exec(first.err())![0]
  const admin = async (path: string, body?: object) => {
    const key = /ADMIN_KEY=(.+)/.exec(await readFile(`${directory}/data/keys`, 'utf8'))![1]
    const headers = { authorization: `Bearer ${key}`, ...(body && { 'content-type': 'application/json' }) }
    const given = body && { method: 'POST', body: JSON.stringify(body) }
    const response = await fetch(`${url}/admin/v1/${path}`, { headers, ...given })
    return (await response.json()) as Record<string, unknown>
  }
  const { results: keys } = (await admin('keys?tenant=default')) as {
    results: { id: string; kind: string }[]
  }
  const key = keys.find(({ kind }) => kind === 'tracking')!.id
  const purge = await admin('purges', { tenant: 'default', key, since: results[0]!.received_at })
  isOfToday(purge.requested_at as string)

  const second = startKontor(t, ['start', '--port', port!], env)
  assert.equal(await second.ended, 1)
  assert.match(second.err(), new RegExp(`Port ${port} .* is in use`))
  if (isLong) {
    const several = startKontor(t, ['start', '--port', port!], { ...env, KONTOR_PROCESSES: '2' })
    assert.equal(await several.ended, 1)
    assert.match(several.err(), new RegExp(`Port ${port} .* is in use`))
  }
  // The shell exits without forwarding the signal. Its pipes close when the server has exited.
  await stop(first)
  assert.match(first.err(), /Stopping \(npm has ended\)/)
  const command = startProgram(t, process.execPath, [bin, 'start', '--port', '0', '--surfaces', 'data'], env)
  const [, running] = await hears(command, /running at (http:\S+)/)
  const [, opsPort] = await hears(command, /127\.0\.0\.1:(\d+)\/healthz/)
  await hears(command, END_OF_BANNER)
  // The following tests use separate data directories.
  const found = { DATABASE_URL: database.url, KONTOR_OPS_PORT: opsPort! }
  t.after(() => Object.keys(found).forEach(name => void delete process.env[name]))
  Object.assign(process.env, found)
  const status = await kontor('status')
  const server: { running: boolean; pid: number; url: string; processes: number } = status.json()
  assert.deepEqual([status.code, server.running, server.url, server.processes], [0, true, running, 1])
  assert.ok(server.pid > 0)
  command.child.kill('SIGKILL')
  await command.ended
  const ended = await kontor('status')
  assert.equal(ended.code, 1)
  assert.match(ended.err, new RegExp(`No server responds at .*:${opsPort}.*covers only the database`))
  assert.match(command.err(), /Stopping \(the kontor command has ended\)/)
})
