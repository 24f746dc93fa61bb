import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { pendingExclusion, REASONS } from '../../../src/domain/billing/exclusions.ts'
import { computeArpa, computeArr, itemStates } from '../../../src/domain/billing/price.ts'
import { at, derive, item, mrrOf, type Payload, reasonsOf, segmentAt, version } from './subscriptions.ts'

const DAY = '2025-03-01'

/** The first matching reason is reported: each row also matches every later reason of its kind. */
/** 10 each up to 5 units; above, 8 each plus 3. */
function tiered(tiers_mode: string, quantity: number): Payload {
  const tiers = [
    { up_to: 5, unit_amount: 10 },
    { up_to: null, unit_amount: 8, flat_amount: 3 },
  ]
  return item({ unit_amount: null, quantity, tiers_mode, tiers })
}

const reasons: [reason: string, given: Payload][] = [
  ['missing_currency', { currency: 'XYZ', status: 'canceled', items: [] }],
  ['missing_currency', { currency: null }],
  ['missing_currency', { currency: 42 }],
  ['canceled', { status: 'canceled', items: [] }],
  ['canceled', { status: 'trialing', ended_at: '2025-02-01' }],
  ['incomplete', { status: 'incomplete', items: [] }],
  ['incomplete', { status: 'activ' }],
  ['incomplete', { status: { is: 'active' } }],
  ['incomplete_expired', { status: 'incomplete_expired' }],
  ['unpaid', { status: 'unpaid' }],
  ['test_mode', { livemode: false, currency: null, status: 'canceled' }],
  ['trialing', { status: 'Trial', started_at: '2030-01-01' }],
  ['paused', { status: 'paused', started_at: '2030-01-01' }],
  ['not_started', { started_at: '2030-01-01', items: [] }],
  ['missing_items', { items: [] }],
  ['missing_items', { items: 'one' }],
  ['missing_items', { items: undefined }],
  ['missing_price', { items: [item({ unit_amount: null, interval: null, usage_type: 'metered' })] }],
  ['missing_price', { items: [item({ unit_amount: 'a lot' })] }],
  ['missing_price', { items: [item({ unit_amount: -5 })] }],
  ['missing_price', { items: [item({ unit_amount: 1e14 })] }],
  ['missing_price', { items: [item({ quantity: 'many' })] }],
  ['missing_price', { items: [item({ type: 'one_time', unit_amount: undefined })] }],
  ['missing_price', { items: [null] }],
  ['missing_interval', { items: [item({ interval: null, interval_count: null, usage_type: 'metered' })] }],
  ['missing_interval', { items: [item({ interval: 30 })] }],
  ['unsupported_interval', { items: [item({ interval: 'lustrum', usage_type: 'metered' })] }],
  ['unsupported_interval', { items: [item({ interval_count: 0 })] }],
  ['one_time_price', { items: [item({ type: 'one_time', interval: null, interval_count: null })] }],
  ['metered_usage', { items: [item({ usage_type: 'metered', unit_amount: null, tiers: [{ up_to: 5 }] })] }],
  [
    'tiered_price_unknown',
    { items: [item({ unit_amount: null, tiers: [{ up_to: 5, unit_amount: 3 }] })], discounts: [{}] },
  ],
  ['tiered_price_unknown', { items: [item({ unit_amount: null, billing_scheme: 'tiered' })] }],
  ['discount_terms_unknown', { items: [item({ unit_amount: 0 })], discounts: [{ duration: 'forever' }] }],
  ['discount_terms_unknown', { discounts: [{ percent_off: 10, duration: 'repeating' }] }],
  ['discount_terms_unknown', { discounts: [{ percent_off: 10, duration: 'sometimes' }] }],
  ['discount_terms_unknown', { discounts: ['di_1'] }],
  ['discount_terms_unknown', { discounts: [{ amount_off: 5, currency: 'EUR' }] }],
  ['discount_terms_unknown', { discounts: Array(31).fill({ percent_off: 1 }) }],
  ['free', { items: [item({ unit_amount: 0 })], discounts: [{ percent_off: 100 }] }],
  ['free', { items: [item({ quantity: 0 })] }],
  ['free', { items: [item({ unit_amount: '0.01', interval: 'year' })] }],
  ['fully_discounted', { discounts: [{ percent_off: 100, duration: 'forever' }] }],
  ['fully_discounted', { discounts: [{ percent_off: 250 }] }],
  ['billed_elsewhere', { billed_elsewhere: true }],
]
for (const [reason, given] of reasons) {
  test(`${reason}: ${JSON.stringify(given).slice(0, 90)}`, () => {
    assert.deepEqual(reasonsOf(given, DAY), [reason])
    assert.equal(mrrOf(given, DAY), 0)
  })
}

test('every reason of an item is tested above, and each has a description and a hint', () => {
  const elsewhere = ['other_currency', 'pending_subscription', 'items_incomplete', 'past_due']
  const shown = new Set([...reasons.map(([reason]) => reason), ...elsewhere])
  assert.deepEqual([...shown].sort(), Object.keys(REASONS).sort())
  for (const { reason, fixHint } of Object.values(REASONS)) assert.ok(reason.length > 10 && fixHint.length > 10)
})

const counted: [string, Payload, number][] = [
  ['all items count, however many', { items: Array.from({ length: 300 }, () => item()) }, 6000_00],
  [
    'inclusive tax is no revenue',
    { tax_percent: 19, tax_inclusive: true, items: [item({ unit_amount: 119 })] },
    100_00,
  ],
  [
    'an amount off is subtracted before the tax is removed',
    {
      tax_percent: '19',
      tax_inclusive: true,
      items: [item({ unit_amount: 119 })],
      discounts: [{ amount_off: 10, duration: 'forever' }],
    },
    91_60,
  ],
  ['exclusive tax is not in the price', { tax_percent: 19, items: [item({ unit_amount: 119 })] }, 119_00],
  ['quarterly is every three months', { items: [item({ interval: 'Quarterly', unit_amount: 90 })] }, 30_00],
  ['every 6 months', { items: [item({ interval: 'every 6 months', unit_amount: 90 })] }, 15_00],
  ['annually', { items: [item({ interval: 'annually', unit_amount: 120 })] }, 10_00],
  ['graduated tiers', { items: [tiered('graduated', 7)] }, 66_00 + 3_00],
  ['graduated tiers, the first reached in full', { items: [tiered('graduated', 5)] }, 50_00],
  ['volume tiers', { items: [tiered('volume', 7)] }, 56_00 + 3_00],
  ['past due counts', { status: 'past_due' }, 20_00],
  ['amounts may be text', { items: [item({ unit_amount: '49.90' })] }, 49_90],
  [
    'a price finer than a cent is rounded after the quantity',
    { items: [item({ unit_amount: 0.005, quantity: 1001 })] },
    5_01,
  ],
  ['a missing quantity is one', { items: [item({ quantity: null })] }, 20_00],
  ['a missing interval_count is one', { items: [item({ interval_count: undefined })] }, 20_00],
  ['JPY has no minor unit', { currency: 'jpy', items: [item({ unit_amount: 1000, interval: 'year' })] }, 83],
  ['KWD has three digits', { currency: 'KWD', items: [item({ unit_amount: 10, interval: 'year' })] }, 833],
  [
    'an item counts as one though tiers are named beside its price',
    { items: [item({ tiers: [{ up_to: 1 }] })] },
    20_00,
  ],
  ['a discount without a duration is for ever', { discounts: [{ percent_off: 25 }] }, 15_00],
  ['a once-discount is ignored, even without terms', { discounts: [{ duration: 'once' }] }, 20_00],
  ['an ended discount is ignored, even without terms', { discounts: [{ ends_at: '2025-02-01' }] }, 20_00],
  ['discounts apply in order: percent first', { discounts: [{ percent_off: 50 }, { amount_off: 5 }] }, 5_00],
  ['discounts apply in order: amount first', { discounts: [{ amount_off: 5 }, { percent_off: 50 }] }, 7_50],
  ['a third off is rounded once', { discounts: [{ percent_off: '33.333333' }] }, 13_33],
  [
    "an item's own discount comes first",
    { items: [item({ discounts: [{ amount_off: 10 }] })], discounts: [{ percent_off: 50 }] },
    5_00,
  ],
  [
    'an amount off a year is a twelfth of it a month',
    { items: [item({ unit_amount: 240, interval: 'year' })], discounts: [{ amount_off: 60 }] },
    15_00,
  ],
]
for (const [what, given, mrr] of counted) {
  test(what, () => assert.equal(mrrOf(given, DAY), mrr))
}

test('an amount off several items leaves their sum exact to the cent', () => {
  const items = ['a', 'b', 'c'].map(id => item({ id, unit_amount: 10 }))
  const states = itemStates(version({ items, discounts: [{ amount_off: 10 }] }), at(DAY))
  assert.deepEqual(
    states.map(state => state.mrr),
    [6_66, 6_67, 6_67],
  )
  assert.deepEqual(
    states.map(state => state.discountMrr),
    [3_34, 3_33, 3_33],
  )
})

test('the remaining cent of an amount off goes to the item with the largest rounding loss', () => {
  const items = [1, 2, 3].map(amount => item({ id: `i${amount}`, unit_amount: amount }))
  const states = itemStates(version({ items, discounts: [{ amount_off: 1 }] }), at(DAY))
  assert.deepEqual(
    states.map(state => state.discountMrr),
    [17, 33, 50],
  )
})

test('metered and one-time items receive no share of an amount off', () => {
  const items = [item({ id: 'a' }), item({ id: 'b', usage_type: 'metered' }), item({ id: 'c', type: 'one_time' })]
  assert.equal(mrrOf({ items, discounts: [{ amount_off: 5 }] }), 15_00)
})

test('an excluded item with a price has the gross MRR that it would have', () => {
  const excludedMrr = (given: Payload) =>
    segmentAt(derive(version(given)).segments, at(DAY))!.items.map(state => state.excludedMrr)
  assert.deepEqual(excludedMrr({ status: 'trialing', discounts: [{ percent_off: 50 }] }), [20_00])
  assert.deepEqual(excludedMrr({ discounts: ['di_1'] }), [20_00])
  assert.deepEqual(excludedMrr({ items: [item({ unit_amount: 0 })] }), [0])
  assert.deepEqual(excludedMrr({ items: [item({ usage_type: 'metered' })] }), [null])
  assert.deepEqual(excludedMrr({ currency: null }), [null])
  assert.deepEqual(excludedMrr({}), [null])
})

test('a subscription known only from an invoice is pending', () => {
  assert.deepEqual(pendingExclusion('sub_9', 'acme', at(DAY)), {
    subscriptionId: 'sub_9',
    itemId: null,
    customer: 'acme',
    status: null,
    code: 'pending_subscription',
    excludedMrr: null,
    since: at(DAY),
  })
})

test('ARR is twelve months, ARPA is per paying account', () => {
  assert.equal(computeArr(8_33), 99_96)
  assert.equal(computeArpa(100_00, 3), 33_33)
  assert.equal(computeArpa(200_00, 3), 66_67)
  assert.equal(computeArpa(0, 0), 0)
})

const anyItem = fc.record({
  unit_amount: fc.oneof(fc.integer({ min: 0, max: 100_000 }), fc.constantFrom('0.005', 19.99, null, 'x')),
  quantity: fc.integer({ min: 0, max: 50 }),
  interval: fc.constantFrom('day', 'week', 'month', 'year', 'eon', null),
  interval_count: fc.integer({ min: 0, max: 24 }),
  usage_type: fc.constantFrom('licensed', 'licensed', 'metered'),
})
const anyDiscount = fc.oneof(
  fc.record({ percent_off: fc.float({ min: 0, max: 120, noNaN: true }), duration: fc.constant('forever') }),
  fc.record({ amount_off: fc.integer({ min: 0, max: 5000 }) }),
)

test('for any terms: no negative MRR, gross − discount = mrr, and included or one reason', () => {
  fc.assert(
    fc.property(
      fc.array(anyItem, { maxLength: 6 }),
      fc.array(anyDiscount, { maxLength: 4 }),
      fc.constantFrom('USD', 'JPY', 'KWD'),
      (items, discounts, currency) => {
        const segment = segmentAt(derive(version({ items, discounts, currency })).segments, at(DAY))!
        assert.equal(
          segment.mrr,
          segment.items.reduce((sum, state) => sum + state.mrr, 0),
        )
        for (const state of segment.items) {
          assert.ok(Number.isSafeInteger(state.mrr) && state.mrr >= 0)
          assert.equal(state.grossMrr - state.discountMrr, state.mrr)
          assert.ok(state.discountMrr >= 0)
          assert.equal(state.included, state.reason === null)
          assert.equal(state.included, state.mrr > 0)
        }
      },
    ),
  )
})

test('an amount off monthly items takes exactly that much off, or everything', () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 1, max: 5000 }), { minLength: 1, maxLength: 8 }),
      fc.integer({ min: 0, max: 20_000 }),
      (cents, off) => {
        const items = cents.map((amount, i) => item({ id: `i${i}`, unit_amount: amount / 100 }))
        const total = cents.reduce((sum, amount) => sum + amount, 0)
        assert.equal(mrrOf({ items, discounts: [{ amount_off: off / 100 }] }), Math.max(0, total - off))
      },
    ),
  )
})
