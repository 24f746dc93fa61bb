import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { after, before, test } from 'node:test'
import { inLockstep, permutations } from '../any-order.ts'
import { eventually } from '../eventually.ts'
import { startServer, type TestServer, type TestTenant } from '../server.ts'
import { json, type Row, rowsOf } from './rows.ts'

let server: TestServer
before(async () => {
  server = await startServer()
})
after(() => server.close())

const FIELDS = [
  ...['id', 'occurred_at', 'conversion_type', 'event_type', 'source', 'source_object_id', 'currency', 'visitor'],
  ...['profile_id', 'contact_id', 'contact_name', 'contact_email', 'company_name', 'integration_id', 'verified'],
  ...['claims', 'amount'],
]

async function track(tenant: TestTenant, body: object) {
  const { status } = await server.request('/v1/track/', {
    method: 'POST',
    key: tenant.trackingKey,
    body: json(body),
  })
  assert.equal(status, 200)
}

async function cdp(tenant: TestTenant, body: object) {
  const { status } = await server.request('/v1/track', {
    method: 'POST',
    key: tenant.trackingKey,
    body: json(body),
  })
  assert.equal(status, 200)
}

async function order(tenant: TestTenant, id: string, at: string, data: object | null) {
  const { status } = await server.request('/v1/orders', {
    method: data ? 'POST' : 'DELETE',
    key: tenant.privateKey,
    body: json({ entityType: 'order', id, sourceUpdatedAt: at, ...(data ? { data } : {}) }),
  })
  assert.equal(status, 202)
}

async function hook(source: { id: string; token: string }, body: object) {
  const { status } = await server.request(`/ingest/inbound/${source.id}`, {
    method: 'POST',
    key: source.token,
    body: json(body),
  })
  assert.equal(status, 200)
}

const sourceOf = (tenant: TestTenant, type = 'webhook') => server.admin.sources.create({ tenant: tenant.id, type })

const sales = (tenant: TestTenant, query = '') => rowsOf(server, 'conversions', { key: tenant.privateKey, query })

const eventTypes = async (tenant: TestTenant) =>
  (await rowsOf(server, 'events', { key: tenant.privateKey })).map(row => row.event_type).sort()

test('convert, the listed types and orders are conversions, with amount and buyer from any documented field', async () => {
  const tenant = await server.anotherTenant('rules')
  const source = await sourceOf(tenant)
  const automation = await sourceOf(tenant, 'automation')
  const at = (n: number) => new Date(Date.UTC(2026, 0, 1, 0, n)).toISOString()
  const facts = [
    { event_type: 'convert', occurred_at: at(1), data: { amount: 49.9, currency: 'eur', order_id: 'A' } },
    { event_type: 'conversion', occurred_at: at(2), data: { total: '12.50', currency: 'USD', orderId: 77 } },
    { event_type: 'purchase', occurred_at: at(3), data: { total_price: 3, conversion_type: 'upsell' } },
    { event_type: 'order_completed', occurred_at: at(4), data: { value: 0.1, id: 'B' } },
    { event_type: 'checkout.completed', occurred_at: at(5), data: { revenue: 1e2, currency: 'nope' } },
    { event_type: 'order.paid', occurred_at: at(6), data: { amount: 5, total: 6, id: 'C' } },
    { event_type: 'invoice.paid', occurred_at: at(7), data: { id: 'in_1', amount_paid: 7, currency: 'JPY' } },
  ]
  for (const event of facts) await track(tenant, event)
  await cdp(tenant, {
    event: 'Order Completed',
    messageId: 'oc',
    anonymousId: 'anon',
    timestamp: at(8),
    properties: { order_id: 'D', revenue: '19.99', currency: 'GBP' },
  })
  await hook(source, {
    inbound_event_id: 'h',
    event_type: 'purchase',
    occurred_at: at(9),
    payload: { amount: 9 },
  })
  await hook(automation, { inbound_event_id: 'h', event_type: 'convert', occurred_at: at(10), payload: {} })
  await order(tenant, 'E', at(11), { total: 10, currency: 'EUR', createdAt: '2026-01-01T12:00:00Z' })
  await track(tenant, { event_type: 'page_view' })
  await track(tenant, { event_type: 'Convert' })

  const rows = await sales(tenant)
  for (const row of rows) assert.deepEqual(Object.keys(row), FIELDS)
  const shown = rows.map(row => [
    row.conversion_type,
    row.source,
    row.source_object_id,
    row.amount,
    row.currency,
    row.integration_id,
    row.occurred_at,
  ])
  assert.deepEqual(shown, [
    ['order', 'orders', 'E', 10, 'EUR', null, '2026-01-01T12:00:00.000Z'],
    ['convert', 'automation', null, null, null, automation.id, at(10)],
    ['purchase', 'webhook', null, 9, null, source.id, at(9)],
    ['Order Completed', 'cdp', 'D', 19.99, 'GBP', null, at(8)],
    ['invoice.paid', 'tracking', 'in_1', 7, 'JPY', null, at(7)],
    ['order.paid', 'tracking', 'C', 5, null, null, at(6)],
    ['checkout.completed', 'tracking', null, 100, null, null, at(5)],
    ['order_completed', 'tracking', 'B', 0.1, null, null, at(4)],
    ['upsell', 'tracking', null, 3, null, null, at(3)],
    ['conversion', 'tracking', '77', 12.5, 'USD', null, at(2)],
    ['convert', 'tracking', 'A', 49.9, 'EUR', null, at(1)],
  ])
  assert.deepEqual(await eventTypes(tenant), ['Convert', 'page_view'], 'GET /v1/events has the others only')
})

test('event_type finds a conversion by its event type or its conversion type', async () => {
  const tenant = await server.anotherTenant('types')
  await track(tenant, { event_type: 'convert', data: { order_id: 'a' } })
  await track(tenant, { event_type: 'convert', data: { order_id: 'b', conversion_type: 'upsell' } })
  await track(tenant, { event_type: 'purchase', data: { order_id: 'c', conversion_type: 'convert' } })
  const source = await sourceOf(tenant)
  await server.settled()
  await hook(source, { inbound_event_id: 'd', event_type: 'convert', payload: { order_id: 'd' } })
  await order(tenant, 'd', '2026-01-01T00:00:00Z', {})
  await order(tenant, 'e', '2026-01-01T00:00:00Z', {})
  const found = async (type: string) =>
    (await sales(tenant, `&event_type=${type}`)).map(row => row.source_object_id).sort()
  assert.deepEqual(await found('convert'), ['a', 'b', 'c', 'd'])
  assert.deepEqual(await found('upsell'), ['b'])
  assert.deepEqual(await found('purchase'), ['c'])
  assert.deepEqual(await found('order'), ['d', 'e'])
  assert.deepEqual(await found('nothing'), [])
})

test('one sale is one row, in whatever order its order record, its event and its webhook arrive', async () => {
  const tenant = await server.anotherTenant('one sale')
  const source = await sourceOf(tenant)
  await server.settled()
  const rowsByOrder = new Map<string, Row>()
  const sequences = permutations(['record', 'event', 'webhook', 'contact'] as const)
  const sale = sequences.length
  const stepsOf = (n: number) => ({
    record: () =>
      order(tenant, `o-${n}`, '2026-02-01T10:00:00Z', {
        total: 49.9,
        currency: 'EUR',
        customer_id: `c-${n}`,
        created_at: '2026-02-01T09:00:00Z',
      }),
    event: () =>
      track(tenant, {
        event_type: 'convert',
        visitor: `v-${n}`,
        event_id: `t-${n}`,
        occurred_at: '2026-02-01T09:00:05Z',
        data: { order_id: `o-${n}`, amount: 50, currency: 'USD' },
      }),
    webhook: () =>
      hook(source, {
        inbound_event_id: `w-${n}`,
        event_type: 'order.paid',
        payload: { id: `o-${n}`, total_price: '51.00', email: `p${n}@example.com` },
      }),
    contact: async () => {
      const body = {
        entityType: 'contact',
        id: `c-${n}`,
        sourceUpdatedAt: '2026-02-01T00:00:00Z',
        data: { name: `Person ${n}`, email: `p${n}@example.com`, company: 'Tea' },
      }
      await server.request('/v1/contacts', { method: 'POST', key: tenant.privateKey, body: json(body) })
    },
  })
  // In separate rounds, so that each part of a sale finds the earlier parts stored. All sales run together.
  await inLockstep(sequences, (step, i) => stepsOf(i + 1)[step](), server.settled)
  for (const row of await sales(tenant)) {
    assert.ok(!rowsByOrder.has(row.source_object_id), `${row.source_object_id} twice`)
    rowsByOrder.set(row.source_object_id, row)
  }
  assert.equal(rowsByOrder.size, sale)
  const visits = new Map<string, string>()
  for (const [id, row] of rowsByOrder) {
    const n = id.slice(2)
    const { id: _, profile_id, ...facts } = row
    assert.deepEqual(
      facts,
      {
        occurred_at: '2026-02-01T09:00:00.000Z',
        conversion_type: 'order',
        event_type: 'order.paid',
        source: 'orders',
        source_object_id: id,
        amount: 49.9,
        currency: 'EUR',
        visitor: `v-${n}`,
        contact_id: `c-${n}`,
        contact_name: `Person ${n}`,
        contact_email: `p${n}@example.com`,
        company_name: 'Tea',
        integration_id: source.id,
        verified: true,
        claims: 1,
      },
      id,
    )
    visits.set(profile_id, n)
  }
  assert.equal(visits.size, sale, 'each sale has its own person')
  // the visitor of the event, the e-mail of the webhook and the contact of the order are that person
  const { rows } = await server.pool.query(
    `select count(distinct profile) as profiles, count(*) as names from identities i join tenants t on t.id = i.tenant_id
     where t.name = 'one sale' and value ~ '(-|p)7(@|$)'`,
  )
  assert.deepEqual(rows[0], { profiles: 1, names: 3 })
})

test('many events of one sale in one batch are one sale, with the first amount', async () => {
  const tenant = await server.anotherTenant('one batch')
  const events = [
    {
      type: 'track',
      event: 'Order Completed',
      messageId: '1',
      anonymousId: 'v',
      properties: { order_id: 'x' },
    },
    {
      type: 'track',
      event: 'purchase',
      messageId: '2',
      anonymousId: 'v',
      properties: { order_id: 'x', value: 7, currency: 'EUR' },
    },
    {
      type: 'track',
      event: 'convert',
      messageId: '3',
      anonymousId: 'v',
      properties: { orderId: 'x', value: 8, currency: 'EUR' },
    },
  ].map((event, i) => ({ ...event, timestamp: `2026-01-01T00:00:0${i}Z` }))
  for (const batch of permutations(events).map(list => ({ batch: list }))) {
    await server.request('/v1/batch', { method: 'POST', key: tenant.trackingKey, body: json(batch) })
  }
  const rows = await sales(tenant)
  assert.equal(rows.length, 1)
  assert.deepEqual([rows[0].amount, rows[0].event_type, rows[0].visitor], [7, 'purchase', 'v'])
})

test('a price from verified input takes precedence over one from a public tracking key', async () => {
  const tenant = await server.anotherTenant('what it cost')
  const source = await sourceOf(tenant)
  await server.settled()
  const steps = {
    forged: (n: number) =>
      track(tenant, {
        ...{ event_type: 'convert', visitor: `v-${n}`, occurred_at: '2026-02-01T00:00:00Z' },
        data: { order_id: `o-${n}`, amount: 77777, currency: 'USD', email: `p${n}@example.com` },
      }),
    paid: (n: number) =>
      hook(source, {
        ...{ inbound_event_id: `a-${n}`, event_type: 'order.paid' },
        payload: { id: `o-${n}`, total: 20, currency: 'EUR', email: `p${n}@example.com` },
      }),
    again: (n: number) =>
      hook(source, {
        ...{ inbound_event_id: `b-${n}`, event_type: 'checkout.completed' },
        payload: { order_id: `o-${n}`, total: 21, currency: 'EUR', email: `p${n}@example.com` },
      }),
  }
  const sequences = permutations(['forged', 'paid', 'again'] as const)
  const expected = sequences.map((sequence, n) => {
    const isPaidFirst = sequence.indexOf('paid') < sequence.indexOf('again')
    return `o-${n} v-${n} ${isPaidFirst ? 20 : 21} EUR`
  })
  await inLockstep(sequences, (step, n) => steps[step](n), server.settled)
  const rows = await sales(tenant)
  assert.deepEqual(
    rows.map(row => `${row.source_object_id} ${row.visitor} ${row.amount} ${row.currency}`).sort(),
    expected,
  )
})

test('an invoice event sent with a tracking key changes no sale of a billing system', async () => {
  const tenant = await server.anotherTenant('forged invoices')
  const source = await sourceOf(tenant)
  await server.settled()
  const forged = () => track(tenant, { event_type: 'invoice.paid', data: { id: 'in_1', total: 9999, currency: 'USD' } })
  await forged()
  await server.settled()
  await hook(source, {
    ...{ inbound_event_id: 'e-1', event_type: 'invoice.paid' },
    payload: { id: 'in_1', customer: 'cus_1', status: 'paid', total: 49, currency: 'EUR' },
  })
  await server.settled()
  await forged()
  const rows = await sales(tenant)
  assert.deepEqual(rows.map(row => `${row.source} ${row.amount} ${row.currency}`).sort(), [
    'billing 49 EUR',
    'tracking 9999 USD',
    'tracking 9999 USD',
  ])
})

test('a deleted order deletes its conversion, a new write restores it, a late old write does not', async () => {
  const tenant = await server.anotherTenant('deleted')
  const event = { event_type: 'convert', visitor: 'v', data: { order_id: 'o', amount: 5, currency: 'EUR' } }
  await track(tenant, event)
  await order(tenant, 'o', '2026-01-01T00:00:00Z', { total: 6, currency: 'EUR' })
  assert.deepEqual(
    (await sales(tenant)).map(row => row.amount),
    [6],
  )
  await order(tenant, 'o', '2026-01-03T00:00:00Z', null)
  assert.deepEqual(await sales(tenant), [])
  await order(tenant, 'o', '2026-01-02T00:00:00Z', { total: 7 })
  await track(tenant, { ...event, data: { ...event.data, amount: 8 } })
  assert.deepEqual(await sales(tenant), [], 'still deleted')
  await order(tenant, 'o', '2026-01-04T00:00:00Z', { total: 9, currency: 'EUR' })
  const [row] = await sales(tenant)
  assert.deepEqual([row.amount, row.visitor, row.conversion_type], [9, 'v', 'order'])
  await order(tenant, 'o', '2026-01-05T00:00:00Z', null)
  assert.deepEqual(await sales(tenant), [])
  assert.deepEqual(await eventTypes(tenant), [])

  await order(tenant, 'never', '2026-01-05T00:00:00Z', null)
  assert.deepEqual(await sales(tenant), [])
})

test('an order without an amount has the amount of a verified event, not that of an unverified one', async () => {
  const tenant = await server.anotherTenant('no amount')
  const source = await sourceOf(tenant)
  await server.settled()
  await order(tenant, 'o', '2026-01-01T00:00:00Z', { status: 'paid' })
  await track(tenant, { event_type: 'convert', data: { order_id: 'o', amount: 5, currency: 'EUR' } })
  const price = async () => (await sales(tenant)).map(row => [row.amount, row.currency])
  assert.deepEqual(await price(), [[null, null]])
  const payload = { order_id: 'o', amount: 6, currency: 'EUR' }
  await hook(source, { inbound_event_id: 'paid', event_type: 'convert', payload })
  assert.deepEqual(await price(), [[6, 'EUR']])
})

test('amounts keep their digits', async () => {
  const tenant = await server.anotherTenant('digits')
  const amounts = [
    '0.1',
    '49.90',
    '"1234567890123456.78"',
    '0.30000000000000004',
    '"19.99"',
    '-5',
    '1e3',
    '"1,000"',
    '"x"',
    'true',
  ]
  for (const [i, amount] of amounts.entries()) {
    const body = `{"event_type":"convert","occurred_at":"2026-01-01T00:00:${10 + i}Z","data":{"amount":${amount}}}`
    await server.request('/v1/track/', { method: 'POST', key: tenant.trackingKey, body })
  }
  await server.settled()
  const response = await fetch(`${server.url}/v1/conversions`, {
    headers: { authorization: `Bearer ${tenant.privateKey}` },
  })
  const shown = [...(await response.text()).matchAll(/"amount":([^}]+)\}/g)].map(match => match[1])
  assert.deepEqual(shown.reverse(), [
    ...['0.1', '49.9', '1234567890123456.78', '0.30000000000000004', '19.99', '-5', '1000', 'null', 'null', 'null'],
  ])
})

test('a tenant lists its own conversion types, from the command line and the admin API, without a restart', async () => {
  const tenant = await server.anotherTenant('own types')
  const { key: adminKey } = await server.admin.keys.create({ kind: 'admin' } as never)
  const converts = async (event_type: string) => {
    const event_id = `${event_type}-${Math.random()}`
    await track(tenant, { event_type, event_id })
    await server.settled()
    const { body } = await server.request(`/v1/events/lookup?event_id=${event_id}`, {
      key: tenant.privateKey,
    })
    return body.conversion as boolean
  }
  /** Within two seconds on an idle machine, without a restart. */
  const becomes = (event_type: string, expected: boolean) =>
    eventually(
      `${event_type} ${expected ? 'to convert' : 'to convert no more'}`,
      async () => (await converts(event_type)) === expected,
    )
  assert.equal(await converts('demo.booked'), false)
  await run(['tenant', 'conversions', 'own types', '--set', 'demo.booked,Trial Started'])
  await becomes('demo.booked', true)
  assert.equal(await converts('Trial Started'), true)
  assert.equal(await converts('purchase'), false, 'the list takes the place of the default one')
  assert.equal(await converts('convert'), true, 'always')

  const set = (conversion_types: string[] | null) =>
    server.request(`/admin/v1/tenants/${tenant.id}`, {
      method: 'PATCH',
      key: adminKey,
      body: json({ conversion_types }),
    })
  assert.equal((await set(['signup'])).status, 200)
  await becomes('signup', true)
  assert.equal(await converts('demo.booked'), false)
  assert.equal((await set(null)).status, 200)
  await becomes('purchase', true)
})

async function run(words: string[]): Promise<string> {
  const child = spawn(process.execPath, ['src/main.mjs', ...words], {
    cwd: new URL('../..', import.meta.url),
    env: { ...process.env, DATABASE_URL: server.databaseUrl },
  })
  let out = ''
  let err = ''
  child.stdout.on('data', text => {
    out += text
  })
  child.stderr.on('data', text => {
    err += text
  })
  const [code] = await once(child, 'close')
  assert.equal(code, 0, err)
  return out
}
