import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { accountStates, computeFigures, deriveAccount, type Movement } from '../../../src/domain/billing/account.ts'
import { deriveSubscription, type Segment } from '../../../src/domain/billing/timeline.ts'
import type { SubscriptionVersion } from '../../../src/domain/billing/types.ts'
import { at, DAY, derive, item, mrrAt, type Payload, version } from './subscriptions.ts'

const START = at('2025-01-01')

function iso(dayNumber: number): string {
  return new Date(START + dayNumber * DAY).toISOString()
}

function movementsOf(segments: Segment[]): Movement[] {
  return deriveAccount(segments).flatMap(ledger => ledger.movements)
}

/** Movements within (since, until], counted one by one. */
function movementTotals(movements: Movement[], since: number, until: number) {
  const totals = {
    opening: 0,
    new: 0,
    expansion: 0,
    contraction: 0,
    churn: 0,
    reactivation: 0,
    net: 0,
    closing: 0,
  }
  for (const { at: instant, type, before, after } of movements) {
    if (instant > until) continue
    const delta = after - before
    totals.closing += delta
    if (instant <= since) totals.opening += delta
    else {
      totals[type] += Math.abs(delta)
      totals.net += delta
    }
  }
  return totals
}

/** MRR according to the account's states, independent of its movements. */
function stateAt(segments: Segment[], currency: string, instant: number): number {
  const states = accountStates(segments.map(computeFigures)).filter(state => state.currency === currency)
  return states.find(({ from, to }) => from <= instant && (to === null || instant < to))?.mrr ?? 0
}

test('changes of one account at one instant are one movement', () => {
  const swap = [
    ...derive(version({ ended_at: '2025-03-01' })).segments,
    ...derive(version({ id: 'sub_2', started_at: '2025-03-01', items: [item({ unit_amount: 50 })] })).segments,
  ]
  assert.deepEqual(
    movementsOf(swap).map(({ at: instant, type, before, after, changes }) => [instant, type, before, after, changes]),
    [
      [START, 'new', 0, 20_00, [{ subscriptionId: 'sub_1', before: 0, after: 20_00, cause: 'new_subscription' }]],
      [
        at('2025-03-01'),
        'expansion',
        20_00,
        50_00,
        [
          { subscriptionId: 'sub_1', before: 20_00, after: 0, cause: 'cancellation_voluntary' },
          { subscriptionId: 'sub_2', before: 0, after: 50_00, cause: 'additional_subscription' },
        ],
      ],
    ],
  )
})

const product = (changes: Payload = {}) => item({ product_id: 'prod_1', price_id: 'price_1', ...changes })
const causes: [string, Payload, Payload][] = [
  ['quantity', {}, { items: [product({ quantity: 3 })] }],
  ['price', {}, { items: [product({ unit_amount: 25, price_id: 'price_2' })] }],
  ['price', {}, { items: [product({ unit_amount: 100, interval: 'year' })] }],
  ['plan', {}, { items: [product({ product_id: 'prod_2', unit_amount: 90 })] }],
  ['plan', {}, { items: [product({ id: 'si_2', unit_amount: 90 })] }],
  ['item_added', {}, { items: [product(), product({ id: 'si_2' })] }],
  ['item_removed', { items: [product(), product({ id: 'si_2' })] }, {}],
  ['discount', {}, { discounts: [{ percent_off: 10 }] }],
  ['discount', { discounts: [{ percent_off: 10, duration: 'forever' }] }, {}],
  ['discount_end', { discounts: [{ percent_off: 10, duration: 'repeating', ends_at: '2025-02-01' }] }, {}],
  ['pause', {}, { status: 'paused' }],
  ['resume', { status: 'paused' }, {}],
  ['trial_end', { status: 'trialing' }, {}],
  ['cancellation_voluntary', {}, { status: 'canceled' }],
  ['cancellation_voluntary', { status: 'past_due' }, { status: 'canceled', cancellation_reason: 'too_expensive' }],
  ['cancellation_failed_payment', { status: 'past_due' }, { status: 'canceled' }],
  ['cancellation_failed_payment', {}, { status: 'canceled', cancellation_reason: 'payment_failed' }],
  ['cancellation_failed_payment', { status: 'past_due' }, { status: 'unpaid' }],
  ['new_subscription', { status: 'unpaid' }, {}],
]
for (const [cause, before, after] of causes) {
  test(`cause ${cause}: ${JSON.stringify(before).slice(0, 60)} → ${JSON.stringify(after).slice(0, 60)}`, () => {
    const { segments } = derive(
      version({ items: [product()], ...before }),
      version({ items: [product()], ...after, updated_at: '2025-02-01' }),
    )
    const movement = movementsOf(segments).find(({ at: instant }) => instant === at('2025-02-01'))
    assert.equal(movement?.changes[0]?.cause, cause)
  })
}

test('replacing an item by one of equal MRR is no movement', () => {
  const swap = [
    ...derive(version({ ended_at: '2025-03-01' })).segments,
    ...derive(version({ id: 'sub_2', started_at: '2025-03-01' })).segments,
  ]
  assert.equal(movementsOf(swap).length, 1)
})

test('any drop to 0 is churn: end, pause, unpaid, 100 % off', () => {
  for (const fall of [
    { status: 'canceled' },
    { status: 'paused' },
    { status: 'unpaid' },
    { discounts: [{ percent_off: 100 }] },
    { ended_at: '2025-02-01' },
  ]) {
    const { segments } = derive(version(), version({ ...fall, updated_at: '2025-02-01' }))
    assert.deepEqual(
      movementsOf(segments).map(movement => movement.type),
      ['new', 'churn'],
    )
  }
})

test('currencies are separate', () => {
  const { segments } = derive(version(), version({ currency: 'EUR', updated_at: '2025-02-01' }))
  assert.deepEqual(
    deriveAccount(segments).map(ledger => [ledger.currency, ledger.movements.map(movement => movement.type)]),
    [
      ['EUR', ['new']],
      ['USD', ['new', 'churn']],
    ],
  )
})

test('an account that never paid has no movements', () => {
  assert.deepEqual(deriveAccount(derive(version({ status: 'trialing' })).segments), [])
})

test('movements are counted one by one, not netted', () => {
  const { segments } = derive(
    version(),
    version({ items: [item({ unit_amount: 50 })], updated_at: '2025-02-01' }),
    version({ updated_at: '2025-02-02' }),
  )
  assert.deepEqual(movementTotals(movementsOf(segments), at('2025-01-15'), at('2025-02-10')), {
    opening: 20_00,
    new: 0,
    expansion: 30_00,
    contraction: 30_00,
    churn: 0,
    reactivation: 0,
    net: 0,
    closing: 20_00,
  })
})

test('a window is open at its start and closed at its end', () => {
  const movements = movementsOf(derive(version()).segments)
  assert.equal(movementTotals(movements, START, START + DAY).new, 0)
  assert.equal(movementTotals(movements, START - DAY, START).new, 20_00)
})

const day = fc.integer({ min: 0, max: 120 })
/** Events of one account: three subscriptions, up to eight versions each, often at the same time. */
const anyVersion = fc
  .record({
    id: fc.constantFrom('sub_1', 'sub_2', 'sub_3'),
    updated_at: day.map(iso),
    started_at: fc.option(day.map(iso), { nil: undefined }),
    ended_at: fc.option(day.map(iso), { nil: undefined, freq: 5 }),
    cancel_at: fc.option(day.map(iso), { nil: undefined, freq: 5 }),
    canceled_at: fc.option(day.map(iso), { nil: undefined, freq: 5 }),
    trial_end: fc.option(day.map(iso), { nil: undefined, freq: 5 }),
    status: fc.constantFrom(
      'active',
      'active',
      'active',
      'past_due',
      'trialing',
      'paused',
      'unpaid',
      'canceled',
      'odd',
    ),
    currency: fc.constantFrom('USD', 'USD', 'JPY', 'KWD'),
    items: fc.array(
      fc.record({
        unit_amount: fc.constantFrom(10, 20.5, 99),
        interval: fc.constantFrom('month', 'year', 'week'),
      }),
      { maxLength: 3 },
    ),
    discounts: fc.array(fc.record({ percent_off: fc.constantFrom(10, 50, 100), ends_at: day.map(iso) }), {
      maxLength: 2,
    }),
    kind: fc.constantFrom('updated', 'updated', 'updated', 'created', 'deleted'),
  })
  .map(({ kind, ...changes }) => version(changes, `subscription.${kind}`))
/** With sequence numbers, so that the order of arrival does not matter. */
const feed = fc
  .array(anyVersion, { minLength: 1, maxLength: 20 })
  .map(versions => versions.map((version, sequence) => ({ ...version, sequence })))

function ledgerOf(versions: SubscriptionVersion[]) {
  const derived = [...Map.groupBy(versions, entry => entry.id).values()]
    .map(versions => deriveSubscription(versions))
    .sort((a, b) => (a.id < b.id ? -1 : 1))
  return { derived, ledgers: deriveAccount(derived.flatMap(entry => entry.segments)) }
}

test('shuffled and repeated events give the same ledger', () => {
  const shuffledWithRepeats = feed.chain(versions =>
    fc.tuple(
      fc.constant(versions),
      fc.shuffledSubarray([...versions, ...versions], { minLength: versions.length * 2 }),
    ),
  )
  fc.assert(
    fc.property(shuffledWithRepeats, ([versions, shuffled]) => {
      assert.deepEqual(ledgerOf(shuffled), ledgerOf(versions))
    }),
  )
})

test('segments of a subscription have no gaps and no overlaps', () => {
  fc.assert(
    fc.property(feed, versions => {
      for (const { segments } of ledgerOf(versions).derived) {
        segments.forEach((segment, i) => {
          assert.equal(segment.to, segments[i + 1]?.from ?? null)
          assert.ok(segment.to === null || segment.from < segment.to)
          assert.ok(segment.mrr >= 0 && segment.committedMrr >= 0 && segment.committedMrr <= segment.mrr)
        })
      }
    }),
  )
})

test('at any instant the MRR of an account is the sum of its subscriptions', () => {
  fc.assert(
    fc.property(feed, day, (versions, n) => {
      const { derived, ledgers } = ledgerOf(versions)
      const instant = START + n * DAY
      const all = derived.flatMap(({ segments }) => segments)
      for (const { currency } of ledgers) {
        const sum = derived.reduce((total, { segments }) => {
          const inCurrency = segments.filter(segment => segment.currency === currency)
          return total + mrrAt(inCurrency, instant)
        }, 0)
        assert.equal(stateAt(all, currency, instant), sum)
      }
    }),
  )
})

test('opening + new + expansion + reactivation − contraction − churn = closing, for every window', () => {
  fc.assert(
    fc.property(feed, day, day, (versions, a, b) => {
      const since = START + Math.min(a, b) * DAY
      const until = START + Math.max(a, b) * DAY
      const { derived, ledgers } = ledgerOf(versions)
      const all = derived.flatMap(({ segments }) => segments)
      for (const { currency, movements } of ledgers) {
        const totals = movementTotals(movements, since, until)
        const { opening, expansion, reactivation, contraction, churn, closing } = totals
        assert.equal(opening + totals.new + expansion + reactivation - contraction - churn, closing)
        assert.equal(opening, stateAt(all, currency, since))
        assert.equal(closing, stateAt(all, currency, until))
        assert.equal(totals.net, closing - opening)
      }
    }),
  )
})

test('an account is new once, and every movement starts where the last one ended', () => {
  fc.assert(
    fc.property(feed, versions => {
      for (const { movements } of ledgerOf(versions).ledgers) {
        movements.forEach((movement, i) => {
          assert.equal(movement.type === 'new', i === 0)
          assert.equal(movement.before, movements[i - 1]?.after ?? 0)
          assert.notEqual(movement.before, movement.after)
        })
      }
    }),
  )
})

test('nothing counts after a deletion, whatever arrives later', () => {
  fc.assert(
    fc.property(feed, versions => {
      for (const { segments, deletedAt } of ledgerOf(versions).derived) {
        if (deletedAt === null) continue
        for (const segment of segments) {
          if (segment.from >= deletedAt) assert.equal(segment.mrr, 0)
        }
        assert.equal(segments.at(-1)!.status, 'canceled')
      }
    }),
  )
})
