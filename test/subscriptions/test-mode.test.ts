// Events of a provider's test mode are listed, and count nowhere.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { makeSource } from '../inbound/source.ts'
import { sharedServer, type TestServer, type TestTenant } from '../server.ts'
import { type Body, reportOf } from './shop.ts'

let server: TestServer
before(async () => {
  server = await sharedServer()
})
after(() => server.close())

const at = Math.floor(Date.now() / 1000) - 3600
const invoice = {
  ...{ id: 'in_1', object: 'invoice', created: at, currency: 'usd', customer: 'cus_1', status: 'paid' },
  ...{ customer_email: 'test@example.com', total: 1000, amount_due: 1000, amount_paid: 1000, livemode: false },
  status_transitions: { paid_at: at, finalized_at: at },
}
const stripe = (type: string, object: object, livemode = false) => ({
  ...{ id: `evt_${type}`, object: 'event', api_version: '2025-03-31.basil', created: at, livemode, type },
  data: { object },
})
const subscription = {
  ...{ id: 'sub_1', object: 'subscription', customer: 'cus_1', status: 'active', currency: 'usd', created: at },
  ...{ start_date: at, livemode: false },
  items: {
    data: [
      {
        id: 'si_1',
        quantity: 1,
        price: { id: 'p', currency: 'usd', unit_amount: 1000, recurring: { interval: 'month' } },
      },
    ],
  },
}
const canonical = {
  ...{ id: 'inv_1', subscription: 's_1', customer: 'c_1', status: 'paid', currency: 'USD', livemode: false },
  ...{ total: 10, amount_paid: 10, paid_at: new Date(at * 1000).toISOString() },
}
const sandbox = {
  api_version: '1.0',
  event: {
    ...{ id: 'rc_1', type: 'INITIAL_PURCHASE', environment: 'SANDBOX', event_timestamp_ms: at * 1000 },
    ...{ original_transaction_id: 't_1', transaction_id: 't_1', app_user_id: 'u_1', product_id: 'pro' },
    ...{ price_in_purchased_currency: 10, currency: 'USD', purchased_at_ms: at * 1000, period_type: 'NORMAL' },
    expiration_at_ms: (at + 30 * 86_400) * 1000,
  },
}

async function deliver(tenant: TestTenant, settings: object, ...bodies: object[]): Promise<void> {
  const source = await makeSource(server, { tenant: tenant.id, ...settings })
  for (const body of bodies) assert.equal((await source.post(body)).status, 200)
}

test('test events of Stripe, plain webhooks and RevenueCat are in no conversion, series or total', async () => {
  const tenant = await server.anotherTenant('provider test mode')
  await deliver(
    tenant,
    { preset: 'stripe' },
    stripe('invoice.paid', invoice),
    stripe('customer.subscription.created', subscription),
    stripe('charge.succeeded', { id: 'ch_1', object: 'charge', amount: 1000, currency: 'usd', status: 'succeeded' }),
    stripe('some.new.billing.subscription', { id: 'x', object: 'novelty', livemode: false }),
  )
  await deliver(tenant, {}, { inbound_event_id: 'e1', event_type: 'invoice.paid', payload: canonical })
  await deliver(tenant, { preset: 'revenuecat' }, sandbox)
  await server.settled()
  const list = async (path: string) => (await server.request(path, { key: tenant.privateKey })).body
  const events = (await list('/v1/events?limit=50')).results as Body[]
  assert.equal(events.length, 6)
  for (const { meta } of events) assert.deepEqual([meta.test, meta.test_mode], [true, true])
  assert.deepEqual((await list('/v1/conversions')).results, [])
  for (const kind of ['events', 'conversions']) {
    const { results } = await list(`/v1/${kind}/series?interval=hour`)
    assert.equal(
      results.reduce((sum: number, { count }: Body) => sum + count, 0),
      0,
      kind,
    )
  }
  const { mrr, coverage, exclusions, invoiced, collected } = await reportOf(
    server,
    'overview',
    { currency: 'USD' },
    tenant,
  )
  assert.deepEqual([mrr, invoiced.count, collected.amount, collected.one_off], [0, 0, 0, 0])
  assert.deepEqual(
    exclusions.results.map(({ subscription_id, reason_code }: Body) => [subscription_id, reason_code]),
    [['sub_1', 'test_mode']],
  )
  assert.deepEqual([coverage.test_events, coverage.unrecognized], [6, {}])
})

test('a live event after its test events counts', async () => {
  const tenant = await server.anotherTenant('live after test')
  await deliver(
    tenant,
    { preset: 'stripe' },
    { ...stripe('invoice.paid', invoice), id: 'evt_test' },
    stripe('invoice.paid', { ...invoice, id: 'in_2', livemode: true }, true),
  )
  await server.settled()
  const { body } = await server.request('/v1/conversions', { key: tenant.privateKey })
  assert.deepEqual(
    body.results.map(({ amount, source_object_id }: Body) => [amount, source_object_id]),
    [[10, 'in_2']],
  )
  const { coverage } = await reportOf(server, 'overview', { currency: 'USD' }, tenant)
  assert.equal(coverage.test_events, 1)
})
