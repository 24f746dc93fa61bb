// A value that cannot be read is reported on the event, in the issues and in coverage, until a newer version replaces it.
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

const subscription = (id: string, changes: object, item: object = {}) => ({
  ...{ id, customer: `c_${id}`, status: 'active', currency: 'EUR', started_at: '2026-01-01', updated_at: '2026-01-01' },
  items: [{ id: 'i', quantity: 1, unit_amount: 49, interval: 'month', ...item }],
  ...changes,
})

async function deliver(tenant: TestTenant, settings: object, events: Body[]): Promise<void> {
  const source = await makeSource(server, { tenant: tenant.id, ...settings })
  for (const event of events) assert.equal((await source.post(event)).status, 200)
  await server.settled()
}

const canonical = (type: string, payload: object) => ({ event_type: type, payload })

async function warningsOf(tenant: TestTenant, asOf?: string): Promise<string[]> {
  const { coverage } = await reportOf(server, 'overview', asOf ? { as_of: asOf } : {}, tenant)
  return coverage.warnings
}

test('an unreadable status, amount or interval is on the event, in the issues and in coverage', async () => {
  const tenant = await server.anotherTenant('unreadable')
  await deliver(tenant, {}, [
    canonical('subscription.updated', subscription('s1', { status: 'activ' })),
    canonical('subscription.updated', subscription('s2', {}, { unit_amount: 'forty-nine' })),
    canonical('subscription.updated', subscription('s3', {}, { interval: 'fortnight' })),
    canonical('subscription.updated', subscription('s4', {}, { unit_amount: 1e8, quantity: 1e6 })),
    canonical('subscription.updated', subscription('s5', {}, { unit_amount: 1e7, quantity: 1e6 })),
    canonical('invoice.updated', {
      id: 'in_1',
      status: 'payed',
      total: '€10',
      currency: 'EUR',
      updated_at: '2026-01-02',
    }),
    canonical('refund.created', { id: 're_1', amount: 'ten', currency: 'EUR', created_at: '2026-01-02' }),
  ])
  const { body } = await server.request('/v1/events?limit=10', { key: tenant.privateKey })
  const onEvents = new Map(body.results.map(({ payload, meta }: Body) => [payload.id, meta.warnings]))
  assert.deepEqual(onEvents.get('s1'), ['`status` cannot be read: "activ"'])
  assert.deepEqual(onEvents.get('s2'), ['`items[0].unit_amount` cannot be read: "forty-nine"'])
  assert.deepEqual(onEvents.get('s3'), ['`items[0].interval` cannot be read: "fortnight"'])
  assert.deepEqual(onEvents.get('in_1'), ['`status` cannot be read: "payed"', '`total` cannot be read: "€10"'])
  const of = body.results.find(({ payload }: Body) => payload.id === 's1').id
  const outcome = (await server.request(`/v1/events/${of}`, { key: tenant.privateKey })).body
  assert.match(outcome.reason, /`status` cannot be read/)
  assert.deepEqual(await warningsOf(tenant), [
    'Subscription s1: `status` cannot be read: "activ"',
    'Subscription s2: `items[0].unit_amount` cannot be read: "forty-nine"',
    'Subscription s3: `items[0].interval` cannot be read: "fortnight"',
    'Subscription s4: `items[0].unit_amount` cannot be read: 100000000',
    'Invoice in_1: `status` cannot be read: "payed"',
    'Invoice in_1: `total` cannot be read: "€10"',
    'Refund re_1: `amount` cannot be read: "ten"',
  ])
  const issues = await server.admin.health.issues(tenant.id)
  const found = issues.filter(({ kind }) => kind === 'billing_warning')
  assert.deepEqual(found.map(({ cause, count }) => `${cause} ${count}`).sort(), [
    'invoice `status` cannot be read 1',
    'invoice `total` cannot be read 1',
    'refund `amount` cannot be read 1',
    'subscription `items[].interval` cannot be read 1',
    'subscription `items[].unit_amount` cannot be read 2',
    'subscription `status` cannot be read 1',
  ])
  assert.equal(found.find(({ cause }) => cause.startsWith('subscription `status`'))!.example_id, of)
})

test('a newer version of the object resolves the warning, in any order of arrival', async () => {
  const tenant = await server.anotherTenant('unreadable, resolved')
  const broken = canonical('subscription.updated', subscription('s1', { status: 'activ' }))
  const fixed = canonical('subscription.updated', subscription('s1', { updated_at: '2026-02-01' }))
  await deliver(tenant, {}, [fixed, broken])
  assert.deepEqual(await warningsOf(tenant), [])
  assert.equal((await warningsOf(tenant, '2026-01-15')).length, 1)
  const issues = await server.admin.health.issues(tenant.id)
  assert.deepEqual(issues, [])
})

test('providers: values that cannot be read are named', async () => {
  const tenant = await server.anotherTenant('unreadable, providers')
  const at = Date.parse('2026-01-01') / 1000
  const price = { id: 'p', currency: 'eur', unit_amount: 'forty-nine', recurring: { interval: 'moon' } }
  const object = {
    ...{ id: 'sub_1', object: 'subscription', customer: 'cus_1', status: 'activ', currency: 'eur', created: at },
    items: { data: [{ id: 'si_1', quantity: 1, price }] },
  }
  const event = { id: 'evt_1', object: 'event', created: at, livemode: true, type: 'customer.subscription.updated' }
  await deliver(tenant, { preset: 'stripe' }, [{ ...event, data: { object } }])
  const unit_price = { amount: 'forty-nine', currency_code: 'EUR' }
  await deliver(tenant, { preset: 'paddle' }, [
    {
      ...{ event_id: 'evt_1', event_type: 'subscription.updated', occurred_at: '2026-01-02T00:00:00.000000Z' },
      data: {
        ...{
          id: 'sub_2',
          status: 'actif',
          customer_id: 'ctm',
          currency_code: 'EUR',
          started_at: '2026-01-01T00:00:00Z',
        },
        items: [
          {
            quantity: 1,
            price: { id: 'pri', product_id: 'pro', unit_price, billing_cycle: { interval: 'month', frequency: 1 } },
          },
        ],
      },
    },
  ])
  assert.deepEqual(await warningsOf(tenant), [
    'Subscription sub_1: `items.data[0].price.recurring.interval` cannot be read: "moon"',
    'Subscription sub_1: `items.data[0].price.unit_amount` cannot be read: "forty-nine"',
    'Subscription sub_1: `status` cannot be read: "activ"',
    'Subscription sub_2: `items[0].unit_amount` cannot be read: "forty-nine"',
    'Subscription sub_2: `status` cannot be read: "actif"',
  ])
})

test('a subscription without a status is active', async () => {
  const tenant = await server.anotherTenant('no status')
  const { status: _, ...without } = subscription('s1', {})
  await deliver(tenant, {}, [canonical('subscription.created', without)])
  const { mrr, coverage } = await reportOf(server, 'overview', {}, tenant)
  assert.deepEqual([mrr, coverage.warnings], [49, []])
})
