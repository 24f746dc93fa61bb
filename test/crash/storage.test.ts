import assert from 'node:assert/strict'
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { type Disk, mountDisk } from '../../torture/deployment/disk.ts'
import { kontor } from '../cli/kontor.ts'
import { findPostmasterIn } from '../embedded-postgres/directories.ts'
import { eventually } from '../eventually.ts'
import { testNats, withoutNats } from '../nats.ts'
import { startServer } from '../server.ts'
import { settled } from '../settled.ts'
import { childrenOf, openService } from './service.ts'

/** A disk of its own, unmounted after the test; null if this machine does not allow it. */
async function aDisk(t: TestContext, size?: string): Promise<{ disk: Disk; directory: string } | null> {
  const directory = await mkdtemp(join(tmpdir(), 'kontor-disk-'))
  const disk = await mountDisk(directory, words => t.diagnostic(words), size)
  t.after(async () => {
    await disk?.unmount()
    await rm(directory, { recursive: true })
  })
  if (disk === null) return null
  const isMounted = (await stat(directory)).dev !== (await stat(dirname(directory))).dev
  assert.ok(isMounted, 'tests fill only a disk of their own')
  return { disk, directory }
}

async function track(url: string, key: string, event: object, signal: AbortSignal | null = null): Promise<Response> {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  return fetch(`${url}/v1/track`, { method: 'POST', headers, body: JSON.stringify(event), signal })
}

test('on a full or read-only disk every event gets 503, and everything acknowledged is stored when it is writable again', async t => {
  const own = await aDisk(t, '300m')
  if (own === null) return
  const service = await openService(own.directory)
  t.after(() => service.close())
  await service.start()
  const acknowledged: string[] = []
  let sent = 0
  const send = async () => {
    const id = `e-${++sent}`
    const { status, headers } = await track(service.url, service.trackingKey, { event_type: 'kept', event_id: id })
    if (status === 200) acknowledged.push(id)
    else assert.deepEqual([status, Number(headers.get('retry-after')) > 0], [503, true])
    return status
  }
  const until = (wanted: 200 | 503) =>
    eventually(
      `answers with ${wanted}`,
      async () => (await send()) === wanted && (await service.readiness()) === wanted,
      {
        state: service.stderr,
      },
    )
  await until(200)

  await own.disk.fill()
  await until(503)
  await own.disk.free()
  await until(200)

  // A disk with errors becomes read-only. PostgreSQL exits at its next write, and cannot start again.
  await service.killPostgresDuring(() => own.disk.setReadOnly(true))
  await until(503)
  const explained = () => service.stderr().match(/The file system is read-only/g)?.length ?? 0
  await eventually('the log to say why', () => explained() === 1)
  await own.disk.setReadOnly(false)
  await until(200)
  assert.equal(explained(), 1)

  await service.stop()
  await own.disk.setReadOnly(true)
  const { code, err } = await kontor('start', '--port', '0', '--data', service.dataDir)
  assert.notEqual(code, 0)
  assert.match(err, /The file system is read-only/)
  await own.disk.setReadOnly(false)
  await service.start()
  await service.withDatabase(async pool => {
    await settled(pool)
    const { rows } = await pool.query<{ id: string }>(
      `select inbound_event_id as id from events where event_type = 'kept'`,
    )
    const stored = rows.map(({ id }) => id)
    assert.equal(new Set(stored).size, stored.length)
    assert.deepEqual(
      acknowledged.filter(id => !stored.includes(id)),
      [],
    )
  })
})

const EVENTS = 300
const FSYNC_MS = 300
// With a commit of their own, 300 events would take 90 seconds.
const ALL_WITHIN_MS = 45_000

test('with a slow fsync, requests share commits: all are answered in time, and none is lost or doubled', async t => {
  if (spawnSync('strace', ['-V']).status !== 0) return t.diagnostic('Skipped: strace is not installed')
  const service = await openService()
  t.after(() => service.close())
  await service.start()
  const postmaster = (await findPostmasterIn(service.dataDir))!.pid
  const processes = [postmaster, ...childrenOf(postmaster)].flatMap(pid => ['-p', String(pid)])
  const delay = `inject=fdatasync,fsync:delay_enter=${FSYNC_MS * 1_000}`
  const slow = spawn('strace', [
    '-f',
    '-qq',
    '-o',
    '/dev/null',
    '-e',
    'trace=fdatasync,fsync',
    '-e',
    delay,
    ...processes,
  ])
  t.after(() => end(slow))
  const isTraced = await attached(slow, postmaster)
  if (!isTraced) return t.diagnostic('Skipped: this machine does not allow tracing')

  const inTime = AbortSignal.timeout(ALL_WITHIN_MS)
  const sent = Array.from({ length: EVENTS }, (_, i) =>
    track(service.url, service.trackingKey, { event_type: 'slow', event_id: `s-${i}` }, inTime),
  )
  const statuses = (await Promise.all(sent)).map(({ status }) => status)
  assert.deepEqual([...new Set(statuses)], [200])
  await end(slow)
  await service.withDatabase(async pool => {
    await settled(pool)
    const { rows } = await pool.query(`select count(*)::int as n from events where event_type = 'slow'`)
    assert.equal(rows[0].n, EVENTS)
  })
})

/** Whether strace is attached; false if it exited. */
async function attached(tracer: ChildProcess, pid: number): Promise<boolean> {
  return eventually('strace to be attached', async () => {
    if (tracer.exitCode !== null) return 'exited'
    const status = await readFile(`/proc/${pid}/status`, 'utf8')
    return /^TracerPid:\s+[1-9]/m.test(status) && 'attached'
  }).then(found => found === 'attached')
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  child.kill('SIGTERM')
  await exited
}

test('when the disk of NATS is full, events get 503, and everything acknowledged is processed once', {
  skip: withoutNats,
}, async t => {
  const own = await aDisk(t)
  if (own === null) return
  // NATS promises more than its disk has.
  const nats = await testNats({ synced: true, storage: 'max_file_store: 4GB' }, own.directory)
  const server = await startServer({ NATS_URL: nats.url, KONTOR_NATS_MAX_BYTES: '1GiB' })
  t.after(async () => {
    await server.close()
    await nats.end()
  })
  const { trackingKey } = server.tenant
  const acknowledged: string[] = []
  const send = async (id: string): Promise<number> => {
    const event = { event_type: 'filling', event_id: id, data: { fill: 'x'.repeat(20_000) } }
    const { status, headers } = await track(server.url, trackingKey, event)
    if (status === 200) acknowledged.push(id)
    else assert.deepEqual([status, Number(headers.get('retry-after')) > 0], [503, true])
    return status
  }
  for (let i = 0; i < 20; i++) assert.equal(await send(`before ${i}`), 200)
  await own.disk.fill()
  let sent = 0
  await eventually('the disk to be full', async () => {
    const statuses = await Promise.all(Array.from({ length: 20 }, () => send(`during ${sent++}`)))
    return statuses.includes(503)
  })
  await own.disk.free()
  // A NATS server that could not write needs a restart.
  await nats.stop()
  await nats.start()
  await eventually('events to be accepted again', async () => (await send(`after ${sent++}`)) === 200)
  await server.settled()
  const { rows } = await server.pool.query<{ id: string }>(
    `select inbound_event_id as id from events where event_type = 'filling'`,
  )
  const stored = rows.map(({ id }) => id)
  assert.equal(new Set(stored).size, stored.length)
  assert.deepEqual(
    acknowledged.filter(id => !stored.includes(id)),
    [],
  )
})
