import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { startWorkerThread } from '../../src/runtime/workers.ts'
import { type OwnServer, startServer } from '../server.ts'

let server: OwnServer
before(async () => {
  server = await startServer({ KONTOR_OPS_PORT: '0' }, {}, { pipelineThread: true })
})
after(() => server.close())

const track = (body: object) =>
  server.request('/v1/track/', {
    method: 'POST',
    key: server.tenant.trackingKey,
    body: JSON.stringify(body),
  })

const list = async (path: string) => (await server.request(path, { key: server.tenant.privateKey })).body

test('accepted records and events are applied', async () => {
  await server.request('/v1/contacts', {
    method: 'POST',
    key: server.tenant.privateKey,
    body: JSON.stringify({
      ...{ entityType: 'contact', id: 'c-1', sourceUpdatedAt: '2026-01-31T12:00:00Z' },
      data: { email: 'ada@example.com', name: 'Ada' },
    }),
  })
  await track({ event_type: 'page_view', event_id: 'once', visitor: 'v-1' })
  await track({ event_type: 'page_view', event_id: 'once', visitor: 'v-1' })
  await server.settled()
  assert.equal((await list('/v1/contacts/c-1')).data.name, 'Ada')
  assert.equal((await list('/v1/events')).results.length, 1)
})

test('the thread is notified of configuration changes', async () => {
  await track({ event_type: 'signed', event_id: 's-1', visitor: 'v-2' })
  await server.settled()
  assert.equal((await list('/v1/conversions')).results.length, 0)
  await server.admin.tenants.update(server.tenant.id, { conversion_types: ['signed'] })
  // It is notified within milliseconds, and also polls every second.
  for (let n = 2; (await list('/v1/conversions')).results.length === 0; n++) {
    await track({ event_type: 'signed', event_id: `s-${n}`, visitor: 'v-2' })
    await server.settled()
  }
})

test('after a restart on the same database, processing continues', async () => {
  await server.restart()
  await track({ event_type: 'page_view', event_id: 'after', visitor: 'v-1' })
  await server.settled()
  const events = (await list('/v1/events')).results as { inbound_event_id: string }[]
  assert.ok(events.some(event => event.inbound_event_id === 'after'))
})

test('a thread that cannot start fails the start, and leaves nothing running', async () => {
  const options = {
    connection: { url: server.databaseUrl },
    workers: 1,
    eventsFloorMs: null,
    eventsRetentionMs: null,
    nats: null,
  }
  const onAppend = () => () => {}
  await assert.rejects(
    startWorkerThread(options, { logging: { level: 'no such level', pretty: false }, onAppend }),
    /level/,
  )
})
