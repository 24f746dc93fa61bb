import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import {
  charge,
  olderSubscription,
  stripeEvent,
  invoice as stripeInvoice,
  refund as stripeRefund,
  subscription as stripeSubscription,
  unix,
} from '../domain/providers/stripe/events.ts'
import { makeSource } from '../inbound/source.ts'
import { startServer, type TestServer, type TestTenant } from '../server.ts'
import { type BillingEvent, created, ended, inDays, invoice, item, reportOf, send, updated } from './shop.ts'

let server: TestServer
before(async () => {
  server = await startServer()
})
after(() => server.close())

async function mrrOn(tenant: TestTenant, ...days: number[]): Promise<number[]> {
  const reports = await Promise.all(
    days.map(day => reportOf(server, 'overview', day === 0 ? {} : { as_of: inDays(day) }, tenant)),
  )
  return reports.map(report => report.mrr)
}

test('a state is valid from its time on, and ended_at is exclusive', async () => {
  const tenant = await server.anotherTenant('instants')
  const [from, change, end] = ['2026-01-01', '2026-02-01', '2026-03-01'].map(day => `${day}T00:00:00Z`)
  await send(
    server,
    [
      created('s', { started_at: from }),
      updated('s', { started_at: from, updated_at: change, items: [item(20)] }),
      ended('s', end!, { started_at: from, items: [item(20)] }),
    ],
    tenant,
  )
  const at = async (as_of: string) => (await reportOf(server, 'overview', { as_of }, tenant)).mrr
  assert.deepEqual(
    [
      await at('2025-12-31T23:59:59.999Z'),
      await at('2026-01-01'),
      await at('2026-01-31T23:59:59.999Z'),
      await at('2026-02-01'),
      await at('2026-02-28T23:59:59.999Z'),
      await at('2026-03-01T00:00:00Z'),
    ],
    [0, 10, 10, 20, 20, 0],
  )
  const { movements } = await reportOf(server, 'overview', { as_of: '2026-03-01' }, tenant)
  assert.deepEqual([movements.opening_mrr, movements.expansion, movements.churn], [10, 10, 20])
  // the start of the window is exclusive
  const later = await reportOf(server, 'overview', { as_of: '2026-03-03' }, tenant)
  assert.deepEqual([later.movements.opening_mrr, later.movements.expansion], [20, 0])
})

test('one late event with start and end fills in the complete past', async () => {
  const tenant = await server.anotherTenant('late')
  await send(server, [ended('s', inDays(-20), { started_at: inDays(-90), updated_at: inDays(-1) })], tenant)
  assert.deepEqual(await mrrOn(tenant, -91, -89, -21, -19, 0), [0, 10, 10, 0, 0])
})

test('scheduled changes take effect automatically: a start, the end of a discount, an end', async () => {
  const tenant = await server.anotherTenant('future')
  await send(
    server,
    [
      created('starts', { started_at: inDays(10), updated_at: inDays(-1), items: [item(1)] }),
      created('discount', {
        items: [item(100)],
        discounts: [{ percent_off: 50, duration: 'repeating', ends_at: inDays(20) }],
      }),
      created('ends', { items: [item(1000)], cancel_at: inDays(30) }),
    ],
    tenant,
  )
  assert.deepEqual(await mrrOn(tenant, 0, 11, 21, 31), [1050, 1051, 1101, 101])
})

test('late versions correct their part of the past, in any order', async () => {
  const versions = [
    created('s', { started_at: inDays(-90) }),
    updated('s', { started_at: inDays(-90), updated_at: inDays(-60), items: [item(20)] }),
    updated('s', { started_at: inDays(-90), updated_at: inDays(-30), items: [item(30)] }),
  ]
  for (const order of [
    [0, 1, 2],
    [2, 1, 0],
    [1, 2, 0],
    [2, 0, 1],
  ]) {
    const tenant = await server.anotherTenant(`order ${order}`)
    for (const i of order) await send(server, [versions[i]!], tenant)
    assert.deepEqual(await mrrOn(tenant, -91, -61, -31, 0), [0, 10, 20, 30])
  }
})

test('after a deletion nothing restores the id, whatever its updated_at; the past can still be corrected', async () => {
  const tenant = await server.anotherTenant('deleted')
  const start = { started_at: inDays(-90) }
  await send(server, [created('s', start), ended('s', inDays(-30), start)], tenant)
  await send(server, [updated('s', { ...start, updated_at: inDays(-10), items: [item(99)] })], tenant)
  await send(server, [updated('s', { ...start, updated_at: inDays(0), items: [item(99)] })], tenant)
  assert.deepEqual(await mrrOn(tenant, -31, -29, -9, 0), [10, 0, 0, 0])
  await send(server, [updated('s', { ...start, updated_at: inDays(-60), items: [item(50)] })], tenant)
  assert.deepEqual(await mrrOn(tenant, -61, -31, -29, 0), [10, 50, 0, 0])
})

test('a repeat changes nothing', async () => {
  const tenant = await server.anotherTenant('repeat')
  const events: BillingEvent[] = [
    created('s'),
    invoice('paid', 'in', {
      subscription: 's',
      status: 'paid',
      total: 10,
      paid_at: inDays(-2),
      updated_at: inDays(-2),
    }),
    {
      type: 'refund.created',
      data: {
        id: 're',
        invoice: 'in',
        amount: 1,
        currency: 'EUR',
        created_at: inDays(-1),
        updated_at: inDays(-1),
      },
    },
  ]
  const as_of = inDays(0)
  await send(server, events, tenant)
  const once = await reportOf(server, 'overview', { as_of }, tenant)
  await send(server, [...events, ...events], tenant)
  assert.deepEqual(await reportOf(server, 'overview', { as_of }, tenant), once)
})

test('a subscription moves to its account when the account becomes known', async () => {
  const tenant = await server.anotherTenant('moves')
  await send(server, [created('s', { customer: null })], tenant)
  assert.equal((await reportOf(server, 'overview', {}, tenant)).accounts.results[0].customer, 's')
  await send(server, [updated('s', { customer: 'c', updated_at: inDays(-1) })], tenant)
  const { accounts, mrr, movements } = await reportOf(server, 'overview', {}, tenant)
  assert.deepEqual([accounts.count, accounts.results[0].customer, mrr, movements.net], [1, 'c', 10, 0])
})

test('a webhook source accepts Stripe events of old and new API versions', async () => {
  const tenant = await server.anotherTenant('stripe')
  const source = await makeSource(server, { tenant: tenant.id })
  const events = [
    stripeEvent('invoice.paid', stripeInvoice({ status: 'paid', amount_paid: 2380, amount_remaining: 0 }), {
      id: 'evt_1',
      created: unix('2025-02-01'),
    }),
    stripeEvent('customer.subscription.created', stripeSubscription(), { id: 'evt_2' }),
    stripeEvent('customer.subscription.created', olderSubscription({ id: 'sub_older', customer: 'cus_older' }), {
      id: 'evt_3',
    }),
    stripeEvent('charge.refunded', charge(), { id: 'evt_6', created: unix('2025-02-03') }),
    stripeEvent('refund.created', stripeRefund(), { id: 'evt_4', created: unix('2025-02-03') }),
    stripeEvent(
      'customer.subscription.deleted',
      olderSubscription({ id: 'sub_older', status: 'canceled', ended_at: unix('2025-02-20') }),
      {
        id: 'evt_5',
        created: unix('2025-02-20'),
      },
    ),
  ]
  for (const event of events) assert.equal((await source.post(event)).status, 200)
  await server.settled()
  const overview = await reportOf(server, 'overview', { currency: 'USD', as_of: '2025-02-10' }, tenant)
  assert.equal(overview.mrr, 40)
  assert.deepEqual(overview.invoiced, { amount: 23.8, count: 1 })
  assert.deepEqual(overview.collected, { amount: 18.8, count: 1, refunded: 5, disputed: 0, one_off: 0 })
  assert.equal((await reportOf(server, 'overview', { currency: 'USD' }, tenant)).mrr, 20)
  const { timeline } = await reportOf(server, 'account', { currency: 'USD', customer: 'cus_Acme' }, tenant)
  const types = timeline.results.map((row: { event_type: string }) => row.event_type)
  for (const type of ['customer.subscription.created', 'invoice.paid', 'refund.created', 'movement.new']) {
    assert.ok(types.includes(type), type)
  }
})

test('no invalid billing event blocks the ledger', async () => {
  const tenant = await server.anotherTenant('poison')
  const monsters: unknown[] = [
    {},
    { id: {} },
    { id: 'm1', items: 'none', discounts: 7, currency: [] },
    { id: 'm2', items: [null, 3, { unit_amount: '1e400' }], started_at: '0001-01-01', ended_at: 'never' },
    {
      id: 'x'.repeat(5_000),
      customer: 'y'.repeat(5_000),
      status: 'active',
      currency: 'EUR',
      items: [item(1)],
    },
    {
      id: 'm3',
      started_at: '9999-12-31',
      updated_at: '0001-01-01',
      items: [item(1)],
      currency: 'EUR',
      status: 'active',
    },
    { id: 'm4', items: [item(1e15)], currency: 'EUR', status: 'active' },
    { id: 'm5\u0000', customer: '\ud800', items: [item(1)], currency: 'EUR', status: 'active' },
  ]
  await send(
    server,
    [
      ...monsters.flatMap(data =>
        ['subscription.created', 'invoice.paid', 'refund.created'].map(type => ({
          type,
          data: data as never,
        })),
      ),
      created('good'),
    ],
    tenant,
  )
  const { rows } = await server.pool.query('select count(*)::int as letters from dead_letters')
  assert.equal(rows[0].letters, 0)
  for (const report of ['overview', 'attention', 'acquisition', 'movements', 'retention']) {
    await reportOf(server, report, {}, tenant)
  }
  const { accounts } = await reportOf(server, 'account', { customer: 'cus_good' }, tenant).then(async () =>
    reportOf(server, 'overview', {}, tenant),
  )
  assert.ok(accounts.results.some((row: { customer: string }) => row.customer === 'cus_good'))
})
