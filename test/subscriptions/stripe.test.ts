import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { makeSource } from '../inbound/source.ts'
import { startServer, type TestServer, type TestTenant } from '../server.ts'
import { type Body, reportOf, shuffled } from './shop.ts'

type Fields = Record<string, unknown>

let server: TestServer
before(async () => {
  server = await startServer()
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

/** Tells the events to a tenant of their own, each list at an endpoint of its own, and returns its overview. */
async function told(name: string, lists: Fields[][], tenant?: TestTenant): Promise<Body> {
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
    'a discount by id, told by itself with its coupon by id',
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
      event(
        'customer.discount.created',
        START,
        discount('di_1', { source: null, promotion_code: 'promo_1' }),
      ),
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
      event(
        'customer.subscription.created',
        START,
        subscription({ discount: discount('di_2', { coupon: half }) }),
      ),
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
    "a customer's discount that was taken away",
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
    assert.equal((await told(name, [list])).mrr, mrr)
    assert.equal((await told(`${name}, turned`, [list.toReversed()])).mrr, mrr)
  })
}

test('one event from an old and a new endpoint takes its discount off once', async () => {
  const shown = { ...discount('di_1', { coupon: coupon() }) }
  const old = event(
    'customer.subscription.created',
    START,
    subscription({ discount: shown, discounts: ['di_1'] }),
  )
  const newer = { ...old, api_version: NEW, data: { object: subscription({ discounts: ['di_1'] }) } }
  assert.equal((await told('old first', [[old], [newer]])).mrr, 9)
  assert.equal((await told('new first', [[newer], [old]])).mrr, 9)
})

test("another tenant's coupon says nothing", async () => {
  await told('with the coupon', [
    [event('coupon.created', START, coupon()), event('customer.discount.created', START, discount('di_1'))],
  ])
  const { mrr, exclusions } = await told('without it', [
    [event('customer.subscription.created', START, subscription({ discounts: ['di_1'] }), undefined, NEW)],
  ])
  assert.deepEqual([mrr, exclusions.results[0].reason_code], [0, 'discount_terms_unknown'])
})

test('customers name their accounts, by the newest word on them', async () => {
  const named = (name: string, at: number) =>
    event('customer.updated', at, { id: 'cus_1', object: 'customer', name, email: 'ada@example.com' })
  const list = [
    event('customer.subscription.created', START, subscription()),
    named('Ada', START + 10),
    named('Ada Ltd', START + 20),
  ]
  for (const seed of [1, 2, 3]) {
    const { accounts } = await told(`names ${seed}`, [shuffled(list, seed)])
    assert.deepEqual(
      [accounts.results[0].customer_name, accounts.results[0].customer_email],
      ['Ada Ltd', 'ada@example.com'],
    )
  }
})

test('seats that change twice in a second are what they became, and the first event tells what was before', async () => {
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
    const { mrr, movements } = await told(name, [arrived])
    assert.deepEqual([mrr, movements.new, movements.expansion], [100, 80, 20])
  }
})
