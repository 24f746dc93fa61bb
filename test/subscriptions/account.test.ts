import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { sharedServer, type TestServer } from '../server.ts'
import { ask, type Body, created, ended, inDays, invoice, item, reportOf, send, updated } from './shop.ts'

let server: TestServer
before(async () => {
  server = await sharedServer()
})
after(() => server.close())

test('a request without customer and subscription_id is a validation error, reported with all others', async () => {
  const { status, body } = await ask(server, 'account', { currency: 'nope', page: 0 })
  assert.equal(status, 400)
  assert.deepEqual(body.errors.map((error: Body) => error.pointer).sort(), ['/currency', '/customer', '/page'])
})

test('an account that does not exist, does not exist yet, or belongs to another tenant is not found', async () => {
  const [tenant, other] = [await server.anotherTenant('mine'), await server.anotherTenant('theirs')]
  await send(server, [created('s', { started_at: inDays(-10) })], tenant)
  const answers = [
    ask(server, 'account', { currency: 'EUR', customer: 'unknown' }, { tenant }),
    ask(server, 'account', { currency: 'EUR', subscription_id: 'nothing' }, { tenant }),
    ask(server, 'account', { currency: 'EUR', customer: 'cus_s' }, { tenant: other }),
    ask(server, 'account', { currency: 'EUR', subscription_id: 's' }, { tenant: other }),
    ask(server, 'account', { currency: 'EUR', customer: 'cus_s', as_of: inDays(-11) }, { tenant }),
    ask(server, 'account', { currency: 'EUR', customer: 'cus_other', subscription_id: 's' }, { tenant }),
  ]
  for (const { status, body } of await Promise.all(answers)) {
    assert.deepEqual([status, body.code], [404, 'not_found'])
  }
  const found = await ask(server, 'account', { currency: 'EUR', customer: 'cus_s', subscription_id: 's' }, { tenant })
  assert.equal(found.status, 200)
})

test('the account is the same by customer or by subscription', async () => {
  const tenant = await server.anotherTenant('same')
  await send(server, [created('a', { customer: 'c' }), created('b', { customer: 'c' })], tenant)
  const as_of = inDays(0)
  const byCustomer = await reportOf(server, 'account', { customer: 'c', as_of }, tenant)
  assert.deepEqual(await reportOf(server, 'account', { subscription_id: 'b', as_of }, tenant), byCustomer)
  assert.deepEqual(Object.keys(byCustomer), ['currency', 'as_of', 'summary', 'policy', 'items', 'timeline'])
})

test('without a customer the account is the e-mail address, else the subscription id', async () => {
  const tenant = await server.anotherTenant('nameless')
  await send(
    server,
    [
      created('a', { customer: null, customer_email: 'ada@example.com' }),
      created('b', { customer: null, customer_email: 'ada@example.com' }),
      created('alone', { customer: null }),
    ],
    tenant,
  )
  assert.equal((await reportOf(server, 'account', { customer: 'ada@example.com' }, tenant)).summary.mrr, 20)
  assert.equal((await reportOf(server, 'account', { subscription_id: 'alone' }, tenant)).summary.customer, 'alone')
})

test('items: the MRR of each, and the reason of each exclusion', async () => {
  const tenant = await server.anotherTenant('items')
  const period = { current_period_start: inDays(-10), current_period_end: inDays(20) }
  await send(
    server,
    [
      created('s', {
        customer: 'c',
        ...period,
        items: [
          item(120, { id: 'a', price_id: 'p', name: 'Year', interval: 'year', quantity: 2 }),
          item(5, { id: 'b', usage_type: 'metered', name: null }),
        ],
        discounts: [{ percent_off: 25, duration: 'forever' }],
      }),
      created('dollars', { customer: 'c', started_at: inDays(-5), currency: 'USD', items: [item(9.99)] }),
      created('bare', { customer: 'c', started_at: inDays(-4), items: [] }),
    ],
    tenant,
  )
  const { items, summary } = await reportOf(server, 'account', { customer: 'c' }, tenant)
  assert.deepEqual(items.results[0], {
    subscription_id: 's',
    item_id: 'a',
    price_id: 'p',
    plan_name: 'Year',
    quantity: 2,
    unit_amount: 120,
    currency: 'EUR',
    interval: 'year',
    interval_count: 1,
    usage_type: 'licensed',
    gross_mrr: 20,
    discount_mrr: 5,
    mrr: 15,
    included: true,
    exclusion_reason: null,
    ...period,
  })
  assert.deepEqual(
    items.results.map((row: Body) => [row.subscription_id, row.item_id, row.mrr, row.included, row.exclusion_reason]),
    [
      ['s', 'a', 15, true, null],
      ['s', 'b', 0, false, 'metered_usage'],
      ['dollars', 'si_1', 0, false, 'other_currency'],
      ['bare', null, 0, false, 'missing_items'],
    ],
  )
  assert.deepEqual([items.results[2].unit_amount, items.results[2].currency], [9.99, 'USD'])
  assert.deepEqual([summary.mrr, summary.subscriptions], [15, 2])
})

test('in a currency that it does not pay in, an account exists with an MRR of 0', async () => {
  const tenant = await server.anotherTenant('foreign')
  await send(server, [created('s')], tenant)
  const { summary, items, timeline } = await reportOf(server, 'account', { customer: 'cus_s', currency: 'JPY' }, tenant)
  assert.deepEqual([summary.mrr, summary.subscriptions, summary.status], [0, 0, 'active'])
  assert.deepEqual([items.results[0].exclusion_reason, timeline.count], ['other_currency', 0])
})

test('the timeline contains every change, the newest first, with its source event', async () => {
  const tenant = await server.anotherTenant('timeline')
  const [t1, t2, t3, t4, t5, t6] = [-50, -40, -30, -20, -10, -5].map(inDays)
  await send(
    server,
    [
      created('s', { customer: 'c', started_at: t1, items: [item(30)] }),
      invoice('finalized', 'in_1', {
        subscription: 's',
        customer: 'c',
        number: 'A-1',
        status: 'open',
        total: 30,
        finalized_at: t2,
        updated_at: t2,
      }),
      invoice('payment_failed', 'in_1', {
        subscription: 's',
        customer: 'c',
        number: 'A-1',
        status: 'open',
        total: 30,
        amount_remaining: 30,
        finalized_at: t2,
        updated_at: t3,
        attempt_count: 1,
        failure_message: 'No funds.',
      }),
      invoice('paid', 'in_1', {
        subscription: 's',
        customer: 'c',
        number: 'A-1',
        status: 'paid',
        total: 30,
        amount_paid: 30,
        finalized_at: t2,
        paid_at: t4,
        updated_at: t4,
      }),
      {
        type: 'refund.created',
        data: { id: 're', invoice: 'in_1', amount: 12, currency: 'EUR', created_at: t5 },
      },
      ended('s', t6!, { customer: 'c', started_at: t1, items: [item(30)] }),
    ],
    tenant,
  )
  const { timeline } = await reportOf(server, 'account', { customer: 'c' }, tenant)
  assert.deepEqual(
    timeline.results.map((row: Body) => [row.occurred_at, row.category, row.event_type, row.amount, row.mrr_delta]),
    [
      [t6, 'movement', 'movement.churn', null, -30],
      [t6, 'subscription', 'subscription.deleted', null, null],
      [t5, 'refund', 'refund.created', 12, null],
      [t4, 'payment', 'invoice.paid', 30, null],
      [t3, 'payment', 'invoice.payment_failed', 30, null],
      [t2, 'invoice', 'invoice.finalized', 30, null],
      [t1, 'movement', 'movement.new', null, 30],
      [t1, 'subscription', 'subscription.created', null, null],
    ],
  )
  const [churn, deletion] = timeline.results
  assert.deepEqual(churn, {
    occurred_at: t6,
    event_type: 'movement.churn',
    category: 'movement',
    subscription_id: 's',
    movement_type: 'churn',
    mrr_before: 30,
    mrr_after: 0,
    mrr_delta: -30,
    amount: null,
    invoice_id: null,
    cause: 'cancellation_voluntary',
    event_id: deletion.event_id,
    description: 'MRR fell to 0 (s).',
  })
  const event = await server.request(`/v1/events/${deletion.event_id}`, { key: tenant.privateKey })
  assert.deepEqual([event.status, event.body.event.event_type], [200, 'subscription.deleted'])
  const then = await reportOf(server, 'account', { customer: 'c', as_of: t3! }, tenant)
  assert.equal(then.timeline.count, 4)
})

test('one change in two events is one row', async () => {
  const tenant = await server.anotherTenant('names')
  const paid = { subscription: 's', status: 'paid', total: 10, paid_at: inDays(-3), updated_at: inDays(-3) }
  await send(
    server,
    [
      created('s'),
      invoice('payment_succeeded', 'in_1', paid),
      invoice('paid', 'in_1', paid),
      invoice('paid', 'in_1', paid),
    ],
    tenant,
  )
  const { timeline } = await reportOf(server, 'account', { customer: 'cus_s' }, tenant)
  const payments = timeline.results.filter((row: Body) => row.category === 'payment')
  assert.deepEqual(
    payments.map((row: Body) => row.event_type),
    ['invoice.paid'],
  )
})

test('items and timeline are paged separately', async () => {
  const tenant = await server.anotherTenant('pages')
  await send(
    server,
    [
      ...Array.from({ length: 7 }, (_, i) => created(`s${i}`, { customer: 'c', started_at: inDays(-60 + i) })),
      ...Array.from({ length: 5 }, (_, i) =>
        updated('s0', {
          customer: 'c',
          started_at: inDays(-60),
          updated_at: inDays(-9 + i),
          items: [item(20 + i)],
        }),
      ),
    ],
    tenant,
  )
  const whole = await reportOf(server, 'account', { customer: 'c' }, tenant)
  assert.deepEqual([whole.items.count, whole.timeline.count], [7, 24])
  for (const [list, parameter] of [
    ['items', 'page'],
    ['timeline', 'timeline_page'],
  ] as const) {
    const found: Body[] = []
    for (let page = 1; page <= Math.ceil(whole[list].count / 5) + 1; page++) {
      const report = await reportOf(server, 'account', { customer: 'c', page_size: 5, [parameter]: page }, tenant)
      found.push(...report[list].results)
    }
    assert.deepEqual(found, whole[list].results)
  }
})

test('names come from the subscription, else an invoice, else a contact record of the same profile', async () => {
  const tenant = await server.tenantWithServerKey('who')
  const put = (id: string, data: object) =>
    server.request('/v1/contacts', {
      method: 'POST',
      key: tenant.privateKey,
      body: JSON.stringify({ entityType: 'contact', id, sourceUpdatedAt: inDays(0), data }),
    })
  await put('cus_record', { firstName: 'Rec', lastName: 'Ord', email: 'rec@example.com' })
  await put('crm-7', { name: 'Profile Person', email: 'profile@example.com' })
  await server.settled()
  await send(
    server,
    [
      created('own', { customer_name: 'Own', customer_email: 'own@example.com' }),
      invoice('paid', 'in_1', { customer: 'cus_own', customer_name: 'Invoice', status: 'paid', total: 1 }),
      created('bill'),
      invoice('paid', 'in_2', {
        customer: 'cus_bill',
        customer_name: 'Bill',
        customer_email: 'bill@example.com',
        status: 'paid',
        total: 1,
      }),
      created('record'),
      created('profile', { customer_email: 'profile@example.com' }),
      created('unknown'),
    ],
    tenant,
  )
  const { accounts } = await reportOf(server, 'overview', {}, tenant)
  const names = Object.fromEntries(
    accounts.results.map((row: Body) => [row.customer, [row.customer_name, row.customer_email]]),
  )
  assert.deepEqual(names, {
    cus_own: ['Own', 'own@example.com'],
    cus_bill: ['Bill', 'bill@example.com'],
    cus_record: ['Rec Ord', 'rec@example.com'],
    cus_profile: ['Profile Person', 'profile@example.com'],
    cus_unknown: [null, null],
  })
})
