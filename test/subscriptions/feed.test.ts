import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { makeSource } from '../inbound/source.ts'
import { sharedServer, type TestServer, type TestTenant } from '../server.ts'
import { ask, created, ended, inDays, invoice, item, reportOf, updated } from './shop.ts'

let server: TestServer
before(async () => {
  server = await sharedServer()
})
after(() => server.close())

type Settings = Record<string, unknown>

async function sourceOf(tenant: TestTenant, settings: Settings = {}) {
  const source = await makeSource(server, { tenant: tenant.id, ...settings })
  return async (...events: { type: string; data: object }[]) => {
    for (const { type, data } of events) {
      const { status } = await source.post({ event_type: type, payload: data })
      assert.equal(status, 200)
    }
    await server.settled()
  }
}

test('only inbound sources change the ledger; those of type cdp only if configured', async () => {
  const tenant = await server.anotherTenant('feeds')
  const { type, data } = created('s')
  const track = await server.request('/v1/track', {
    method: 'POST',
    key: tenant.trackingKey,
    body: JSON.stringify({ event_type: type, data }),
  })
  assert.equal(track.status, 200)
  const cdp = await makeSource(server, { tenant: tenant.id, type: 'cdp' })
  assert.equal((await cdp.post({ type: 'track', event: type, properties: data })).status, 200)
  await (await sourceOf(tenant, { billing: false }))({ type, data })
  await server.settled()
  const silent = await reportOf(server, 'overview', {}, tenant)
  assert.deepEqual([silent.mrr, silent.coverage.subscriptions_seen], [0, 0])
  const { body } = await server.request('/v1/events?event_type=subscription.created', {
    key: tenant.privateKey,
  })
  assert.equal(body.results.length, 3)
  const feeding = await makeSource(server, { tenant: tenant.id, type: 'cdp', billing: true })
  assert.equal((await feeding.post({ type: 'track', event: type, properties: data })).status, 200)
  await server.settled()
  assert.equal((await reportOf(server, 'overview', {}, tenant)).mrr, 10)
})

test('namespaces distinguish two shops with the same ids', async () => {
  const tenant = await server.anotherTenant('shops')
  const north = await sourceOf(tenant, { namespace: 'north' })
  const south = await sourceOf(tenant, { namespace: 'south' })
  const again = await sourceOf(tenant, { namespace: 'north' })
  await north(created('1001', { customer: 'c1' }))
  await south(created('1001', { customer: 'c1', items: [item(30)] }))
  await north(invoice('paid', 'in_1', { subscription: '1001', status: 'paid', total: 10, paid_at: inDays(-1) }))
  await south(invoice('paid', 'in_1', { subscription: '1001', status: 'paid', total: 30, paid_at: inDays(-1) }))
  await again(updated('1001', { customer: 'c1', items: [item(15)], updated_at: inDays(-3) }))
  const { mrr, active_accounts, accounts, collected, movements, coverage } = await reportOf(
    server,
    'overview',
    {},
    tenant,
  )
  assert.deepEqual([mrr, active_accounts, collected.amount], [45, 2, 40])
  assert.deepEqual([movements.expansion, movements.contraction, movements.churn], [5, 0, 0])
  assert.deepEqual(coverage.warnings, [])
  assert.deepEqual(
    accounts.results.map((row: { customer: string; mrr: number }) => [row.customer, row.mrr]),
    [
      ['c1', 30],
      ['c1', 15],
    ],
  )
  const south1001 = await reportOf(server, 'account', { customer: 'south:c1' }, tenant)
  assert.equal(south1001.summary.mrr, 30)
  assert.equal(south1001.items.results[0].subscription_id, '1001')
  assert.equal((await reportOf(server, 'account', { subscription_id: '1001' }, tenant)).summary.mrr, 15)
  assert.equal((await ask(server, 'account', { currency: 'EUR', customer: 'east:c1' }, { tenant })).status, 404)
  await north(ended('1001', inDays(-1), { customer: 'c1' }))
  assert.equal((await reportOf(server, 'overview', {}, tenant)).mrr, 30)
})

test('a report warns about one id that two sources send with different customers', async () => {
  const tenant = await server.anotherTenant('collision')
  await (await sourceOf(tenant))(created('1001', { customer: 'ada' }))
  await (await sourceOf(tenant))(created('1001', { customer: 'bob' }))
  const { coverage } = await reportOf(server, 'overview', {}, tenant)
  assert.match(
    coverage.warnings.join(' '),
    /Subscription 1001: two sources send the id with different customers: give the sources different namespaces/,
  )
})

test('unrecognized events that seem to be about billing are counted by type', async () => {
  const tenant = await server.anotherTenant('unrecognized')
  const plain = await sourceOf(tenant)
  await plain(
    { type: 'subscription.created', data: { event_id: 'e1', data: { id: 'sub_01', status: 'active' } } },
    { type: 'transaction.completed', data: { id: 'txn_01' } },
    { type: 'transaction.completed', data: { id: 'txn_02' } },
    { type: 'product.updated', data: { id: 'prod_01' } },
  )
  const stripe = await makeSource(server, { tenant: tenant.id })
  const thin = {
    id: 'evt_thin',
    object: 'v2.core.event',
    type: 'v1.invoice.paid',
    created: '2026-01-01T00:00:00Z',
    related_object: { id: 'in_1', type: 'invoice', url: '/v1/invoices/in_1' },
  }
  assert.equal((await stripe.post(thin)).status, 200)
  await server.settled()
  const { coverage } = await reportOf(server, 'overview', {}, tenant)
  assert.deepEqual(coverage.unrecognized, {
    'subscription.created': 1,
    'transaction.completed': 2,
    'v1.invoice.paid': 1,
  })
})
