import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { eventually } from '../eventually.ts'
import { sharedServer, startServer, type TestServer } from '../server.ts'
import { eventsOf, makeSource, rows } from './source.ts'

let server: TestServer
before(async () => {
  server = await sharedServer()
})
after(() => server.close())

const ONE = { accepted: 1, duplicates: 0, deferred: 0, rejected: [] }

test('webhook: an event is accepted, processed and listed in its normalized shape', async () => {
  const source = await makeSource(server)
  const answer = await source.post(
    { inbound_event_id: 'evt_1', event_type: 'order.shipped', payload: { order_id: 'o-1', weight: 1.5 } },
    { headers: { 'x-request-id': 'abc', 'user-agent': 'shop/1', 'x-secret': 'no' } },
  )
  assert.equal(answer.status, 200)
  assert.deepEqual(answer.body, ONE)
  await server.settled()
  const { body } = await server.request('/v1/events?event_type=order.shipped', {
    key: server.tenant.privateKey,
  })
  const [event] = body.results
  assert.equal(event.inbound_event_id, 'evt_1')
  assert.equal(event.source_config_id, source.id)
  assert.equal(event.source_type, 'webhook')
  assert.equal(event.source, 'webhook')
  assert.deepEqual(event.payload, { order_id: 'o-1', weight: 1.5 })
  assert.deepEqual(event.headers, {
    'content-type': 'application/json',
    'user-agent': 'shop/1',
    'x-request-id': 'abc',
  })
  assert.deepEqual(event.meta, { ip: '127.0.0.1' })
})

test('automation: parsed like a webhook, and recorded with its own source type', async () => {
  const source = await makeSource(server, { type: 'automation' })
  assert.deepEqual((await source.post({ event_type: 'lead.created', email: 'jo@example.com' })).body, ONE)
  const [event] = await eventsOf(server, source.id)
  assert.equal(event?.source, 'automation')
  assert.deepEqual(event?.payload, { event_type: 'lead.created', email: 'jo@example.com' })
  assert.equal(event?.meta.generated_id, true)
  assert.equal(event?.inbound_event_id, event?.id)
})

test('cdp: single calls and batches; the event name or the kind is the type', async () => {
  const source = await makeSource(server, { type: 'cdp' })
  const track = {
    type: 'track',
    event: 'Signed Up',
    messageId: 'm1',
    anonymousId: 'a',
    properties: { plan: 'x' },
  }
  assert.deepEqual((await source.post(track)).body, ONE)
  const batch = {
    batch: [
      { type: 'identify', messageId: 'm2', userId: 'u1', traits: { email: 'a@example.com' } },
      { type: 'page', messageId: 'm3', anonymousId: 'a' },
    ],
  }
  assert.deepEqual((await source.post(batch)).body, { ...ONE, accepted: 2 })
  const events = await eventsOf(server, source.id)
  assert.deepEqual(
    events.map(event => [event.event_type, event.inbound_event_id]),
    [
      ['Signed Up', 'm1'],
      ['identify', 'm2'],
      ['page', 'm3'],
    ],
  )
  assert.deepEqual(events[2]?.meta, { kind: 'page', ip: '127.0.0.1', batch_index: 1, batch_size: 2 })
})

test('the event type follows the source: set, prefix, map, path', async () => {
  const sent = { event_type: 'paid', payload: { kind: 'invoice' } }
  const overrides: [object, string, unknown][] = [
    [{ set: 'order.paid' }, 'order.paid', 'paid'],
    [{ prefix: 'shop.' }, 'shop.paid', 'paid'],
    [{ map: { paid: 'bought', other: 'x' } }, 'bought', 'paid'],
    [{ map: { other: 'x' } }, 'paid', undefined],
    [{ path: 'payload.kind' }, 'invoice', 'paid'],
    [{ path: 'payload.nothing' }, 'paid', undefined],
  ]
  for (const [override, type, from] of overrides) {
    const source = await makeSource(server, { event_type_override: override })
    assert.deepEqual((await source.post(sent)).body, ONE)
    const [event] = await eventsOf(server, source.id)
    assert.equal(event?.event_type, type)
    assert.equal(event?.meta.overridden_from, from)
  }
  const source = await makeSource(server, { event_type_override: { set: 'always' } })
  assert.equal((await source.post({ payload: {} })).status, 200)
})

test('event_id_path selects the id; a repeat of a processed event is detected on arrival and uses no budget', async () => {
  const source = await makeSource(server, {
    event_id_path: 'payload.ref',
    rate_limit: { events: 1, per_seconds: 86_400 },
  })
  const sent = { event_type: 'x', payload: { ref: 77 } }
  assert.deepEqual((await source.post(sent)).body, ONE)
  await server.settled()
  for (let i = 0; i < 3; i++) assert.deepEqual((await source.post(sent)).body, { ...ONE, accepted: 0, duplicates: 1 })
  const events = await eventsOf(server, source.id)
  assert.deepEqual(
    events.map(event => event.inbound_event_id),
    ['77'],
  )
})

test('the same id is another event at another source, and a duplicate at the same source', async () => {
  const source = await makeSource(server)
  const other = await makeSource(server)
  const sent = { inbound_event_id: 'same', event_type: 'x', payload: { n: 1 } }
  // Not detected on arrival yet: the pipeline skips it.
  const answers = await Promise.all([source.post(sent), source.post(sent), other.post(sent)])
  for (const answer of answers) assert.equal(answer.status, 200)
  assert.equal((await eventsOf(server, source.id)).length, 1)
  assert.equal((await eventsOf(server, other.id)).length, 1)
})

test('invalid items do not affect valid ones, and a batch without a valid item is a 400 with all errors', async () => {
  const source = await makeSource(server)
  const good = (id: string) => ({ inbound_event_id: id, event_type: 'x', payload: {} })
  const { status, body } = await source.post([good('a'), {}, good('b'), 7, good('a')])
  assert.equal(status, 200)
  assert.deepEqual(body, {
    accepted: 2,
    duplicates: 1,
    deferred: 0,
    rejected: [
      { index: 1, message: 'event_type is required' },
      { index: 3, message: 'an event must be a JSON object' },
    ],
  })
  assert.equal((await eventsOf(server, source.id)).length, 2)
  const letters = await rows(server, 'select body, reason from dead_letters where source_id = $1 order by id', [
    source.id,
  ])
  assert.deepEqual(letters, [
    { body: '{}', reason: 'rejected' },
    { body: '7', reason: 'rejected' },
  ])

  const refused = await source.post([{}, { event_type: '' }])
  assert.equal(refused.status, 400)
  assert.deepEqual(
    refused.body.errors.map((error: { pointer: string }) => error.pointer),
    ['/0/event_type', '/1/event_type'],
  )
  for (const empty of ['[]', '', 'null', '"x"', '{', '\u0000'])
    assert.equal((await source.post(empty)).status, 400, empty)
  assert.equal((await eventsOf(server, source.id)).length, 2)
})

test('invalid items in a batch of duplicates are still stored', async () => {
  const source = await makeSource(server)
  const known = { inbound_event_id: 'k', event_type: 'x', payload: {} }
  await source.post(known)
  await server.settled()
  const { status, body } = await source.post([known, { inbound_event_id: 'bad' }])
  assert.equal(status, 200)
  assert.deepEqual(body, {
    ...ONE,
    accepted: 0,
    duplicates: 1,
    rejected: [{ index: 1, message: 'event_type is required' }],
  })
  await server.settled()
  const letters = await rows(server, 'select body from dead_letters where source_id = $1', [source.id])
  assert.deepEqual(letters, [{ body: '{"inbound_event_id":"bad"}' }])
})

test('a Stripe event is accepted without a preset', async () => {
  const source = await makeSource(server)
  const stripe = {
    id: 'evt_9',
    object: 'event',
    type: 'charge.succeeded',
    created: 1_700_000_000,
    data: { object: { id: 'ch_1', object: 'charge', amount: 500 } },
  }
  assert.deepEqual((await source.post(stripe)).body, ONE)
  const [event] = await eventsOf(server, source.id)
  assert.equal(event?.event_type, 'charge.succeeded')
  assert.equal(event?.inbound_event_id, 'evt_9')
})

test('the body is parsed as JSON for any content type, gzipped or not, with or without a trailing slash', async () => {
  const source = await makeSource(server)
  const text = JSON.stringify({ event_type: 'x', payload: { a: 'ä' } })
  for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/octet-stream'])
    assert.equal((await source.post(text, { headers: { 'content-type': type } })).status, 200)
  const answer = await server.request(`${source.path}/`, {
    method: 'POST',
    key: source.token,
    headers: { 'content-encoding': 'gzip' },
    body: gzipSync(text),
  })
  assert.deepEqual(answer.body, ONE)
  assert.equal(
    (await eventsOf(server, source.id)).every(({ payload }) => payload.a === 'ä'),
    true,
  )
})

test('characters that PostgreSQL cannot store are replaced, also in ids, and nothing stalls', async () => {
  const source = await makeSource(server)
  const odd = '{"inbound_event_id":"a\\u0000b","event_type":"x\\ud800","payload":{"t":"\\u0000","n":1e999}}'
  assert.deepEqual((await source.post(odd)).body, ONE)
  const [event] = await eventsOf(server, source.id)
  assert.equal(event?.inbound_event_id, 'a\ufffdb')
  assert.equal(event?.event_type, 'x\ufffd')
  assert.deepEqual(event?.payload, { t: '\ufffd', n: null })
  assert.equal(event?.meta.sanitized, true)
  assert.deepEqual((await source.post(odd)).body, { ...ONE, accepted: 0, duplicates: 1 })
  const bytes = Buffer.from('{"inbound_event_id":"latin1","event_type":"x","payload":{"name":"J\u00f6rg"}}', 'latin1')
  const answer = await server.request(source.path, { method: 'POST', key: source.token, body: bytes })
  assert.deepEqual(answer.body, ONE)
  const latin1 = (await eventsOf(server, source.id)).find(event => event.inbound_event_id === 'latin1')
  assert.deepEqual([latin1?.payload, latin1?.meta.sanitized], [{ name: 'J\ufffdrg' }, true])
})

test('a source has its own body limit, which applies after decompression', async () => {
  const source = await makeSource(server, { max_body_bytes: 200 })
  const sized = (bytes: number) => JSON.stringify({ event_type: 'x', payload: { p: 'x'.repeat(bytes - 37) } })
  assert.equal(sized(200).length, 200)
  assert.equal((await source.post(sized(200))).status, 200)
  const tooLarge = await source.post(sized(201))
  assert.equal(tooLarge.status, 413)
  assert.equal(tooLarge.body.code, 'payload_too_large')
  const bomb = await server.request(source.path, {
    method: 'POST',
    key: source.token,
    headers: { 'content-encoding': 'gzip' },
    body: gzipSync(Buffer.alloc(1_000_000, 32)),
  })
  assert.equal(bomb.status, 413)
  const large = await makeSource(server, { max_body_bytes: 8_388_608 })
  assert.equal((await large.post(sized(3_000_000))).status, 200)
})

test('only the configured headers are stored, and never credentials', async () => {
  const source = await makeSource(server, { headers: ['X-Shop', 'x-missing'] })
  await source.post({ event_type: 'x' }, { headers: { 'x-shop': 'berlin', cookie: 'a=b', 'x-other': '1' } })
  const [event] = await eventsOf(server, source.id)
  assert.equal(event?.headers['x-shop'], 'berlin')
  assert.deepEqual(Object.keys(event!.headers).sort(), ['content-type', 'user-agent', 'x-shop'])
  await assert.rejects(makeSource(server, { headers: ['authorization'] }), /Invalid value/)
})

test('a result outlives its event if events have a retention', async () => {
  const own = await startServer({ KONTOR_EVENTS_RETENTION: '1d' })
  try {
    const source = await makeSource(own)
    await source.post({ inbound_event_id: 'kept', event_type: 'x', payload: { amount: 12.5 } })
    await own.settled()
    const { key } = await own.admin.keys.create({ kind: 'admin' })
    const [event] = await rows<{ id: string }>(own, 'delete from events returning id')
    const { body } = await own.request(`/admin/v1/archive/${event!.id}`, { key })
    assert.deepEqual([body.result.inbound_event_id, body.result.payload], ['kept', { amount: 12.5 }])
  } finally {
    await own.close()
  }
})

test('each event has one receipt and one archived result', async () => {
  const source = await makeSource(server)
  await source.post([
    { inbound_event_id: 'r1', event_type: 'x', payload: { amount: 12.5 } },
    { inbound_event_id: 'r1', event_type: 'x' },
    {},
  ])
  await server.settled()
  await source.post({ inbound_event_id: 'r1', event_type: 'x' })
  const { key } = await server.admin.keys.create({ kind: 'admin' })
  const receipts = async () => (await server.request(`/admin/v1/receipts?source=${source.id}`, { key })).body.results
  await eventually('four receipts', async () => (await receipts()).length >= 4)
  assert.deepEqual((await receipts()).map((receipt: Record<string, unknown>) => receipt.outcome).sort(), [
    'dead_letter',
    'duplicate',
    'duplicate',
    'processed',
  ])
  const filtered = await server.request(`/admin/v1/receipts?source=${source.id}&outcome=processed`, { key })
  const [receipt] = filtered.body.results
  assert.equal(receipt.inbound_event_id, 'r1')
  // The pipeline finds the repeat in the same request. The later repeat is detected on arrival and names the first event.
  const late = (await receipts()).filter((repeat: Record<string, unknown>) => repeat.detail !== null)
  assert.deepEqual(late.map((repeat: Record<string, unknown>) => [repeat.outcome, repeat.detail]).sort(), [
    ['dead_letter', 'event_type is required'],
    ['duplicate', `same id as event ${receipt.id}`],
  ])
  const repeat = late.find((found: Record<string, unknown>) => found.outcome === 'duplicate')
  const found = await server.request(`/v1/events/${repeat.id}`, { key: server.tenant.privateKey })
  assert.deepEqual([found.body.status, found.body.duplicate_of], ['duplicate', receipt.id])
  const archive = await server.request(`/admin/v1/archive/${receipt.id}`, { key })
  assert.equal(archive.status, 200)
  assert.deepEqual(archive.body.result, {
    inbound_event_id: 'r1',
    source_config_id: source.id,
    source_type: 'webhook',
    provider_event_id: null,
    event_type: 'x',
    occurred_at: receipt.received_at,
    received_at: receipt.received_at,
    headers: { 'content-type': 'application/json', 'user-agent': 'node' },
    meta: { ip: '127.0.0.1', batch_index: 0, batch_size: 3 },
    payload: { amount: 12.5 },
  })
  const processed = await rows(server, 'select event_id from processed_events where event_id = $1', [receipt.id])
  assert.equal(processed.length, 1)
  assert.equal((await server.request('/admin/v1/archive/nothing', { key })).status, 404)
  assert.equal((await server.request('/admin/v1/receipts', { key: server.tenant.privateKey })).status, 401)

  const first = await server.request(`/admin/v1/receipts?source=${source.id}&limit=3`, { key })
  const second = await server.request(
    `/admin/v1/receipts?source=${source.id}&limit=3&cursor=${first.body.next_cursor}`,
    { key },
  )
  assert.equal(first.body.results.length, 3)
  assert.equal(second.body.results.length, 1)
  assert.equal(second.body.next_cursor, null)
})
