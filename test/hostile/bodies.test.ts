import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { after, before, test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { gzipSync } from 'node:zlib'
import { daysUntilFull } from '../../src/overload/disk.ts'
import { eventually } from '../eventually.ts'
import { makeSource } from '../inbound/source.ts'
import { type OwnServer, startServer } from '../server.ts'

const MIB = 1_048_576

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

/** Bytes in buffers that are still referenced. */
function heldBytes(): number {
  collectGarbage()
  return process.memoryUsage().arrayBuffers
}

let server: OwnServer
let free: number | null = null
before(async () => {
  const settings = { KONTOR_MAX_IN_FLIGHT_BYTES: '4MiB', KONTOR_OPS_PORT: '0' }
  server = await startServer(settings, {}, { readFree: async () => free })
})
after(() => server.close())

const text = (value: unknown) => JSON.stringify(value)

/** A request that is sent only partially; `answer` collects the response. */
async function begin(path: string, headers: Record<string, string>, sent = Buffer.alloc(0)) {
  const socket: Socket = connect(Number(new URL(server.url).port), '127.0.0.1')
  await once(socket, 'connect')
  const unfinished = { socket, answer: '' }
  socket.setEncoding('utf8').on('data', more => {
    unfinished.answer += more
  })
  socket.on('error', () => undefined)
  const lines = Object.entries({ host: 'a', 'content-length': String(MIB), ...headers })
  socket.write(`POST ${path} HTTP/1.1\r\n${lines.map(line => line.join(': ')).join('\r\n')}\r\n\r\n`)
  socket.write(sent)
  return unfinished
}

const track = (options: { key?: string; body: object }) =>
  server.request('/v1/track', { method: 'POST', ...options, body: text(options.body) })

test('a credential in a header or in the query is checked before the body is read', async () => {
  const { trackingKey, privateKey } = server.tenant
  const source = await makeSource(server, {})
  const bearer = (key: string) => ({ authorization: `Bearer ${key}` })
  for (const [path, headers] of [
    ['/v1/track', bearer(privateKey)],
    ['/v1/batch', { 'x-write-key': 'trk_wrong' }],
    ['/v1/batch?key=trk_wrong', {}],
    ['/beacon/v1/batch?writeKey=trk_wrong', {}],
    ['/v1/products', {}],
    ['/v1/products/batch', bearer(trackingKey)],
    [source.path, bearer('tok_wrong')],
    ['/admin/v1/tenants', bearer(privateKey)],
  ] as [string, Record<string, string>][]) {
    const { socket, ...unfinished } = await begin(path, headers)
    const [chunk] = await once(socket, 'data')
    assert.match(unfinished.answer + chunk, /^HTTP\/1\.1 401 /, path)
    socket.destroy()
  }
})

test('unfinished bodies of unauthenticated callers use little memory, and do not block other callers', async t => {
  const before = heldBytes()
  const sent = Buffer.alloc(900_000, 0x20)
  const paths = ['/v1/batch', '/v1/track', '/beacon/v1/batch', '/api/s/batch']
  const unfinished = await Promise.all(Array.from({ length: 60 }, (_, i) => begin(paths[i % 4]!, {}, sent)))
  t.after(() => {
    for (const { socket } of unfinished) socket.destroy()
  })
  // /v1/track accepts 64 KiB and discards larger bodies as they arrive.
  const others = unfinished.filter((_, i) => i % 4 !== 1)
  const isSent = () => unfinished.every(({ socket }) => socket.writableLength === 0 || socket.destroyed)
  const evicted = () => others.filter(({ answer }) => answer.startsWith('HTTP/1.1 503')).length
  await eventually('all but the last to make room', () => isSent() && evicted() >= others.length - 3)

  // The memory of collected buffers is released in the background, a moment later.
  const state = () => ({ mebibytes: (heldBytes() - before) / MIB })
  await eventually('nothing of the rest to be held', () => heldBytes() - before < 15 * MIB, { state })
  const { trackingKey } = server.tenant
  assert.equal((await track({ key: trackingKey, body: { event_type: 'x' } })).status, 200)
  assert.equal((await track({ body: { event: 'x', writeKey: trackingKey } })).status, 200)
})

test('unfinished bodies of an authenticated sender are evicted in favor of others', async t => {
  const { trackingKey } = await server.anotherTenant('slow')
  const headers = { authorization: `Bearer ${trackingKey}` }
  const slow = await Promise.all(
    Array.from({ length: 8 }, () => begin('/v1/batch', headers, Buffer.alloc(900_000, 0x20))),
  )
  t.after(() => {
    for (const { socket } of slow) socket.destroy()
  })
  const evicted = () => slow.filter(({ answer }) => answer.startsWith('HTTP/1.1 503')).length
  await eventually('the budget to be full', () => evicted() >= 4)
  const source = await makeSource(server, {})
  const large = { event_type: 'x', payload: { fill: 'x'.repeat(900_000) } }
  assert.equal((await source.post(large)).status, 200)
})

test('while storage hangs, waiting requests are bounded: 503 above the limit, and the others are answered eventually', async () => {
  const source = await makeSource(server, {})
  const holder = await server.pool.connect()
  await holder.query('begin')
  await holder.query('lock table processed_events in access exclusive mode')
  const answers: { status: number; retryAfter: string | null }[] = []
  const send = async (n: number) => {
    const payload = { fill: 'x'.repeat(700_000) }
    const body = { inbound_event_id: `hung-${n}`, event_type: 'x', payload }
    const { status, headers } = await source.post(body)
    answers.push({ status, retryAfter: headers.get('retry-after') })
  }
  const sent = Promise.all(Array.from({ length: 16 }, (_, n) => send(n)))
  await eventually('what does not fit to be refused', () => answers.length >= 10)
  assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([503]))
  assert.ok(answers.every(({ retryAfter }) => Number(retryAfter) >= 1))
  // The read of a neighbor needs no body memory.
  assert.equal((await server.request('/v1/products', { key: server.tenant.privateKey })).status, 200)
  await holder.query('rollback')
  holder.release()
  await sent
  assert.equal(
    answers.filter(({ status }) => status === 200).length,
    16 - answers.filter(({ status }) => status === 503).length,
  )
  assert.ok(answers.some(({ status }) => status === 200))
  await eventually(
    'all held memory to be released',
    async () => (await source.post({ event_type: 'x', payload: { fill: 'x'.repeat(900_000) } })).status === 200,
  )
})

test('a body larger than its declared size is still checked; browser metrics are not even decompressed', async () => {
  const bomb = gzipSync(Buffer.alloc(8 * MIB, 0x20))
  bomb.writeUInt32LE(10, bomb.length - 4)
  const gzip = { 'content-encoding': 'gzip' }
  const post = (path: string) =>
    server.request(path, {
      method: 'POST',
      key: server.tenant.trackingKey,
      headers: gzip,
      body: bomb as RequestInit['body'],
    })
  assert.equal((await post('/v1/batch')).status, 413)
  assert.equal((await post('/v1/m')).status, 200)
})

test('with a nearly full disk events are rejected and reads are served', async () => {
  const source = await makeSource(server, {})
  const { privateKey, trackingKey: key } = server.tenant
  const track = () => server.request('/v1/track', { method: 'POST', key, body: text({ event_type: 'x' }) })
  const opsText = async (path: string) => (await fetch(server.opsUrl + path)).text()
  assert.match(await opsText('/readyz'), /"disk":"unknown"/)
  free = 0.049
  await eventually('events to be turned away', async () => (await track()).status === 503)
  assert.ok(Number((await track()).headers.get('retry-after')) >= 1)
  assert.equal((await source.post({ event_type: 'x' })).status, 503)
  for (const path of ['/v1/events', '/v1/products', '/v1/subscriptions/overview?currency=EUR'])
    assert.equal((await server.request(path, { key: privateKey })).status, 200, path)
  assert.match(await opsText('/readyz'), /"status":"not_ready".*4\.9% free: too little/)
  assert.match(await opsText('/metrics'), /^kontor_disk_free_ratio 0\.049$/m)
  free = 0.06
  await eventually('events to be taken again', async () => (await track()).status === 200)
  assert.equal((await source.post({ event_type: 'x' })).status, 200)
})

test('the time until the disk is full is extrapolated from the last day, and unknown before that', () => {
  const hours = (count: number) => count * 3_600_000
  const now = { at: hours(12), free: 0.2 }
  assert.equal(daysUntilFull([], now), null)
  assert.equal(daysUntilFull([{ at: hours(11.5), free: 0.9 }], now), null)
  assert.equal(daysUntilFull([{ at: 0, free: 0.1 }], now), null)
  // 10 % in half a day is 20 % per day, and 20 % is left.
  assert.ok(Math.abs(daysUntilFull([{ at: 0, free: 0.3 }], now)! - 1) < 1e-9)
})
