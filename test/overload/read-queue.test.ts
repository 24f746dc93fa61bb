import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { connect } from 'node:net'
import { Readable } from 'node:stream'
import test, { after } from 'node:test'
import fastify from 'fastify'
import pg from 'pg'
import type { App } from '../../src/http/app.ts'
import { queueReads } from '../../src/http/overload.ts'
import { openFairQueue } from '../../src/overload/fair-queue.ts'
import { openConcurrencyLimit } from '../../src/overload/limits.ts'
import { eventually } from '../eventually.ts'
import { startServer } from '../server.ts'

const server = await startServer({ KONTOR_SURFACES: 'data' })
const MUG = { entityType: 'product', data: { sku: 'mug' }, sourceUpdatedAt: '2026-01-01T00:00:00Z' }
after(() => server.close())

test('a tenant whose reads hang does not block the reads and writes of its neighbor', async () => {
  const neighbor = await server.anotherTenant('neighbor')
  // Not from a pool: a session that holds a lock for long is terminated there.
  const lock = new pg.Client(server.databaseUrl)
  await lock.connect()
  const answered: number[] = []
  let held: Promise<number>[]
  try {
    await lock.query('begin; lock table operations in access exclusive mode')
    held = Array.from({ length: 20 }, async () => {
      const { status } = await server.request(`/v1/operations/${randomUUID()}`, {
        key: server.tenant.privateKey,
      })
      answered.push(status)
      return status
    })
    await eventually('all read slots of the tenant wait for the lock', async () => {
      const { rows } = await server.pool.query(
        `select from pg_stat_activity where wait_event_type = 'Lock' and application_name = 'kontor'
         and datname = current_database()`,
      )
      return rows.length >= 7
    })
    const key = neighbor.privateKey
    for (const path of ['/v1/events?limit=100', '/v1/products', '/v1/events/series'])
      assert.equal((await server.request(path, { key })).status, 200)
    const body = JSON.stringify({ id: 'mug', ...MUG })
    assert.equal((await server.request('/v1/products', { key, method: 'POST', body })).status, 202)
    assert.ok(!answered.includes(404), 'they still wait for the lock')
  } finally {
    await lock.end()
  }
  const found = (await Promise.all(held)).filter(status => status === 404)
  assert.ok(found.length >= 7, 'those that waited no longer than the maximum')
})

test('a queued read whose client disconnects is not executed', async t => {
  const queue = openFairQueue({ capacity: 1, soleTenantCapacity: 1 })
  const { url, port, release, arrived, begun, closed } = await startReader(t, queue)
  const first = fetch(`${url}/held`)
  await eventually('it is running', () => begun.length === 1)
  const socket = connect(port, '127.0.0.1')
  socket.write('GET /held?disconnects HTTP/1.1\r\nhost: x\r\n\r\n')
  await eventually('the second waits', () => arrived.length === 2)
  socket.destroy()
  await eventually('the second has disconnected', () => closed.includes('/held?disconnects'))
  release()
  assert.equal((await first).status, 200)
  assert.equal((await fetch(`${url}/held?last`)).status, 200)
  assert.deepEqual(begun, ['/held', '/held?last'])
  assert.equal(queue.running(), 0)
})

test('a read that waits too long is rejected and not executed later', async t => {
  const queue = openFairQueue({ capacity: 1, soleTenantCapacity: 1 })
  const { url, release, begun } = await startReader(t, queue, { waitMs: 10 })
  const first = fetch(`${url}/held`)
  await eventually('it is running', () => begun.length === 1)
  const rejected = await fetch(`${url}/held?waits`)
  assert.equal(rejected.status, 503)
  assert.ok(Number(rejected.headers.get('retry-after')) > 0)
  release()
  assert.equal((await first).status, 200)
  assert.deepEqual(begun, ['/held'])
  assert.equal(queue.running(), 0)
})

test('slow readers and waiting reads hold no slot; each later portion takes one', async t => {
  const queue = openFairQueue({ capacity: 1, soleTenantCapacity: 1 })
  const { url, release } = await startReader(t, queue)
  const streamed = await fetch(`${url}/streamed`)
  const waiting = fetch(`${url}/waits`)
  assert.equal((await fetch(`${url}/item`)).status, 200)
  release()
  const text = await streamed.text()
  assert.equal(text, 'first,1,1,', 'one slot is held while a portion is read')
  assert.equal(queue.running(), 0)
  assert.equal((await waiting).status, 200)
})

test('a tenant at its limit of long-running requests leaves slots for its neighbors', () => {
  const exports = openConcurrencyLimit({ perTenant: 2, total: 3 })
  const ends = [exports.acquire(1), exports.acquire(1)]
  assert.equal(exports.acquire(1), null)
  const neighbors = exports.acquire(2)
  assert.ok(neighbors)
  assert.equal(exports.acquire(3), null, 'three is the total')
  ends[0]!()
  assert.ok(exports.acquire(3))
  neighbors()
  assert.ok(exports.acquire(1))
  assert.equal(exports.acquire(1), null)
})

async function startReader(
  t: { after(end: () => unknown): void },
  queue: ReturnType<typeof openFairQueue>,
  options = {},
) {
  const app = fastify() as unknown as App
  const held = Promise.withResolvers<void>()
  const arrived: string[] = []
  const begun: string[] = []
  const closed: string[] = []
  app.decorateRequest('caller', null as never)
  app.addHook('onRequest', async (request, reply) => {
    request.caller = { tenantId: 1 } as never
    arrived.push(request.url)
    reply.raw.once('close', () => closed.push(request.url))
  })
  app.setErrorHandler((error, _request, reply) => {
    const { status, headers } = error as unknown as { status: number; headers: Record<string, string> }
    reply.code(status).headers(headers).send({})
  })
  queueReads(app, queue, options)
  app.get('/held', async request => {
    begun.push(request.url)
    await held.promise
    return {}
  })
  app.get('/item', async () => ({}))
  app.get('/waits', { config: { skipsReadQueue: true } }, async () => {
    await held.promise
    return {}
  })
  app.get('/streamed', async (request, reply) => {
    async function* portions() {
      yield 'first,'
      await held.promise
      for (let i = 0; i < 2; i++) yield await request.inReadQueue(async () => `${queue.running()},`)
    }
    return reply.send(Readable.from(portions(), { objectMode: true, highWaterMark: 1 }))
  })
  await app.listen({ port: 0, host: '127.0.0.1' })
  t.after(() => app.close())
  const { port } = app.server.address() as { port: number }
  return { url: `http://127.0.0.1:${port}`, port, release: held.resolve, arrived, begun, closed }
}
