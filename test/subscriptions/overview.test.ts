import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { sharedServer, type TestServer } from '../server.ts'
import { type Body, created, ended, inDays, invoice, item, reportOf, send, updated } from './shop.ts'

let server: TestServer
before(async () => {
  server = await sharedServer()
})
after(() => server.close())

const byId = (rows: Body[], field: string) => new Map(rows.map(row => [row[field], row]))

test('a tenant without subscriptions has a report with every field', async () => {
  const tenant = await server.anotherTenant('empty')
  const { as_of, policy, ...report } = await reportOf(server, 'overview', { currency: 'eur' }, tenant)
  assert.ok(Math.abs(Date.parse(as_of) - Date.now()) < 60_000)
  assert.equal(policy.arr, '12 × MRR')
  const nothing = { results: [], page: 1, page_size: 50, count: 0, pages: 0 }
  assert.deepEqual(report, {
    currency: 'EUR',
    mrr: 0,
    arr: 0,
    arpa: 0,
    committed_mrr: 0,
    active_subscriptions: 0,
    active_accounts: 0,
    coverage: {
      subscriptions_seen: 0,
      subscriptions_included: 0,
      subscriptions_excluded: 0,
      items_seen: 0,
      items_priced: 0,
      invoices_without_subscription: 0,
      accounts_attributed: 0,
      attribution_rate: 0,
      first_event_at: null,
      last_event_at: null,
      snapshot_first_at: null,
      snapshot_days_available: 0,
      snapshot_gaps: 0,
      movements_complete: true,
      unrecognized: {},
      test_events: 0,
      warnings: [],
    },
    attention: { payment_issues: 0, renewals: 0, cancellations: 0, upcoming_billing: 0 },
    invoiced: { amount: 0, count: 0 },
    collected: { amount: 0, count: 0, refunded: 0, disputed: 0, one_off: 0 },
    movements: {
      window_days: 30,
      opening_mrr: 0,
      new: 0,
      expansion: 0,
      contraction: 0,
      churn: 0,
      reactivation: 0,
      net: 0,
      closing_mrr: 0,
    },
    rates: {
      customer_churn_rate: null,
      gross_mrr_churn_rate: null,
      net_mrr_churn_rate: null,
      gross_revenue_retention: null,
      net_revenue_retention: null,
      quick_ratio: null,
      ltv: null,
    },
    accounts: nothing,
    acquisition_sources: nothing,
    exclusions: nothing,
  })
})

test('an account row has every field, from all of its subscriptions', async () => {
  const tenant = await server.anotherTenant('rows')
  const periodEnd = inDays(12)
  await send(
    server,
    [
      created('a', {
        customer: 'cus_1',
        customer_name: 'Ada',
        customer_email: 'ada@example.com',
        started_at: '2026-01-05T00:00:00Z',
        current_period_end: periodEnd,
        acquisition: { source: 'newsletter' },
        items: [item(49, { name: 'Team' }), item(10, { id: 'si_2', name: 'Seats', quantity: 2 })],
      }),
      created('b', {
        customer: 'cus_1',
        started_at: '2026-02-01T00:00:00Z',
        current_period_end: inDays(20),
        cancel_at_period_end: true,
        items: [item(30, { name: 'Extra' })],
      }),
      created('c', {
        customer: 'cus_1',
        status: 'trialing',
        trial_end: inDays(30),
        items: [item(5, { name: 'Trial' })],
      }),
    ],
    tenant,
  )
  const { accounts, mrr, committed_mrr, active_subscriptions } = await reportOf(server, 'overview', {}, tenant)
  assert.deepEqual(accounts.results, [
    {
      customer: 'cus_1',
      customer_name: 'Ada',
      customer_email: 'ada@example.com',
      mrr: 99,
      arr: 1188,
      committed_mrr: 69,
      subscriptions: 3,
      active_subscriptions: 2,
      status: 'active',
      plan_names: ['Team', 'Seats', 'Extra', 'Trial'],
      acquisition_source: 'newsletter',
      customer_since: '2026-01-05T00:00:00.000Z',
      next_billing_at: periodEnd,
      has_payment_issue: false,
    },
  ])
  assert.deepEqual([mrr, committed_mrr, active_subscriptions], [99, 69, 2])
})

test('totals are the sums of their rows, down to the items', async () => {
  const tenant = await server.anotherTenant('sums')
  const events = Array.from({ length: 23 }, (_, i) =>
    created(`s${i}`, {
      customer: `cus_${i % 17}`,
      items: [item(10 + i / 3, { interval: i % 3 === 0 ? 'year' : 'month' }), item(i % 4, { id: 'si_2' })],
      acquisition: i % 2 === 0 ? { source: `source ${i % 3}` } : null,
    }),
  )
  await send(server, events, tenant)
  const overview = await reportOf(server, 'overview', { page_size: 100 }, tenant)
  const cents = (rows: Body[], field: string) => rows.reduce((sum, row) => sum + Math.round(row[field] * 100), 0)
  assert.equal(cents(overview.accounts.results, 'mrr'), Math.round(overview.mrr * 100))
  assert.equal(cents(overview.acquisition_sources.results, 'mrr'), Math.round(overview.mrr * 100))
  let ofItems = 0
  for (const { customer, mrr } of overview.accounts.results) {
    const { items, summary } = await reportOf(server, 'account', { customer }, tenant)
    assert.equal(summary.mrr, mrr)
    assert.equal(cents(items.results, 'mrr'), Math.round(mrr * 100))
    assert.equal(cents(items.results, 'gross_mrr') - cents(items.results, 'discount_mrr'), cents(items.results, 'mrr'))
    ofItems += items.count
  }
  assert.equal(ofItems, overview.coverage.items_seen)
  assert.equal(overview.accounts.count, 17)
  assert.equal(overview.coverage.subscriptions_included, overview.active_subscriptions)
})

test('accounts without MRR are listed after those with MRR', async () => {
  const tenant = await server.anotherTenant('order')
  await send(
    server,
    [created('small'), ended('gone', inDays(-3)), created('large', { items: [item(100)] }), created('also', {})],
    tenant,
  )
  const { accounts, active_accounts, arpa } = await reportOf(server, 'overview', {}, tenant)
  assert.deepEqual(
    accounts.results.map((row: Body) => [row.customer, row.mrr, row.status]),
    [
      ['cus_large', 100, 'active'],
      ['cus_also', 10, 'active'],
      ['cus_small', 10, 'active'],
      ['cus_gone', 0, 'canceled'],
    ],
  )
  assert.equal(active_accounts, 3)
  assert.equal(arpa, 40)
})

test('invoiced by finalization, including tax; collected by payment, minus refunds', async () => {
  const tenant = await server.anotherTenant('cash')
  const paid = { subscription: 's', status: 'paid' }
  await send(
    server,
    [
      created('s'),
      invoice('paid', 'in_1', {
        ...paid,
        total: 119,
        tax: 19,
        finalized_at: inDays(-10),
        paid_at: inDays(-9),
      }),
      // invoiced before the window, paid within
      invoice('paid', 'in_2', { ...paid, total: 50, finalized_at: inDays(-40), paid_at: inDays(-5) }),
      invoice('finalized', 'in_3', {
        subscription: 's',
        status: 'open',
        total: 20,
        finalized_at: inDays(-2),
      }),
      invoice('finalized', 'in_4', { subscription: 's', status: 'draft', total: 7, updated_at: inDays(-2) }),
      invoice('voided', 'in_5', { subscription: 's', status: 'void', total: 9, finalized_at: inDays(-2) }),
      invoice('marked_uncollectible', 'in_6', {
        subscription: 's',
        status: 'uncollectible',
        total: 5,
        finalized_at: inDays(-20),
      }),
      {
        type: 'refund.created',
        data: { id: 're_1', invoice: 'in_1', amount: 19, currency: 'EUR', created_at: inDays(-1) },
      },
      {
        type: 'refund.created',
        data: { id: 're_2', invoice: 'in_2', amount: 50, currency: 'EUR', created_at: inDays(-35) },
      },
      {
        type: 'refund.failed',
        data: { id: 're_3', invoice: 'in_1', amount: 1, currency: 'EUR', created_at: inDays(-1) },
      },
      invoice('paid', 'in_usd', {
        ...paid,
        currency: 'USD',
        total: 1000,
        finalized_at: inDays(-1),
        paid_at: inDays(-1),
      }),
    ],
    tenant,
  )
  const { invoiced, collected } = await reportOf(server, 'overview', {}, tenant)
  assert.deepEqual(invoiced, { amount: 144, count: 3 })
  assert.deepEqual(collected, { amount: 150, count: 2, refunded: 19, disputed: 0, one_off: 0 })
  const before = await reportOf(server, 'overview', { as_of: inDays(-9.5) }, tenant)
  assert.deepEqual(before.invoiced, { amount: 124, count: 2 })
  assert.deepEqual(before.collected, { amount: -50, count: 0, refunded: 50, disputed: 0, one_off: 0 })
})

test('each change is a movement, and movements add up for every window', async () => {
  const tenant = await server.anotherTenant('movements')
  const s = { customer: 'c', started_at: inDays(-90) }
  await send(
    server,
    [
      created('s', s),
      updated('s', { ...s, updated_at: inDays(-20), items: [item(25)] }),
      updated('s', { ...s, updated_at: inDays(-15), items: [item(12)] }),
      updated('s', { ...s, updated_at: inDays(-10), status: 'unpaid' }),
      updated('s', { ...s, updated_at: inDays(-5), items: [item(30)] }),
      created('n', { started_at: inDays(-1) }),
    ],
    tenant,
  )
  const { movements } = await reportOf(server, 'overview', {}, tenant)
  assert.deepEqual(movements, {
    window_days: 30,
    opening_mrr: 10,
    new: 10,
    expansion: 15,
    contraction: 13,
    churn: 12,
    reactivation: 30,
    net: 30,
    closing_mrr: 40,
  })
  for (const days of [-200, -100, -60, -31, -20, -12, -7, -2, 0]) {
    const { movements: m, mrr } = await reportOf(server, 'overview', { as_of: inDays(days) }, tenant)
    assert.equal(m.opening_mrr + m.new + m.expansion + m.reactivation - m.contraction - m.churn, m.closing_mrr)
    assert.equal(m.closing_mrr, mrr)
    assert.equal(m.opening_mrr + m.net, m.closing_mrr)
  }
})

test('all changes of an account at one instant are one movement', async () => {
  const tenant = await server.anotherTenant('instant')
  const at = inDays(-3)
  await send(
    server,
    [
      created('old', { customer: 'c' }),
      ended('old', at, { customer: 'c' }),
      created('new', { customer: 'c', started_at: at, items: [item(15)] }),
    ],
    tenant,
  )
  const { movements } = await reportOf(server, 'overview', {}, tenant)
  assert.deepEqual([movements.expansion, movements.churn, movements.new], [5, 0, 0])
})

test('three currencies are separate, and each lists the others among its exclusions', async () => {
  const tenant = await server.anotherTenant('currencies')
  await send(
    server,
    [
      created('e', { customer: 'c' }),
      created('u', { customer: 'c', currency: 'USD', items: [item(20)] }),
      created('j', { customer: 'c', currency: 'JPY', items: [item(3000)] }),
      created('none', { currency: null }),
    ],
    tenant,
  )
  for (const [currency, mrr] of [
    ['EUR', 10],
    ['USD', 20],
    ['JPY', 3000],
  ] as const) {
    const overview = await reportOf(server, 'overview', { currency }, tenant)
    assert.equal(overview.mrr, mrr)
    assert.equal(overview.accounts.results[0].mrr, mrr)
    assert.equal(overview.accounts.results[0].subscriptions, 1)
    const excluded = byId(overview.exclusions.results, 'subscription_id')
    assert.equal(excluded.size, 3)
    assert.equal(excluded.get('none').reason_code, 'missing_currency')
    assert.equal([...excluded.values()].filter(row => row.reason_code === 'other_currency').length, 2)
    assert.deepEqual([overview.coverage.subscriptions_seen, overview.coverage.subscriptions_included], [4, 1])
    assert.deepEqual(overview.coverage.warnings, ['One subscription has no currency and does not count.'])
  }
})

test('coverage shows how complete the data is', async () => {
  const tenant = await server.anotherTenant('coverage')
  await send(
    server,
    [
      created('a', {
        items: [item(10), item(5, { id: 'm', usage_type: 'metered' })],
        acquisition: { source: 'x' },
      }),
      created('b'),
      created('t', { status: 'trialing' }),
      invoice('paid', 'in_1', { subscription: 'unseen', status: 'paid', total: 5, paid_at: inDays(-1) }),
      invoice('paid', 'in_2', { customer: 'other', status: 'paid', total: 5, paid_at: inDays(-1) }),
      invoice('paid', 'in_3', { subscription: 'a', status: 'paid', total: 5, paid_at: inDays(-1) }),
    ],
    tenant,
  )
  const { coverage } = await reportOf(server, 'overview', {}, tenant)
  const { first_event_at, last_event_at, snapshot_first_at, ...rest } = coverage
  assert.deepEqual(rest, {
    subscriptions_seen: 3,
    subscriptions_included: 2,
    subscriptions_excluded: 1,
    items_seen: 4,
    items_priced: 3,
    invoices_without_subscription: 2,
    accounts_attributed: 1,
    attribution_rate: 0.5,
    snapshot_days_available: 100,
    snapshot_gaps: 0,
    movements_complete: false,
    unrecognized: {},
    test_events: 0,
    warnings: ['One subscription appears only in invoices; its MRR is missing.'],
  })
  assert.equal(snapshot_first_at, `${inDays(-100).slice(0, 10)}T00:00:00.000Z`)
  assert.ok(Date.parse(first_event_at) < Date.parse(last_event_at))
})

test('tenants are isolated', async () => {
  const [mine, other] = [await server.anotherTenant('one'), await server.anotherTenant('other')]
  await send(server, [created('same', { items: [item(1)] })], mine)
  await send(server, [created('same', { items: [item(2)] })], other)
  assert.equal((await reportOf(server, 'overview', {}, mine)).mrr, 1)
  assert.equal((await reportOf(server, 'overview', {}, other)).mrr, 2)
})
