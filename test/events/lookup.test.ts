import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { after, before, test } from 'node:test'
import { parseTenantId } from '../../src/domain/tenants/tenants.ts'
import { openPostgresLog } from '../../src/log/postgres/log.ts'
import { outcomeOfSent } from '../../src/reports/event-outcome.ts'
import { eventually } from '../eventually.ts'
import { startServer, type TestServer } from '../server.ts'
import { startNode } from './node.ts'
import { json, rowsOf } from './rows.ts'

let server: TestServer
before(async () => {
  // accepted entries wait until a test starts a worker
  server = await startServer({ KONTOR_SURFACES: 'data,events,inbound' })
})
after(() => server.close())

const batch = (...items: object[]) =>
  server.request('/v1/batch', {
    method: 'POST',
    key: server.tenant.trackingKey,
    body: json({ batch: items }),
  })

const ask = (path: string, key = server.tenant.privateKey) => server.request(`/v1/events/${path}`, { key })

async function withWorker(work: () => Promise<void> = async () => {}): Promise<void> {
  const worker = await startNode(server, 'worker')
  try {
    await server.settled()
    await work()
  } finally {
    await worker.close()
  }
}

test('an event is queued, then stored; a repeat is a duplicate, an invalid one a dead letter', async () => {
  const page = { type: 'page', messageId: 'm-page', anonymousId: 'a' }
  await batch(page, { type: 'track', messageId: 'm-bad' }, { ...page }, { type: 'identify', userId: 'u' })
  const queued = await ask('lookup?event_id=m-page')
  assert.equal(queued.status, 200)
  assert.equal(queued.body.status, 'queued')
  assert.equal(queued.body.event, null)
  const { id } = queued.body
  assert.equal((await ask(id)).body.status, 'queued')
  const repeatId = id.replace(/.$/, '2')
  const unnamedId = id.replace(/.$/, '3')
  assert.equal((await ask(unnamedId)).body.status, 'queued')
  assert.equal((await ask(id.replace(/.$/, '4'))).status, 404, 'the batch has four items')

  await withWorker()
  const stored = await ask(id)
  assert.equal(stored.body.status, 'stored')
  const [row] = (await rowsOf(server, 'events')).filter(event => event.inbound_event_id === 'm-page')
  assert.deepEqual(stored.body.event, row)
  assert.equal(stored.body.conversion, false)
  assert.deepEqual((await ask('lookup?event_id=m-page')).body, stored.body)
  assert.deepEqual((await ask('lookup?inbound_event_id=m-page')).body, stored.body)
  assert.deepEqual((await ask(id.toUpperCase())).body, stored.body)

  const repeat = (await ask(repeatId)).body
  assert.equal(repeat.status, 'duplicate')
  assert.equal(repeat.duplicate_of, id)
  assert.equal((await ask(unnamedId)).body.status, 'stored')

  const letter = (await ask('lookup?event_id=m-bad')).body
  assert.equal(letter.status, 'dead_letter')
  assert.equal(letter.reason, 'event is required')
  assert.ok(letter.failed_at)
  assert.equal(letter.replayed_as, null)
  assert.deepEqual((await ask(letter.id)).body, letter)
  assert.equal(letter.id, id.replace(/.$/, '1'))
})

test('the look-up of a sale that does not count as expected gives the reason', async () => {
  const sales: [event_id: string, event_type: string, data: object, reason: RegExp | null][] = [
    ['s-good', 'convert', { value: '49.90', currency: 'eur' }, null],
    ['s-text', 'purchase', { value: 'abc', currency: 'EUR' }, /without an amount: value is "abc"/],
    ['s-object', 'purchase', { total: { a: 1 }, currency: 'EUR' }, /total is an object/],
    ['s-none', 'convert', { price: 5 }, /none of amount, total/],
    ['s-minus', 'convert', { amount: -5, currency: 'EUR' }, /negative/],
    ['s-currency', 'convert', { amount: 5, currency: '???' }, /currency is "\?\?\?"/],
    ['s-bare', 'convert', { amount: 5 }, /has no currency/],
    ['s-euro', 'convert', { amount: '1.234,50', currency: 'EURO' }, /"1.234,50", which is not a number.*"EURO"/],
    [
      's-order',
      'convert',
      { amount: 5, currency: 'EUR', order_id: 'o'.repeat(300) },
      /^its order_id has 300 characters, more than 255, so it counts as a separate sale$/,
    ],
    [
      's-null',
      'convert',
      { amount: 5, currency: 'EUR', orderId: 'null' },
      /orderId is "null", which is not an order id/,
    ],
    ['s-type', 'bought', { amount: 5, currency: 'EUR' }, /not a conversion: "bought" is not one of/],
    ['s-view', 'page_view', { page: 'https://shop.example/' }, null],
  ]
  for (const [event_id, event_type, data] of sales)
    await server.request('/v1/track/', {
      ...{ method: 'POST', key: server.tenant.trackingKey },
      body: json({ event_type, event_id, data }),
    })
  await batch({ type: 'track', event: 'Order Completed', messageId: 's-cdp', properties: { total: 'x' } })
  await withWorker()
  for (const [event_id, , , reason] of sales) {
    const { body } = await ask(`lookup?event_id=${event_id}`)
    assert.equal(body.status, 'stored', event_id)
    if (reason) assert.match(String(body.reason), reason)
    else assert.equal(body.reason, null, event_id)
  }
  const noAmount = (await rowsOf(server, 'conversions')).find(
    ({ source_object_id, currency }) => !source_object_id && !currency,
  )
  assert.match((await ask(noAmount!.id)).body.reason, /amount|currency/, 'a conversion leads to its event')
  assert.match((await ask('lookup?event_id=s-cdp')).body.reason, /total is "x", which is not a number; it has no/)
})

test('conversions are found too, and a waiting retry has a reason', async () => {
  await server.request('/v1/track/', {
    method: 'POST',
    key: server.tenant.trackingKey,
    body: json({ event_type: 'convert', event_id: 'm-sale', data: { amount: 5, currency: 'EUR' } }),
  })
  await withWorker()
  const { body } = await ask('lookup?event_id=m-sale')
  assert.equal(body.status, 'stored')
  assert.equal(body.conversion, true)
  assert.equal(body.event.event_type, 'convert')

  await server.pool.query("alter table events add constraint refuse check (event_type <> 'unlucky')")
  await server.request('/v1/track/', {
    method: 'POST',
    key: server.tenant.trackingKey,
    body: json({ event_type: 'unlucky', event_id: 'm-unlucky' }),
  })
  const worker = await startNode(server, 'worker')
  const waiting = await eventually('a reason why it waits', async () => {
    const { body } = await ask('lookup?event_id=m-unlucky')
    return body.reason && body
  })
  await worker.close()
  assert.equal(waiting.status, 'queued')
  assert.match(waiting.reason, /could not be applied so far/)
  assert.ok(waiting.attempts >= 1)
  assert.ok(waiting.next_attempt_at)
  assert.equal((await ask(waiting.id)).body.status, 'queued')
  await server.pool.query('alter table events drop constraint refuse')
  await server.pool.query('update parked_entries set next_attempt_at = now()')
  await withWorker()
  assert.equal((await ask(waiting.id)).body.status, 'stored')
})

test('events of another tenant and unknown events get the same answer', async () => {
  const other = await server.anotherTenant('another')
  const { id } = (await ask('lookup?event_id=m-page')).body
  for (const path of [id, 'lookup?event_id=m-page', 'lookup?event_id=m-bad', 'lookup?event_id=m-sale']) {
    const answer = await ask(path, other.privateKey)
    assert.equal(answer.status, 404, path)
    assert.equal(answer.body.code, 'not_found')
  }
  for (const path of [
    'lookup?event_id=never',
    'lookup?event_id=%00',
    'lookup?event_id=m-page&source_config_id=src_other',
    '01890000-0000-7000-8000-000000000000',
    'ffffffff-ffff-ffff-ffff-ffffffffffff',
    'not-an-id',
    '%00',
  ]) {
    assert.equal((await ask(path)).status, 404, path)
  }
  assert.equal((await ask('lookup')).status, 400)
  const { id: tenant } = server.tenant
  const { key } = await server.admin.keys.create({ tenant, kind: 'private', scopes: ['orders:read'] })
  const refused = await ask('lookup?event_id=m-page', key)
  assert.equal(refused.status, 403)
  assert.equal(refused.body.code, 'insufficient_scope')
})

test('an erased event is distinguished from an unknown one, and identifies no one', async () => {
  await batch({
    type: 'identify',
    messageId: 'm-gone',
    userId: 'gone',
    traits: { email: 'gone@example.com' },
  })
  await withWorker(async () => {
    const { id } = (await ask('lookup?event_id=m-gone')).body
    const never = (await ask('lookup?event_id=never')).body.detail
    assert.equal(never, 'No such event: "never".')
    const other = id.replace(/.$/, '9')
    assert.equal((await ask(other)).body.detail, `No such event: "${other}".`)
    await server.admin.erasures.erase({ tenant: server.tenant.id, email: 'gone@example.com' })
    const [byId, bySent] = [await ask(id), await ask('lookup?event_id=m-gone')]
    assert.deepEqual([byId.status, bySent.status], [404, 404])
    assert.match(byId.body.detail, /People were erased after that time/)
    assert.match(bySent.body.detail, /was processed, but is no longer stored: it was erased/)
    assert.doesNotMatch(json([byId.body, bySent.body]), /gone@/)
    assert.equal((await ask('lookup?event_id=never')).body.detail, never)
  })
})

test('a queued event is found by its id, however the sender encoded it', async () => {
  const { id: tenant } = server.tenant
  const secret = '0123456789abcdef0123'
  const plain = await server.admin.sources.create({ tenant, type: 'webhook' })
  const shop = await server.admin.sources.create({ tenant, type: 'webhook', preset: 'shopify', signing_secret: secret })
  const post = async (source: typeof plain, body: string, headers: Record<string, string> = {}) => {
    const answer = await server.request(`/ingest/inbound/${source.id}`, {
      ...{ method: 'POST', key: source.token, headers, body },
    })
    assert.equal(answer.body.accepted, 1)
  }
  const hook = (id: string, payload = '') =>
    post(plain, `{"inbound_event_id": "${id}", "event_type": "hook", "payload": {"text": "${payload}"}}`)
  await hook('gid:\\/\\/shop\\/Order\\/1')
  await hook('K\\u00f6ln-1', 'x'.repeat(5_000))
  for (let i = 0; i < 60; i++) await hook(`number-7${i}`)
  await hook('number-7')
  const product = json({ id: 1, updated_at: '2026-01-01T00:00:00Z', title: 'Mug', variants: [] })
  await post(shop, product, {
    'x-shopify-topic': 'products/update',
    'x-shopify-webhook-id': 'delivery-1',
    'x-shopify-hmac-sha256': createHmac('sha256', secret).update(product).digest('base64'),
  })
  for (const id of ['gid://shop/Order/1', 'Köln-1', 'number-7', 'delivery-1']) {
    const { status, body } = await ask(`lookup?event_id=${encodeURIComponent(id)}`)
    assert.equal(status, 200, id)
    assert.equal(body.status, 'queued', id)
  }
  assert.equal((await ask('lookup?event_id=number')).status, 404)
  await withWorker()
})

test('events of sources: deferred over the budget, dropped if configured, duplicates detected on arrival', async () => {
  const { id: tenant } = server.tenant
  const limit = { rate_limit: { events: 1, per_seconds: 3_600 } }
  const defers = await server.admin.sources.create({ tenant, type: 'webhook', ...limit, overflow: 'defer' })
  const drops = await server.admin.sources.create({ tenant, type: 'webhook', ...limit, overflow: 'drop' })
  const hook = (source: typeof defers, ...ids: string[]) =>
    server.request(`/ingest/inbound/${source.id}`, {
      method: 'POST',
      key: source.token,
      body: json(ids.map(id => ({ inbound_event_id: id, event_type: 'hook', payload: { id } }))),
    })
  const find = async (id: string, source: typeof defers) =>
    (await ask(`lookup?inbound_event_id=${id}&source_config_id=${source.id}`)).body
  assert.equal((await hook(defers, 'h-1', 'h-2', 'h-3')).body.deferred, 2)
  const waiting = await find('h-3', defers)
  assert.equal(waiting.status, 'deferred')
  assert.match(waiting.reason, /above the rate limit/)
  assert.equal((await ask(waiting.id)).body.status, 'deferred')
  assert.equal((await find('h-1', defers)).status, 'queued')
  assert.equal((await ask('lookup?inbound_event_id=h-3')).body.status, 'deferred', 'without the source too')
  assert.equal((await ask('lookup?event_id=h-1&source_config_id=src_none')).status, 404)

  await hook(drops, 'h-1', 'h-2')
  const worker = await startNode(server, 'worker')
  for (const source of [defers, drops])
    await eventually('h-1 to be stored', async () => (await find('h-1', source)).status === 'stored')
  await worker.close()
  const stored = await find('h-1', drops)
  assert.equal(stored.event.source_config_id, drops.id)
  assert.notEqual(stored.id, (await find('h-1', defers)).id, "an id is its source's own")

  assert.equal((await hook(drops, 'h-1')).body.duplicates, 1)
  const receipts = async () =>
    (await server.pool.query('select id, outcome from receipts where source_id = $1', [drops.id])).rows
  await eventually('three receipts', async () => (await receipts()).length >= 3)
  const outcomes = new Map((await receipts()).map(({ id, outcome }) => [outcome, id]))
  const repeat = (await ask(outcomes.get('duplicate'))).body
  assert.deepEqual([repeat.status, repeat.duplicate_of], ['duplicate', stored.id])
  assert.equal((await ask(outcomes.get('dropped'))).body.status, 'dropped')
})

test('the number of statements of a look-up does not depend on the number of sources', async () => {
  const { id: tenant } = await server.anotherTenant('sources')
  let statements = 0
  const pool = new Proxy(server.pool, {
    get(target, name) {
      if (name === 'query') statements++
      return Reflect.get(target, name).bind?.(target) ?? Reflect.get(target, name)
    },
  })
  const lookUp = async () => {
    statements = 0
    await outcomeOfSent({ pool, log: openPostgresLog({ pool }) }, parseTenantId(tenant)!, {
      sentId: 'never',
      sourceId: undefined,
    })
    return statements
  }
  const withNone = await lookUp()
  assert.ok(withNone > 0 && withNone <= 7, `${withNone} statements`)
  for (let i = 0; i < 12; i++) await server.admin.sources.create({ tenant, type: 'webhook' })
  assert.equal(await lookUp(), withNone)
})
