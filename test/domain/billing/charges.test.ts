import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { summarizeAccount } from '../../../src/domain/billing/account.ts'
import { daysUntil, findCancellation, renewalsBetween, upcomingCharges } from '../../../src/domain/billing/attention.ts'
import { addIntervals, isLongerThanAMonth } from '../../../src/domain/billing/calendar.ts'
import { nextCharge } from '../../../src/domain/billing/price.ts'
import type { Segment } from '../../../src/domain/billing/timeline.ts'
import { at, DAY, derive, item, type Payload, segmentAt, version } from './subscriptions.ts'

const AS_OF = at('2025-03-10')

function current(changes: Payload = {}, asOf = AS_OF): Segment {
  return segmentAt(derive(version(changes)).segments, asOf)!
}

function charges(changes: Payload, days = 90, asOf = AS_OF): [string, number | null][] {
  return upcomingCharges(current(changes, asOf), asOf, asOf + days * DAY).map(charge => [
    new Date(charge.billsAt).toISOString().slice(0, 10),
    charge.amount,
  ])
}

test('a monthly plan has three charges in 90 days', () => {
  assert.deepEqual(charges({ current_period_end: '2025-04-01' }), [
    ['2025-04-01', 20_00],
    ['2025-05-01', 20_00],
    ['2025-06-01', 20_00],
  ])
  assert.equal(charges({ current_period_end: '2025-04-01' }, 30).length, 1)
})

test('an outdated period end is carried forward; a missing one is computed from the start', () => {
  assert.equal(charges({ current_period_end: '2024-11-20' })[0]![0], '2025-03-20')
  assert.equal(charges({ started_at: '2025-01-15' })[0]![0], '2025-03-15')
})

test('a subscription billed on the 31st returns to the 31st after shorter months', () => {
  const period = { current_period_start: '2025-01-31', current_period_end: '2025-02-28' }
  assert.deepEqual(
    charges(period, 90, at('2025-02-10')).map(([day]) => day),
    ['2025-02-28', '2025-03-31', '2025-04-30'],
  )
  const inFebruary = {
    current_period_start: '2025-01-28',
    current_period_end: '2025-02-28',
    started_at: '2024-12-28',
  }
  assert.deepEqual(
    charges(inFebruary, 60, at('2025-02-10')).map(([day]) => day),
    ['2025-02-28', '2025-03-28'],
  )
  const leapYear = {
    started_at: '2024-02-29',
    items: [item({ interval: 'year' })],
    current_period_start: '2026-02-28',
    current_period_end: '2027-02-28',
  }
  assert.deepEqual(charges({ ...leapYear, updated_at: '2026-02-28' }, 400, at('2027-03-01')), [['2028-02-29', 20_00]])
})

test('weeks and days have fixed lengths', () => {
  const weekly = { items: [item({ interval: 'week', interval_count: 2 })], current_period_end: '2025-03-12' }
  assert.deepEqual(
    charges(weekly, 30).map(([day]) => day),
    ['2025-03-12', '2025-03-26', '2025-04-09'],
  )
  assert.equal(charges({ items: [item({ interval: 'day' })], current_period_end: '2025-03-11' }, 30).length, 30)
})

test('discounts count while they are valid, one-time discounts never', () => {
  const discounts = [
    { percent_off: 50, duration: 'repeating', ends_at: '2025-05-01' },
    { percent_off: 100, duration: 'once' },
  ]
  assert.deepEqual(charges({ current_period_end: '2025-04-01', discounts }), [
    ['2025-04-01', 10_00],
    ['2025-05-01', 20_00],
    ['2025-06-01', 20_00],
  ])
})

test('nothing is charged at or after a scheduled end', () => {
  assert.deepEqual(charges({ current_period_end: '2025-04-01', cancel_at_period_end: true }), [])
  assert.equal(charges({ current_period_end: '2025-04-01', cancel_at: '2025-05-15' }).length, 2)
  assert.equal(charges({ current_period_end: '2025-04-01', cancel_at: '2025-05-01' }).length, 1)
})

test('a trial ends with a charge, and only that charge is its conversion', () => {
  const segment = current({ status: 'trialing', trial_end: '2025-03-20', current_period_end: '2025-03-20' })
  assert.deepEqual(
    upcomingCharges(segment, AS_OF, AS_OF + 60 * DAY).map(charge => [charge.trialConversion, charge.amount]),
    [
      [true, 20_00],
      [false, 20_00],
    ],
  )
})

test('canceled, paused, unpaid, incomplete and free subscriptions are not charged', () => {
  for (const status of ['canceled', 'paused', 'unpaid', 'incomplete', 'incomplete_expired', 'odd']) {
    assert.deepEqual(charges({ status, current_period_end: '2025-04-01' }), [])
  }
  assert.deepEqual(charges({ items: [item({ unit_amount: 0 })], current_period_end: '2025-04-01' }), [])
})

test('usage is flagged, and an unknown price is null', () => {
  const current_period_end = '2025-04-01'
  const metered = item({ id: 'm', usage_type: 'metered' })
  const [mixed] = upcomingCharges(current({ current_period_end, items: [item(), metered] }), AS_OF, AS_OF + 30 * DAY)
  assert.deepEqual([mixed!.amount, mixed!.includesMetered], [20_00, true])
  const [usage] = upcomingCharges(current({ current_period_end, items: [metered] }), AS_OF, AS_OF + 30 * DAY)
  assert.deepEqual([usage!.amount, usage!.includesMetered], [0, true])
  assert.deepEqual(charges({ current_period_end, discounts: ['di_1'] }, 30), [['2025-04-01', null]])
})

test('items with different intervals are charged on their own days, together if the days coincide', () => {
  const items = [
    item({ id: 'm', current_period_end: '2025-04-01' }),
    item({ id: 'y', unit_amount: 600, interval: 'year', current_period_end: '2025-05-01' }),
  ]
  assert.deepEqual(charges({ items }), [
    ['2025-04-01', 20_00],
    ['2025-05-01', 620_00],
    ['2025-06-01', 20_00],
  ])
})

test('a subscription that has not started is charged on its start', () => {
  assert.deepEqual(charges({ started_at: '2025-04-05' }, 30), [['2025-04-05', 20_00]])
})

test('only terms longer than a month renew, and not if a cancellation is scheduled', () => {
  const yearly = { items: [item({ unit_amount: 1200, interval: 'year' })], current_period_end: '2025-04-01' }
  const renewal = (changes: Payload) =>
    renewalsBetween(current({ ...yearly, ...changes }), AS_OF, AS_OF + 30 * DAY)[0] ?? null
  assert.deepEqual(renewal({}), {
    renewsAt: at('2025-04-01'),
    interval: 'year',
    intervalCount: 1,
    amount: 1200_00,
  })
  assert.equal(renewal({ discounts: [{ amount_off: 200 }] })?.amount, 1000_00)
  assert.equal(renewal({ cancel_at_period_end: true }), null)
  assert.equal(renewal({ cancel_at: '2026-01-01' }), null)
  assert.equal(renewal({ status: 'trialing', trial_end: '2025-04-01' }), null)
  assert.equal(renewal({ current_period_end: '2025-04-10' }), null)
  assert.equal(renewal({ items: [item()] }), null)
  assert.equal(renewal({ items: [item({ interval_count: 2 })] })?.intervalCount, 2)
})

test('every renewal of a term is listed, and returns to the 31st after shorter months', () => {
  const segment = current({
    started_at: '2024-08-31',
    current_period_end: '2025-05-31',
    items: [item({ interval_count: 3 })],
  })
  assert.deepEqual(
    renewalsBetween(segment, AS_OF, at('2026-06-01')).map(({ renewsAt }) => renewsAt),
    [at('2025-05-31'), at('2025-08-31'), at('2025-11-30'), at('2026-02-28'), at('2026-05-31')],
  )
})

test('terms longer than a month are recognized', () => {
  assert.equal(isLongerThanAMonth('month', 1), false)
  assert.equal(isLongerThanAMonth('month', 2), true)
  assert.equal(isLongerThanAMonth('year', 1), true)
  assert.equal(isLongerThanAMonth('week', 4), false)
  assert.equal(isLongerThanAMonth('week', 5), true)
  assert.equal(isLongerThanAMonth('day', 31), false)
  assert.equal(isLongerThanAMonth('day', 90), true)
})

test('a cancellation without a date is not listed', () => {
  assert.equal(findCancellation(current({ cancel_at: '2025-04-09' }))?.cancelsAt, at('2025-04-09'))
  assert.equal(findCancellation(current()), null)
})

test('days_until includes the current day', () => {
  assert.equal(daysUntil(AS_OF + 10 * DAY, AS_OF), 10)
  assert.equal(daysUntil(AS_OF + 10 * DAY, AS_OF + 500), 10)
  assert.equal(daysUntil(AS_OF + 1, AS_OF), 1)
})

test('adding months one by one or all together leads to the same month, never past its end', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 4e12 }), fc.integer({ min: 0, max: 60 }), (from, months) => {
      const start = new Date(from)
      const end = new Date(addIntervals(from, 'month', months))
      const passed = (end.getUTCFullYear() - start.getUTCFullYear()) * 12 + end.getUTCMonth() - start.getUTCMonth()
      assert.equal(passed, months)
      assert.ok(end.getUTCDate() <= start.getUTCDate())
      assert.equal(end.getTime() % DAY, start.getTime() % DAY)
    }),
  )
})

test('every charge of a window is found however the window is split', () => {
  const interval = fc.constantFrom('day', 'week', 'month', 'year')
  const terms = fc.tuple(
    interval,
    fc.integer({ min: 1, max: 6 }),
    fc.integer({ min: -800, max: 60 }),
    fc.integer({ min: 0, max: 400 }),
  )
  fc.assert(
    fc.property(terms, ([each, count, offset, cut]) => {
      const segment = current({
        started_at: '2020-01-31',
        current_period_end: new Date(AS_OF + offset * DAY).toISOString(),
        items: [item({ interval: each, interval_count: count })],
      })
      const end = AS_OF + 400 * DAY
      const middle = AS_OF + cut * DAY
      const parts = [...upcomingCharges(segment, AS_OF, middle), ...upcomingCharges(segment, middle, end)]
      assert.deepEqual(parts, upcomingCharges(segment, AS_OF, end))
      const first = upcomingCharges(segment, AS_OF, AS_OF + 3000 * DAY)[0]
      assert.deepEqual(nextCharge(segment.cycles, AS_OF), first)
    }),
  )
})

test('an account is the sum of its subscriptions', () => {
  const segments = [
    current({ current_period_end: '2025-04-01', items: [item({ name: 'Pro' })], customer_name: 'Acme' }),
    current({
      id: 'sub_2',
      started_at: '2024-05-05',
      status: 'past_due',
      acquisition: { source: 'google' },
      current_period_end: '2025-03-20',
      cancel_at: '2026-01-01',
      items: [item({ name: 'Pro' }), item({ id: 'b', price_id: 'price_seat' })],
    }),
    current({ id: 'sub_3', status: 'canceled', started_at: '2024-06-01', items: [item({ name: 'Old' })] }),
  ]
  assert.deepEqual(summarizeAccount(segments, AS_OF), {
    account: 'acme',
    customer: 'acme',
    customerName: 'Acme',
    customerEmail: null,
    mrr: 60_00,
    committedMrr: 20_00,
    subscriptions: 3,
    activeSubscriptions: 2,
    status: 'active',
    planNames: ['Pro', 'price_seat'],
    acquisition: { source: 'google', medium: null, campaign: null },
    customerSince: at('2024-05-05'),
    nextBillingAt: at('2025-03-20'),
  })
})
