import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { rowsOf } from '../events/rows.ts'
import { eventually } from '../eventually.ts'
import { makeSource } from '../inbound/source.ts'
import { startServer, type TestServer } from '../server.ts'

let server: TestServer
let adminKey: string
before(async () => {
  server = await startServer({ KONTOR_FAILED_AUTH_LIMIT: '5', KONTOR_VOLUME_STORE: 'postgres' })
  adminKey = (await server.admin.keys.create({ kind: 'admin' })).key
})
after(() => server.close())

const text = (value: unknown) => JSON.stringify(value)
const send = (path: string, body: object, headers: Record<string, string> = {}) =>
  server.request(path, { method: 'POST', body: text(body), headers })

async function limitedKey(limits: object, tenant = server.tenant.id) {
  const body = text({ tenant, kind: 'tracking', ...limits })
  const made = await server.request('/admin/v1/keys', { method: 'POST', key: adminKey, body })
  assert.equal(made.status, 201, text(made.body))
  return made.body as { id: string; key: string }
}

test('a key with allowed origins is rejected from others, in every place of the request; without an Origin it is accepted', async () => {
  const { id, key } = await limitedKey({ origins: ['https://shop.example'] })
  const event = { type: 'page' }
  for (const [path, body, headers] of [
    ['/v1/page', event, { authorization: `Bearer ${key}` }],
    [`/v1/page?writeKey=${key}`, event, {}],
    ['/v1/page', { ...event, writeKey: key }, {}],
    ['/v1/batch', { batch: [{ ...event, writeKey: key }] }, {}],
  ] as [string, object, Record<string, string>][]) {
    const from = async (origin: string) => {
      const { status, body: problem } = await send(path, body, { ...headers, origin })
      return [status, problem.code]
    }
    assert.deepEqual(await from('https://evil.example'), [403, 'origin_not_allowed'])
    assert.deepEqual(await from('null'), [403, 'origin_not_allowed'])
    assert.deepEqual(await from('https://shop.example'), [200, undefined])
    assert.equal((await send(path, body, headers)).status, 200)
  }
  const change = (body: object) =>
    server.request(`/admin/v1/keys/${id}`, { method: 'PATCH', key: adminKey, body: text(body) })
  const opened = await change({ origins: [] })
  assert.deepEqual([opened.status, opened.body.origins], [200, []])
  const query = `/v1/page?key=${key}`
  await eventually('every page to be allowed', async () => {
    return (await send(query, event, { origin: 'https://evil.example' })).status === 200
  })
  assert.equal((await change({ origins: ['shop.example'] })).status, 400)
})

test('a key with allowed event types: other items are rejected, another single event is a 403', async () => {
  const tenant = await server.anotherTenant('event types')
  const { key } = await limitedKey({ event_types: ['viewed', 'page'] }, tenant.id)
  const headers = { authorization: `Bearer ${key}` }
  assert.equal((await send('/v1/track', { event_type: 'viewed' }, headers)).status, 200)
  for (const [path, body] of [
    ['/v1/track', { event_type: 'convert' }],
    ['/v1/t', { event: 'convert' }],
    ['/v1/identify', { userId: 'u-1' }],
  ] as [string, object][]) {
    const { status, body: problem } = await send(path, body, headers)
    assert.deepEqual([status, problem.code], [403, 'event_type_not_allowed'], path)
  }
  const batch = [
    { type: 'track', event: 'convert' },
    { type: 'page' },
    { type: 'track', event: 'viewed' },
    { type: 'alias', userId: 'u-1', previousId: 'u-2' },
  ]
  const { status, body } = await send('/v1/batch', { batch }, headers)
  assert.deepEqual([status, body.rejected.map(({ index }: { index: number }) => index)], [200, [0, 3]])
  assert.equal((await send('/v1/batch', { batch: [batch[0]] }, headers)).status, 400)
  const rows = await rowsOf(server, 'events', { key: tenant.privateKey })
  assert.deepEqual(rows.map(row => row.event_type).sort(), ['page', 'viewed', 'viewed'])
  assert.deepEqual(await rowsOf(server, 'conversions', { key: tenant.privateKey }), [])
})

test('a key with a rate limit: a request is accepted whole or answered with 429, and a neighbor is unaffected', async () => {
  const { key } = await limitedKey({ rate_limit: { events: 10, per_seconds: 3_600 } })
  const headers = { authorization: `Bearer ${key}` }
  const pages = (count: number) => ({ batch: Array(count).fill({ type: 'page' }) })
  assert.equal((await send('/v1/batch', pages(8), headers)).status, 200)
  const over = await send('/v1/batch', pages(3), headers)
  assert.deepEqual([over.status, over.body.code], [429, 'too_many_requests'])
  assert.ok(Number(over.headers.get('retry-after')) >= 1)
  // A rejected request used no budget.
  const singles = await Promise.all(Array.from({ length: 6 }, () => send('/v1/page', {}, headers)))
  assert.deepEqual(singles.map(({ status }) => status).sort(), [200, 200, 429, 429, 429, 429])
  const neighbor = { authorization: `Bearer ${server.tenant.trackingKey}` }
  assert.equal((await send('/v1/batch', pages(20), neighbor)).status, 200)
})

test('the admin API rejects a rate limit of zero, of a key and of a source', async () => {
  const { id } = await limitedKey({})
  const source = await makeSource(server, {})
  for (const rate_limit of [
    { events: 0, per_seconds: 0 },
    { events: 0, per_seconds: 1 },
    { events: 1, per_seconds: 0 },
  ])
    for (const [method, path, body] of [
      ['POST', '/admin/v1/keys', { tenant: server.tenant.id, kind: 'tracking' }],
      ['PATCH', `/admin/v1/keys/${id}`, {}],
      ['POST', '/admin/v1/sources', { tenant: server.tenant.id, type: 'webhook' }],
      ['PATCH', `/admin/v1/sources/${source.id}`, {}],
    ] as const) {
      const given = text({ ...body, rate_limit })
      const { status, body: problem } = await server.request(path, { method, key: adminKey, body: given })
      assert.equal(status, 400, `${method} ${path}`)
      assert.match(problem.errors[0].pointer, /^\/rate_limit/)
    }
})

test('only tracking keys can have limits', async () => {
  for (const kind of ['private', 'admin']) {
    const body = text({ tenant: server.tenant.id, kind, origins: ['https://shop.example'] })
    const { status } = await server.request('/admin/v1/keys', { method: 'POST', key: adminKey, body })
    assert.equal(status, 400)
  }
})

test('repeated invalid credentials are answered with 429; valid ones from the same address are unaffected', async () => {
  const source = await makeSource(server, {})
  const guess = (path: string, body: object) => send(path, body, { authorization: 'Bearer private-guess' })
  const statuses: number[] = []
  await eventually('guesses to be refused', async () => {
    const guesses = await Promise.all([
      ...Array.from({ length: 4 }, () => guess('/v1/products', { id: 'p' })),
      ...Array.from({ length: 4 }, () => guess('/v1/track', { event_type: 'x' })),
      ...Array.from({ length: 4 }, () => guess(source.path, { event_type: 'x' })),
    ])
    const good = await send('/v1/page', {}, { authorization: `Bearer ${server.tenant.trackingKey}` })
    assert.equal(good.status, 200)
    statuses.push(...guesses.map(({ status }) => status))
    return statuses.includes(429)
  })
  assert.deepEqual(new Set(statuses), new Set([401, 429]))
})

test('guessed invitations are limited like other credentials; a valid one from the same address is unaffected', async () => {
  const { invitation } = await server.admin.users.invite({ name: 'invited' })
  const headers = { 'x-kontor-console': '1', origin: server.url }
  const statuses: number[] = []
  await eventually('guesses to be answered, then refused', async () => {
    const guesses = await Promise.all(
      ['/console/invitation', '/console/invitation/accept'].flatMap(path =>
        Array.from({ length: 6 }, (_, i) =>
          send(path, { token: String(i).repeat(43), password: 'correct horse battery' }, headers),
        ),
      ),
    )
    assert.equal((await send('/console/invitation', { token: invitation }, headers)).status, 200)
    statuses.push(...guesses.map(({ status }) => status))
    return statuses.includes(404) && statuses.includes(429)
  })
  assert.deepEqual(new Set(statuses), new Set([404, 429]))
})
