import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { REASONS } from '../../src/domain/billing/exclusions.ts'
import { makeSource } from '../inbound/source.ts'
import { sharedServer, type TestServer } from '../server.ts'
import { type BillingEvent, type Body, created, ended, inDays, invoice, item, reportOf, send } from './shop.ts'

let server: TestServer
before(async () => {
  server = await sharedServer()
})
after(() => server.close())

/** A separate row in addition to items that count. */
const BESIDE_OTHERS = 'items_incomplete'
/** Only with a tenant's policy: policy.test.ts. */
const BY_POLICY = 'past_due'
const REASON_CODES = (Object.keys(REASONS) as (keyof typeof REASONS)[]).filter(
  code => code !== BESIDE_OTHERS && code !== BY_POLICY,
)

/** One event for each reason; its subscription has the name of the reason. */
const CASES: Record<string, { event: BillingEvent; excluded: number | null; item?: null }> = {
  test_mode: { event: created('test_mode', { livemode: false, status: 'unpaid' }), excluded: 10 },
  billed_elsewhere: { event: created('billed_elsewhere', { billed_elsewhere: true }), excluded: 10 },
  other_currency: { event: created('other_currency', { currency: 'USD' }), excluded: null },
  missing_currency: { event: created('missing_currency', { currency: 'coins' }), excluded: null },
  canceled: { event: ended('canceled', inDays(-1)), excluded: 10 },
  incomplete: { event: created('incomplete', { status: 'incomplete' }), excluded: 10 },
  incomplete_expired: {
    event: created('incomplete_expired', { status: 'incomplete_expired' }),
    excluded: 10,
  },
  unpaid: { event: created('unpaid', { status: 'unpaid' }), excluded: 10 },
  trialing: { event: created('trialing', { status: 'trialing' }), excluded: 10 },
  paused: { event: created('paused', { status: 'paused' }), excluded: 10 },
  not_started: {
    event: created('not_started', { started_at: inDays(9), updated_at: inDays(-1) }),
    excluded: 10,
  },
  missing_items: { event: created('missing_items', { items: [] }), excluded: null, item: null },
  missing_price: { event: created('missing_price', { items: [item(null)] }), excluded: null },
  missing_interval: {
    event: created('missing_interval', { items: [item(10, { interval: null })] }),
    excluded: null,
  },
  unsupported_interval: {
    event: created('unsupported_interval', { items: [item(10, { interval: 'decade' })] }),
    excluded: null,
  },
  one_time_price: {
    event: created('one_time_price', { items: [item(10, { type: 'one_time', interval: null })] }),
    excluded: null,
  },
  metered_usage: {
    event: created('metered_usage', { items: [item(10, { usage_type: 'metered' })] }),
    excluded: null,
  },
  tiered_price_unknown: {
    event: created('tiered_price_unknown', {
      items: [item(null, { tiers: [{ up_to: 5, unit_amount: 1 }] })],
    }),
    excluded: null,
  },
  discount_terms_unknown: {
    event: created('discount_terms_unknown', { discounts: [{ duration: 'forever' }] }),
    excluded: 10,
  },
  free: { event: created('free', { items: [item(0)] }), excluded: 0 },
  fully_discounted: {
    event: created('fully_discounted', { discounts: [{ percent_off: 100, duration: 'forever' }] }),
    excluded: 10,
  },
  pending_subscription: {
    event: invoice('paid', 'in_1', {
      subscription: 'pending_subscription',
      customer: 'cus_pending_subscription',
      customer_name: null,
      status: 'paid',
      total: 10,
      paid_at: inDays(-2),
    }),
    excluded: null,
    item: null,
  },
}

test('every reason is reported with a description, its MRR, its start and a fix hint', async () => {
  assert.deepEqual(Object.keys(CASES).toSorted(), REASON_CODES.toSorted())
  await send(
    server,
    Object.values(CASES).map(({ event }) => event),
  )
  const { exclusions, coverage, mrr } = await reportOf(server, 'overview', { page_size: 100 })
  assert.equal(mrr, 0)
  assert.equal(exclusions.count, REASON_CODES.length)
  const rows = new Map<string, Body>(exclusions.results.map((row: Body) => [row.subscription_id, row]))
  for (const code of REASON_CODES) {
    const { since, status, ...row } = rows.get(code)
    assert.deepEqual(row, {
      subscription_id: code,
      item_id: CASES[code]!.item === null ? null : 'si_1',
      customer: `cus_${code}`,
      customer_name: null,
      reason_code: code,
      reason: REASONS[code].reason,
      excluded_mrr: CASES[code]!.excluded,
      fix_hint: REASONS[code].fixHint,
    })
    assert.ok(!Number.isNaN(Date.parse(since)), code)
    assert.equal(status === null, code === 'pending_subscription')
  }
  assert.equal(coverage.subscriptions_seen, REASON_CODES.length - 1)
  assert.equal(coverage.subscriptions_excluded, REASON_CODES.length - 1)
})

test('the fix hint uses the field names of the provider that sent the subscription', async () => {
  const tenant = await server.anotherTenant('advised')
  const item = {
    id: 'si_1',
    quantity: 1,
    price: { id: 'p', currency: 'eur', recurring: { interval: 'month' } },
  }
  const at = Math.floor(Date.parse(inDays(-3)) / 1000)
  const object = {
    ...{ id: 'sub_stripe', object: 'subscription', customer: 'cus_1', status: 'active', currency: 'eur' },
    ...{ start_date: at, livemode: true, items: { object: 'list', data: [item] } },
  }
  // recognized by its events, even without the Stripe preset
  const source = await makeSource(server, { tenant: tenant.id, billing: true })
  const type = 'customer.subscription.created'
  const event = { id: 'evt_1', object: 'event', created: at, livemode: true, type, data: { object } }
  assert.equal((await source.post(event)).status, 200)
  await send(server, [created('own', { items: [{ ...item, unit_amount: null }] })], tenant)
  const { exclusions } = await reportOf(server, 'overview', {}, tenant)
  const hints = new Map<string, string>(
    exclusions.results.map((row: Body) => [`${row.subscription_id} ${row.reason_code}`, row.fix_hint]),
  )
  assert.match(hints.get('sub_stripe missing_price')!, /in Stripe \(`unit_amount` in minor units/)
  assert.match(hints.get('own missing_price')!, /in major units/)
})

test('the first matching reason is reported', async () => {
  const tenant = await server.anotherTenant('first')
  await send(
    server,
    [
      created('a', { currency: 'USD', status: 'canceled', items: [] }),
      created('b', { currency: null, status: 'trialing' }),
      created('c', { status: 'paused', items: [] }),
      created('d', { items: [item(0, { interval: 'decade' })] }),
      created('e', { items: [item(0)], discounts: [{ percent_off: 100, duration: 'forever' }] }),
      created('f', { items: [item(10, { type: 'one_time', interval: null, interval_count: 0 })] }),
      created('g', { discounts: [{ percent_off: 100, duration: 'repeating' }] }),
    ],
    tenant,
  )
  const { exclusions } = await reportOf(server, 'overview', {}, tenant)
  const codes = Object.fromEntries(exclusions.results.map((row: Body) => [row.subscription_id, row.reason_code]))
  assert.deepEqual(codes, {
    a: 'other_currency',
    b: 'missing_currency',
    c: 'paused',
    d: 'unsupported_interval',
    e: 'free',
    f: 'one_time_price',
    g: 'discount_terms_unknown',
  })
})

test('one row per item, and none for an item that counts', async () => {
  const tenant = await server.anotherTenant('items')
  const items = [
    item(10, { id: 'counts' }),
    item(5, { id: 'metered', usage_type: 'metered' }),
    item(0, { id: 'free' }),
    item(7, { id: 'once', type: 'one_time' }),
  ]
  await send(server, [created('s', { items })], tenant)
  const { exclusions, mrr } = await reportOf(server, 'overview', {}, tenant)
  assert.equal(mrr, 10)
  assert.deepEqual(
    exclusions.results.map((row: Body) => [row.item_id, row.reason_code]),
    [
      ['metered', 'metered_usage'],
      ['free', 'free'],
      ['once', 'one_time_price'],
    ],
  )
})

test('a pending subscription leaves the list when it arrives, and its MRR counts from its start', async () => {
  const tenant = await server.anotherTenant('stub')
  const paidAt = inDays(-60)
  await send(
    server,
    [invoice('paid', 'in_1', { subscription: 's', status: 'paid', total: 10, paid_at: paidAt })],
    tenant,
  )
  const before = await reportOf(server, 'overview', {}, tenant)
  assert.equal(before.exclusions.results[0].reason_code, 'pending_subscription')
  assert.equal(before.exclusions.results[0].since, paidAt)
  assert.equal(before.coverage.invoices_without_subscription, 1)
  await send(server, [created('s')], tenant)
  const after = await reportOf(server, 'overview', {}, tenant)
  assert.deepEqual([after.exclusions.count, after.coverage.invoices_without_subscription, after.mrr], [0, 0, 10])
  assert.equal((await reportOf(server, 'overview', { as_of: inDays(-99) }, tenant)).mrr, 10)
})

test('the pages of the exclusions, with any mix of currencies, contain each row once', async () => {
  const tenant = await server.anotherTenant('pages')
  const mixed = Array.from({ length: 40 }, (_, i) =>
    created(`s${i}`, {
      currency: i % 3 === 0 ? 'USD' : 'EUR',
      status: i % 2 === 0 ? 'trialing' : 'active',
      started_at: inDays(-50 - (i % 7)),
      // some change later without an event
      ...(i % 5 === 0 && {
        discounts: [{ percent_off: 100, duration: 'repeating', ends_at: inDays(30) }],
      }),
    }),
  )
  const pending = Array.from({ length: 5 }, (_, i) =>
    invoice('paid', `in_${i}`, { subscription: `p${i}`, status: 'paid', total: 1, paid_at: inDays(-1) }),
  )
  await send(server, [...mixed, ...pending], tenant)
  const whole = (await reportOf(server, 'overview', { page_size: 100 }, tenant)).exclusions
  assert.equal(whole.results.length, whole.count)
  const found: Body[] = []
  const first = (await reportOf(server, 'overview', { page_size: 7 }, tenant)).exclusions
  for (let page = 1; page <= first.pages; page++) {
    const part = (await reportOf(server, 'overview', { page_size: 7, exclusion_page: page }, tenant)).exclusions
    assert.deepEqual([part.page, part.page_size, part.count], [page, 7, whole.count])
    found.push(...part.results)
  }
  assert.deepEqual(found, whole.results)
  const past = await reportOf(server, 'overview', { exclusion_page: first.pages + 1, page_size: 7 }, tenant)
  assert.deepEqual(past.exclusions.results, [])
})

test('test data is excluded: no MRR, cash, issue, renewal, cancellation or charge', async () => {
  const tenant = await server.anotherTenant('test mode')
  const test = { livemode: false, current_period_end: inDays(5) }
  await send(
    server,
    [
      created('plain', test),
      created('dollars', { ...test, currency: 'USD' }),
      created('unpaid', { ...test, status: 'unpaid' }),
      created('yearly', { ...test, items: [item(100, { interval: 'year' })] }),
      created('ending', { ...test, cancel_at_period_end: true }),
      invoice('paid', 'in_paid', { total: 10, status: 'paid', paid_at: inDays(-2), livemode: false }),
      invoice('payment_failed', 'in_failed', { total: 10, status: 'open', livemode: false }),
    ],
    tenant,
  )
  const { mrr, invoiced, collected, attention, exclusions } = await reportOf(server, 'overview', {}, tenant)
  assert.deepEqual([mrr, invoiced.count, collected.amount], [0, 0, 0])
  assert.deepEqual(new Set(Object.values(attention)), new Set([0]))
  assert.deepEqual(new Set(exclusions.results.map((row: Body) => row.reason_code)), new Set(['test_mode']))
  assert.equal(exclusions.count, 5)
})
