import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { startServer, type TestServer, type TestTenant } from '../server.ts'
import { json, rowsOf } from './rows.ts'

// Duplicate detection, also between public tracking keys and server keys: docs/guides/events.md.

let server: TestServer
before(async () => {
  server = await startServer()
})
after(() => server.close())

async function send(key: string, ...events: object[]): Promise<void> {
  const batch = events.map(event => ({ type: 'track', anonymousId: 'v', ...event }))
  const { status } = await server.request('/v1/batch', { method: 'POST', key, body: json({ batch }) })
  assert.equal(status, 200)
}

async function tenantWithKeys(name: string) {
  const tenant = await server.anotherTenant(name)
  const { key } = await server.admin.keys.create({ tenant: tenant.id, kind: 'tracking', server: true })
  await server.settled()
  return { tenant, browser: tenant.trackingKey, backend: key }
}

const stored = async (tenant: TestTenant) => {
  await server.settled()
  return (await rowsOf(server, 'events', { key: tenant.privateKey })).map(row => row.event_type).sort()
}

test('an id that a public tracking key used does not make an event of a server a duplicate', async () => {
  const { tenant, browser, backend } = await tenantWithKeys('ids used first by a browser')
  await send(browser, { messageId: '1', event: 'forged' })
  await server.settled()
  await send(backend, { messageId: '1', event: 'genuine' })
  assert.deepEqual(await stored(tenant), ['forged', 'genuine'])
  // Each is a duplicate of its own kind, and the browser's also of the server's.
  await send(backend, { messageId: '1', event: 'genuine again' })
  await send(browser, { messageId: '1', event: 'forged again' })
  assert.deepEqual(await stored(tenant), ['forged', 'genuine'])
  const { body } = await server.request('/v1/events/lookup?event_id=1', { key: tenant.privateKey })
  assert.equal(body.event.event_type, 'genuine', 'the verified event is found first')
})

test('an id that a server used makes later events of a public tracking key duplicates', async () => {
  const { tenant, browser, backend } = await tenantWithKeys('ids used first by a server')
  await send(backend, { messageId: '1', event: 'genuine' })
  await server.settled()
  await send(browser, { messageId: '1', event: 'forged' }, { messageId: '2', event: 'another' })
  assert.deepEqual(await stored(tenant), ['another', 'genuine'])
})

test('a CDP call without a messageId is recognized by its event_id', async () => {
  const tenant = await server.anotherTenant('event_id of a CDP call')
  await send(tenant.trackingKey, { event_id: '1', event: 'first' }, { event_id: '1', event: 'repeated in the batch' })
  await server.settled()
  await send(tenant.trackingKey, { event_id: 1, event: 'as a number' }, { messageId: '1', event: 'as messageId' })
  await send(tenant.trackingKey, { messageId: '2', event_id: '1', event: 'messageId counts' })
  assert.deepEqual(await stored(tenant), ['first', 'messageId counts'])
})

test('the same holds for events that are processed together', async () => {
  const { tenant, browser, backend } = await tenantWithKeys('ids used at once')
  const ids = Array.from({ length: 40 }, (_, i) => `${i}`)
  await Promise.all(
    ids.flatMap(messageId => [
      send(browser, { messageId, event: 'forged', anonymousId: messageId }),
      send(backend, { messageId, event: 'genuine', anonymousId: messageId }),
    ]),
  )
  const found = await stored(tenant)
  assert.equal(found.filter(type => type === 'genuine').length, ids.length)
  assert.ok(found.filter(type => type === 'forged').length <= ids.length)
})

test('purging a public tracking key does not release the ids of verified events', async () => {
  const { tenant, browser, backend } = await tenantWithKeys('ids after a purge')
  await send(browser, { messageId: '1', event: 'forged' })
  await server.settled()
  await send(backend, { messageId: '1', event: 'genuine' })
  await server.settled()
  const keys = await server.admin.keys.list(tenant.id)
  const publicKey = keys.find(({ kind, server }) => kind === 'tracking' && !server)!
  await server.admin.purges.purge({ tenant: tenant.id, key: publicKey.id, since: '2026-01-01T00:00:00Z' })
  assert.deepEqual(await stored(tenant), ['genuine'])
  await send(backend, { messageId: '1', event: 'genuine again' })
  await send(browser, { messageId: '1', event: 'forged again' })
  assert.deepEqual(await stored(tenant), ['genuine'])
})
