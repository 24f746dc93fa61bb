// Every price, coupon and charge in a provider's document is counted, or excluded with a reason. None is ignored silently.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { sharedServer, type TestServer } from '../../server.ts'
import { type Body, chargebeeEvent, paddleEvent, providerTenant, revenuecatEvent, stripeEvent } from './provider.ts'

let server: TestServer
before(async () => {
  server = await sharedServer()
})
after(() => server.close())

const DAY_S = 86_400
const AT = Date.parse('2026-03-01T10:00:00Z') / 1000

test('chargebee: amounts of product catalog 1, free quantities and decimal fields', async () => {
  const subscription = (id: string, more: object) =>
    chargebeeEvent('subscription_created', AT, {
      subscription: {
        ...{ id, customer_id: `c_${id}`, status: 'active', currency_code: 'USD', started_at: AT, updated_at: AT },
        ...{ billing_period: 1, billing_period_unit: 'month', object: 'subscription', ...more },
      },
    })
  const plan = { plan_id: 'team', plan_quantity: 5, plan_unit_price: 1000 }
  const decimals = {
    item_price_id: 'api',
    item_type: 'plan',
    quantity_in_decimal: '2.5',
    unit_price_in_decimal: '0.015',
  }
  const tenant = await providerTenant(server, 'chargebee prices')
  await tenant.send('chargebee', [
    subscription('plain', { ...plan, plan_amount: 5000 }),
    subscription('free', { ...plan, plan_free_quantity: 2, plan_amount: 3000 }),
    subscription('free, no total', { ...plan, plan_free_quantity: 2 }),
    subscription('tiered', { plan_id: 'tiers', plan_quantity: 7, plan_amount: 4200 }),
    subscription('addon', {
      ...{ ...plan, plan_amount: 5000 },
      addons: [
        { id: 'a1', quantity: 3, unit_price: 100, amount: 200 },
        { id: 'a2', quantity: 10, amount: 750 },
        { id: 'a3', unit_price: 50 },
      ],
    }),
    subscription('coupon', { ...plan, plan_amount: 5000, coupon: 'unseen' }),
    subscription('decimal', {
      subscription_items: [
        { ...decimals, amount_in_decimal: '37.5', unit_price_in_decimal: '15', amount: 3800, unit_price: 1500 },
      ],
    }),
    subscription('decimal unit', { subscription_items: [{ ...decimals, quantity_in_decimal: '1000' }] }),
    subscription('plan in decimal', {
      plan_id: 'p',
      plan_quantity_in_decimal: '1.5',
      plan_unit_price_in_decimal: '10.25',
      plan_amount_in_decimal: '15.375',
    }),
    subscription('no price', { plan_id: 'p', plan_quantity: 1 }),
  ])
  assert.deepEqual(await tenant.mrrs('USD'), {
    ...{ c_plain: 50, c_free: 30, 'c_free, no total': 30, c_tiered: 42, c_addon: 60, c_coupon: 0, c_decimal: 37.5 },
    ...{ 'c_decimal unit': 15, 'c_plan in decimal': 15.38, 'c_no price': 0 },
  })
  assert.deepEqual(await tenant.reasons('USD'), { coupon: 'discount_terms_unknown', 'no price': 'missing_price' })
})

test('lago: fixed charges and minimum commitments count, coupons count or have unknown terms', async () => {
  let n = 0
  const event = (webhook_type: string, object_type: string, object: object) => ({
    ...{ webhook_type, object_type, [object_type]: object, organization_id: `o${++n}` },
  })
  const subscription = (id: string, plan: object, more: object = {}) =>
    event('subscription.started', 'subscription', {
      ...{ lago_id: id, external_id: id, external_customer_id: `c_${id}`, status: 'active', plan_code: 'p' },
      ...{ started_at: '2026-03-01T10:00:00Z', plan_amount_cents: 1000, plan_amount_currency: 'EUR' },
      ...{ plan: { code: 'p', name: 'Plan', interval: 'monthly', ...plan }, ...more },
    })
  const invoice = (id: string, coupons: number, from: string, to: string) =>
    event('invoice.created', 'invoice', {
      ...{ lago_id: `inv ${id} ${from}`, status: 'finalized', payment_status: 'succeeded', currency: 'EUR' },
      ...{ invoice_type: 'subscription', issuing_date: from, coupons_amount_cents: coupons, updated_at: from },
      ...{ customer: { external_id: `c_${id}` }, total_amount_cents: 1000 - coupons },
      fees: [{ lago_subscription_id: id, from_date: from, to_date: to, item: { type: 'subscription' } }],
    })
  const charge = (more: object) => ({ lago_id: 'f', code: 'seats', charge_model: 'standard', units: '3', ...more })
  const graduated = {
    graduated_ranges: [
      { from_value: 0, to_value: 2, per_unit_amount: '5', flat_amount: '1' },
      { from_value: 3, to_value: null, per_unit_amount: '2', flat_amount: '0' },
    ],
  }
  const coupon = { lago_id: 'ac', status: 'active', amount_currency: 'EUR' }
  const tenant = await providerTenant(server, 'lago prices')
  const headers = { 'x-lago-unique-key': 'k#' }
  await tenant.send(
    'lago',
    [
      subscription('fixed', { fixed_charges: [charge({ properties: { amount: '2.50' } })] }),
      subscription('graduated', { fixed_charges: [charge({ charge_model: 'graduated', properties: graduated })] }),
      subscription('broken', { fixed_charges: [charge({ charge_model: 'graduated', properties: {} })] }),
      subscription('yearly', {
        ...{ interval: 'yearly', bill_fixed_charges_monthly: true },
        fixed_charges: [charge({ properties: { amount: '1' } })],
      }),
      subscription('minimum', { minimum_commitment: { amount_cents: 5000 } }),
      subscription('low minimum', { minimum_commitment: { amount_cents: 500 } }),
      subscription('unknown minimum', { minimum_commitment: { amount_cents: 'x' } }),
      subscription('percent', {}, { applied_coupons: [{ ...coupon, percentage_rate: '10', frequency: 'forever' }] }),
      subscription('amount', {}, { applied_coupons: [{ ...coupon, amount_cents: 200, frequency: 'forever' }] }),
      subscription('once', {}, { applied_coupons: [{ ...coupon, amount_cents: 200, frequency: 'once' }] }),
      subscription('recurring', {}, { applied_coupons: [{ ...coupon, amount_cents: 200, frequency: 'recurring' }] }),
      subscription(
        'foreign',
        {},
        { applied_coupons: [{ ...coupon, amount_cents: 2, amount_currency: 'USD', frequency: 'forever' }] },
      ),
      subscription(
        'ended',
        {},
        { applied_coupons: [{ ...coupon, amount_cents: 2, status: 'terminated', frequency: 'forever' }] },
      ),
      subscription('invoiced', {}),
      invoice('invoiced', 300, '2026-03-01', '2026-03-31'),
    ],
    headers,
  )
  const march = await tenant.mrrs('EUR', '2026-03-15')
  assert.deepEqual(march, {
    ...{ c_fixed: 17.5, c_graduated: 23, c_broken: 10, c_yearly: 3.83, c_minimum: 50, 'c_low minimum': 10 },
    ...{ 'c_unknown minimum': 10, c_percent: 9, c_amount: 8, c_once: 10, c_recurring: 0, c_foreign: 0, c_ended: 10 },
    c_invoiced: 0,
  })
  const reasons = await tenant.reasons('EUR', '2026-03-15')
  assert.deepEqual(reasons, {
    ...{ broken: 'tiered_price_unknown', 'unknown minimum': 'missing_price', recurring: 'discount_terms_unknown' },
    ...{ foreign: 'discount_terms_unknown', invoiced: 'discount_terms_unknown' },
  })
  // the coupon was not used again
  await tenant.send('lago', [invoice('invoiced', 0, '2026-04-01', '2026-04-30')], { 'x-lago-unique-key': 'later #' })
  const [before, later] = [await tenant.mrrs('EUR', '2026-03-15'), await tenant.mrrs('EUR', '2026-04-15')]
  assert.deepEqual([before.c_invoiced, later.c_invoiced], [0, 10])
})

test('paddle: with prices by country, or a converted price, the transaction shows the price', async () => {
  const price = (more: object) => ({
    ...{ id: 'pri_1', product_id: 'pro_1', tax_mode: 'external', unit_price: { amount: '1000', currency_code: 'USD' } },
    ...{ billing_cycle: { interval: 'month', frequency: 1 }, ...more },
  })
  const override = (amount: string, currency_code: string) => ({
    unit_price_overrides: [{ country_codes: ['DE', 'FR'], unit_price: { amount, currency_code } }],
  })
  const subscription = (id: string, currency_code: string, more: object) => ({
    ...{ id, status: 'active', customer_id: `ctm_${id}`, currency_code, started_at: '2026-03-01T10:00:00Z' },
    items: [{ quantity: 2, recurring: true, price: price(more), product: { name: 'Pro' } }],
  })
  const transaction = (id: string, currency_code: string, subtotal: string, more: object) => ({
    ...{ id: `txn_${id}`, status: 'completed', customer_id: `ctm_${id}`, subscription_id: id, currency_code },
    items: [{ price: price(more), quantity: 2 }],
    details: {
      line_items: [
        { price_id: 'pri_1', quantity: 2, tax_rate: '0.19', unit_totals: { subtotal, tax: '1', total: '1' } },
      ],
    },
  })
  const times = Array.from({ length: 30 }, (_, n) => `2026-03-01T10:00:00.0000${10 + n}Z`).values()
  const created = (id: string, currency: string, more: object) =>
    paddleEvent('subscription.created', times.next().value!, subscription(id, currency, more))
  const paid = (id: string, currency: string, subtotal: string, more: object) =>
    paddleEvent('transaction.completed', times.next().value!, transaction(id, currency, subtotal, more))
  const tenant = await providerTenant(server, 'paddle prices')
  const [cheap, euros] = [override('500', 'USD'), override('900', 'EUR')]
  await tenant.send('paddle', [
    created('alone', 'USD', {}),
    created('same', 'USD', override('1000', 'USD')),
    ...[created('cheap', 'USD', cheap), paid('cheap', 'USD', '500', cheap)],
    ...[created('full', 'USD', cheap), paid('full', 'USD', '1000', cheap)],
    created('unpaid', 'USD', cheap),
    ...[created('euros', 'EUR', euros), paid('euros', 'EUR', '900', euros)],
    ...[paid('converted', 'EUR', '912', {}), created('converted', 'EUR', {})],
    created('unknown', 'EUR', {}),
  ])
  assert.deepEqual(await tenant.mrrs('USD'), {
    ctm_alone: 20,
    ctm_same: 20,
    ctm_cheap: 10,
    ctm_full: 20,
    ctm_unpaid: 0,
  })
  assert.deepEqual(await tenant.mrrs('EUR'), { ctm_euros: 18, ctm_converted: 18.24, ctm_unknown: 0 })
  const { unpaid, unknown } = await tenant.reasons('EUR')
  assert.deepEqual(
    [unpaid, unknown, (await tenant.reasons('USD')).unpaid],
    ['other_currency', 'missing_price', 'missing_price'],
  )
})

test('revenuecat: a trial that is resumed stays a trial; four weeks are not a month; Stripe counts once', async () => {
  const at = AT * 1000
  const day = DAY_S * 1000
  const event = (id: string, type: string, offset: number, days: number, more: object = {}) => {
    const from = at + offset * day
    return revenuecatEvent(type, from, {
      ...{
        original_transaction_id: id,
        app_user_id: `u_${id}`,
        currency: 'USD',
        tax_percentage: 0,
        purchased_at_ms: from,
      },
      ...{ expiration_at_ms: from + days * day, price_in_purchased_currency: 12, ...more },
    })
  }
  const trial = { period_type: 'TRIAL', price_in_purchased_currency: 0 }
  const period = { purchased_at_ms: at, expiration_at_ms: at + 14 * day }
  const stripe = { store: 'STRIPE' }
  const tenant = await providerTenant(server, 'revenuecat prices')
  await tenant.send('revenuecat', [
    event('trial', 'INITIAL_PURCHASE', 0, 14, trial),
    event('trial', 'CANCELLATION', 1, 13, { ...trial, ...period, cancel_reason: 'UNSUBSCRIBE' }),
    event('trial', 'UNCANCELLATION', 2, 12, { ...trial, ...period }),
    event('four weeks', 'INITIAL_PURCHASE', 0, 28),
    event('month', 'INITIAL_PURCHASE', 0, 31),
    event('thirty', 'INITIAL_PURCHASE', 0, 30),
    event('owed', 'INITIAL_PURCHASE', 0, 30),
    // only purchases have a price, and other events may have no currency either
    event('owed', 'BILLING_ISSUE', 3, 27, { currency: null, price_in_purchased_currency: null }),
    event('sub_1', 'INITIAL_PURCHASE', 0, 31, stripe),
    event('sub_1', 'CANCELLATION', 5, 26, {
      ...stripe,
      cancel_reason: 'CUSTOMER_SUPPORT',
      price_in_purchased_currency: -12,
    }),
  ])
  const price = { id: 'price_1', product: 'pro', currency: 'usd', unit_amount: 1200, recurring: { interval: 'month' } }
  const subscription = {
    ...{ id: 'sub_1', object: 'subscription', customer: 'cus_1', status: 'active', currency: 'usd', created: AT },
    items: { data: [{ id: 'si_1', quantity: 1, price }] },
  }
  await tenant.send('stripe', [stripeEvent('customer.subscription.created', AT, subscription)])
  const found = await tenant.overview('USD', '2026-03-10')
  assert.deepEqual(await tenant.mrrs('USD', '2026-03-10'), {
    ...{ u_trial: 0, 'u_four weeks': 13, u_month: 12, u_thirty: 12, u_owed: 12, u_sub_1: 0, cus_1: 12 },
  })
  assert.deepEqual([found.mrr, found.collected.amount], [61, 48])
  const { trial: trialing, sub_1 } = await tenant.reasons('USD', '2026-03-10')
  assert.deepEqual([trialing, sub_1], ['trialing', 'billed_elsewhere'])
  assert.equal(found.attention.cancellations, 0)
  // February has 28 days
  const february = Date.parse('2026-02-10T10:00:00Z')
  await tenant.send('revenuecat', [
    revenuecatEvent('INITIAL_PURCHASE', february, {
      ...{ original_transaction_id: 'feb', app_user_id: 'u_feb', currency: 'USD', tax_percentage: 0 },
      ...{ purchased_at_ms: february, expiration_at_ms: february + 28 * day, price_in_purchased_currency: 12 },
    }),
  ])
  assert.equal((await tenant.mrrs('USD', '2026-02-20')).u_feb, 12)
})

test('woocommerce: recurring fees count, negative ones are discounts', async () => {
  const body = (id: number, more: object) => ({
    ...{ id, status: 'active', currency: 'USD', billing_period: 'month', billing_interval: '1', customer_id: id },
    ...{ start_date_gmt: '2026-03-01T10:00:00', date_modified_gmt: '2026-03-01T10:00:00', order_key: `wc_${id}` },
    ...{
      line_items: [{ id: 1, name: 'Coffee', product_id: 7, quantity: 2, subtotal: '20.00', total: '20.00' }],
      ...more,
    },
  })
  const fee = (name: string, total: string) => ({ id: name.length, name, total, total_tax: '0.00', tax_status: 'none' })
  const tenant = await providerTenant(server, 'woocommerce fees')
  await tenant.send(
    'woocommerce',
    [
      body(1, { fee_lines: [fee('Packaging', '2.50'), fee('Priority', '1.00')] }),
      body(2, { fee_lines: [fee('Loyalty', '-5.00')] }),
      body(3, { fee_lines: [fee('Broken', 'two')] }),
    ],
    { 'x-wc-webhook-topic': 'subscription.created', 'x-wc-webhook-delivery-id': 'd#' },
  )
  assert.deepEqual(await tenant.mrrs('USD'), { 1: 23.5, 2: 15, 3: 20 })
  assert.deepEqual(await tenant.reasons('USD'), { 3: 'missing_price' })
  assert.deepEqual((await tenant.overview('USD')).coverage.warnings, [
    'Subscription 3: `items[1].unit_amount` cannot be read: "two"',
  ])
})

test('stripe: a bank debit that succeeds days after its invoice was finalized counts once', async () => {
  const price = { id: 'price_1', product: 'pro', currency: 'usd', unit_amount: 1000, recurring: { interval: 'month' } }
  const subscription = {
    ...{ id: 'sub_ach', object: 'subscription', customer: 'cus_ach', status: 'active', currency: 'usd', created: AT },
    items: { data: [{ id: 'si_1', quantity: 1, price }] },
  }
  const paidAt = AT + 4 * DAY_S
  const invoice = {
    ...{ id: 'in_ach', object: 'invoice', customer: 'cus_ach', status: 'paid', currency: 'usd', created: AT },
    ...{ total: 1000, amount_due: 1000, amount_paid: 1000, amount_remaining: 0 },
    status_transitions: { finalized_at: AT + 5, paid_at: paidAt },
    parent: { type: 'subscription_details', subscription_details: { subscription: 'sub_ach' } },
  }
  const charge = {
    ...{ id: 'ch_ach', object: 'charge', customer: 'cus_ach', payment_intent: 'pi_ach', currency: 'usd', amount: 1000 },
    ...{ amount_captured: 1000, captured: true, created: AT + 6, payment_method_details: { type: 'us_bank_account' } },
  }
  const intent = {
    ...{ id: 'pi_ach', object: 'payment_intent', customer: 'cus_ach', currency: 'usd', amount: 1000, created: AT + 6 },
    ...{ amount_received: 1000, status: 'succeeded' },
  }
  const events = [
    stripeEvent('customer.subscription.created', AT, subscription),
    stripeEvent('charge.pending', AT + 6, { ...charge, status: 'pending' }),
    stripeEvent('charge.succeeded', paidAt, { ...charge, status: 'succeeded' }),
    stripeEvent('payment_intent.succeeded', paidAt, intent),
    stripeEvent('invoice.paid', paidAt, invoice),
  ]
  const one = (type: string) => events.find(event => event.type === type)!
  const orders = [
    events,
    events.toReversed(),
    [one('invoice.paid'), one('charge.succeeded')],
    [one('payment_intent.succeeded'), one('invoice.paid')],
  ]
  for (const [n, order] of orders.entries()) {
    const tenant = await providerTenant(server, `ach ${n}`)
    await tenant.send('stripe', order)
    const { collected } = await tenant.overview('USD', '2026-03-20')
    assert.deepEqual([collected.amount, collected.count, collected.one_off], [10, 1, 0], `order ${n}`)
  }
})

test('stripe: customer.discount.deleted ends a discount, also without an event of its subscription', async () => {
  const price = { id: 'price_1', product: 'pro', currency: 'usd', unit_amount: 1000, recurring: { interval: 'month' } }
  const coupon = { id: 'half', object: 'coupon', percent_off: 50, duration: 'forever' }
  const discount = (subscription: string | null) => ({
    ...{ id: `di_${subscription}`, object: 'discount', coupon, start: AT, end: null, customer: 'cus_1', subscription },
  })
  const subscription = (id: string, discounts: unknown[]) => ({
    ...{ id, object: 'subscription', customer: 'cus_1', status: 'active', currency: 'usd', created: AT, discounts },
    items: { data: [{ id: `si_${id}`, quantity: 1, price }] },
  })
  const later = AT + 5 * DAY_S
  const deleted = (id: string | null) => stripeEvent('customer.discount.deleted', later, discount(id))
  const created = (id: string, discounts: unknown[]) =>
    stripeEvent('customer.subscription.created', AT, subscription(id, discounts))
  for (const [name, events] of Object.entries({
    expanded: [created('sub_1', [discount('sub_1')]), deleted('sub_1')],
    'by id': [created('sub_1', ['di_sub_1']), deleted('sub_1')],
    'before the subscription': [deleted('sub_1'), created('sub_1', ['di_sub_1'])],
    'of the customer': [created('sub_1', []), deleted(null)],
  })) {
    const tenant = await providerTenant(server, `deleted ${name}`)
    await tenant.send('stripe', events)
    const [before, after] = [await tenant.overview('USD', '2026-03-03'), await tenant.overview('USD', '2026-03-10')]
    assert.deepEqual([before.mrr, after.mrr], [5, 10], name)
  }
})

test('a coupon in another currency: the item is excluded with its reason and amount', async () => {
  const price = { id: 'price_1', product: 'pro', currency: 'usd', unit_amount: 1000, recurring: { interval: 'month' } }
  const coupon = { id: 'five', object: 'coupon', amount_off: 500, currency: 'eur', duration: 'forever' }
  const subscription = {
    ...{ id: 'sub_1', object: 'subscription', customer: 'cus_1', status: 'active', currency: 'usd', created: AT },
    discounts: [
      { id: 'di_1', object: 'discount', coupon, start: AT, end: null, customer: 'cus_1', subscription: 'sub_1' },
    ],
    items: { data: [{ id: 'si_1', quantity: 1, price }] },
  }
  const tenant = await providerTenant(server, 'foreign coupon')
  await tenant.send('stripe', [stripeEvent('customer.subscription.created', AT, subscription)])
  await tenant.send('chargebee', [
    chargebeeEvent('subscription_created', AT, {
      subscription: {
        ...{ id: 'cb_1', customer_id: 'c_1', status: 'active', currency_code: 'USD', started_at: AT, updated_at: AT },
        ...{ billing_period: 1, billing_period_unit: 'month', plan_id: 'p', plan_unit_price: 2000 },
        discounts: [{ id: 'd', type: 'fixed_amount', amount: 500, currency_code: 'EUR', duration_type: 'forever' }],
      },
    }),
  ])
  const discounts = [{ amount_off: 5, currency: 'EUR', duration: 'forever' }]
  const items = [{ id: 'i', unit_amount: 30, interval: 'month' }]
  const payload = { id: 'own', customer: 'own', status: 'active', currency: 'USD', items, discounts }
  await tenant.send(
    'custom',
    [{ inbound_event_id: 'e1', event_type: 'subscription.created', payload }],
    {},
    { preset: null },
  )
  const { mrr, exclusions } = await tenant.overview('USD')
  assert.equal(mrr, 0)
  assert.deepEqual(
    exclusions.results.map((row: Body) => [row.subscription_id, row.reason_code, row.excluded_mrr]).sort(),
    [
      ['cb_1', 'discount_terms_unknown', 20],
      ['own', 'discount_terms_unknown', 30],
      ['sub_1', 'discount_terms_unknown', 10],
    ],
  )
  assert.match(exclusions.results[0].reason, /in another currency/)
})
