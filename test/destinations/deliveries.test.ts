import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { Webhook } from 'standardwebhooks'
import { SYSTEM } from '../../src/admin/actor.ts'
import { destinationAdmin } from '../../src/admin/destinations.ts'
import { openSecrets } from '../../src/admin/secrets.ts'
import { startDeliveries } from '../../src/jobs/deliveries.ts'
import { eventually } from '../eventually.ts'
import { startServer, TEST_SECRET_KEY, type TestTenant } from '../server.ts'
import { created, ended, inDays, item, send, updated } from '../subscriptions/shop.ts'
import { startReceiver } from './receiver.ts'

const receiver = await startReceiver()
const server = await startServer({ KONTOR_ALLOW_PRIVATE_DESTINATIONS: 'true' })
after(async () => {
  await server.close()
  await receiver.close()
})

const { destinations } = server.admin
const post = (path: string, key: string, body: object) =>
  server.request(path, { method: 'POST', key, body: JSON.stringify(body) })
const track = (tenant: TestTenant, event: object) => post('/v1/track', tenant.trackingKey, event)
const record = (tenant: TestTenant, entityType: string, id: string, sourceUpdatedAt: string, data: object) =>
  post(`/v1/${entityType}s`, tenant.privateKey, { entityType, id, sourceUpdatedAt, data })
const sentTo = (path: string, count: number) =>
  eventually(`${count} messages at ${path}`, () => {
    const got = receiver.on(path)
    return got.length >= count && got
  })
const drained = (id: string) =>
  eventually('nothing left to send', async () => (await destinations.show(id)).health.pending === 0)
const makeDue = (id: string) =>
  server.pool.query(
    'update delivery_queue set next_attempt_at = now() where destination_id = $1 and next_attempt_at > now()',
    [id],
  )

/** All messages were attempted. */
const drainedForNow = (id: string) =>
  eventually('nothing due', async () => {
    const { rows } = await server.pool.query<{ due: boolean }>(
      'select exists (select from delivery_queue where destination_id = $1 and next_attempt_at <= now()) as due',
      [id],
    )
    return !rows[0]!.due
  })

test('an event is sent once, signed according to Standard Webhooks, with the row of the API as its data', async () => {
  const tenant = await server.anotherTenant('signed')
  const destination = await destinations.create({
    tenant: tenant.id,
    url: `${receiver.url}/signed`,
    what: ['events'],
    headers: { authorization: 'Bearer abc', 'x-house': 'number 7' },
  })
  await track(tenant, { event_type: 'page_view', visitor: 'v-1', data: { page: 'https://shop.example/ü' } })
  const [got] = await sentTo('/signed', 1)
  const body = new Webhook(destination.secret!).verify(got!.text, got!.headers as Record<string, string>)
  const listed = (await server.request('/v1/events', { key: tenant.privateKey })).body.results
  assert.deepEqual((body as { data: unknown }).data, listed[0])
  assert.equal(got!.body.type, 'event.page_view')
  assert.equal(got!.body.id, got!.headers['webhook-id'])
  assert.ok(Math.abs(Date.parse(got!.body.timestamp) - Date.now()) < 60_000)
  assert.equal(got!.headers.authorization, 'Bearer abc')
  assert.equal(got!.headers['x-house'], 'number 7')
  assert.deepEqual((await destinations.show(destination.id)).headers, { authorization: '…', 'x-house': '…' })
  await drained(destination.id)
  const [attempt] = await destinations.deliveries(destination.id, { limit: 10, outcome: null, before: null })
  assert.equal(attempt?.outcome, 'delivered')
  assert.equal(attempt?.status, 204)
  assert.equal(receiver.on('/signed').length, 1)
})

test('each destination receives only the subscribed messages of its own tenant', async () => {
  const tenant = await server.anotherTenant('choosy')
  const make = (path: string, what: string[], event_types: string[] = []) =>
    destinations.create({ tenant: tenant.id, url: receiver.url + path, what, event_types })
  const all = await Promise.all([
    make('/some', ['events'], ['order.*', 'signup']),
    make('/records', ['records']),
    make('/sales', ['conversions']),
  ])
  await track(server.tenant, { event_type: 'signup', visitor: 'unlinked' })
  for (const event_type of ['page_view', 'order.shipped', 'signup', 'signup_late'])
    await track(tenant, { event_type, visitor: 'v-2' })
  await record(tenant, 'product', 'p-1', '2026-01-01T00:00:00Z', { sku: 'MUG' })
  await record(tenant, 'order', 'o-1', '2026-01-01T00:00:00Z', { total: 10, currency: 'EUR' })
  await server.settled()
  await record(tenant, 'order', 'o-1', '2026-01-02T00:00:00Z', { total: 12.5, currency: 'EUR' })
  await server.settled()
  // The same amount again does not change the sale.
  await record(tenant, 'order', 'o-1', '2026-01-03T00:00:00Z', { total: 12.5, currency: 'EUR', note: 'x' })
  await server.settled()
  await server.request('/v1/orders', {
    method: 'DELETE',
    key: tenant.privateKey,
    body: JSON.stringify({ entityType: 'order', id: 'o-1', sourceUpdatedAt: '2026-01-04T00:00:00Z' }),
  })
  await server.settled()
  for (const { id } of all) await drained(id)
  const types = (path: string) => receiver.on(path).map(({ body }) => body.type)
  assert.deepEqual(types('/some').sort(), ['event.order.shipped', 'event.signup'])
  assert.deepEqual(types('/records').sort(), [
    'order.deleted',
    'order.updated',
    'order.updated',
    'order.updated',
    'product.updated',
  ])
  const sales = receiver.on('/sales').map(({ body }) => [body.type, body.data.amount])
  assert.deepEqual(
    sales.sort((a, b) => (a[0] < b[0] ? -1 : 1)),
    [
      ['conversion.created', 10],
      ['conversion.deleted', 12.5],
      ['conversion.updated', 12.5],
    ],
  )
})

test('an order and an event of one sale that arrive together cause one conversion.created', async () => {
  const tenant = await server.anotherTenant('together')
  const destination = await destinations.create({
    tenant: tenant.id,
    url: `${receiver.url}/together`,
    what: ['conversions'],
  })
  await track(tenant, { event_type: 'convert', visitor: 'v-3', data: { order_id: 'o-9', amount: 5 } })
  await server.settled()
  await record(tenant, 'order', 'o-9', '2026-01-01T00:00:00Z', { total: 7, currency: 'EUR' })
  await server.settled()
  await drained(destination.id)
  const got = receiver.on('/together').map(({ body }) => body)
  const types = got.map(({ type }) => type)
  assert.deepEqual(types.sort(), ['conversion.created', 'conversion.updated'])
  assert.equal(new Set(got.map(({ data }) => data.id)).size, 1)
})

test('a sale is sent again when its contact becomes known, also by a merge, but not for another identifier of the same person', async () => {
  const tenant = await server.tenantWithServerKey('whose')
  const destination = await destinations.create({
    tenant: tenant.id,
    url: `${receiver.url}/whose`,
    what: ['conversions'],
  })
  const identify = (anonymousId: string, userId: string, email?: string) =>
    post('/v1/identify', tenant.trackingKey, { type: 'identify', anonymousId, userId, traits: { email } })
  await track(tenant, { event_type: 'convert', visitor: 'v-w', data: { amount: 5 } })
  await server.settled()
  await identify('v-w', 'u-w')
  await server.settled()
  await record(tenant, 'contact', 'c-w', '2026-01-01T00:00:00Z', { email: 'w@example.com' })
  await server.settled()
  await identify('v-w', 'u-w', 'w@example.com')
  await server.settled()
  await identify('v-w2', 'u-w', 'w@example.com')
  await server.settled()
  await drained(destination.id)
  const sent = receiver.on('/whose').map(({ body }) => [body.type, body.data.contact_id])
  assert.deepEqual(sent.sort(), [
    ['conversion.created', null],
    ['conversion.updated', 'c-w'],
  ])
  const { results } = (await server.request('/v1/conversions', { key: tenant.privateKey })).body
  assert.equal(results[0].contact_id, 'c-w')
})

test('a failed delivery is retried with the same id, with increasing delays, and not before Retry-After', async () => {
  const tenant = await server.anotherTenant('retries')
  const destination = await destinations.create({
    tenant: tenant.id,
    url: `${receiver.url}/retries`,
    what: ['events'],
  })
  receiver.answerWith((_, response) => response.writeHead(503, { 'retry-after': '40' }).end('not now\0'))
  await track(tenant, { event_type: 'page_view', visitor: 'v-4' })
  await sentTo('/retries', 1)
  const attempts = async () => destinations.deliveries(destination.id, { limit: 20, outcome: null, before: null })
  const written = (count: number) =>
    eventually(`${count} attempts`, async () => {
      const found = await attempts()
      return found.length === count && found
    })
  const waits: number[] = []
  for (let attempt = 1; attempt <= 10; attempt++) {
    const [last] = await written(attempt)
    assert.equal(last!.response, 'not now\ufffd')
    if (last!.next_attempt_at) waits.push((Date.parse(last!.next_attempt_at) - Date.parse(last!.attempted_at)) / 1000)
    await makeDue(destination.id)
  }
  const scheduled = [40, 60, 300, 1800, 7200, 18_000, 36_000, 72_000, 86_400]
  assert.equal(waits.length, scheduled.length)
  for (const [i, wait] of waits.entries())
    assert.ok(wait >= scheduled[i]! && wait < scheduled[i]! * 1.2 + 20, `attempt ${i + 1} waits ${wait} s`)
  const [last] = await attempts()
  assert.equal(last!.outcome, 'failed')
  assert.equal(new Set(receiver.on('/retries').map(({ headers }) => headers['webhook-id'])).size, 1)
  const { health } = await destinations.show(destination.id)
  assert.equal(health.status, 'failing')
  assert.equal(health.pending, 0)

  receiver.answerWith((_, response) => response.writeHead(200).end())
  const { queued } = await destinations.replay(destination.id, '2020-01-01')
  assert.equal(queued, 1)
  await eventually('the replay', async () => (await attempts())[0]!.outcome === 'delivered')
  assert.equal((await destinations.show(destination.id)).health.status, 'ok')
})

test('waiting messages are retried now on request, and the body of a message can be read as it was sent', async () => {
  const tenant = await server.anotherTenant('retry now')
  const url = `${receiver.url}/retry-now`
  const destination = await destinations.create({ tenant: tenant.id, url, what: ['events'] })
  receiver.answerWith((_, response) => response.writeHead(503, { 'retry-after': '3600' }).end())
  await track(tenant, { event_type: 'page_view', visitor: 'v-now' })
  await sentTo('/retry-now', 1)
  const latest = async () =>
    (await destinations.deliveries(destination.id, { limit: 1, outcome: null, before: null }))[0]
  await eventually('the attempt', async () => (await latest())?.outcome === 'retrying')
  receiver.answerWith((_, response) => response.writeHead(200).end())
  const path = `/admin/v1/destinations/${destination.id}`
  const { key } = await server.admin.keys.create({ kind: 'admin' })
  const { body } = await server.request(`${path}/retry`, { method: 'POST', key })
  assert.deepEqual(body, { id: destination.id, retried: 1 })
  await eventually('the delivery', async () => (await latest())?.outcome === 'delivered')
  const [, sent] = receiver.on('/retry-now')
  const message = await server.request(`${path}/message?message=${sent!.headers['webhook-id']}`, { key })
  assert.equal(message.body.body, sent!.text)
  await destinations.setEnabled(destination.id, false)
  assert.equal((await server.request(`${path}/retry`, { method: 'POST', key })).status, 409)
})

test('a receiver that is unreachable for ten minutes gets every message afterwards, each with its own id', async () => {
  const tenant = await server.anotherTenant('unreachable receiver')
  const destination = await destinations.create({
    ...{ tenant: tenant.id, what: ['events'] },
    url: `${receiver.url}/unreachable`,
  })
  // The connection ends without a response, as when the receiver restarts or a proxy is gone.
  receiver.answerWith((_, response) => response.destroy())
  const names = Array.from({ length: 20 }, (_, i) => `message ${i}`)
  for (const name of names) assert.equal((await track(tenant, { event_type: name })).status, 200)
  await server.settled()
  // After ten minutes each message has been tried about four times: at once, after 5 s, 1 min and 5 min.
  for (let attempt = 1; attempt <= 4; attempt++) {
    await eventually(`attempt ${attempt} of each`, () => receiver.on('/unreachable').length >= attempt * names.length)
    await eventually('their results to be stored', async () => {
      const { rows } = await server.pool.query(
        'select from delivery_queue where destination_id = $1 and next_attempt_at > now()',
        [destination.id],
      )
      return rows.length === names.length
    })
    if (attempt === 4) receiver.answerWith((_, response) => response.writeHead(200).end())
    await makeDue(destination.id)
  }
  await drained(destination.id)
  const idsByName = Map.groupBy(receiver.on('/unreachable'), ({ body }) => body.data.event_type as string)
  assert.deepEqual([...idsByName.keys()].sort(), names.sort())
  for (const sent of idsByName.values()) assert.equal(new Set(sent.map(({ headers }) => headers['webhook-id'])).size, 1)
  const { health } = await destinations.show(destination.id)
  assert.deepEqual([health.status, health.pending], ['ok', 0])
})

test('410 disables a destination; a replay sends what occurred meanwhile, with the original ids', async () => {
  const tenant = await server.anotherTenant('gone')
  const destination = await destinations.create({
    tenant: tenant.id,
    url: `${receiver.url}/gone`,
    what: ['events'],
  })
  receiver.answerWith((_, response) => response.writeHead(410).end())
  await track(tenant, { event_type: 'page_view', visitor: 'v-5' })
  await eventually('it is disabled', async () => !(await destinations.show(destination.id)).enabled)
  assert.match((await destinations.show(destination.id)).disabled_reason!, /410/)
  const [row] = (await server.admin.audit.list({ tenant: tenant.id, limit: 1 })) as {
    action: string
    actor: string
  }[]
  assert.deepEqual([row!.action, row!.actor], ['destination.disable', 'system'])
  await track(tenant, { event_type: 'signup', visitor: 'v-5' })
  await server.settled()
  await assert.rejects(destinations.replay(destination.id, '2020-01-01'), { code: 'destination_disabled' })
  receiver.answerWith((_, response) => response.writeHead(200).end())
  await destinations.setEnabled(destination.id, true)
  assert.equal((await destinations.replay(destination.id, '2020-01-01')).queued, 2)
  await drained(destination.id)
  const types = new Set(receiver.on('/gone').map(({ body }) => body.type))
  assert.deepEqual(types, new Set(['event.page_view', 'event.signup']))
})

test('a message that is replayed while its first attempt is running is sent again', async () => {
  const tenant = await server.anotherTenant('replayed at once')
  const url = `${receiver.url}/at-once`
  const destination = await destinations.create({ tenant: tenant.id, url, what: ['events'] })
  const running: (() => void)[] = []
  receiver.answerWith((_, response) => running.push(() => response.writeHead(200).end()))
  await track(tenant, { event_type: 'page_view', visitor: 'v-7' })
  await sentTo('/at-once', 1)
  assert.equal((await destinations.replay(destination.id, '2020-01-01')).queued, 1)
  receiver.answerWith((_, response) => response.writeHead(200).end())
  for (const end of running) end()
  const [first, again] = await sentTo('/at-once', 2)
  assert.equal(again!.headers['webhook-id'], first!.headers['webhook-id'])
  await drained(destination.id)
})

test('after five days without a success a destination is disabled', async () => {
  const tenant = await server.anotherTenant('silent')
  const destination = await destinations.create({
    tenant: tenant.id,
    url: `${receiver.url}/silent`,
    what: ['events'],
  })
  receiver.answerWith((_, response) => response.writeHead(500).end())
  await track(tenant, { event_type: 'page_view', visitor: 'v-6' })
  await eventually('a failure', async () => (await destinations.show(destination.id)).health.failing_since)
  await server.pool.query(
    `update destination_states set failing_since = now() - interval '5 days 1 hour' where destination_id = $1`,
    [destination.id],
  )
  // A new name does not reset the failure.
  await destinations.update(destination.id, { name: 'renamed' })
  await makeDue(destination.id)
  await eventually('it is disabled', async () => !(await destinations.show(destination.id)).enabled)
  receiver.answerWith((_, response) => response.writeHead(200).end())
})

test('a destination that does not respond delays no other, and a redirect is not a delivery', async () => {
  const tenant = await server.anotherTenant('beside')
  const make = (path: string) => destinations.create({ tenant: tenant.id, url: receiver.url + path, what: ['events'] })
  const [hanging, moved, prompt] = await Promise.all([make('/hanging'), make('/moved'), make('/prompt')])
  receiver.answerWith(({ path }, response) => {
    if (path === '/hanging') return
    if (path === '/moved') response.writeHead(302, { location: `${receiver.url}/elsewhere` }).end()
    else response.writeHead(200).end()
  })
  for (let i = 0; i < 40; i++) await track(tenant, { event_type: 'page_view', visitor: `v-${i}` })
  await sentTo('/prompt', 40)
  await drained(prompt.id)
  await eventually('the redirect is recorded', async () => {
    const attempts = await destinations.deliveries(moved.id, { limit: 100, outcome: null, before: null })
    return attempts.some(({ outcome, status }) => outcome === 'retrying' && status === 302)
  })
  assert.equal(receiver.on('/elsewhere').length, 0)
  assert.equal((await destinations.show(hanging.id)).health.pending, 40)
  for (const { id } of [hanging, moved]) await destinations.delete(id)
  receiver.answerWith((_, response) => response.writeHead(200).end())
})

test('a response that switches protocols is a failed attempt', async () => {
  const tenant = await server.anotherTenant('switching')
  const { id } = await destinations.create({ tenant: tenant.id, url: `${receiver.url}/switching`, what: ['events'] })
  receiver.answerWith((_, response) =>
    response.socket!.write('HTTP/1.1 101 Switching Protocols\r\nupgrade: h2c\r\nconnection: upgrade\r\n\r\n'),
  )
  await track(tenant, { event_type: 'page_view', visitor: 'v-101' })
  const attempt = await eventually('an attempt', async () => {
    const [first] = await destinations.deliveries(id, { limit: 1, outcome: null, before: null })
    return first
  })
  assert.deepEqual([attempt.outcome, attempt.error], ['retrying', 'answered 101'])
  receiver.answerWith((_, response) => response.writeHead(200).end())
  await makeDue(id)
  await drained(id)
})

test('429 also pauses messages that become due afterwards', async () => {
  const tenant = await server.anotherTenant('throttled')
  const make = (path: string) => destinations.create({ tenant: tenant.id, url: receiver.url + path, what: ['events'] })
  const [throttled, prompt] = [await make('/throttled'), await make('/not-throttled')]
  receiver.answerWith(({ path }, response) =>
    path === '/throttled' ? response.writeHead(429, { 'retry-after': '40' }).end() : response.writeHead(200).end(),
  )
  await track(tenant, { event_type: 'page_view', visitor: 'v-1' })
  await eventually('the first attempt', async () => (await destinations.show(throttled.id)).health.last_attempt_at)
  for (let i = 2; i <= 6; i++) {
    await track(tenant, { event_type: 'page_view', visitor: `v-${i}` })
    await sentTo('/not-throttled', i)
    await drained(prompt.id)
  }
  assert.equal(receiver.on('/throttled').length, 1)
  for (const { id } of [throttled, prompt]) await destinations.delete(id)
  receiver.answerWith((_, response) => response.writeHead(200).end())
})

test('after an erasure, messages that wait for a slow receiver are not sent', async () => {
  const tenant = await server.tenantWithServerKey('slow')
  const { id } = await destinations.create({ tenant: tenant.id, url: `${receiver.url}/slow`, what: ['events'] })
  const waiting: (() => void)[] = []
  receiver.answerWith(({ path }, response) => {
    if (path === '/slow') waiting.push(() => response.writeHead(200).end())
    else response.writeHead(200).end()
  })
  const batch = Array.from({ length: 60 }, (_, i) => ({
    ...{
      type: 'track',
      event: 'E',
      userId: 'u-slow',
      messageId: `slow-${i}`,
      properties: { email: 'slow@example.com' },
    },
  }))
  const traits = { email: 'slow@example.com' }
  await post('/v1/identify', tenant.trackingKey, { type: 'identify', userId: 'u-slow', messageId: 'slow', traits })
  assert.equal((await post('/v1/batch', tenant.trackingKey, { batch })).status, 200)
  const inFlight = (await sentTo('/slow', 16)).length
  await server.settled()
  // On a busy machine, the worker may have read the messages long after the request.
  const began = performance.now()
  await server.admin.erasures.erase({ tenant: tenant.id, email: 'slow@example.com' })
  // shorter waits are covered by the time that an erasure takes
  await eventually('the messages in memory are old', () => performance.now() - began > 3_000)
  receiver.answerWith((_, response) => response.writeHead(200).end())
  for (const answer of waiting) answer()
  await drained(id)
  assert.equal(receiver.on('/slow').length, inFlight)
  await destinations.delete(id)
})

test('a tenant can have at most 100 destinations', async () => {
  const tenant = await server.anotherTenant('many')
  const make = () =>
    destinations.create({ tenant: tenant.id, url: `${receiver.url}/many`, what: ['events'], enabled: false })
  const { id } = await make()
  await server.pool.query(
    `insert into destinations (id, tenant_id, name, url, what, event_types, enabled, secrets, headers, created_by)
     select 'dst_many_' || n, tenant_id, name, url, what, event_types, enabled, secrets, headers, created_by
     from destinations, generate_series(2, 100) n where id = $1`,
    [id],
  )
  await assert.rejects(make(), { code: 'too_many_destinations' })
})

test('during a rotation messages are signed with both secrets', async () => {
  const tenant = await server.anotherTenant('rotating')
  const destination = await destinations.create({
    tenant: tenant.id,
    url: `${receiver.url}/rotated`,
    what: ['events'],
  })
  const { secret, secrets } = await destinations.rotate(destination.id, {})
  assert.ok(Math.abs(Date.parse(secrets[1]!.expires_at!) - Date.now() - 24 * 3_600_000) < 60_000)
  await track(tenant, { event_type: 'page_view', visitor: 'v-7' })
  const [got] = await sentTo('/rotated', 1)
  for (const good of [destination.secret!, secret])
    new Webhook(good).verify(got!.text, got!.headers as Record<string, string>)
  const test = await destinations.test(destination.id)
  assert.equal(test.ok, true)
})

test('a movement is sent once: not again when it is rewritten, and not before its time', async () => {
  const tenant = await server.anotherTenant('moving')
  const destination = await destinations.create({
    tenant: tenant.id,
    url: `${receiver.url}/moving`,
    what: ['movements'],
  })
  await send(server, [created('s-1', { customer: 'cus-1', customer_name: 'Ada' })], tenant)
  const rise = { customer: 'cus-1', items: [item(25)], updated_at: inDays(-5) }
  await send(server, [updated('s-1', rise)], tenant)
  const higher = { customer: 'cus-1', items: [item(30)] }
  await send(server, [updated('s-1', { ...rise, ...higher })], tenant)
  await send(server, [ended('s-1', inDays(2), { ...higher, updated_at: inDays(-1) })], tenant)
  await drained(destination.id)
  const sent = () => receiver.on('/moving').map(({ body }) => [body.type, body.data.mrr_delta])
  assert.deepEqual(sent().sort(), [
    ['movement.expansion', 15],
    ['movement.new', 10],
  ])
  assert.equal(receiver.on('/moving')[0]!.body.data.customer_name, 'Ada')
  // The day of the churn arrives.
  await server.pool.query(
    `update billing_movements set occurred_at = now() where type = 'churn' and occurred_at > now()`,
  )
  await sentTo('/moving', 3)
  assert.equal(sent().at(-1)![0], 'movement.churn')
})

test('a merge of accounts sends no movement, and later movements are those of the remaining account', async () => {
  const tenant = await server.anotherTenant('merging')
  const settings = { tenant: tenant.id, url: `${receiver.url}/merging`, what: ['movements' as const] }
  const destination = await destinations.create(settings)
  const two = { customer: 'cus-2', started_at: inDays(-50) }
  await send(server, [created('s-1', { customer: 'cus-1' }), created('s-2', two)], tenant)
  await server.admin.accounts.merge(tenant.id, { account: 'cus-2', into: 'cus-1' })
  await send(server, [ended('s-2', inDays(-1), two)], tenant)
  await drained(destination.id)
  const sent = receiver.on('/merging').map(({ body }) => [body.type, body.data.customer, body.data.mrr_delta])
  assert.deepEqual(sent.sort(), [
    ['movement.contraction', 'cus-1', -10],
    ['movement.new', 'cus-1', 10],
    ['movement.new', 'cus-2', 10],
  ])
})

test('an erased person is in no stored or waiting message', async () => {
  const tenant = await server.tenantWithServerKey('erased')
  const destination = await destinations.create({
    tenant: tenant.id,
    url: `${receiver.url}/erased`,
    what: ['events', 'records', 'conversions'],
  })
  receiver.answerWith((_, response) => response.writeHead(503).end('sorry ada@example.com'))
  await record(tenant, 'contact', 'c-ada', '2026-01-01T00:00:00Z', { email: 'ada@example.com', name: 'Ada' })
  await record(tenant, 'order', 'o-77', '2026-01-01T00:00:00Z', {
    total: 9,
    currency: 'EUR',
    contactId: 'c-ada',
  })
  await track(tenant, {
    event_type: 'page_view',
    visitor: 'v-ada',
    user_id: 'u-ada',
    data: { email: 'ada@example.com' },
  })
  await post('/v1/identify', tenant.trackingKey, {
    ...{ type: 'identify', anonymousId: 'v-ada', userId: 'u-ada', messageId: 'm-ada' },
    traits: { email: 'ada@example.com' },
  })
  await server.settled()
  const responses = async () => {
    const { rows } = await server.pool.query<{ type: string; response: string | null }>(
      'select type, response from delivery_attempts where destination_id = $1',
      [destination.id],
    )
    return rows
  }
  await eventually('attempts of all messages', async () => {
    const types = new Set((await responses()).map(({ type }) => type.split('.')[0]))
    return ['contact', 'order', 'conversion', 'event'].every(type => types.has(type))
  })
  await drainedForNow(destination.id)
  await server.admin.erasures.erase({ tenant: tenant.id, email: 'ada@example.com' })
  assert.doesNotMatch(JSON.stringify(await responses()), /ada@/)
  const { rows } = await server.pool.query(
    `select type, data from outbox where tenant_id = (select tenant_id from destinations where id = $1)`,
    [destination.id],
  )
  assert.deepEqual(
    rows.map(({ type }) => type),
    ['conversion.created'],
  )
  assert.doesNotMatch(JSON.stringify(rows), /ada|Ada/)
  const before = receiver.on('/erased').length
  receiver.answerWith((_, response) => response.writeHead(200).end())
  await makeDue(destination.id)
  await drained(destination.id)
  const later = receiver.on('/erased').slice(before)
  assert.deepEqual(
    later.map(({ body }) => body.type),
    ['conversion.created'],
  )
})

test('an operator of another tenant finds no destination, and all validation errors of a new one are reported together', async () => {
  const tenant = await server.anotherTenant('watched')
  const destination = await destinations.create({ tenant: tenant.id, url: `${receiver.url}/watched` })
  const { key } = await server.admin.keys.create({ kind: 'admin', tenant: server.tenant.id })
  const paths = ['', '/deliveries']
  for (const path of paths)
    assert.equal((await server.request(`/admin/v1/destinations/${destination.id}${path}`, { key })).status, 404)
  for (const verb of ['test', 'enable', 'disable'])
    assert.equal(
      (await server.request(`/admin/v1/destinations/${destination.id}/${verb}`, { method: 'POST', key })).status,
      404,
    )
  const bad = await post('/admin/v1/destinations', key, {
    ...{ tenant: server.tenant.id, url: 'ftp://x', what: ['everything'], event_types: ['a*b'], color: 'red' },
    headers: { Host: 'x', 'webhook-id': '1', 'x-ok': 'two\r\nlines' },
  })
  assert.equal(bad.status, 400)
  const pointers = bad.body.errors.map(({ pointer }: { pointer: string }) => pointer)
  assert.deepEqual(pointers.sort(), ['/color', '/event_types', '/headers', '/url', '/what'])
  const careful = destinationAdmin({
    ...{ pool: server.pool, actor: SYSTEM, allowPrivate: false, mail: null, consoleUrl: null },
    secrets: openSecrets([Buffer.from(TEST_SECRET_KEY, 'hex')]),
  })
  for (const url of ['http://example.com/', 'https://10.0.0.1/', 'https://localhost:9/'])
    await assert.rejects(careful.create({ tenant: tenant.id, url }), { code: 'invalid_request' })
})

test('revoking a key lists the destinations created with it, and disables them on request', async () => {
  const { id, key } = await server.admin.keys.create({ kind: 'admin' })
  const url = `${receiver.url}/leak`
  const response = await post('/admin/v1/destinations', key, {
    tenant: server.tenant.id,
    url,
    what: ['records'],
  })
  assert.equal(response.status, 201)
  const revoked = await server.admin.keys.revoke(id, { withMade: true })
  assert.deepEqual(
    revoked.made.destinations.map(destination => [destination.id, destination.enabled]),
    [[response.body.id, false]],
  )
  assert.equal((await destinations.show(response.body.id)).enabled, false)
})

test('two nodes share the sending, and each message is sent once', async () => {
  const tenant = await server.anotherTenant('fleet')
  const destination = await destinations.create({
    tenant: tenant.id,
    url: `${receiver.url}/fleet`,
    what: ['events'],
  })
  const second = startDeliveries({
    ...{
      pool: server.pool,
      allowPrivate: true,
      mail: null,
      consoleUrl: null,
      now: () => new Date(),
      configChanges: () => 0,
    },
    secrets: openSecrets([Buffer.from(TEST_SECRET_KEY, 'hex')]),
    ...{ logger: { warn() {}, info() {} }, count() {} },
  })
  const batch = Array.from({ length: 300 }, (_, i) => ({
    ...{ type: 'track', event: 'page_view', messageId: `f-${i}`, anonymousId: 'v' },
  }))
  for (let i = 0; i < 3; i++)
    await post('/v1/batch', tenant.trackingKey, { batch: batch.slice(i * 100, i * 100 + 100) })
  await server.settled()
  await drained(destination.id)
  await second.stop()
  assert.equal(receiver.on('/fleet').length, 300)
  assert.equal(new Set(receiver.on('/fleet').map(({ body }) => body.data.id)).size, 300)
})
