import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { eventually } from '../eventually.ts'
import { makeSource } from '../inbound/source.ts'
import { sharedServer, type TestServer, type TestTenant } from '../server.ts'
import { ask, type Body, subscription as many, reportOf, shuffled } from './shop.ts'

type Fields = Record<string, unknown>

let server: TestServer
before(async () => {
  server = await sharedServer()
})
after(() => server.close())

const START = Date.parse('2024-01-10') / 1000
const AS_OF = '2024-01-20'
const OLD = '2024-06-20'
const NEW = '2026-10-28.endive'

let events = 0
function event(type: string, at: number, object: Fields, previous?: Fields, api_version = OLD): Fields {
  const data = { object, ...(previous && { previous_attributes: previous }) }
  return { id: `evt_${++events}`, object: 'event', api_version, created: at, livemode: true, type, data }
}

function subscription(changes: Fields = {}): Fields {
  const price = {
    id: 'price_1',
    object: 'price',
    currency: 'eur',
    product: 'prod_1',
    type: 'recurring',
    billing_scheme: 'per_unit',
    unit_amount: 1000,
    recurring: { interval: 'month', interval_count: 1, usage_type: 'licensed' },
  }
  return {
    id: 'sub_1',
    object: 'subscription',
    customer: 'cus_1',
    status: 'active',
    currency: 'eur',
    created: START,
    start_date: START,
    livemode: true,
    discounts: [],
    items: { object: 'list', has_more: false, data: [{ id: 'si_1', quantity: 1, price, discounts: [] }] },
    ...changes,
  }
}

const coupon = (changes: Fields = {}): Fields => ({
  id: 'TEN',
  object: 'coupon',
  percent_off: 10,
  amount_off: null,
  duration: 'forever',
  ...changes,
})

const discount = (id: string, changes: Fields = {}): Fields => ({
  id,
  object: 'discount',
  customer: 'cus_1',
  subscription: 'sub_1',
  start: START,
  end: null,
  promotion_code: null,
  source: { type: 'coupon', coupon: 'TEN' },
  ...changes,
})

/** Sends the events to a separate tenant, each list to its own source, and returns the overview. */
async function send(name: string, lists: Fields[][], tenant?: TestTenant): Promise<Body> {
  const own = tenant ?? (await server.anotherTenant(name))
  for (const list of lists) {
    const source = await makeSource(server, { tenant: own.id, preset: 'stripe' })
    for (const body of list) assert.equal((await source.post(body)).status, 200)
  }
  await server.settled()
  return reportOf(server, 'overview', { as_of: AS_OF }, own)
}

const half = coupon({ id: 'HALF', percent_off: 50 })
const cases: [string, Fields[], number][] = [
  [
    'a discount by id, sent separately with its coupon by id',
    [
      event('coupon.created', START, coupon()),
      event('customer.discount.created', START, discount('di_1')),
      event('customer.subscription.created', START, subscription({ discounts: ['di_1'] }), undefined, NEW),
    ],
    9,
  ],
  [
    'a discount by promotion code',
    [
      event('promotion_code.created', START, { id: 'promo_1', object: 'promotion_code', coupon: half }),
      event('customer.discount.created', START, discount('di_1', { source: null, promotion_code: 'promo_1' })),
      event('customer.subscription.created', START, subscription({ discounts: ['di_1'] }), undefined, NEW),
    ],
    5,
  ],
  [
    'two discounts, one shown whole and one by id',
    [
      event('customer.discount.created', START, discount('di_2', { coupon: half })),
      event(
        'customer.subscription.created',
        START,
        subscription({ discount: discount('di_1', { coupon: coupon() }), discounts: ['di_1', 'di_2'] }),
      ),
    ],
    4.5,
  ],
  [
    "the customer's discount counts for its subscription",
    [
      event('coupon.created', START, coupon()),
      event('customer.subscription.created', START, subscription()),
      event('customer.discount.created', START + 60, discount('di_1', { subscription: null })),
    ],
    9,
  ],
  [
    "the subscription's own takes the place of the customer's",
    [
      event('customer.discount.created', START, discount('di_1', { subscription: null, coupon: coupon() })),
      event('customer.subscription.created', START, subscription({ discount: discount('di_2', { coupon: half }) })),
    ],
    5,
  ],
  [
    "when its own has run out, the customer's comes back",
    [
      event('customer.discount.created', START, discount('di_1', { subscription: null, coupon: coupon() })),
      event(
        'customer.subscription.created',
        START,
        subscription({
          discount: discount('di_2', { coupon: { ...half, duration: 'repeating' }, end: START + 60 }),
        }),
      ),
    ],
    9,
  ],
  [
    "a customer's discount that was removed",
    [
      event('customer.updated', START, {
        id: 'cus_1',
        object: 'customer',
        discount: discount('di_1', { subscription: null, coupon: coupon() }),
      }),
      event('customer.subscription.created', START, subscription()),
      event(
        'customer.updated',
        START + 600,
        { id: 'cus_1', object: 'customer', discount: null },
        { discount: discount('di_1', { subscription: null, coupon: coupon() }) },
      ),
    ],
    10,
  ],
]
for (const [name, list, mrr] of cases) {
  test(`${name}, in any order of arrival`, async () => {
    assert.equal((await send(name, [list])).mrr, mrr)
    assert.equal((await send(`${name}, turned`, [list.toReversed()])).mrr, mrr)
  })
}

test('one event from an old and a new endpoint applies its discount once', async () => {
  const shown = { ...discount('di_1', { coupon: coupon() }) }
  const old = event('customer.subscription.created', START, subscription({ discount: shown, discounts: ['di_1'] }))
  const newer = { ...old, api_version: NEW, data: { object: subscription({ discounts: ['di_1'] }) } }
  assert.equal((await send('old first', [[old], [newer]])).mrr, 9)
  assert.equal((await send('new first', [[newer], [old]])).mrr, 9)
})

test("another tenant's coupon has no effect", async () => {
  await send('with the coupon', [
    [event('coupon.created', START, coupon()), event('customer.discount.created', START, discount('di_1'))],
  ])
  const { mrr, exclusions } = await send('without it', [
    [event('customer.subscription.created', START, subscription({ discounts: ['di_1'] }), undefined, NEW)],
  ])
  assert.deepEqual([mrr, exclusions.results[0].reason_code], [0, 'discount_terms_unknown'])
})

test('a discount applies to all its subscriptions, even to more than one transaction derives', async () => {
  const tenant = await server.anotherTenant('many of one customer')
  const feed = await makeSource(server, {
    ...{ tenant: tenant.id, type: 'cdp', billing: true, namespace: 'stripe', max_body_bytes: 8_388_608 },
    rate_limit: { events: 1_000_000, per_seconds: 1 },
  })
  const properties = (id: string) => many(id, { customer: 'cus_1', started_at: '2024-01-10' })
  const batch = Array.from({ length: 510 }, (_, i) => ({
    ...{ type: 'track', event: 'subscription.created', properties: properties(`sub_${i}`) },
  }))
  assert.equal((await feed.post({ batch })).status, 200)
  await server.settled()
  const month = new Date(START * 1000).toISOString().slice(0, 7)
  await server.admin.books.close(tenant.id, month)
  const ofCustomer = discount('di_1', { subscription: null, coupon: coupon() })
  const { mrr } = await send('', [[event('customer.discount.created', START, ofCustomer)]], tenant)
  // 500 of them with the event, the others later
  assert.ok(mrr === 4600 || mrr === 4590, `${mrr}`)
  await eventually('the others', async () => {
    const report = await reportOf(server, 'overview', { as_of: AS_OF }, tenant)
    return report.mrr === 4590
  })
  // each portion is a restatement of the event
  const { results } = (await ask(server, 'books', { month }, { tenant })).body
  const [{ id }] = (await server.request('/v1/events?event_type=customer.discount.created', { key: tenant.privateKey }))
    .body.results
  assert.deepEqual(
    results.map((row: Body) => [row.customer, row.amount, row.event_id]),
    [
      ['cus_1', -10, id],
      ['cus_1', -500, id],
    ],
  )
})

test('the latest version of a customer names its account', async () => {
  const named = (name: string, at: number) =>
    event('customer.updated', at, { id: 'cus_1', object: 'customer', name, email: 'ada@example.com' })
  const list = [
    event('customer.subscription.created', START, subscription()),
    named('Ada', START + 10),
    named('Ada Ltd', START + 20),
  ]
  for (const seed of [1, 2, 3]) {
    const { accounts } = await send(`names ${seed}`, [shuffled(list, seed)])
    assert.deepEqual(
      [accounts.results[0].customer_name, accounts.results[0].customer_email],
      ['Ada Ltd', 'ada@example.com'],
    )
  }
})

test('of two changes of seats in a second the last one counts, and the first event contains the state before', async () => {
  const seats = (quantity: number) => {
    const { items } = subscription() as { items: { data: Fields[] } }
    return { ...items, data: items.data.map(item => ({ ...item, quantity })) }
  }
  const changed = (from: number, to: number) =>
    event('customer.subscription.updated', START + 86_400, subscription({ items: seats(to) }), {
      items: seats(from),
    })
  const list = [changed(8, 9), changed(9, 10)]
  for (const [name, arrived] of Object.entries({ seats: list, 'seats, turned': list.toReversed() })) {
    const { mrr, movements } = await send(name, [arrived])
    assert.deepEqual([mrr, movements.new, movements.expansion], [100, 80, 20])
  }
})

const invoice = (changes: Fields = {}): Fields => ({
  id: 'in_1',
  object: 'invoice',
  customer: 'cus_1',
  parent: { subscription_details: { subscription: 'sub_1' } },
  status: 'paid',
  currency: 'eur',
  livemode: true,
  total: 1000,
  amount_due: 1000,
  amount_paid: 1000,
  amount_remaining: 0,
  attempt_count: 1,
  created: START,
  status_transitions: { finalized_at: START, paid_at: START },
  ...changes,
})
const open = {
  status: 'open',
  amount_paid: 0,
  amount_remaining: 1000,
  status_transitions: { finalized_at: START },
}
const manual = { parent: null, subscription: null }

const charge = (changes: Fields = {}): Fields => ({
  id: 'ch_1',
  object: 'charge',
  amount: 1000,
  amount_captured: 1000,
  amount_refunded: 0,
  captured: true,
  currency: 'eur',
  customer: 'cus_1',
  created: START,
  status: 'succeeded',
  payment_intent: 'pi_1',
  ...changes,
})
const paymentOfInvoice: Fields = {
  id: 'inpay_1',
  object: 'invoice_payment',
  invoice: 'in_1',
  currency: 'eur',
  amount_paid: 1000,
  status: 'paid',
  payment: { type: 'payment_intent', payment_intent: 'pi_1' },
  status_transitions: { paid_at: START },
}
const refund = (changes: Fields = {}): Fields => ({
  id: 're_1',
  object: 'refund',
  amount: 400,
  currency: 'eur',
  charge: 'ch_1',
  payment_intent: 'pi_1',
  created: START + 60,
  status: 'succeeded',
  ...changes,
})
const dispute = (status: string): Fields => ({
  id: 'dp_1',
  object: 'dispute',
  amount: 1000,
  currency: 'eur',
  charge: 'ch_1',
  payment_intent: 'pi_1',
  status,
  created: START + 60,
})
const creditNote: Fields = {
  id: 'cn_1',
  object: 'credit_note',
  currency: 'eur',
  invoice: 'in_1',
  customer: 'cus_1',
  out_of_band_amount: 300,
  status: 'issued',
  created: START + 60,
}

const linked = [
  event('charge.succeeded', START, charge()),
  event('invoice_payment.paid', START, paymentOfInvoice),
  event('invoice.paid', START, invoice()),
]
/** Collected: amount, count, refunded, disputed, one_off. */
const cash: [string, Fields[], number[]][] = [
  ['a charge, the payment of an invoice and the paid invoice are one payment', linked, [10, 1, 0, 0, 0]],
  ['an invoice that says it was paid', [linked[2]!], [10, 1, 0, 0, 0]],
  [
    'an invoice of nothing is no payment',
    [event('invoice.paid', START, invoice({ total: 0, amount_due: 0, amount_paid: 0 }))],
    [0, 0, 0, 0, 0],
  ],
  [
    'a charge without an invoice, and its refund, are one-off',
    [event('charge.succeeded', START, charge()), event('refund.created', START + 60, refund())],
    [0, 0, 0, 0, 6],
  ],
  ['a refund of what never came takes nothing off', [event('refund.created', START + 60, refund())], [0, 0, 0, 0, 0]],
  [
    'an invoice of no subscription is one-off',
    [
      event('invoice.paid', START, invoice({ ...manual, payment_intent: 'pi_1' })),
      event('charge.succeeded', START, charge()),
    ],
    [0, 0, 0, 0, 10],
  ],
  [
    'a refund received twice counts once',
    [
      ...linked,
      event('refund.created', START + 60, refund()),
      event('charge.refunded', START + 60, charge({ amount_refunded: 400 }), { amount_refunded: 0 }),
    ],
    [6, 1, 4, 0, 0],
  ],
  [
    'a refund that failed',
    [
      ...linked,
      event('refund.created', START + 60, refund()),
      event('refund.failed', START + 90, refund({ status: 'failed' })),
    ],
    [10, 1, 0, 0, 0],
  ],
  [
    'an open dispute takes nothing off',
    [...linked, event('charge.dispute.created', START + 60, dispute('needs_response'))],
    [10, 1, 0, 0, 0],
  ],
  [
    'a lost dispute does',
    [
      ...linked,
      event('charge.dispute.created', START + 60, dispute('needs_response')),
      event('charge.dispute.closed', START + 90, dispute('lost')),
    ],
    [0, 1, 0, 10, 0],
  ],
  [
    'a credit note that was paid out',
    [...linked, event('credit_note.created', START + 60, creditNote)],
    [7, 1, 3, 0, 0],
  ],
  [
    'part of an invoice',
    [
      event('invoice.finalized', START, invoice(open)),
      event('charge.succeeded', START + 60, charge({ amount: 400, amount_captured: 400, invoice: 'in_1' })),
      event('invoice.updated', START + 60, invoice({ ...open, amount_paid: 400, amount_remaining: 600 })),
    ],
    [4, 1, 0, 0, 0],
  ],
]
for (const [name, list, expected] of cash) {
  test(`cash: ${name}, in any order of arrival`, async () => {
    const all = [event('customer.subscription.created', START, subscription()), ...list]
    for (const [order, arrived] of Object.entries({ first: all, turned: all.toReversed() })) {
      const { collected } = await send(`${name} ${order}`, [arrived])
      const { amount, count, refunded, disputed, one_off } = collected
      assert.deepEqual([amount, count, refunded, disputed, one_off], expected)
    }
  })
}

test('a payment issue has the message of the failed charge', async () => {
  const failed = {
    status: 'failed',
    captured: false,
    failure_code: 'card_declined',
    failure_message: 'Declined.',
  }
  const payments = { data: [{ id: 'inpay_1', payment: { payment_intent: 'pi_1' } }] }
  const list = [
    event('customer.subscription.created', START, subscription()),
    event('charge.failed', START + 60, charge({ ...failed, created: START + 60 })),
    event('invoice.payment_failed', START + 60, invoice({ ...open, payments })),
  ]
  for (const [order, arrived] of Object.entries({ 'why first': list, 'why last': list.toReversed() })) {
    const tenant = await server.anotherTenant(order)
    await send(order, [arrived], tenant)
    const { payment_issues } = await reportOf(server, 'attention', { as_of: AS_OF }, tenant)
    const [{ issue_type, failure_code, failure_message }] = payment_issues.results
    assert.deepEqual([issue_type, failure_code, failure_message], ['payment_failed', 'card_declined', 'Declined.'])
  }
})
