import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { connect } from 'node:net'
import { Readable } from 'node:stream'
import test, { after } from 'node:test'
import fastify from 'fastify'
import pg from 'pg'
import type { App } from '../../src/http/app.ts'
import { limitLongRunning } from '../../src/http/long-running.ts'
import { takeReadTurns } from '../../src/http/read-turns.ts'
import { openTurns } from '../../src/http/turns.ts'
import { eventually } from '../eventually.ts'
import { startServer } from '../server.ts'

const server = await startServer({ KONTOR_SURFACES: 'data' })
const MUG = { entityType: 'product', data: { sku: 'mug' }, sourceUpdatedAt: '2026-01-01T00:00:00Z' }
after(() => server.close())

test('a tenant whose reads hang keeps no connection from the reads and writes of its neighbour', async () => {
  const neighbour = await server.anotherTenant('neighbour')
  // Not of a pool: what holds a lock there for long is ended.
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
    await eventually('what one tenant may read at once waits for the lock', async () => {
      const { rows } = await server.pool.query(
        `select from pg_stat_activity where wait_event_type = 'Lock' and application_name = 'kontor'
         and datname = current_database()`,
      )
      return rows.length >= 7
    })
    const key = neighbour.privateKey
    for (const path of ['/v1/events?limit=100', '/v1/products', '/v1/events/series'])
      assert.equal((await server.request(path, { key })).status, 200)
    const body = JSON.stringify({ id: 'mug', ...MUG })
    assert.equal((await server.request('/v1/products', { key, method: 'POST', body })).status, 202)
    assert.ok(!answered.includes(404), 'the lock still holds them')
  } finally {
    await lock.end()
  }
  const found = (await Promise.all(held)).filter(status => status === 404)
  assert.ok(found.length >= 7, 'those that waited at most as long as anybody may')
})

test('a read whose client hangs up while it waits is not read', async t => {
  const turns = openTurns({ capacity: 1, aloneCapacity: 1 })
  const { url, port, release, arrived, begun, closed } = await startReader(t, turns)
  const first = fetch(`${url}/held`)
  await eventually('it is under way', () => begun.length === 1)
  const socket = connect(port, '127.0.0.1')
  socket.write('GET /held?hangs-up HTTP/1.1\r\nhost: x\r\n\r\n')
  await eventually('the second waits', () => arrived.length === 2)
  socket.destroy()
  await eventually('the second has hung up', () => closed.includes('/held?hangs-up'))
  release()
  assert.equal((await first).status, 200)
  assert.equal((await fetch(`${url}/held?last`)).status, 200)
  assert.deepEqual(begun, ['/held', '/held?last'])
  assert.equal(turns.underWay(), 0)
})

test('a read whose turn does not come is refused, and not read later', async t => {
  const turns = openTurns({ capacity: 1, aloneCapacity: 1 })
  const { url, release, begun } = await startReader(t, turns, { waitMs: 10 })
  const first = fetch(`${url}/held`)
  await eventually('it is under way', () => begun.length === 1)
  const refused = await fetch(`${url}/held?waits`)
  assert.equal(refused.status, 503)
  assert.ok(Number(refused.headers.get('retry-after')) > 0)
  release()
  assert.equal((await first).status, 200)
  assert.deepEqual(begun, ['/held'])
  assert.equal(turns.underWay(), 0)
})

test('who reads an answer slowly, or waits for something to happen, keeps no turn; each later portion takes one', async t => {
  const turns = openTurns({ capacity: 1, aloneCapacity: 1 })
  const { url, release } = await startReader(t, turns)
  const streamed = await fetch(`${url}/streamed`)
  const waiting = fetch(`${url}/waits`)
  assert.equal((await fetch(`${url}/item`)).status, 200)
  release()
  const text = await streamed.text()
  assert.equal(text, 'first,1,1,', 'one is under way while a portion is read')
  assert.equal(turns.underWay(), 0)
  assert.equal((await waiting).status, 200)
})

test('of what goes on for long, a tenant that has all it may leaves room for its neighbours', () => {
  const exports = limitLongRunning({ ofTenant: 2, inAll: 3 })
  const ends = [exports.begin(1), exports.begin(1)]
  assert.equal(exports.begin(1), null)
  const neighbours = exports.begin(2)
  assert.ok(neighbours)
  assert.equal(exports.begin(3), null, 'three are all there are')
  ends[0]!()
  assert.ok(exports.begin(3))
  neighbours()
  assert.ok(exports.begin(1))
  assert.equal(exports.begin(1), null)
})

async function startReader(
  t: { after(end: () => unknown): void },
  turns: ReturnType<typeof openTurns>,
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
  takeReadTurns(app, turns, options)
  app.get('/held', async request => {
    begun.push(request.url)
    await held.promise
    return {}
  })
  app.get('/item', async () => ({}))
  app.get('/waits', { config: { takesNoTurn: true } }, async () => {
    await held.promise
    return {}
  })
  app.get('/streamed', async (request, reply) => {
    async function* portions() {
      yield 'first,'
      await held.promise
      for (let i = 0; i < 2; i++) yield await request.inTurn(async () => `${turns.underWay()},`)
    }
    return reply.send(Readable.from(portions(), { objectMode: true, highWaterMark: 1 }))
  })
  await app.listen({ port: 0, host: '127.0.0.1' })
  t.after(() => app.close())
  const { port } = app.server.address() as { port: number }
  return { url: `http://127.0.0.1:${port}`, port, release: held.resolve, arrived, begun, closed }
}
