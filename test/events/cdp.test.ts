import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { startServer, type TestServer } from '../server.ts'
import { json, type Row, rowsOf } from './rows.ts'

let server: TestServer
before(async () => {
  server = await startServer()
})
after(() => server.close())

const LONG = ['track', 'identify', 'page', 'screen', 'group', 'alias']
const SHORT: Record<string, string> = {
  t: 'track',
  i: 'identify',
  p: 'page',
  s: 'screen',
  g: 'group',
  a: 'alias',
}

function post(path: string, body: unknown, options: RequestInit & { key?: string } = {}) {
  return server.request(path, {
    method: 'POST',
    key: server.tenant.trackingKey,
    body: typeof body === 'string' || body instanceof Uint8Array ? (body as RequestInit['body']) : json(body),
    ...options,
  })
}

let lastId = 0
const messageId = () => `message-${++lastId}`

async function byMessageId(): Promise<Map<string, Row>> {
  const rows = [...(await rowsOf(server, 'events')), ...(await rowsOf(server, 'conversions'))]
  return new Map(rows.map(row => [row.inbound_event_id, row]))
}

const message = (kind: string, more: object = {}) => ({
  messageId: messageId(),
  anonymousId: 'anon-1',
  ...(kind === 'track' ? { event: 'Signed Up', properties: { plan: 'pro' } } : {}),
  ...(kind === 'identify' ? { userId: 'user-1', traits: { email: 'ada@example.com' } } : {}),
  ...(kind === 'group' ? { groupId: 'g-1' } : {}),
  ...(kind === 'alias' ? { userId: 'user-1', previousId: 'anon-0' } : {}),
  ...more,
})

test('every kind of call is accepted on its long, browser and Jitsu route', async () => {
  const sent: [string, string][] = []
  const paths = [
    ...LONG.map(kind => [`/v1/${kind}`, kind]),
    ...Object.entries(SHORT).map(([letter, kind]) => [`/v1/${letter}`, kind]),
    ...LONG.flatMap(kind => [
      [`/api/s/${kind}`, kind],
      [`/api/s/s2s/${kind}/`, kind],
    ]),
  ] as [string, string][]
  for (const [path, kind] of paths) {
    const sentMessage = message(kind)
    const { status, body } = await post(path, sentMessage)
    assert.equal(status, 200, path)
    assert.deepEqual(body, { success: true })
    sent.push([sentMessage.messageId, kind])
  }
  const rows = await byMessageId()
  for (const [id, kind] of sent) {
    const row = rows.get(id)
    assert.equal(row.event_type, kind === 'track' ? 'Signed Up' : kind)
    assert.equal(row.meta.kind, kind)
    assert.equal(row.visitor, 'anon-1')
    assert.equal(row.source, 'cdp')
    assert.equal(row.source_type, 'cdp')
    assert.equal(row.provider_event_id, id)
  }
})

test('batches are accepted on every batch route; the type of an item is its kind', async () => {
  for (const path of ['/v1/batch', '/v1/import', '/v1/b', '/beacon/v1/batch', '/api/s/batch', '/api/s/s2s/batch']) {
    const items = LONG.map(kind => ({ type: kind, ...message(kind) }))
    const { status, body } = await post(path, { batch: items, sentAt: new Date().toISOString() })
    assert.equal(status, 200, path)
    assert.deepEqual(body, { success: true })
    const rows = await byMessageId()
    items.forEach((item, index) => {
      const row = rows.get(item.messageId)
      assert.equal(row.event_type, item.type === 'track' ? 'Signed Up' : item.type, path)
      assert.equal(row.meta.batch_index, index)
      assert.equal(row.meta.batch_size, items.length)
    })
  }
})

test('/v1/track is the native route with event_type, the CDP route otherwise', async () => {
  assert.deepEqual((await post('/v1/track', { event_type: 'native' })).body, {})
  assert.deepEqual((await post('/v1/track', message('track'))).body, { success: true })
  const refused = await post('/v1/track', { messageId: messageId(), userId: 'u' })
  assert.equal(refused.status, 400)
  assert.deepEqual(refused.body.errors, [{ pointer: '/event', message: 'is required' }])
})

test('credentials are accepted in every form that SDKs send', async () => {
  const { trackingKey, privateKey } = server.tenant
  const basic = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`
  const forms = (key: string): [string, RequestInit & { key?: string }, object][] => [
    ['/v1/batch', { headers: { authorization: basic(`${key}:`) } }, {}],
    ['/v1/batch', { headers: { authorization: basic(key) } }, {}],
    ['/v1/batch', { headers: { authorization: `Bearer ${key}` } }, {}],
    ['/v1/batch', { headers: { authorization: `bearer ${key}` } }, {}],
    ['/v1/batch', {}, { writeKey: key }],
    [`/v1/batch?writeKey=${key}`, {}, {}],
    [`/beacon/v1/batch?writeKey=${key}`, {}, {}],
    [`/v1/batch?key=${key}`, {}, {}],
    ['/v1/batch', { headers: { 'x-write-key': key } }, {}],
    ['/api/s/batch', { headers: { 'x-write-key': `${key}:secret` } }, {}],
  ]
  for (const [path, options, more] of forms(trackingKey)) {
    const item = { type: 'track', ...message('track') }
    const answer = await post(path, { batch: [item], ...more }, { key: '', ...options })
    assert.deepEqual(answer.body, { success: true }, `${path} ${json(options)} ${json(more)}`)
    const row = (await byMessageId()).get(item.messageId)
    assert.ok(!json(row).includes(trackingKey), 'a credential was kept')
  }
  for (const wrong of [privateKey, 'trk_unknown', 'x']) {
    for (const [path, options, more] of forms(wrong)) {
      const answer = await post(path, { batch: [message('track')], ...more }, { key: '', ...options })
      assert.equal(answer.status, 401, `${path} ${json(options)} ${json(more)}`)
      assert.match(answer.headers.get('www-authenticate')!, /^Bearer/)
    }
  }
  const single = message('page', { writeKey: trackingKey })
  assert.deepEqual((await post('/v1/p', single, { key: '' })).body, { success: true })
  assert.equal((await byMessageId()).get(single.messageId).payload.writeKey, undefined)
  assert.equal((await post('/v1/batch', { batch: [message('page')] }, { key: '' })).status, 401)
})

test('a gzip batch of RudderStack with the Content-Type of a form is accepted', async () => {
  const items = [{ type: 'track', ...message('track') }]
  const { body } = await post('/v1/batch', gzipSync(json({ batch: items })), {
    headers: { 'content-encoding': 'gzip', 'content-type': 'application/x-www-form-urlencoded' },
  })
  assert.deepEqual(body, { success: true })
  assert.ok((await byMessageId()).has(items[0]!.messageId))
})

test('a beacon with text/plain and the key in the query is accepted', async () => {
  const items = [{ type: 'page', ...message('page') }]
  const { body } = await post(
    `/beacon/v1/batch?writeKey=${server.tenant.trackingKey}`,
    { batch: items },
    {
      key: '',
      headers: { 'content-type': 'text/plain;charset=UTF-8' },
    },
  )
  assert.deepEqual(body, { success: true })
  assert.ok((await byMessageId()).has(items[0]!.messageId))
})

test('invalid items do not affect valid ones: the response lists them and they become dead letters', async () => {
  const good = [message('track'), message('page')]
  const bad = [{ type: 'track', messageId: messageId() }, 'no object', { type: 'dance', messageId: messageId() }]
  const batch = [{ type: 'track', ...good[0] }, bad[0], bad[1], { type: 'page', ...good[1] }, bad[2]]
  const { status, body } = await post('/v1/batch', { batch })
  assert.equal(status, 200)
  assert.equal(body.success, true)
  assert.deepEqual(
    body.rejected.map((item: { index: number }) => item.index),
    [1, 2, 4],
  )
  assert.deepEqual(body.rejected[0], { index: 1, message: 'event is required' })
  const rows = await byMessageId()
  for (const item of good) assert.ok(rows.has(item.messageId))
  const { rows: letters } = await server.pool.query('select reason, error, body from dead_letters order by id')
  assert.deepEqual(
    letters.map(letter => [letter.reason, JSON.parse(letter.body)]),
    bad.map(item => ['rejected', item]),
  )
})

test('an item that is nested too deep does not affect the others, but a single call is rejected', async () => {
  const deep = (levels: number) =>
    `{"type":"track","event":"Deep","messageId":"${messageId()}","properties":${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}}`
  const valid = message('track', { type: 'track' })
  for (const levels of [198, 1_000]) {
    const { status, body } = await post(
      '/v1/batch',
      `{"batch":[${json({ ...valid, messageId: `${levels}` })},${deep(levels)}]}`,
    )
    assert.equal(status, 200)
    assert.equal(body.rejected.length, 1)
    assert.equal(body.rejected[0].index, 1)
    assert.match(body.rejected[0].message, /nested 198 levels deep/)
    await server.settled()
    assert.ok((await byMessageId()).has(`${levels}`))
  }
  const { status, body } = await post('/v1/batch', `{"batch":[${deep(197)}]}`)
  assert.equal(status, 200, json(body))
  const shared = await post(
    '/v1/batch',
    `{"context":${'{"a":'.repeat(300)}1${'}'.repeat(300)},"batch":[${json(valid)}]}`,
  )
  assert.equal(shared.status, 400)
  for (const text of [deep(200), `{"batch":[${deep(5_000)}]}`]) {
    const { status, body } = await post(text.startsWith('{"batch"') ? '/v1/batch' : '/v1/track', text)
    assert.equal(status, 400)
    assert.equal(body.code, 'malformed_json')
  }
})

test('only a batch without any valid item is a 400, with all errors', async () => {
  const refused = await post('/v1/batch', { batch: [{ type: 'track' }, { type: 'nothing' }, 5] })
  assert.equal(refused.status, 400)
  assert.deepEqual(
    refused.body.errors.map((error: { pointer: string }) => error.pointer),
    ['/batch/0/event', '/batch/1/type', '/batch/2'],
  )
  for (const body of [{ batch: [] }, { batch: {} }, {}, [], '{', '5']) {
    assert.equal((await post('/v1/batch', body)).status, 400, json(body))
  }
})

test('a batch may have 1 MiB, a single call 64 KiB', async () => {
  const item = (bytes: number) => ({
    type: 'track',
    ...message('track'),
    properties: { fill: 'x'.repeat(bytes) },
  })
  assert.equal((await post('/v1/t', item(60_000))).status, 200)
  assert.equal((await post('/v1/t', item(66_000))).status, 413)
  assert.equal((await post('/v1/batch', { batch: Array.from({ length: 16 }, () => item(60_000)) })).status, 200)
  assert.equal((await post('/v1/batch', { batch: Array.from({ length: 18 }, () => item(60_000)) })).status, 413)
  const zipped = gzipSync(json({ batch: Array.from({ length: 18 }, () => item(60_000)) }))
  assert.equal((await post('/v1/batch', zipped, { headers: { 'content-encoding': 'gzip' } })).status, 413)
})

test('a messageId counts once per tenant: in a batch, across batches, concurrently, on every route', async () => {
  const other = await server.anotherTenant('other shop')
  const id = messageId()
  const once = { type: 'track', messageId: id, event: 'Once', userId: 'u' }
  await post('/v1/batch', { batch: [once, once, { ...once, event: 'Once again' }] })
  const results = await Promise.all(
    Array.from({ length: 20 }, (_, i) =>
      i % 2 ? post('/v1/batch', { batch: [once] }) : post('/v1/track', { ...once, anonymousId: `a-${i}` }),
    ),
  )
  assert.ok(results.every(answer => answer.status === 200))
  // the native route calls the same id event_id
  await post('/v1/track', { event_type: 'Once', event_id: id })
  await post('/v1/track', once, { key: other.trackingKey })
  const own = (await rowsOf(server, 'events')).filter(row => row.inbound_event_id === id)
  assert.equal(own.length, 1)
  const theirs = await rowsOf(server, 'events', { key: other.privateKey })
  assert.deepEqual(
    theirs.map(row => row.inbound_event_id),
    [id],
  )
})

test('a client clock that is off by more than five minutes is corrected by sentAt', async () => {
  const now = Date.now()
  const at = (ms: number) => new Date(now + ms).toISOString()
  const day = 86_400_000
  const send = async (timestamp: string | undefined, sentAt: string, inItem = false) => {
    const page = { type: 'page', ...message('page'), timestamp, ...(inItem ? { sentAt } : {}) }
    await post('/v1/batch', { batch: [page], ...(inItem ? {} : { sentAt }) })
    const row = (await byMessageId()).get(page.messageId)
    return { row, occurred: Date.parse(row.occurred_at), received: Date.parse(row.received_at) }
  }
  const within = await send(at(-60_000 + 240_000), at(240_000))
  assert.equal(within.occurred, now + 180_000, 'up to five minutes: the word of the client')
  for (const skew of [-day, day]) {
    for (const inItem of [false, true]) {
      const { occurred, received } = await send(at(skew - 60_000), at(skew), inItem)
      assert.equal(received - occurred, 60_000, `skew ${skew}`)
    }
  }
  const old = await send(at(-30 * day), at(0))
  assert.equal(old.occurred, now - 30 * day, 'an old event of a right clock')
  const unsent = await send(undefined, at(0))
  assert.equal(unsent.occurred, unsent.received)
  const ahead = await send(at(day), at(0))
  assert.equal(ahead.occurred, ahead.received)
  assert.equal(ahead.row.meta.client_time, at(day))
})

test('metrics of browser SDKs are accepted and ignored', async () => {
  const before = (await byMessageId()).size
  for (const key of [server.tenant.trackingKey, '']) {
    const answer = await post('/v1/m', { series: [{ type: 'Counter', metric: 'x', value: 1 }] }, { key })
    assert.equal(answer.status, 200)
  }
  assert.equal((await byMessageId()).size, before)
})

test('settings point the browser SDK at this host', async () => {
  const { status, body, headers } = await server.request(`/v1/projects/${server.tenant.trackingKey}/settings`)
  assert.equal(status, 200)
  assert.equal(headers.get('access-control-allow-origin'), '*')
  const settings = body.integrations['Segment.io']
  assert.equal(`${settings.protocol}://${settings.apiHost}`, `${server.url}/v1`)
  assert.equal(settings.apiKey, server.tenant.trackingKey)
  const behindTls = await server.request(`/v1/projects/${server.tenant.trackingKey}/settings`, {
    headers: { 'x-forwarded-proto': 'https, http' },
  })
  assert.equal(behindTls.body.integrations['Segment.io'].protocol, 'https')
})
