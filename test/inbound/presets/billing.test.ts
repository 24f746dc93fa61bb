// Billing events of providers fill the reports. The bodies are shortened examples from the providers' documentation.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { sharedServer, type TestServer } from '../../server.ts'
import { makeSource } from '../source.ts'

let server: TestServer
before(async () => {
  server = await sharedServer()
})
after(() => server.close())

// biome-ignore lint/suspicious/noExplicitAny: answers are looked into freely
type Body = any

async function send(preset: string, bodies: [object, Record<string, string>?][], settings: object = {}) {
  const source = await makeSource(server, { preset, ...settings })
  for (const [body, headers = {}] of bodies) {
    const { status, body: answer } = await source.post(body, { headers })
    assert.equal(status, 200, JSON.stringify(answer))
  }
  await server.settled()
}

async function report(name: string, query: string): Promise<Body> {
  const path = `/v1/subscriptions/${name}?${query}`
  const { status, body } = await server.request(path, { key: server.tenant.privateKey })
  assert.equal(status, 200, JSON.stringify(body))
  return body
}

const overview = (currency: string, asOf: string) => report('overview', `currency=${currency}&as_of=${asOf}`)
const reasons = (body: Body): string[] =>
  body.exclusions.results.map((row: Body) => row.reason_code).filter((reason: string) => reason !== 'other_currency')
const mrrs = async (currency: string, ...dates: string[]) => {
  const found: number[] = []
  for (const date of dates) found.push((await overview(currency, date)).mrr)
  return found
}

const paddle = (event_type: string, occurred_at: string, data: object) => ({
  ...{
    event_id: `evt_${event_type}_${occurred_at}`,
    notification_id: 'ntf_1',
    event_type,
    occurred_at,
    data,
  },
})

test('paddle: a subscription with a discount received before or after it, its transaction and its refund', async () => {
  const price = {
    ...{ id: 'pri_01', product_id: 'pro_01', name: 'Monthly (per seat)', tax_mode: 'account_setting' },
    ...{
      billing_cycle: { interval: 'month', frequency: 1 },
      unit_price: { amount: '3000', currency_code: 'GBP' },
    },
  }
  const subscription = (more: object) => ({
    ...{
      id: 'sub_01',
      status: 'active',
      customer_id: 'ctm_01',
      currency_code: 'GBP',
      collection_mode: 'automatic',
    },
    ...{
      started_at: '2024-01-10T10:00:00Z',
      items: [{ quantity: 10, recurring: true, price, product: { name: 'Pro' } }],
    },
    ...{
      current_billing_period: { starts_at: '2024-01-10T10:00:00Z', ends_at: '2024-02-10T10:00:00Z' },
      ...more,
    },
  })
  const discount = { id: 'dsc_01', starts_at: '2024-02-10T10:00:00Z', ends_at: null }
  const transaction = {
    ...{
      id: 'txn_01',
      status: 'completed',
      customer_id: 'ctm_01',
      subscription_id: 'sub_01',
      currency_code: 'GBP',
    },
    ...{ invoice_number: '325-10566', billed_at: '2024-01-10T10:00:00Z', collection_mode: 'automatic' },
    details: {
      totals: { subtotal: '30000', tax: '6000', total: '36000', grand_total: '36000', balance: '0' },
    },
    payments: [{ status: 'captured', amount: '36000', captured_at: '2024-01-10T10:00:05Z' }],
  }
  const adjustment = {
    ...{
      id: 'adj_01',
      action: 'refund',
      transaction_id: 'txn_01',
      customer_id: 'ctm_01',
      currency_code: 'GBP',
    },
    ...{ status: 'approved', totals: { total: '1000' }, created_at: '2024-01-20T10:00:00Z' },
  }
  await send('paddle', [
    [
      paddle('customer.created', '2024-01-10T09:59:00.000000Z', {
        id: 'ctm_01',
        name: 'Sam',
        email: 'sam@example.com',
      }),
    ],
    [paddle('subscription.updated', '2024-02-10T10:00:00.000002Z', subscription({ discount }))],
    [paddle('subscription.created', '2024-01-10T10:00:00.000001Z', subscription({}))],
    [paddle('transaction.completed', '2024-01-10T10:00:06.000000Z', transaction)],
    [paddle('adjustment.created', '2024-01-20T10:00:00.000000Z', adjustment)],
    [
      paddle('adjustment.updated', '2024-01-21T10:00:00.000000Z', {
        ...adjustment,
        id: 'adj_02',
        action: 'chargeback_reverse',
      }),
    ],
  ])
  const january = await overview('GBP', '2024-01-31')
  assert.deepEqual([january.mrr, january.accounts.results[0].customer_name], [300, 'Sam'])
  assert.deepEqual([january.collected.amount, january.collected.refunded, january.invoiced.amount], [350, 10, 360])
  assert.deepEqual(january.coverage.unrecognized, { 'adjustment.updated': 1 })
  assert.deepEqual(reasons(await overview('GBP', '2024-02-20')), ['discount_terms_unknown'])
  const percentageDiscount = {
    id: 'dsc_01',
    type: 'percentage',
    amount: '10',
    recur: true,
    maximum_recurring_intervals: null,
  }
  await send('paddle', [[paddle('discount.created', '2024-01-01T00:00:00.000000Z', percentageDiscount)]])
  assert.deepEqual(await mrrs('GBP', '2024-01-31', '2024-02-20'), [300, 270])
  const { body } = await server.request('/v1/conversions', { key: server.tenant.privateKey })
  assert.deepEqual(
    body.results.map((row: Body) => [row.conversion_type, row.source, row.source_object_id, row.amount, row.currency]),
    [['transaction.completed', 'billing', 'txn_01', 360, 'GBP']],
  )
})

test('chargebee: all objects of an event count, newest by resource_version', async () => {
  const at = Date.parse('2024-03-01T10:00:00Z') / 1000
  const event = (id: string, event_type: string, occurred_at: number, content: object) =>
    [{ id, object: 'event', event_type, occurred_at, content }] as [object]
  const subscription = (quantity: number, resource_version: number, more: object = {}) => ({
    ...{
      id: 'cb_1',
      customer_id: 'cust_1',
      status: 'active',
      currency_code: 'USD',
      billing_period: 1,
      resource_version,
    },
    ...{
      billing_period_unit: 'year',
      started_at: at,
      updated_at: at,
      current_term_start: at,
      current_term_end: at + 31622400,
    },
    subscription_items: [
      {
        item_price_id: 'pro-USD-yearly',
        item_type: 'plan',
        quantity,
        unit_price: 12000,
        amount: 12000 * quantity,
      },
      { item_price_id: 'support', item_type: 'addon', quantity: 20, amount: 60000 },
      { item_price_id: 'setup', item_type: 'charge', quantity: 1, unit_price: 5000, amount: 5000 },
    ],
    ...more,
  })
  const invoice = {
    ...{
      id: 'INV-1',
      customer_id: 'cust_1',
      subscription_id: 'cb_1',
      currency_code: 'USD',
      status: 'paid',
      date: at,
    },
    ...{ total: 72000, tax: 0, amount_paid: 72000, amount_due: 0, paid_at: at, updated_at: at },
  }
  const customer = { id: 'cust_1', first_name: 'Ada', last_name: 'Lovelace', email: 'ada@example.com' }
  await send('chargebee', [
    event('ev_2', 'subscription_changed', at, { subscription: subscription(2, 1002), customer }),
    event('ev_1', 'subscription_created', at, { subscription: subscription(1, 1001), customer, invoice }),
    event('ev_3', 'subscription_cancelled', at + 864000, {
      subscription: subscription(2, 1003, {
        status: 'cancelled',
        cancelled_at: at + 864000,
        updated_at: at + 864000,
      }),
    }),
    event('ev_4', 'subscription_x', at, { subscription: {} }),
    event('ev_5', 'card_added', at, { card: { id: 'card' } }),
  ])
  const march = await overview('USD', '2024-03-05')
  assert.deepEqual(
    [march.mrr, march.collected.amount, march.accounts.results[0].customer_name],
    [70, 720, 'Ada Lovelace'],
  )
  assert.deepEqual(reasons(march), ['one_time_price'])
  const { subscription_x, card_added } = march.coverage.unrecognized
  assert.deepEqual([subscription_x, card_added], [1, undefined])
  assert.deepEqual(await mrrs('USD', '2024-03-20'), [0])
})

test('lago: the plan’s amount by its interval, paid at updated_at', async () => {
  const customer = {
    lago_id: '99a6',
    external_id: '5eb02857',
    name: 'Gavin Belson',
    email: 'gavin@hooli.com',
  }
  const subscription = (more: object) => ({
    ...{ lago_id: 'b7ab', external_id: 'my-sub', lago_customer_id: '99a6', external_customer_id: '5eb02857' },
    ...{
      plan_code: 'premium',
      plan_amount_cents: 30000,
      plan_amount_currency: 'CHF',
      status: 'active',
      customer,
    },
    ...{
      started_at: '2024-01-05T00:00:00.000Z',
      plan: { code: 'premium', name: 'Premium', interval: 'quarterly' },
      ...more,
    },
  })
  const invoice = (payment_status: string, updated_at: string) => ({
    ...{
      lago_id: '1a90',
      number: 'LAG-1234-001-002',
      status: 'finalized',
      payment_status,
      currency: 'CHF',
      customer,
    },
    ...{ issuing_date: '2024-01-05', total_amount_cents: 30000, taxes_amount_cents: 0, updated_at },
    ...{ fees: [{ lago_subscription_id: 'b7ab' }], created_at: '2024-01-05T00:00:00Z' },
  })
  const lago = (key: string, webhook_type: string, object_type: string, object: object) =>
    [{ webhook_type, object_type, [object_type]: object }, { 'x-lago-unique-key': key }] as [
      object,
      Record<string, string>,
    ]
  await send('lago', [
    lago('k1', 'subscription.started', 'subscription', subscription({})),
    lago('k2', 'invoice.created', 'invoice', invoice('pending', '2024-01-05T00:00:10Z')),
    lago('k3', 'invoice.payment_status_updated', 'invoice', invoice('succeeded', '2024-01-09T12:00:00Z')),
    lago(
      'k4',
      'subscription.terminated',
      'subscription',
      subscription({ status: 'terminated', terminated_at: '2024-03-01T00:00:00Z' }),
    ),
    lago('k5', 'event.error', 'event_error', { error: {} }),
  ])
  const [before, paid] = [await overview('CHF', '2024-01-08T00:00:00Z'), await overview('CHF', '2024-01-10T00:00:00Z')]
  assert.deepEqual([before.mrr, before.collected.amount, paid.collected.amount], [100, 0, 300])
  assert.deepEqual(
    [paid.accounts.results[0].customer, paid.accounts.results[0].customer_email],
    ['5eb02857', 'gavin@hooli.com'],
  )
  assert.deepEqual(await mrrs('CHF', '2024-02-29', '2024-03-02'), [100, 0])
  const account = await report('account', 'currency=CHF&subscription_id=b7ab')
  assert.equal(account.items.results[0].interval_count, 3)
})

test('revenuecat: lifecycle events become a subscription; sandbox events are ignored', async () => {
  const day = 86_400_000
  const start = Date.parse('2024-01-01T00:00:00Z')
  let n = 0
  const step = (type: string, at: number, more: object) =>
    [
      {
        api_version: '1.0',
        event: {
          ...{
            id: `rc_${++n}`,
            type,
            event_timestamp_ms: at,
            environment: 'PRODUCTION',
            period_type: 'NORMAL',
          },
          ...{
            original_transaction_id: '1000',
            transaction_id: `10${n}`,
            app_user_id: 'user_1',
            currency: 'SEK',
          },
          ...{ original_app_user_id: '$RCAnonymousID:87', product_id: 'com.subscription.monthly' },
          ...{ price: 0, price_in_purchased_currency: 0, country_code: 'SE', ...more },
        },
      },
    ] as [object]
  const term = (from: number, to: number) => ({ purchased_at_ms: from, expiration_at_ms: to })
  const first = term(start, start + 7 * day)
  const second = term(start + 7 * day, start + 38 * day)
  await send('revenuecat', [
    step('RENEWAL', start + 7 * day, { ...second, price: 9.99, price_in_purchased_currency: 99.9 }),
    step('INITIAL_PURCHASE', start, { ...first, period_type: 'TRIAL' }),
    step('CANCELLATION', start + 20 * day, { ...second, cancel_reason: 'UNSUBSCRIBE' }),
    step('EXPIRATION', start + 38 * day + 1000, { ...second, expiration_reason: 'UNSUBSCRIBE' }),
    step('INITIAL_PURCHASE', start, {
      ...second,
      environment: 'SANDBOX',
      original_transaction_id: '2000',
      price_in_purchased_currency: 5,
    }),
    step('TRANSFER', start, { original_transaction_id: undefined }),
    step('SOMETHING_NEW', start, {}),
  ])
  const date = (days: number) => new Date(start + days * day).toISOString()
  assert.deepEqual(reasons(await overview('SEK', date(3))), ['trialing'])
  assert.deepEqual(await mrrs('SEK', date(3), date(10), date(30), date(40)), [0, 99.9, 99.9, 0])
  const later = await overview('SEK', date(30))
  assert.deepEqual([later.committed_mrr, later.collected.amount, later.attention.cancellations], [0, 99.9, 1])
  const sandbox = '/v1/subscriptions/account?currency=SEK&subscription_id=2000'
  assert.equal((await server.request(sandbox, { key: server.tenant.privateKey })).status, 404)
  assert.equal(later.coverage.unrecognized.SOMETHING_NEW, 1)
})

test('woocommerce, shopify and recurly: subscriptions as far as their webhooks describe them', async () => {
  const body = {
    ...{
      id: 282,
      status: 'active',
      currency: 'NOK',
      billing_period: 'month',
      billing_interval: '1',
      customer_id: 25,
    },
    ...{ start_date_gmt: '2024-01-05T10:00:00', date_created_gmt: '2024-01-05T10:00:00', total: '250.00' },
    ...{
      date_modified_gmt: '2024-01-05T10:00:00',
      next_payment_date_gmt: '2024-02-05T10:00:00',
      end_date_gmt: '',
    },
    ...{
      billing: { first_name: 'Ola', last_name: 'Nordmann', email: 'ola@example.no' },
      order_key: 'wc_order_1',
    },
    line_items: [
      {
        id: 1,
        name: 'Coffee',
        product_id: 7,
        quantity: 3,
        subtotal: '250.00',
        total: '200.00',
        total_tax: '50.00',
      },
    ],
  }
  const wc = (topic: string, delivery: string) => ({
    'x-wc-webhook-topic': topic,
    'x-wc-webhook-delivery-id': delivery,
  })
  await send('woocommerce', [
    [body, wc('subscription.created', 'a')],
    [
      {
        ...body,
        status: 'pending-cancel',
        date_modified_gmt: '2024-01-20T10:00:00',
        end_date_gmt: '2024-02-05T10:00:00',
      },
      wc('subscription.updated', 'b'),
    ],
    [{ id: 282 }, wc('subscription.deleted', 'c')],
  ])
  const found = await overview('NOK', '2024-01-31')
  assert.deepEqual([found.mrr, found.committed_mrr, found.accounts.results[0].customer_name], [200, 0, 'Ola Nordmann'])
  assert.deepEqual(await mrrs('NOK', '2024-02-06'), [0])
  const contract = {
    ...{
      id: 593,
      status: 'active',
      currency_code: 'NOK',
      customer_id: 1,
      billing_policy: { interval: 'week', interval_count: 4 },
    },
  }
  const headers = { 'x-shopify-topic': 'subscription_contracts/create', 'x-shopify-webhook-id': 'w1' }
  await send('shopify', [[contract, headers]], { billing: true })
  await send('recurly', [
    [
      {
        id: 'ra8f',
        object_type: 'subscription',
        site_id: 'qc32',
        event_type: 'renewed',
        event_time: '2024-01-01T00:00:00Z',
      },
    ],
    [
      {
        id: 'ra8f',
        object_type: 'account',
        site_id: 'qc32',
        event_type: 'updated',
        event_time: '2024-01-01T00:00:00Z',
      },
    ],
  ])
  const now = await report('overview', 'currency=NOK')
  assert.deepEqual(reasons(now).sort(), ['canceled', 'missing_items'])
  assert.equal(now.coverage.unrecognized['subscription.renewed'], 1)
  assert.equal(now.coverage.unrecognized['account.updated'], undefined)
})

test('woocommerce: an active subscription is in trial until its trial ends, and has its end from the beginning', async () => {
  const subscription = (id: number, total: string, more: object) => ({
    ...{ id, status: 'active', currency: 'PLN', billing_period: 'month', billing_interval: '1', customer_id: id },
    ...{ date_created_gmt: '2024-01-05T10:00:00', line_items: [{ id: 1, quantity: 1, product_id: 7, total }] },
    ...{ start_date_gmt: '2024-01-05T10:00:00', date_modified_gmt: '2024-01-05T10:00:00', ...more },
  })
  const topic = (name: string, delivery: string) => ({
    'x-wc-webhook-topic': name,
    'x-wc-webhook-delivery-id': delivery,
  })
  const trial = { trial_end_date_gmt: '2024-01-19T10:00:00', next_payment_date_gmt: '2024-01-19T10:00:00' }
  const renewed = { ...trial, date_modified_gmt: '2024-01-19T10:00:05', next_payment_date_gmt: '2024-02-19T10:00:00' }
  await send('woocommerce', [
    [subscription(1, '20.00', trial), topic('subscription.created', 'a')],
    [subscription(2, '30.00', { end_date_gmt: '2024-02-01T00:00:00' }), topic('subscription.created', 'b')],
  ])
  const inTrial = await overview('PLN', '2024-01-18')
  assert.deepEqual([inTrial.mrr, inTrial.committed_mrr, reasons(inTrial)], [30, 0, ['trialing']])
  await send('woocommerce', [[subscription(1, '20.00', renewed), topic('subscription.updated', 'c')]])
  assert.deepEqual(await mrrs('PLN', '2024-01-18', '2024-01-20', '2024-02-02'), [30, 50, 20])
  const { cancellations, upcoming_billing } = await report('attention', 'currency=PLN&days=60&as_of=2024-01-20')
  assert.deepEqual(
    cancellations.results.map((row: Body) => [row.customer, row.cancels_at]),
    [['2', '2024-02-01T00:00:00.000Z']],
  )
  assert.deepEqual(
    upcoming_billing.results.map((row: Body) => row.customer),
    ['1', '1'],
  )
})

const gbp = { currency_code: 'GBP', unit_price: { amount: '0', currency_code: 'GBP' } }

test('paddle: a discount limited to products or prices applies to those only, also an amount above their price', async () => {
  const tenant = await server.anotherTenant('paddle, restrict_to')
  const item = (name: string, amount: string) => ({
    ...{ quantity: 1, recurring: true, product: { name } },
    price: {
      ...{ id: `pri_${name}`, product_id: `pro_${name}`, name, tax_mode: 'external' },
      ...{ billing_cycle: { interval: 'month', frequency: 1 }, unit_price: { ...gbp.unit_price, amount } },
    },
  })
  const subscription = (id: string, discount: string) => ({
    ...{ id, status: 'active', customer_id: `ctm_${id}`, currency_code: 'GBP', started_at: '2024-01-10T10:00:00Z' },
    items: [item('base', '3000'), item('extra', '1000')],
    discount: { id: discount, starts_at: '2024-01-10T10:00:00Z', ends_at: null },
  })
  const discount = (id: string, more: object) =>
    paddle('discount.created', `2024-01-09T10:00:00.00000${id.length}Z`, {
      ...{ id, recur: true, maximum_recurring_intervals: null, ...more },
    })
  const source = await makeSource(server, { preset: 'paddle', tenant: tenant.id })
  for (const body of [
    discount('dsc_p', { type: 'percentage', amount: '50', restrict_to: ['pro_extra'] }),
    discount('dsc_am', { type: 'flat', amount: '2000', currency_code: 'GBP', restrict_to: ['pri_extra'] }),
    paddle('subscription.created', '2024-01-10T10:00:00.000001Z', subscription('sub_p', 'dsc_p')),
    paddle('subscription.created', '2024-01-10T10:00:00.000002Z', subscription('sub_am', 'dsc_am')),
  ])
    assert.equal((await source.post(body)).status, 200)
  await server.settled()
  const { body } = await server.request('/v1/subscriptions/overview?currency=GBP', { key: tenant.privateKey })
  assert.deepEqual(Object.fromEntries(body.accounts.results.map((row: Body) => [row.customer, row.mrr])), {
    ctm_sub_p: 35,
    ctm_sub_am: 30,
  })
})

test('chargebee: a discount for one item price, and a coupon for listed item prices', async () => {
  const tenant = await server.anotherTenant('chargebee, apply_on')
  const at = 1_704_880_800
  const item = (id: string, amount: number) => ({
    ...{ item_price_id: id, item_type: 'plan', quantity: 1, unit_price: amount, amount, object: 'subscription_item' },
  })
  const subscription = (id: string, more: object) => ({
    ...{ id, customer_id: `c_${id}`, status: 'active', currency_code: 'USD', started_at: at, updated_at: at },
    ...{ billing_period: 1, billing_period_unit: 'month', object: 'subscription' },
    ...{ subscription_items: [item('base', 2000), item('extra', 1000)], ...more },
  })
  const discounts = [
    {
      ...{ id: 'd1', type: 'percentage', percentage: 50, duration_type: 'forever', object: 'discount' },
      ...{ apply_on: 'specific_item_price', item_price_id: 'extra' },
    },
  ]
  const coupon = (id: string, constraint: object) => ({
    ...{ id, discount_type: 'percentage', discount_percentage: 50, duration_type: 'forever', updated_at: at },
    ...{ apply_on: 'each_specified_item', item_constraints: [constraint], object: 'coupon' },
  })
  const specific = { item_type: 'plan', constraint: 'specific', item_price_ids: ['extra'] }
  const event = (event_type: string, content: object, n: number) => ({
    ...{ id: `ev_${n}`, object: 'event', api_version: 'v2', occurred_at: at, event_type, content },
  })
  const source = await makeSource(server, { preset: 'chargebee', tenant: tenant.id })
  for (const body of [
    event('subscription_created', { subscription: subscription('s1', { discounts }) }, 1),
    event('coupon_created', { coupon: coupon('k1', specific) }, 2),
    event('coupon_created', { coupon: coupon('k2', { item_type: 'plan', constraint: 'criteria' }) }, 3),
    event('subscription_created', { subscription: subscription('s2', { coupons: [{ coupon_id: 'k1' }] }) }, 4),
    event('subscription_created', { subscription: subscription('s3', { coupons: [{ coupon_id: 'k2' }] }) }, 5),
  ])
    assert.equal((await source.post(body)).status, 200)
  await server.settled()
  const { body } = await server.request('/v1/subscriptions/overview?currency=USD', { key: tenant.privateKey })
  assert.deepEqual(Object.fromEntries(body.accounts.results.map((row: Body) => [row.customer, row.mrr])), {
    ...{ c_s1: 25, c_s2: 25, c_s3: 0 },
  })
  assert.deepEqual(reasons(body), ['discount_terms_unknown', 'discount_terms_unknown'])
})

test('stripe: a copy of a coupon without its products does not lift the known limit, in any order', async () => {
  const at = 1_704_880_800
  const coupon = { id: 'co_1', object: 'coupon', percent_off: 50, duration: 'forever' }
  const event = (id: string, type: string, object: object) => ({
    ...{ id, object: 'event', created: at, livemode: true, type, data: { object } },
  })
  const price = (product: string) => ({
    id: `price_${product}`,
    product,
    currency: 'usd',
    unit_amount: 1000,
    recurring: { interval: 'month' },
  })
  const subscription = {
    ...{ id: 'sub_1', object: 'subscription', customer: 'cus_1', status: 'active', currency: 'usd', created: at },
    discounts: [
      { id: 'di_1', object: 'discount', coupon, start: at, end: null, subscription: 'sub_1', customer: 'cus_1' },
    ],
    items: { data: ['a', 'b'].map(product => ({ id: `si_${product}`, quantity: 1, price: price(product) })) },
  }
  const events = [
    event('evt_1', 'coupon.created', { ...coupon, created: at, applies_to: { products: ['a'] } }),
    event('evt_2', 'customer.subscription.created', subscription),
    event('evt_3', 'coupon.updated', { ...coupon, created: at, name: 'renamed' }),
  ]
  for (const order of [events, events.toReversed()]) {
    const tenant = await server.anotherTenant(`applies_to ${order[0]!.id}`)
    const source = await makeSource(server, { preset: 'stripe', tenant: tenant.id })
    for (const body of order) assert.equal((await source.post(body)).status, 200)
    await server.settled()
    const { body } = await server.request('/v1/subscriptions/overview?currency=USD', { key: tenant.privateKey })
    assert.equal(body.mrr, 15, order[0]!.id)
  }
})
