import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { zstdCompressSync } from 'node:zlib'
import { newEntryId } from '../../src/domain/ids.ts'
import { pack } from '../../src/log/jetstream/messages.ts'
import { connectTo } from '../../src/log/jetstream/nats.ts'
import { LogUnavailable } from '../../src/log/log.ts'
import type { Runtime } from '../../src/runtime/runtime.ts'
import { startNode } from '../events/node.ts'
import { openWire } from '../events/wire.ts'
import { eventually } from '../eventually.ts'
import { type TestNats, testNats, withoutNats } from '../nats.ts'
import { startServer, type TestServer, type TestTenant } from '../server.ts'
import { anAppend } from './entries.ts'
import { natsSettings } from './open-jetstream.ts'

const json = JSON.stringify

describe('the service on JetStream', { skip: withoutNats }, () => {
  let nats: TestNats
  let server: TestServer
  /** On its own node, so that tests can stop it. */
  let worker: Runtime
  const settings = () => ({ NATS_URL: nats.url, KONTOR_NATS_MAX_BYTES: '8MiB' })
  async function startWorker() {
    worker = await startNode(server, 'worker', undefined, settings())
  }
  before(async () => {
    nats = await testNats()
    server = await startServer({ ...settings(), KONTOR_SURFACES: 'data,events,inbound,console' })
    await startWorker()
  })
  after(async () => {
    await worker.close()
    await server.close()
    await nats.end()
  })

  const send = (path: string, body: object, key = server.tenant.trackingKey) =>
    server.request(path, { method: 'POST', key, body: json(body) })
  const listed = async (type: string) => {
    await server.settled()
    const { body } = await server.request(`/v1/events?event_type=${type}&limit=100`, {
      key: server.tenant.privateKey,
    })
    return body.results as {
      inbound_event_id: string
      visitor: string
      payload: { data: { fill: string } }
    }[]
  }
  /** The stream's state and configuration. */
  async function stream() {
    const { connection, manager } = await connectTo(natsSettings(nats.url).access, 'test')
    const info = await manager.streams.info('kontor', { subjects_filter: '>' })
    await connection.close()
    return info
  }
  async function aSource(config: object = {}) {
    const source = await server.admin.sources.create({ tenant: server.tenant.id, type: 'webhook', ...config })
    const path = `/ingest/inbound/${source.id}`
    return { ...source, path }
  }

  test('events, CDP calls and inbound requests are written to the stream, records are not', async () => {
    assert.equal((await send('/v1/track/', { event_type: 'native', event_id: 'n-1' })).status, 200)
    assert.equal((await send('/v1/batch', { batch: [{ type: 'page', messageId: 'p-1' }] })).status, 200)
    const before = await stream()
    assert.equal(before.state.messages, 2)
    assert.deepEqual(
      Object.keys(before.state.subjects!).filter(subject => !/^kontor\.log\.[0-3]$/.test(subject)),
      [],
    )
    assert.equal(before.config.discard, 'new')
    assert.equal(before.config.storage, 'file')
    const product = { entityType: 'product', id: 'p1', sourceUpdatedAt: '2026-01-01T00:00:00Z', data: {} }
    assert.equal((await send('/v1/products', product, server.tenant.privateKey)).status, 202)
    await server.settled()
    assert.equal((await stream()).state.messages, 2)
    assert.equal((await listed('native')).length, 1)
    assert.equal((await listed('page')).length, 1)
    const product1 = await server.request('/v1/products/p1', { key: server.tenant.privateKey })
    assert.equal(product1.status, 200)
  })

  test('a node without NATS_URL or with another stream is refused while others write to it, and these continue', async () => {
    await server.settled()
    for (const other of [{}, { ...settings(), KONTOR_NATS_STREAM: 'kontorr' }])
      await assert.rejects(
        startNode(server, 'data,worker', undefined, other),
        /Another node .+ writes to the JetStream stream kontor, .+same NATS_URL and KONTOR_NATS_STREAM/,
      )
    assert.equal((await send('/v1/track/', { event_type: 'still accepted', event_id: 'g-1' })).status, 200)
    assert.equal((await listed('still%20accepted')).length, 1)
  })

  test('a body of three times the message limit is stored in parts, which are deleted once it is read', async () => {
    const source = await aSource({ max_body_bytes: 8 * 2 ** 20 })
    // 3 MiB that cannot be compressed
    const fill = randomBytes(3 * 2 ** 20 * 0.75).toString('base64')
    const answer = await server.request(source.path, {
      method: 'POST',
      headers: { authorization: `Bearer ${source.token}` },
      body: json({ inbound_event_id: 'large', event_type: 'large', payload: { data: { fill } } }),
    })
    assert.deepEqual([answer.status, answer.body.accepted], [200, 1], json(answer.body).slice(0, 500))
    const [event] = await listed('large')
    assert.equal(event!.payload.data.fill, fill)
    await send('/v1/track/', { event_type: 'after' })
    await eventually('the parts to be gone', async () => {
      await server.settled()
      return Object.keys((await stream()).state.subjects!).every(subject => !subject.includes('.part.'))
    })
  })

  test('a full stream returns 503, loses nothing, and accepts events again once some are processed', async () => {
    await worker.close()
    // 10 MB that cannot be compressed
    const answers = await Promise.all(
      Array.from({ length: 200 }, (_, i) => {
        const fill = randomBytes(36_000).toString('base64')
        return send('/v1/track/', { event_type: 'filling', event_id: `f-${i}`, data: { fill } })
      }),
    )
    const accepted = answers.flatMap(({ status }, i) => (status === 200 ? [`f-${i}`] : []))
    const refused = answers.filter(({ status }) => status !== 200)
    assert.ok(accepted.length > 50 && refused.length > 0, `${accepted.length} accepted`)
    for (const { status, headers } of refused) {
      assert.equal(status, 503)
      assert.match(headers.get('retry-after')!, /^[1-9]\d*$/)
    }
    await startWorker()
    await eventually('the stream to take events again', async () => {
      return (await send('/v1/track/', { event_type: 'room', event_id: 'room' })).status === 200
    })
    await server.settled()
    const { rows } = await server.pool.query<{ id: string }>(
      `select inbound_event_id as id from events where event_type = 'filling'`,
    )
    assert.deepEqual(rows.map(({ id }) => id).sort(), accepted.sort())
  })

  test('the backlog is visible and limited: 503 above KONTOR_MAX_BACKLOG, and nothing accepted is lost', async () => {
    const max = 1_000
    await worker.close()
    const node = await startNode(server, 'events', undefined, {
      ...{ ...settings(), KONTOR_MAX_BACKLOG: String(max), KONTOR_OPS_PORT: '0' },
    })
    const track = async () => {
      const body = json({ event_type: 'ahead' })
      const headers = { authorization: `Bearer ${server.tenant.trackingKey}` }
      const response = await fetch(`${node.url}/v1/track`, { method: 'POST', headers, body })
      return { status: response.status, answer: (await response.json()) as { code?: string } }
    }
    // Not all at once: requests in flight when the limit is reached are still accepted.
    let accepted = 0
    await eventually('a limit', async () => {
      assert.ok(accepted < max + 100, 'more was accepted than the limit and the requests in flight')
      const answers = await Promise.all(Array.from({ length: 50 }, track))
      const refused = answers.filter(({ status, answer }) => status === 503 && answer.code === 'backlog_full')
      accepted += answers.filter(({ status }) => status === 200).length
      // Entries appended during a count may be counted twice until the next count.
      return refused.length === 50 && accepted >= max
    })
    const opsText = async (path: string) => (await fetch(node.opsUrl! + path)).text()
    assert.ok(Number(/^kontor_backlog_entries (\d+)$/m.exec(await opsText('/metrics'))?.[1]) >= max)
    assert.match(await opsText('/readyz'), /KONTOR_MAX_BACKLOG is 1,000: writes are answered with 503/)
    await startWorker()
    await eventually('something being taken in again', async () => (await track()).status === 200)
    await server.settled()
    await node.close()
    const { rows } = await server.pool.query(`select count(*) from events where event_type = 'ahead'`)
    assert.equal(rows[0].count, accepted + 1)
  })

  test('while NATS is unavailable, events get 503, records and reads work; after recovery everything works', async () => {
    await nats.kill()
    const away = await send('/v1/track/', { event_type: 'away', event_id: 'a-1' })
    assert.equal(away.status, 503)
    assert.match(away.headers.get('retry-after')!, /^[1-9]\d*$/)
    assert.doesNotMatch(json(away.body), /nats|stream/i)
    const product = { entityType: 'product', id: 'p2', sourceUpdatedAt: '2026-01-01T00:00:00Z', data: {} }
    const record = await server.request('/v1/products', {
      ...{ method: 'POST', key: server.tenant.privateKey, body: json(product) },
    })
    assert.equal(record.status, 202)
    const read = (path: string) => server.request(path, { key: server.tenant.privateKey })
    // A worker that was reading from NATS waits for its time limit first.
    await eventually('the record to be applied', async () => (await read('/v1/products/p2')).status === 200)
    const reads = async (path: string) => (await read(path)).status
    assert.equal(await reads('/v1/events'), 200)
    assert.equal(await reads('/v1/events/lookup?event_id=n-1'), 200)
    assert.equal(await reads('/v1/operations/01890000-0000-7000-8000-000000000000'), 404)
    // The backlog in NATS is unknown, not zero: a backlog that was full stays full.
    await assert.rejects(server.log.lag({ complete: true }), LogUnavailable)
    assert.equal((await server.admin.health.show(server.tenant.id)).waiting, null)
    assert.equal((await server.log.outside!.status()).unread, null)
    await nats.start()
    await eventually('NATS to be used again', async () => {
      return (await send('/v1/track/', { event_type: 'away', event_id: 'a-1' })).status === 200
    })
    assert.equal((await listed('away')).length, 1)
  })

  test('foreign messages are skipped, broken messages of Kontor are kept, and neither blocks later messages', async () => {
    await worker.close()
    const { connection, js, manager, packages } = await connectTo(natsSettings(nats.url).access, 'test')
    const id = '01890000-0000-7000-8000-000000000000'
    const facts = { id, entries: 2, from: 0, to: 0, isCompressed: false, parts: 0 }
    const put = async (subject: string, body: string, header?: string) => {
      const headers = packages.headers()
      if (header !== undefined) headers.set('Kontor', header)
      await js.publish(subject, body, { headers })
    }
    const tenantId = Number(server.tenant.id.slice('ten_'.length))
    for (let partition = 0; partition < 4; partition++) {
      await put(`kontor.log.${partition}`, 'hello junk')
      await put(`kontor.log.${partition}`, '[["not","an","entry"]]', json({ ...facts, tenants: [tenantId, 999] }))
      await put(`kontor.log.${partition}`, '[]', '{"id":')
    }
    await put('kontor.log.9999', 'junk')
    await put('kontor.log.0.part.junk.0', 'junk')
    await put('kontor.log.1', '{"event_type":"no event"}', json({ ...facts, tenants: [tenantId] }))
    for (let i = 0; i < 20; i++)
      assert.equal((await send('/v1/track/', { event_type: 'beside', event_id: `b-${i}` })).status, 200)
    assert.equal((await server.log.outside!.status()).unread, 4 * (2 + 1) + 2 + 20)
    const found = await server.request('/v1/events/lookup?event_id=b-3', { key: server.tenant.privateKey })
    assert.equal(found.body.status, 'queued')
    await startWorker()
    assert.equal((await listed('beside')).length, 20)
    const { unread, skippedMessages } = await server.log.outside!.status()
    assert.deepEqual([unread, skippedMessages.foreign?.messages, skippedMessages.unreadable?.messages], [0, 4, 9])
    assert.match(skippedMessages.unreadable!.subject, /^kontor\.log\.[0-3]$/)
    const letters = await server.admin.deadLetters.list({ tenant: server.tenant.id, limit: 10 })
    assert.equal(letters.length, 1)
    assert.match((await server.admin.deadLetters.show(letters[0]!.id)).body, /cannot be read.*eyJldmVudF90eXBl/s)
    const kept = await server.pool.query('select from jetstream_skipped_messages where payload is not null')
    assert.equal(kept.rowCount, 8)
    await server.log.outside!.forgetRead()
    for (const filter of ['kontor.log.9999', 'kontor.log.0.part.junk.0'])
      await manager.streams.purge('kontor', { filter })
    await connection.close()
    assert.equal(
      (await server.pool.query('select from jetstream_skipped_messages where payload is not null')).rowCount,
      0,
    )
  })

  test('a message with impossible headers is ignored and blocks nothing', async t => {
    await worker.close()
    const { connection, js, packages } = await connectTo(natsSettings(nats.url).access, 'test')
    t.after(() => connection.close())
    const tenantId = Number(server.tenant.id.slice('ten_'.length))
    const facts = { entries: 1, from: 0, to: 0, isCompressed: false, parts: 0, tenants: [tenantId] }
    const put = async (partition: number, payload: Uint8Array, said: object = {}) => {
      const headers = packages.headers()
      headers.set('Kontor', json({ ...facts, id: newEntryId(Date.now()), ...said }))
      await js.publish(`kontor.log.${partition}`, payload, { headers })
    }
    const entryAt = (receivedAt: number) => {
      const context = json({ route: 'track', ip: null, headers: {} })
      const facts = {
        id: newEntryId(Date.now()),
        tenantId,
        kind: 'events',
        orderingKey: 'k',
        context,
      } as const
      const body = json({ event_type: 'impossible' })
      return pack([anAppend({ ...facts, receivedAt: new Date(receivedAt), body })], 1_000_000)[0]!.payload
    }
    const bomb = zstdCompressSync(Buffer.alloc(129 * 1024 ** 2))
    for (let partition = 0; partition < 4; partition++) {
      for (const time of [-220_000_000_000_000, -8.64e15, 8.64e15, 253_402_300_800_000]) {
        await put(partition, entryAt(time))
        await put(partition, Buffer.from('unreadable'), { to: time })
      }
      await put(partition, entryAt(0), { entries: Number.MAX_SAFE_INTEGER })
    }
    // In one partition: each reader decompresses 128 MB of it.
    await put(0, bomb, { isCompressed: true })
    // Each counts as one entry, whatever its headers say, so that the backlog does not appear full.
    assert.equal((await server.log.outside!.status()).unread, 4 * 9 + 1)
    for (let i = 0; i < 20; i++)
      assert.equal((await send('/v1/track/', { event_type: 'afterwards', event_id: `i-${i}` })).status, 200)
    await startWorker()
    assert.equal((await listed('afterwards')).length, 20)
    assert.equal((await server.log.outside!.status()).unread, 0)
    assert.deepEqual(await listed('impossible'), [])
  })

  test('an unread event is found by lookup, and an erasure waits for it and leaves nothing in the stream', async () => {
    await worker.close()
    await send('/v1/track/', {
      event_type: 'mine',
      event_id: 'm-1',
      visitor: 'v-9',
      data: { email: 'eve@example.com' },
    })
    const { trackingKey } = server.tenant
    await server.request('/v1/identify', {
      ...{ method: 'POST', key: trackingKey },
      body: json({
        userId: 'eve',
        anonymousId: 'v-9',
        messageId: 'i-1',
        traits: { email: 'eve@example.com' },
      }),
    })
    const found = await server.request('/v1/events/lookup?event_id=m-1', { key: server.tenant.privateKey })
    assert.deepEqual([found.status, found.body.status], [200, 'queued'])
    const erasing = server.admin.erasures.erase({ tenant: server.tenant.id, email: 'eve@example.com' })
    await startWorker()
    const receipt = await erasing
    assert.equal(receipt.not_yet_processed, 0)
    assert.ok(receipt.erased.events >= 1)
    assert.equal((await stream()).state.messages, 0)
    assert.equal((await listed('mine')).length, 0)
  })

  describe('while PostgreSQL is unavailable', () => {
    let wire: Awaited<ReturnType<typeof openWire>>
    let node: Runtime
    let unknown: TestTenant
    let source: Awaited<ReturnType<typeof aSource>>
    before(async () => {
      // Before the node starts: a change would clear its cache.
      unknown = await server.anotherTenant('never seen')
      source = await aSource()
      const url = new URL(server.databaseUrl)
      wire = await openWire({ host: url.hostname, port: Number(url.port) })
      url.port = String(wire.port)
      node = await startNode(server, 'events,inbound', url.href, settings())
    })
    after(async () => {
      await node.close()
      await wire.close()
    })

    test('cached keys and sources are accepted, unknown keys get 503, and everything is processed later', async () => {
      const track = (key: string, id: string) =>
        fetch(`${node.url}/v1/track/`, {
          method: 'POST',
          headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
          body: json({ event_type: 'outage', event_id: id }),
        })
      const ingest = (id: string) =>
        fetch(node.url + source.path, {
          method: 'POST',
          headers: { authorization: `Bearer ${source.token}`, 'content-type': 'application/json' },
          body: json({ inbound_event_id: id, event_type: 'outage', payload: {} }),
        })
      assert.equal((await track(server.tenant.trackingKey, 'o-1')).status, 200)
      assert.equal((await ingest('i-1')).status, 200)
      wire.cut()
      assert.equal((await track(server.tenant.trackingKey, 'o-2')).status, 200)
      assert.equal((await ingest('i-2')).status, 200)
      assert.equal((await track(unknown.trackingKey, 'o-3')).status, 503)
      wire.reconnect()
      const ids = (await listed('outage')).map(row => row.inbound_event_id)
      assert.deepEqual(ids.sort(), ['i-1', 'i-2', 'o-1', 'o-2'])
    })
  })
})
