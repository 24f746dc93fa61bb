import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Kontor } from '../../../sdk/js/src/index.ts'
import { rowsOf } from '../../events/rows.ts'
import { isLong } from '../../long.ts'
import { startServer, type TestServer } from '../../server.ts'
import { HOSTILE, openHostileProxy } from './hostile-proxy.ts'
import { all } from './rows.ts'

let server: TestServer
before(async () => {
  server = await startServer()
})
after(() => server.close())

// Enough requests to meet each failure many times.
const [WRITES, EVENTS] = isLong ? [2_500, 4_000] : [800, 1_500]

const patient = { maxRetries: 20, retryDelayMs: 5, timeoutMs: 120_000 }

/** The number of accepted writes per record. */
async function writesById(tenantName: string): Promise<Map<string, number>> {
  await server.settled()
  const { rows } = await server.pool.query<{ id: string; writes: number }>(
    `select record_id as id, count(*)::int as writes from operations
     where tenant_id = (select id from tenants where name = $1) group by record_id`,
    [tenantName],
  )
  return new Map(rows.map(({ id, writes }) => [id, writes]))
}

test('every write is applied once through a network that drops, truncates, delays and repeats requests', async t => {
  const { privateKey } = await server.anotherTenant('writes')
  const proxy = await openHostileProxy(t, server.url)
  const kontor = new Kontor({ url: proxy.url, privateKey, ...patient })
  const ids = Array.from({ length: 40 }, (_, n) => `single-${n}`)
  const singles = await Promise.all(ids.map(id => kontor.products.upsert({ id, data: { id } })))
  assert.ok(singles.every(({ accepted }) => accepted))
  const many = Array.from({ length: WRITES }, (_, n) => ({ id: `many-${n}`, data: { n } }))
  const results = await all(kontor.products.upsertMany(many))
  assert.deepEqual(
    results.map(({ accepted, id }) => accepted && id),
    many.map(({ id }) => id),
  )
  const gone = await Promise.all(ids.slice(0, 10).map(id => kontor.orders.delete({ id: `order-${id}` })))
  assert.ok(gone.every(({ accepted }) => accepted))

  assert.deepEqual(proxy.met, new Set(HOSTILE))
  const writes = await writesById('writes')
  assert.equal(writes.size, 40 + WRITES + 10)
  assert.deepEqual(
    [...writes].filter(([, count]) => count !== 1),
    [],
  )
  const operations = new Set(results.map(result => result.accepted && result.operationId))
  assert.equal(operations.size, WRITES)
})

test('every tracked event is stored once through the same network', async t => {
  const tenant = await server.anotherTenant('events')
  const proxy = await openHostileProxy(t, server.url)
  const kontor = new Kontor({ url: proxy.url, trackingKey: tenant.trackingKey, ...patient })
  for (let n = 0; n < EVENTS; n++) {
    kontor.track({ event_type: 'page_view', event_id: `e-${n}`, visitor: `v-${n % 50}`, data: { n } })
    if (n % 300 === 0) await kontor.flush()
  }
  await kontor.close()

  assert.deepEqual(proxy.met, new Set(HOSTILE))
  const rows = await rowsOf(server, 'events', { key: tenant.privateKey })
  assert.equal(rows.length, EVENTS)
  assert.equal(new Set(rows.map(row => row.inbound_event_id)).size, EVENTS)
})

test('lists are read completely through the same network, each row once', async t => {
  const { privateKey } = await server.anotherTenant('lists')
  const direct = new Kontor({ url: server.url, privateKey })
  const many = Array.from({ length: 450 }, (_, n) => ({ id: `c-${n}` }))
  await all(direct.contacts.upsertMany(many))
  await server.settled()
  const proxy = await openHostileProxy(t, server.url)
  const kontor = new Kontor({ url: proxy.url, privateKey, ...patient })
  const listed = await all(kontor.contacts.list())
  assert.deepEqual(listed.map(({ id }) => id).sort(), many.map(({ id }) => id).sort())
})

test('a request that times out is retried, and nothing is applied twice', async t => {
  const { privateKey } = await server.anotherTenant('slow')
  const proxy = await openHostileProxy(t, server.url, ['hold answer', 'pass'])
  const kontor = new Kontor({ url: proxy.url, privateKey, ...patient, timeoutMs: 1_000 })
  const first = await kontor.products.upsert({ id: 'p-1' })
  assert.deepEqual([first.accepted, first.duplicate], [true, true])
  assert.deepEqual([...(await writesById('slow'))], [['p-1', 1]])
})
