import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { eventually } from '../eventually.ts'
import { sharedServer, type TestServer } from '../server.ts'
import { eventOfBytes, json, rowsOf } from './rows.ts'

let server: TestServer
before(async () => {
  server = await sharedServer()
})
after(() => server.close())

const EVENT_FIELDS = [
  ...['id', 'event_type', 'occurred_at', 'received_at', 'source', 'source_type', 'source_config_id'],
  ...['inbound_event_id', 'provider_event_id', 'visitor', 'session_id', 'profile_id', 'contact_id'],
  ...['verified', 'payload', 'headers', 'meta'],
]

function track(body: unknown, options: RequestInit & { key?: string; path?: string } = {}) {
  const { path = '/v1/track/', ...init } = options
  return server.request(path, {
    method: 'POST',
    key: server.tenant.trackingKey,
    body: typeof body === 'string' || body instanceof Uint8Array ? (body as RequestInit['body']) : json(body),
    ...init,
  })
}

/** The one event of a type. */
async function stored(eventType: string) {
  const rows = await rowsOf(server, 'events', { query: `&event_type=${encodeURIComponent(eventType)}` })
  assert.equal(rows.length, 1, `${rows.length} events ${eventType}`)
  return rows[0]
}

test('GET / needs no credentials', async () => {
  const { status, body, headers } = await server.request('/')
  assert.equal(status, 200)
  assert.match(headers.get('content-type')!, /^application\/json/)
  assert.equal(typeof body.message, 'string')
})

test('the response to an event is {}, and the event is listed with every field', async () => {
  const before = Date.now()
  const { status, body } = await track({
    event_type: 'page_view',
    visitor: 'v-1',
    session_id: 's-1',
    data: { page: 'https://shop.example/?utm_source=x' },
  })
  assert.equal(status, 200)
  assert.deepEqual(body, {})

  const row = await stored('page_view')
  assert.deepEqual(Object.keys(row), EVENT_FIELDS)
  assert.match(row.id, /^[0-9a-f-]{36}$/)
  assert.match(row.profile_id, /^prof_\d+$/)
  // The server has the time of PostgreSQL, to half a second (src/runtime/clock.ts).
  const received = Date.parse(row.received_at)
  assert.ok(received >= before - 1_000 && received <= Date.now() + 1_000, row.received_at)
  const { id, profile_id, received_at, headers, ...facts } = row
  assert.deepEqual(facts, {
    event_type: 'page_view',
    occurred_at: received_at,
    source: 'tracking',
    source_type: 'tracking',
    source_config_id: null,
    inbound_event_id: null,
    provider_event_id: null,
    visitor: 'v-1',
    session_id: 's-1',
    contact_id: null,
    verified: false,
    payload: { page: 'https://shop.example/?utm_source=x' },
    meta: { kind: 'track', ip: '127.0.0.1' },
  })
  assert.equal(headers['content-type'], 'application/json')
  assert.equal(headers.authorization, undefined)
})

test('only event_type is required, and other fields are kept in the payload', async () => {
  assert.equal((await track({ event_type: 'bare' })).status, 200)
  assert.deepEqual((await stored('bare')).payload, {})
  await track({ event_type: 'extra', plan: 'pro', nested: { a: [1] }, data: { page: '/', plan: 'own' } })
  assert.deepEqual((await stored('extra')).payload, { page: '/', plan: 'own', nested: { a: [1] } })
})

test('event_id, occurred_at and user_id are read', async () => {
  const event = {
    event_type: 'full',
    event_id: 'evt-1',
    occurred_at: '2026-01-31T10:00:00+01:00',
    user_id: 'user-7',
  }
  for (let i = 0; i < 3; i++) assert.deepEqual((await track(event)).body, {})
  const row = await stored('full')
  assert.equal(row.inbound_event_id, 'evt-1')
  assert.equal(row.occurred_at, '2026-01-31T09:00:00.000Z')
  assert.deepEqual(row.payload, {})
  await track({ event_type: 'full later', user_id: 'user-7' })
  assert.equal((await stored('full later')).profile_id, row.profile_id)
})

test('an event older than the limit gets the time of the limit and keeps its own in meta; a server may send any time', async () => {
  const long = '2001-02-03T04:05:06.000Z'
  await track({ event_type: 'long ago', occurred_at: long })
  const row = await stored('long ago')
  assert.equal(Date.parse(row.received_at) - Date.parse(row.occurred_at), 3_650 * 86_400_000)
  assert.equal(row.meta.client_time, long)
  const tenant = await server.tenantWithServerKey('imports history')
  await server.request('/v1/track', {
    method: 'POST',
    key: tenant.trackingKey,
    body: JSON.stringify({ event_type: 'imported', occurred_at: long }),
  })
  await server.settled()
  const { body } = await server.request('/v1/events', { key: tenant.privateKey })
  assert.equal(body.results[0].occurred_at, long)
})

test('a tenant can set its own age limit, which applies without a restart', async () => {
  const tenant = await server.anotherTenant('own floor')
  const long = '2001-02-03T04:05:06.000Z'
  const sentWith = async (events_floor: string | null) => {
    await server.admin.tenants.update(tenant.id, { events_floor })
    return eventually(`the floor ${events_floor} to count`, async () => {
      await server.request('/v1/track', {
        method: 'POST',
        key: tenant.trackingKey,
        body: JSON.stringify({ event_type: 'long ago', occurred_at: long }),
      })
      await server.settled()
      const { body } = await server.request('/v1/events?limit=100', { key: tenant.privateKey })
      const ages = body.results.map(
        (row: { received_at: string; occurred_at: string }) =>
          (Date.parse(row.received_at) - Date.parse(row.occurred_at)) / 86_400_000,
      )
      if (events_floor === 'off') return ages.some((age: number) => age > 9_000)
      return ages.includes(events_floor === null ? 3_650 : Number.parseInt(events_floor, 10))
    })
  }
  for (const floor of [null, '30d', 'off']) await sentWith(floor)
})

test('an event with a future time gets the time of receipt and keeps its own in meta', async () => {
  const soon = new Date(Date.now() + 4 * 60_000).toISOString()
  const later = new Date(Date.now() + 6 * 60_000).toISOString()
  await track({ event_type: 'soon', occurred_at: soon })
  await track({ event_type: 'later', occurred_at: later })
  assert.equal((await stored('soon')).occurred_at, soon)
  const row = await stored('later')
  assert.equal(row.occurred_at, row.received_at)
  assert.equal(row.meta.client_time, later)
})

test('names have 1 to 200 characters, and all errors are reported together', async () => {
  assert.equal((await track({ event_type: 'n'.repeat(200) })).status, 200)
  assert.equal((await track({ event_type: '😀'.repeat(200) })).status, 200)
  const refused = await track({
    event_type: 'n'.repeat(201),
    visitor: {},
    session_id: [],
    occurred_at: 'yesterday',
    data: 'x',
  })
  assert.equal(refused.status, 400)
  assert.match(refused.headers.get('content-type')!, /^application\/problem\+json/)
  assert.deepEqual(refused.body.errors.map((error: { pointer: string }) => error.pointer).sort(), [
    '/data',
    '/event_type',
    '/occurred_at',
    '/session_id',
    '/visitor',
  ])
  for (const body of [{}, { event_type: '' }, { event_type: 5 }, { event_type: null }, [], 'null', '"x"']) {
    assert.equal((await track(body)).status, 400, json(body))
  }
  const malformed = await track('{"event_type": ')
  assert.equal(malformed.status, 400)
  assert.equal(malformed.body.code, 'malformed_json')
  assert.equal((await track('')).status, 400)
})

test('the body is parsed as JSON with any Content-Type', async () => {
  const types = ['text/plain;charset=UTF-8', 'application/x-www-form-urlencoded', 'application/octet-stream']
  for (const type of types) {
    const event = { event_type: `typed ${type}` }
    assert.equal((await track(event, { headers: { 'content-type': type } })).status, 200, type)
    assert.equal((await stored(event.event_type)).headers['content-type'], type)
  }
  const untyped = await track(new TextEncoder().encode(json({ event_type: 'untyped' })), {
    headers: { 'content-type': '' },
  })
  assert.equal(untyped.status, 200)
  await stored('untyped')
})

test('gzip is accepted with any Content-Type; invalid gzip is rejected', async () => {
  const zipped = gzipSync(json({ event_type: 'zipped', visitor: 'z' }))
  const headers = { 'content-encoding': 'gzip', 'content-type': 'application/x-www-form-urlencoded' }
  assert.equal((await track(zipped, { headers })).status, 200)
  assert.equal((await stored('zipped')).visitor, 'z')
  assert.equal((await track('{}', { headers })).status, 400)
  assert.equal((await track('{}', { headers: { 'content-encoding': 'br' } })).status, 415)
})

test('one event may have 64 KiB after decompression', async () => {
  assert.equal((await track(eventOfBytes(65_536))).status, 200)
  assert.equal((await track(eventOfBytes(65_537))).status, 413)
  const headers = { 'content-encoding': 'gzip' }
  assert.equal((await track(gzipSync(eventOfBytes(65_536)), { headers })).status, 200)
  const over = await track(gzipSync(eventOfBytes(65_537)), { headers })
  assert.equal(over.status, 413)
  assert.equal(over.body.code, 'payload_too_large')
  assert.match(over.body.detail, /^The body is larger than 65,536 bytes\. Compressed bodies are measured after/)
})

test('a trailing slash does not matter', async () => {
  for (const path of ['/v1/track', '/v1/track/']) {
    assert.deepEqual((await track({ event_type: `at ${path}` }, { path })).body, {})
    await stored(`at ${path}`)
  }
})

test('the key is accepted as bearer or in the query; anything else is 401 with a challenge', async () => {
  const { trackingKey, privateKey } = server.tenant
  const event = { event_type: 'keyed' }
  const byQuery = await track(event, { key: '', path: `/v1/track/?key=${trackingKey}` })
  assert.equal(byQuery.status, 200)
  const byBody = await track({ event_type: 'keyed in the body', writeKey: trackingKey }, { key: '' })
  assert.deepEqual(byBody.body, {})
  assert.deepEqual((await stored('keyed in the body')).payload, {})
  const tries: [string, RequestInit & { key?: string; path?: string }][] = [
    ['missing_credentials', { key: '' }],
    ['invalid_credentials', { key: 'trk_unknown' }],
    ['wrong_key_kind', { key: privateKey }],
    ['wrong_key_kind', { key: '', path: `/v1/track/?key=${privateKey}` }],
  ]
  for (const [code, options] of tries) {
    const { status, body, headers } = await track(event, options)
    assert.equal(status, 401, code)
    assert.equal(body.code, code)
    assert.match(headers.get('www-authenticate')!, /^Bearer/)
    // a page must be able to read the error
    assert.equal(headers.get('access-control-allow-origin'), '*')
  }
  for (const path of ['/v1/events', '/v1/conversions']) {
    assert.equal((await server.request(path, { key: trackingKey })).status, 401)
    assert.equal((await server.request(path)).status, 401)
  }
})

test('any origin may send events, with the headers of real SDKs', async () => {
  const wanted =
    'authorization,content-type,x-retry-count,anonymousid,sentat,x-write-key,rsa-anonymous-id,rsa-retry-attempt,x-ip-policy'
  for (const path of ['/v1/track/', '/v1/track', '/v1/b', '/v1/batch', '/beacon/v1/batch', '/api/s/track']) {
    const preflight = await server.request(path, {
      method: 'OPTIONS',
      headers: {
        origin: 'https://shop.example',
        'access-control-request-method': 'POST',
        'access-control-request-headers': wanted,
      },
    })
    assert.equal(preflight.status, 204, path)
    assert.equal(preflight.headers.get('access-control-allow-origin'), '*')
    assert.match(preflight.headers.get('access-control-allow-methods')!, /POST/)
    const allowed = preflight.headers.get('access-control-allow-headers')!.split(', ')
    for (const name of wanted.split(',')) assert.ok(allowed.includes(name), `${path}: ${name}`)
  }
  const sent = await track({ event_type: 'from a page' }, { headers: { origin: 'https://shop.example' } })
  assert.equal(sent.headers.get('access-control-allow-origin'), '*')
  assert.match(sent.headers.get('access-control-expose-headers')!, /retry-after/)
})

test('characters that cannot be stored are replaced, and processing continues', async () => {
  const bad = '{"event_type":"odd","visitor":"a\\u0000b","data":{"text":"\\ud800","k\\u0000":1}}'
  assert.deepEqual((await track(bad)).body, {})
  await track({ event_type: 'after odd' })
  const row = await stored('odd')
  assert.equal(row.visitor, 'a\ufffdb')
  assert.deepEqual(row.payload, { text: '\ufffd', 'k\ufffd': 1 })
  assert.equal(row.meta.sanitized, true)
  assert.equal((await stored('after odd')).meta.sanitized, undefined)

  const invalidUtf8 = Buffer.concat([Buffer.from('{"event_type":"bytes'), Buffer.from([0xff, 0xc0]), Buffer.from('"}')])
  assert.equal((await track(invalidUtf8)).status, 200)
  assert.equal((await stored('bytes\ufffd\ufffd')).meta.sanitized, true)
  await track({ event_type: 'replaced by the sender \ufffd' })
  assert.equal((await stored('replaced by the sender \ufffd')).meta.sanitized, undefined)
  const escaped = Buffer.concat([Buffer.from('{"event_type":"\\'), Buffer.from([0xff]), Buffer.from('"}')])
  assert.equal((await track(escaped)).status, 400)
  await track('{"event_type":"odd\\u0000name"}')
  await stored('odd\ufffdname')
})

test('numbers keep all their digits', async () => {
  await track(
    '{"event_type":"digits","data":{"big":12345678901234567890,"price":0.10,"tiny":1e-7,"id":9007199254740993}}',
  )
  await server.settled()
  const response = await fetch(`${server.url}/v1/events?event_type=digits`, {
    headers: { authorization: `Bearer ${server.tenant.privateKey}` },
  })
  const text = await response.text()
  for (const digits of ['12345678901234567890', '9007199254740993', '0.10']) assert.ok(text.includes(digits), text)
})

test('events of bots are marked and stored', async () => {
  const agents: [string, boolean][] = [
    ['Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)', true],
    ['Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0 Safari/537.36', false],
    ['analytics-node (3.1.0)', false],
  ]
  for (const [agent, isBot] of agents) {
    await track({ event_type: agent }, { headers: { 'user-agent': agent } })
    assert.equal((await stored(agent)).meta.bot, isBot ? true : undefined, agent)
  }
})

test('a 405 lists the allowed methods; an unknown path is a problem too', async () => {
  const { status, headers } = await server.request('/v1/track/')
  assert.equal(status, 405)
  assert.match(headers.get('allow')!, /POST/)
  const unknown = await server.request('/v1/trakc', { method: 'POST', body: '{}' })
  assert.equal(unknown.status, 404)
  assert.equal(unknown.body.code, 'not_found')
})
