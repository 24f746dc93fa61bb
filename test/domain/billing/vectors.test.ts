import assert from 'node:assert/strict'
import { test } from 'node:test'
import { deriveAccount } from '../../../src/domain/billing/account.ts'
import { at, derive, item, mrrOf, type Payload, reasonsOf, segmentAt, version } from './subscriptions.ts'

/** Examples published by vendors that are valid under Kontor's policy. */
const published: { what: string; given: Payload; mrr: number; day?: string }[] = [
  { what: '$100/month', given: { items: [item({ unit_amount: 100 })] }, mrr: 100_00 },
  { what: '$600/year', given: { items: [item({ unit_amount: 600, interval: 'year' })] }, mrr: 50_00 },
  { what: '$1,200/year', given: { items: [item({ unit_amount: 1200, interval: 'year' })] }, mrr: 100_00 },
  { what: '5 × $5/month', given: { items: [item({ unit_amount: 5, quantity: 5 })] }, mrr: 25_00 },
  {
    what: '4 × $500/year',
    given: { items: [item({ unit_amount: 500, quantity: 4, interval: 'year' })] },
    mrr: 166_67,
  },
  { what: '$90 per 3 months', given: { items: [item({ unit_amount: 90, interval_count: 3 })] }, mrr: 30_00 },
  {
    what: '$120/year, 10 % off for ever',
    given: {
      items: [item({ unit_amount: 120, interval: 'year' })],
      discounts: [{ percent_off: 10, duration: 'forever' }],
    },
    mrr: 9_00,
  },
  {
    what: '$10/month, 10 % off while it runs',
    given: {
      items: [item({ unit_amount: 10 })],
      discounts: [{ percent_off: 10, duration: 'repeating', ends_at: '2025-04-01' }],
    },
    mrr: 9_00,
  },
  {
    what: '$10/month after its 10 % off has ended',
    given: {
      items: [item({ unit_amount: 10 })],
      discounts: [{ percent_off: 10, duration: 'repeating', ends_at: '2025-04-01' }],
    },
    day: '2025-04-01',
    mrr: 10_00,
  },
  {
    what: '$1,200/year, 20 % off once',
    given: {
      items: [item({ unit_amount: 1200, interval: 'year' })],
      discounts: [{ percent_off: 20, duration: 'once' }],
    },
    mrr: 100_00,
  },
  {
    what: '$10/month, 50 % off for ever',
    given: { items: [item({ unit_amount: 10 })], discounts: [{ percent_off: 50, duration: 'forever' }] },
    mrr: 5_00,
  },
  {
    what: '$50 + $20 + 3 × $10, monthly',
    given: {
      items: [
        item({ id: 'a', unit_amount: 50 }),
        item({ id: 'b', unit_amount: 20 }),
        item({ id: 'c', unit_amount: 10, quantity: 3 }),
      ],
    },
    mrr: 100_00,
  },
  {
    what: '$297 per 3 months',
    given: { items: [item({ unit_amount: 297, interval_count: 3 })] },
    mrr: 99_00,
  },
  {
    what: '$594 per 6 months',
    given: { items: [item({ unit_amount: 594, interval_count: 6 })] },
    mrr: 99_00,
  },
  {
    what: '$2,376 per 2 years',
    given: { items: [item({ unit_amount: 2376, interval: 'year', interval_count: 2 })] },
    mrr: 99_00,
  },
  { what: '$100/year', given: { items: [item({ unit_amount: 100, interval: 'year' })] }, mrr: 8_33 },
  { what: '$25/week', given: { items: [item({ unit_amount: 25, interval: 'week' })] }, mrr: 108_33 },
  { what: '$1/day', given: { items: [item({ unit_amount: 1, interval: 'day' })] }, mrr: 30_42 },
]
for (const { what, given, mrr, day } of published) {
  test(`${what} is ${mrr / 100} a month`, () => assert.equal(mrrOf(given, day), mrr))
}

test('100 × $100/month and 50 × $600/year are 12,500', () => {
  const monthly = mrrOf({ items: [item({ unit_amount: 100 })] })
  const yearly = mrrOf({ items: [item({ unit_amount: 600, interval: 'year' })] })
  assert.equal(100 * monthly + 50 * yearly, 12_500_00)
})

test('a licensed $50 item and a metered $20 item are $50 and one exclusion', () => {
  const given = {
    items: [item({ id: 'a', unit_amount: 50 }), item({ id: 'b', unit_amount: 20, usage_type: 'metered' })],
  }
  assert.equal(mrrOf(given), 50_00)
  assert.deepEqual(reasonsOf(given), [null, 'metered_usage'])
})

for (const interval_count of [0, null, -1, 1.5, 'often', {}, 1e9]) {
  test(`an interval_count of ${JSON.stringify(interval_count)} is excluded`, () => {
    assert.deepEqual(reasonsOf({ items: [item({ interval_count })] }), ['unsupported_interval'])
  })
}

test('an unknown interval is excluded', () => {
  assert.deepEqual(reasonsOf({ items: [item({ interval: 'fortnight' })] }), ['unsupported_interval'])
})

test('$50 off for ever on $49/month is 0 and fully discounted, never negative', () => {
  const given = { items: [item({ unit_amount: 49 })], discounts: [{ amount_off: 50, duration: 'forever' }] }
  assert.equal(mrrOf(given), 0)
  const [state] = segmentAt(derive(version(given)).segments, at('2025-03-01'))!.items
  assert.deepEqual(
    { ...state, id: undefined },
    {
      ...state,
      id: undefined,
      reason: 'fully_discounted',
      included: false,
      grossMrr: 49_00,
      discountMrr: 49_00,
      mrr: 0,
      excludedMrr: 49_00,
    },
  )
})

function movementsOf(...versions: Parameters<typeof derive>): string[] {
  const byId = Map.groupBy(versions, entry => entry.id)
  const segments = [...byId.values()].flatMap(group => derive(...group).segments)
  return deriveAccount(segments).flatMap(ledger =>
    ledger.movements.map(({ type, before, after }) => `${type} ${(after - before) / 100}`),
  )
}

test("an account's second subscription is expansion", () => {
  const first = version({ items: [item({ unit_amount: 5, quantity: 5 })] })
  const second = version({
    id: 'sub_2',
    started_at: '2025-02-01',
    updated_at: '2025-02-01',
    items: [item({ unit_amount: 30, quantity: 2 })],
  })
  assert.deepEqual(movementsOf(first, second), ['new 25', 'expansion 60'])
})

test('an account that expands, contracts, churns and returns', () => {
  const yearly = { items: [item({ unit_amount: 500, quantity: 4, interval: 'year' })] }
  const extra = { id: 'sub_2', started_at: '2025-02-01', items: [item({ unit_amount: 30, quantity: 2 })] }
  assert.deepEqual(
    movementsOf(
      version(yearly),
      version({ ...extra, updated_at: '2025-02-01' }),
      version({ ...extra, status: 'canceled', ended_at: '2025-03-01', updated_at: '2025-03-01' }),
      version({ ...yearly, status: 'canceled', ended_at: '2025-04-01', updated_at: '2025-04-01' }),
      version({
        id: 'sub_3',
        started_at: '2025-06-01',
        updated_at: '2025-06-01',
        items: [item({ unit_amount: 50, quantity: 3 })],
      }),
    ),
    ['new 166.67', 'expansion 60', 'contraction -60', 'churn -166.67', 'reactivation 150'],
  )
})

test('$20/month changed to $50/month in mid-cycle is an expansion of 30, whatever is prorated', () => {
  assert.deepEqual(movementsOf(version(), version({ updated_at: '2025-01-16', items: [item({ unit_amount: 50 })] })), [
    'new 20',
    'expansion 30',
  ])
})
