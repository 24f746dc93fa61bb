import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { inLockstep, permutations } from '../any-order.ts'
import { startServer, type TestServer, type TestTenant } from '../server.ts'
import { json, type Row, rowsOf } from './rows.ts'

// What an unverified event (public tracking key) can and cannot do to a sale: docs/guides/events.md.

let server: TestServer
before(async () => {
  server = await startServer()
})
after(() => server.close())

async function post(path: string, key: string, body: object): Promise<void> {
  const { status } = await server.request(path, { method: 'POST', key, body: json(body) })
  assert.ok(status === 200 || status === 202, `${path} ${status}`)
}

const track = (tenant: TestTenant, body: object) => post('/v1/track/', tenant.trackingKey, body)

const hook = (source: { id: string; token: string }, body: object) =>
  post(`/ingest/inbound/${source.id}`, source.token, body)

const order = (tenant: TestTenant, id: string, data: object) =>
  post('/v1/orders', tenant.privateKey, { entityType: 'order', id, sourceUpdatedAt: '2026-02-01T10:00:00Z', data })

async function tenantWithSource(name: string) {
  const tenant = await server.anotherTenant(name)
  const source = await server.admin.sources.create({ tenant: tenant.id, type: 'webhook' })
  await server.settled()
  return { tenant, source }
}

const sales = async (tenant: TestTenant): Promise<Map<string, Row>> => {
  const rows = await rowsOf(server, 'conversions', { key: tenant.privateKey })
  assert.equal(new Set(rows.map(row => row.source_object_id)).size, rows.length, 'one row per sale')
  return new Map(rows.map(row => [row.source_object_id, row]))
}

/** Sends the steps of one sale in every order, each after the previous one is applied. Sale n has the nth order. */
async function inEveryOrder(steps: ((n: number) => Promise<void>)[]): Promise<number[][]> {
  const sequences = permutations(steps.map((_, i) => i))
  await inLockstep(sequences, (i, n) => steps[i]!(n), server.settled)
  return sequences
}

test('unverified events change nothing about a sale that a webhook reports, whichever arrives first', async () => {
  const { tenant, source } = await tenantWithSource('webhook sale')
  const paidAt = '2026-02-01T09:00:00.000Z'
  const forge = (n: number, id: string, more: object) =>
    track(tenant, {
      ...{ event_type: 'purchase', event_id: `${id}-${n}`, visitor: `${id}-${n}`, occurred_at: '2017-01-01T00:00:00Z' },
      data: { order_id: `o-${n}`, currency: 'USD', conversion_type: 'forged', ...more },
    })
  await inEveryOrder([
    n => forge(n, 'a', { amount: -50_000 }),
    n => forge(n, 'b', { amount: 1, email: `mallory-${n}@example.com` }),
    n =>
      hook(source, {
        ...{ inbound_event_id: `w-${n}`, event_type: 'order.paid', occurred_at: paidAt },
        payload: { id: `o-${n}`, total: 99.5, currency: 'EUR', email: `ada-${n}@example.com` },
      }),
    // an order of its own, without an amount and without a person
    n => hook(source, { inbound_event_id: `x-${n}`, event_type: 'order.paid', payload: { id: `x-${n}` } }),
  ])
  const found = await sales(tenant)
  assert.equal(found.size, 48)
  const people = new Map<string, string>()
  for (const [id, row] of found) {
    if (id.startsWith('x')) continue
    assert.deepEqual(
      [row.occurred_at, row.conversion_type, row.event_type, row.source, row.amount, row.currency, row.integration_id],
      [paidAt, 'order.paid', 'order.paid', 'webhook', 99.5, 'EUR', source.id],
      id,
    )
    people.set(row.profile_id, id)
  }
  const { rows } = await server.pool.query(
    `select 'prof_' || profile as profile, value from identities i join tenants t on t.id = i.tenant_id
     where t.name = 'webhook sale' and kind = 'email' and value like 'ada%'`,
  )
  for (const { profile, value } of rows) assert.equal(people.get(profile), `o-${value.split(/[-@]/)[1]}`)
})

test('an amount that a webhook does not state stays missing', async () => {
  const { tenant, source } = await tenantWithSource('no price')
  await inEveryOrder([
    n => hook(source, { inbound_event_id: `w-${n}`, event_type: 'order.paid', payload: { id: `o-${n}` } }),
    n =>
      track(tenant, {
        ...{ event_type: 'convert', visitor: `v-${n}` },
        data: { order_id: `o-${n}`, amount: -50_000, currency: 'USD' },
      }),
  ])
  const rows = [...(await sales(tenant)).values()]
  assert.deepEqual(
    rows.map(row => [row.amount, row.currency, row.visitor]).sort(),
    [0, 1].map(n => [null, null, `v-${n}`]),
  )
})

test('unverified events change nothing about the sale of an order record', async () => {
  const { tenant } = await tenantWithSource('record sale')
  await inEveryOrder([
    n => order(tenant, `o-${n}`, { customer_id: `c-${n}` }),
    n =>
      track(tenant, {
        ...{ event_type: 'purchase', visitor: `v-${n}`, occurred_at: '2017-01-01T00:00:00Z' },
        data: { order_id: `o-${n}`, amount: 7, currency: 'USD' },
      }),
  ])
  for (const [id, row] of await sales(tenant))
    assert.deepEqual(
      [row.occurred_at, row.conversion_type, row.event_type, row.source, row.amount, row.contact_id, row.visitor],
      ['2026-02-01T10:00:00.000Z', 'order', null, 'orders', null, `c-${id.slice(2)}`, `v-${id.slice(2)}`],
    )
})

test('the first unverified event received gives the visitor, whatever time it states', async () => {
  const { tenant, source } = await tenantWithSource('visitors')
  const claim = (visitor: string, occurred_at?: string) => (n: number) =>
    track(tenant, { event_type: 'convert', visitor: `${visitor}-${n}`, occurred_at, data: { order_id: `o-${n}` } })
  const sequences = await inEveryOrder([
    claim('a'),
    claim('b', '2017-01-01T00:00:00Z'),
    n => hook(source, { inbound_event_id: `w-${n}`, event_type: 'order.paid', payload: { id: `o-${n}`, total: 5 } }),
  ])
  const found = await sales(tenant)
  for (const [n, sequence] of sequences.entries()) {
    const first = sequence.indexOf(0) < sequence.indexOf(1) ? 'a' : 'b'
    assert.equal(found.get(`o-${n}`)!.visitor, `${first}-${n}`)
  }
})

test('a visitor that verified input names takes precedence over one that a browser names', async () => {
  const { tenant } = await tenantWithSource('verified visitor')
  const { key } = await server.admin.keys.create({ tenant: tenant.id, kind: 'tracking', server: true })
  const convert = (trackingKey: string, visitor: string) => (n: number) =>
    track(
      { ...tenant, trackingKey },
      { event_type: 'convert', visitor: `${visitor}-${n}`, data: { order_id: `o-${n}` } },
    )
  await inEveryOrder([convert(tenant.trackingKey, 'browser'), convert(key, 'server')])
  const found = await sales(tenant)
  assert.deepEqual([...found.values()].map(row => row.visitor).sort(), ['server-0', 'server-1'])
})
