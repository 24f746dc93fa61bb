import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { newEntryId } from '../../src/domain/ids.ts'
import { parseTenantId } from '../../src/domain/tenants/tenants.ts'
import { openPostgresLog } from '../../src/log/postgres/log.ts'
import { makeSource } from '../inbound/source.ts'
import { sharedServer, type TestServer } from '../server.ts'

const KIB = 1_024
const MIB = 1_024 * KIB

let server: TestServer
before(async () => {
  server = await sharedServer()
})
after(() => server.close())

const text = (value: unknown) => JSON.stringify(value)
const page = (id: string, more: object = {}) => ({ type: 'page', messageId: id, ...more })
const pages = (count: number, id: string) => Array.from({ length: count }, (_, i) => page(`${id}-${i}`))
const padding = (bytes: number) => ({ padding: 'x'.repeat(bytes) })

function post(path: string, body: unknown, key = server.tenant.trackingKey) {
  return server.request(path, {
    method: 'POST',
    key,
    body: gzipSync(text(body)) as RequestInit['body'],
    headers: { 'content-encoding': 'gzip' },
  })
}

async function count(query: string, ...values: unknown[]): Promise<number> {
  const { rows } = await server.pool.query<{ count: number }>(query, values)
  return rows[0]!.count
}

const eventsNamed = (prefix: string) =>
  count('select count(*) from events where inbound_event_id like $1', `${prefix}-%`)

test('more than 5,000 events, or 16 MiB in stored form: 413 on every route, and nothing is stored', async () => {
  const cdp = await makeSource(server, { type: 'cdp' })
  const webhook = await makeSource(server, {})
  const many = pages(5_001, 'many')
  const heavy = { batch: pages(300, 'heavy'), context: padding(60 * KIB) }
  for (const path of ['/v1/batch', '/beacon/v1/batch', '/api/s/any']) {
    for (const body of [{ batch: many }, heavy]) {
      const { status, body: problem } = await post(path, body)
      assert.deepEqual([path, status, problem.code], [path, 413, 'payload_too_large'])
    }
  }
  const list = many.map(({ messageId }) => ({ event_type: 'x', inbound_event_id: messageId }))
  assert.equal((await post(cdp.path, { batch: many }, cdp.token)).status, 413)
  assert.equal((await post(cdp.path, heavy, cdp.token)).status, 413)
  assert.equal((await post(webhook.path, list, webhook.token)).status, 413)
  await server.settled()
  assert.equal((await eventsNamed('many')) + (await eventsNamed('heavy')), 0)
})

test('an event over 64 KiB is rejected, including the fields that its batch sets for all events', async () => {
  const context = padding(40 * KIB)
  const batch = [
    page('size-0', { properties: padding(30 * KIB) }),
    page('size-1', { properties: padding(20 * KIB) }),
    page('size-2', { properties: padding(30 * KIB), context: {} }),
    page('size-3', { properties: padding(70 * KIB), context: {} }),
    // Three bytes each in stored form.
    page('size-4', { properties: { padding: '€'.repeat(22 * KIB) }, context: {} }),
  ]
  const cdp = await makeSource(server, { type: 'cdp' })
  for (const { path, key } of [
    { path: '/v1/batch', key: server.tenant.trackingKey },
    { path: cdp.path, key: cdp.token },
  ]) {
    const { status, body } = await post(path, { context, batch }, key)
    assert.equal(status, 200)
    assert.deepEqual(
      body.rejected.map(({ index }: { index: number }) => index),
      [0, 3, 4],
    )
    assert.match(body.rejected[0].message, /65536 bytes/)
  }
  assert.equal((await post('/v1/batch', { batch: [batch[3]] })).status, 400)
  assert.equal((await post('/api/s/page', batch[3])).status, 413)
  assert.equal((await post('/api/s/any', batch[3])).status, 400)
  await server.settled()
  assert.equal(await eventsNamed('size'), 4)
})

test('the size of webhook events is limited only by their source', async () => {
  const webhook = await makeSource(server, {})
  const event = { event_type: 'x', inbound_event_id: 'wide-1', payload: padding(200 * KIB) }
  assert.equal((await post(webhook.path, [event], webhook.token)).body.accepted, 1)
  await server.settled()
  assert.equal(await eventsNamed('wide'), 1)
})

test('100 rejected items of a request are listed and stored, and all are counted', async () => {
  const tenant = await server.anotherTenant('rejections')
  const bad = Array.from({ length: 450 }, (_, i) => i)
  const letters = () => count('select count(*) from dead_letters where tenant_id = $1', parseTenantId(tenant.id))
  const { status, body } = await post('/v1/batch', { batch: [...bad, page('kept-1')] }, tenant.trackingKey)
  assert.deepEqual([status, body.rejected.length, body.rejected_total], [200, 100, 450])
  await server.settled()
  assert.deepEqual([await letters(), await eventsNamed('kept')], [100, 1])

  const none = await post('/v1/batch', { batch: bad }, tenant.trackingKey)
  assert.deepEqual([none.status, none.body.errors.length], [400, 100])
  assert.match(none.body.detail, /^450 validation errors/)
  assert.equal(await letters(), 100)
})

test('a source lists 100 of its rejected items, and the counts add up', async () => {
  const source = await makeSource(server, {
    rate_limit: { events: 5, per_seconds: 86_400 },
    overflow: 'drop',
  })
  const good = Array.from({ length: 200 }, (_, i) => ({ event_type: 'x', inbound_event_id: `sum-${i}` }))
  const { body } = await post(source.path, [...good, ...Array(150).fill(1)], source.token)
  assert.deepEqual([body.accepted, body.rejected.length, body.rejected_total], [5, 100, 345])
  await server.settled()
  assert.equal(await count('select count(*) from dead_letters where source_id = $1', source.id), 100)
  assert.equal(await eventsNamed('sum'), 5)
})

test('entries from before these limits are processed with little memory, and a neighbor is not delayed', async () => {
  const tenant = await server.anotherTenant('from before')
  const tenantId = parseTenantId(tenant.id)!
  const log = openPostgresLog({ pool: server.pool })
  const entry = (body: string) => ({
    claim: null,
    entry: {
      id: newEntryId(Date.now()),
      tenantId,
      kind: 'events' as const,
      orderingKey: body.slice(0, 20),
      receivedAt: new Date(),
      context: text({ route: 'cdp', kind: 'batch', ip: null, headers: {} }),
      body,
    },
  })
  const before = process.resourceUsage().maxRSS
  await log.append([
    // 5 GB, each event too large
    entry(text({ batch: pages(10_000, 'old'), context: padding(500 * KIB) })),
    // 600 MB, each event small enough
    entry(text({ batch: pages(10_000, 'older'), context: padding(60 * KIB) })),
  ])
  await server.request('/v1/track', {
    method: 'POST',
    key: server.tenant.trackingKey,
    body: text({ event_type: 'x', event_id: 'neighbor-1' }),
  })
  await server.settled()
  assert.equal(await eventsNamed('neighbor'), 1)
  assert.equal(await eventsNamed('old'), 0)
  assert.equal(await eventsNamed('older'), Math.floor((16 * MIB) / (await payloadLength('older-0'))))
  assert.equal(await count('select count(*) from dead_letters where tenant_id = $1', tenantId), 200)
  const grownMib = (process.resourceUsage().maxRSS - before) / KIB
  assert.ok(grownMib < 300, `the process has grown by ${Math.round(grownMib)} MiB`)
})

const payloadLength = (id: string) =>
  count('select length(payload) as count from events where inbound_event_id = $1', id)
