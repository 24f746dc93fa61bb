// Published examples that are valid under the policy, reproduced with the simulated company.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DAY, instant } from './calendar.ts'
import { type Company, openCompany } from './company.ts'
import { keepBooks } from './ledger.ts'
import type { Coupon, Price } from './model.ts'
import type { SubscriptionOrder } from './subscribing.ts'

const START = instant('2022-01-10T09:00:00Z')

let prices = 0
function price(unitAmount: number, changes: Partial<Price> = {}): Price {
  const id = `price_${++prices}`
  return {
    id,
    product: `prod_${id}`,
    name: id,
    currency: 'USD',
    interval: 'month',
    intervalCount: 1,
    usage: 'licensed',
    unitAmount,
    tiers: null,
    ...changes,
  }
}

function coupon(changes: Partial<Coupon>): Coupon {
  return {
    id: `coupon_${++prices}`,
    name: 'Coupon',
    percentOff: null,
    amountOff: null,
    currency: 'USD',
    duration: 'forever',
    months: null,
    createdAt: START,
    promotionCode: null,
    livemode: true,
    ...changes,
  }
}

const yearly = { interval: 'year' } as const

/** A company in which one account subscribes on the first day, with later events. */
function story(order: SubscriptionOrder, more: (company: Company, id: string, customer: string) => void = () => {}) {
  const company = openCompany()
  company.plan(START, () => {
    const customer = company.customer()
    more(company, company.subscriptions.start(customer, order).id, customer)
  })
  company.runUntil(START + 400 * DAY)
  return keepBooks(company.facts())
}

function mrrOf(order: SubscriptionOrder, days = 1): number {
  return story(order).totalsAt('USD', START + days * DAY).mrr
}

const movementsOf = (books: ReturnType<typeof story>) =>
  books.movementsIn('USD', 0, START + 400 * DAY).map(({ type, before, after }) => [type, after - before])

test('1: 100 × 100 a month and 50 × 600 a year are 12,500', () => {
  const company = openCompany()
  const [monthly, byYear] = [price(10_000), price(60_000, yearly)]
  company.plan(START, () => {
    for (let i = 0; i < 150; i++)
      company.subscriptions.start(company.customer(), { items: [{ price: i < 100 ? monthly : byYear }] })
  })
  company.runUntil(START + DAY)
  const { mrr, arr, activeAccounts } = keepBooks(company.facts()).totalsAt('USD', START + DAY)
  assert.deepEqual({ mrr, arr, activeAccounts }, { mrr: 1_250_000, arr: 15_000_000, activeAccounts: 150 })
})

test('2, 7, 13, 16: prices of other intervals are converted to months', () => {
  const of = (amount: number, interval: string, intervalCount = 1) =>
    mrrOf({ items: [{ price: price(amount, { interval, intervalCount }) }] })
  assert.equal(of(120_000, 'year'), 10_000)
  assert.equal(of(9_000, 'month', 3), 3_000)
  assert.equal(of(29_700, 'month', 3), 9_900)
  assert.equal(of(59_400, 'month', 6), 9_900)
  assert.equal(of(237_600, 'year', 2), 9_900)
  assert.equal(of(10_000, 'year'), 833)
  assert.equal(of(2_500, 'week'), 10_833)
})

test('3: a second subscription of an account is expansion', () => {
  const books = story({ items: [{ price: price(500), quantity: 5 }] }, (company, _, customer) =>
    company.plan(START + 9 * DAY, () =>
      company.subscriptions.start(customer, { items: [{ price: price(3_000), quantity: 2 }] }),
    ),
  )
  assert.deepEqual(movementsOf(books), [
    ['new', 2_500],
    ['expansion', 6_000],
  ])
})

test('4, 5, 6: movements are per account, not per subscription', () => {
  const books = story({ items: [{ price: price(50_000, yearly), quantity: 4 }] }, (company, first, customer) => {
    const { start, end } = company.subscriptions
    let second = ''
    company.plan(START + 10 * DAY, () => {
      second = start(customer, { items: [{ price: price(3_000), quantity: 2 }] }).id
    })
    company.plan(START + 20 * DAY, () => end(second, 'cancellation_requested'))
    company.plan(START + 30 * DAY, () => end(first, 'cancellation_requested'))
    company.plan(START + 40 * DAY, () => start(customer, { items: [{ price: price(5_000), quantity: 3 }] }))
  })
  assert.deepEqual(movementsOf(books), [
    ['new', 16_667],
    ['expansion', 6_000],
    ['contraction', -6_000],
    ['churn', -16_667],
    ['reactivation', 15_000],
  ])
})

test('8, 10, 11: a forever discount reduces MRR, a one-time discount does not', () => {
  const off = (amount: number, interval: string, terms: Partial<Coupon>) =>
    mrrOf({ items: [{ price: price(amount, { interval }) }], coupons: [coupon(terms)] })
  assert.equal(off(12_000, 'year', { percentOff: 10 }), 900)
  assert.equal(off(120_000, 'year', { percentOff: 20, duration: 'once' }), 10_000)
  assert.equal(off(1_000, 'month', { percentOff: 50 }), 500)
})

test('9: a repeating discount reduces MRR while it is valid', () => {
  const terms = { percentOff: 10, duration: 'repeating', months: 3 } as const
  const books = story({ items: [{ price: price(1_000) }], coupons: [coupon(terms)] })
  assert.equal(books.totalsAt('USD', START + DAY).mrr, 900)
  assert.equal(books.totalsAt('USD', START + 100 * DAY).mrr, 1_000)
  assert.deepEqual([...books.movementsIn('USD', START, START + 400 * DAY)[0]!.causes], ['discount_end'])
})

test('12: items add up', () => {
  const items = [{ price: price(5_000) }, { price: price(2_000) }, { price: price(1_000), quantity: 3 }]
  assert.equal(mrrOf({ items }), 10_000)
})

test('14, 15, 18: excluded items have a reason', () => {
  const reasons = (order: SubscriptionOrder) => {
    const books = story(order)
    const rows = books.exclusionsAt('USD', START + DAY).map(({ reason }) => reason)
    return [books.totalsAt('USD', START + DAY).mrr, ...rows]
  }
  const metered = price(2_000, { usage: 'metered' })
  assert.deepEqual(reasons({ items: [{ price: price(5_000) }, { price: metered }] }), [5_000, 'metered_usage'])
  for (const broken of [{ intervalCount: 0 }, { intervalCount: null }, { interval: 'fortnight' }])
    assert.deepEqual(reasons({ items: [{ price: price(5_000, broken) }] }), [0, 'unsupported_interval'])
  const coupons = [coupon({ amountOff: 5_000 })]
  assert.deepEqual(reasons({ items: [{ price: price(4_900) }], coupons }), [0, 'fully_discounted'])
})

test('17: a change in mid-period moves MRR by the price difference, whatever is prorated', () => {
  const small = price(2_000)
  const books = story({ items: [{ price: small }] }, (company, id) =>
    company.plan(START + 15 * DAY + DAY / 2, () =>
      company.price(id, company.subscriptions.get(id).items[0]!.id, price(5_000)),
    ),
  )
  assert.deepEqual(movementsOf(books), [
    ['new', 2_000],
    ['expansion', 3_000],
  ])
  assert.equal(books.collected('USD', START + 10 * DAY, START + 20 * DAY).amount, 1_500)
})

test('inclusive tax is removed, exclusive tax is not part of the price', () => {
  const tax = { id: 'txr_1', name: 'VAT', country: 'DE', percent: 19 }
  const items = [{ price: price(11_900) }]
  assert.equal(mrrOf({ items, tax: { ...tax, inclusive: true } }), 10_000)
  assert.equal(mrrOf({ items, tax: { ...tax, inclusive: false } }), 11_900)
})
