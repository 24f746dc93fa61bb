import assert from 'node:assert/strict'
import { test } from 'node:test'
import { deriveAccount } from '../../../src/domain/billing/account.ts'
import { indexTerms } from '../../../src/domain/billing/terms.ts'
import { deriveSubscription } from '../../../src/domain/billing/timeline.ts'
import type { Instant, SubscriptionVersion } from '../../../src/domain/billing/types.ts'
import { at, derive, item, mrrAt, type Payload, segmentAt, version } from './subscriptions.ts'

function day(instant: number | null): string | null {
  return instant === null ? null : new Date(instant).toISOString().slice(0, 10)
}

/** [from, to, status, mrr in dollars] of each segment. */
function stretches(...versions: SubscriptionVersion[]): [string | null, string | null, string, number][] {
  return derive(...versions).segments.map(({ from, to, status, mrr }) => [day(from), day(to), status, mrr / 100])
}

const dearer = { items: [item({ unit_amount: 50 })] }

test('the first version is valid from the start of the subscription, later ones from their own time', () => {
  assert.deepEqual(stretches(version({ updated_at: '2025-02-10' }), version({ ...dearer, updated_at: '2025-03-01' })), [
    ['2025-01-01', '2025-03-01', 'active', 20],
    ['2025-03-01', null, 'active', 50],
  ])
})

test('a late older version corrects the past', () => {
  const newer = version({ ...dearer, updated_at: '2025-03-01' })
  assert.deepEqual(stretches(newer), [['2025-01-01', null, 'active', 50]])
  assert.deepEqual(stretches(newer, version()), [
    ['2025-01-01', '2025-03-01', 'active', 20],
    ['2025-03-01', null, 'active', 50],
  ])
})

test('without updated_at the time of the event is used', () => {
  assert.equal(version({ updated_at: undefined }).sourceAt, at('2025-06-01'))
})

test('a future start takes effect automatically', () => {
  assert.deepEqual(stretches(version({ started_at: '2025-04-01' })), [
    ['2025-01-01', '2025-04-01', 'active', 0],
    ['2025-04-01', null, 'active', 20],
  ])
})

test('an end takes effect automatically, at its exact time', () => {
  const { segments } = derive(version({ ended_at: '2025-04-01' }))
  assert.equal(mrrAt(segments, at('2025-04-01') - 1), 20_00)
  assert.equal(mrrAt(segments, at('2025-04-01')), 0)
  assert.equal(segmentAt(segments, at('2025-04-01'))!.status, 'canceled')
})

test('one late event with a start and an end fills in the whole past', () => {
  const late = { status: 'canceled', started_at: '2024-01-01', ended_at: '2024-07-01' }
  for (const updated_at of ['2025-05-01', '2024-07-01', '2024-01-01']) {
    assert.deepEqual(stretches(version({ ...late, updated_at })), [
      ['2024-01-01', '2024-07-01', 'active', 20],
      ['2024-07-01', null, 'canceled', 0],
    ])
  }
})

test('a first version that is canceled without an end was never active', () => {
  assert.deepEqual(stretches(version({ status: 'canceled' })), [['2025-01-01', null, 'canceled', 0]])
})

test('an end before the time of its version overrides earlier versions', () => {
  assert.deepEqual(
    stretches(
      version(),
      version({ ...dearer, updated_at: '2025-02-10' }),
      version({ status: 'canceled', ended_at: '2025-02-01', updated_at: '2025-03-01' }),
    ),
    [
      ['2025-01-01', '2025-02-01', 'active', 20],
      ['2025-02-01', null, 'canceled', 0],
    ],
  )
})

test('a canceled subscription can be reactivated, unless it was deleted', () => {
  assert.deepEqual(
    stretches(
      version(),
      version({ status: 'canceled', ended_at: '2025-02-01', updated_at: '2025-02-01' }),
      version({ updated_at: '2025-05-01' }),
    ),
    [
      ['2025-01-01', '2025-02-01', 'active', 20],
      ['2025-02-01', '2025-05-01', 'canceled', 0],
      ['2025-05-01', null, 'active', 20],
    ],
  )
})

test('after a deletion nothing revives the subscription, but older versions still correct the past', () => {
  const deletion = version({ updated_at: '2025-04-01' }, 'subscription.deleted')
  const revival = version({ ...dearer, updated_at: '2025-09-01' })
  const older = version({ ...dearer, updated_at: '2025-02-01' })
  assert.deepEqual(stretches(version(), revival, deletion, older), [
    ['2025-01-01', '2025-02-01', 'active', 20],
    ['2025-02-01', '2025-04-01', 'active', 50],
    ['2025-04-01', null, 'canceled', 0],
  ])
  assert.equal(derive(version(), revival, deletion, older).deletedAt, at('2025-04-01'))
})

test('a deletion that contains only the id keeps the known fields', () => {
  const bare = version(
    {
      customer: undefined,
      currency: undefined,
      status: undefined,
      started_at: undefined,
      items: undefined,
      updated_at: '2025-04-01',
    },
    'subscription.deleted',
  )
  const { segments } = derive(version(), bare)
  assert.equal(mrrAt(segments, at('2025-03-31')), 20_00)
  const last = segments.at(-1)!
  assert.deepEqual([last.account, last.currency, last.status], ['acme', 'USD', 'canceled'])
  assert.deepEqual(
    last.items.map(entry => [entry.id, entry.reason, entry.excludedMrr, day(entry.since)]),
    [['si_1', 'canceled', 20_00, '2025-04-01']],
  )
})

test('a scheduled cancellation counts until it takes effect, but is not committed', () => {
  for (const schedule of [
    { cancel_at_period_end: true, current_period_end: '2025-05-01' },
    { cancel_at: '2025-05-01' },
    { ended_at: '2025-05-01' },
  ]) {
    const { segments } = derive(
      version(),
      version({ ...schedule, updated_at: '2025-04-10', canceled_at: '2025-04-10' }),
    )
    assert.deepEqual(
      segments.map(segment => [
        day(segment.from),
        segment.status,
        segment.mrr,
        segment.committedMrr,
        day(segment.cancelsAt),
      ]),
      [
        ['2025-01-01', 'active', 20_00, 20_00, null],
        ['2025-04-10', 'active', 20_00, 0, '2025-05-01'],
        ['2025-05-01', 'canceled', 0, 0, null],
      ],
    )
  }
})

test('MRR is committed again after a cancellation is revoked', () => {
  const { segments } = derive(version({ cancel_at: '2025-05-01' }), version({ updated_at: '2025-04-20' }))
  assert.equal(mrrAt(segments, at('2025-06-01')), 20_00)
  assert.equal(segments.at(-1)!.committedMrr, 20_00)
})

test('a cancellation in the first version counts as scheduled from its request on', () => {
  const first = { cancel_at: '2025-06-01', canceled_at: '2025-05-01', updated_at: '2025-05-01' }
  assert.deepEqual(
    derive(version(first)).segments.map(segment => [day(segment.from), segment.committedMrr]),
    [
      ['2025-01-01', 20_00],
      ['2025-05-01', 0],
      ['2025-06-01', 0],
    ],
  )
})

test('a trial continues until an event changes the status', () => {
  assert.deepEqual(stretches(version({ status: 'trialing', trial_end: '2025-01-15' })), [
    ['2025-01-01', null, 'trialing', 0],
  ])
})

test('a subscription first seen after its trial was in trial until then', () => {
  const seen = { trial_end: '2025-01-15', updated_at: '2025-02-01' }
  const expected = [
    ['2025-01-01', '2025-01-15', 'trialing', 0],
    ['2025-01-15', null, 'active', 20],
  ]
  assert.deepEqual(stretches(version(seen)), expected)
})

test('a subscription canceled in its trial never counted', () => {
  const seen = {
    status: 'canceled',
    trial_end: '2025-02-01',
    ended_at: '2025-01-20',
    updated_at: '2025-01-20',
  }
  assert.deepEqual(stretches(version(seen)), [
    ['2025-01-01', '2025-01-20', 'trialing', 0],
    ['2025-01-20', null, 'canceled', 0],
  ])
})

test('versions of the same second: created, updated, deleted, in any order of arrival', () => {
  const created = version({ status: 'incomplete' }, 'subscription.created')
  const updated = version({}, 'subscription.updated')
  assert.deepEqual(stretches(updated, created), [['2025-01-01', null, 'active', 20]])
  assert.deepEqual(stretches(created, updated), [['2025-01-01', null, 'active', 20]])
  for (const [before, after] of [
    [10, 15],
    [15, 10],
  ]) {
    const first = version({ items: [item({ unit_amount: before })] }, 'subscription.created')
    const second = version({ items: [item({ unit_amount: after })] }, 'subscription.updated')
    assert.deepEqual(stretches(second, first), [['2025-01-01', null, 'active', after]])
  }
  const deleted = version({}, 'subscription.deleted')
  assert.deepEqual(stretches(deleted, updated, created), [['2025-01-01', null, 'canceled', 0]])
})

test('of versions of one instant the higher sequence wins, in any order of arrival', () => {
  const a = version({ items: [item({ unit_amount: 9 })], sequence: 2 })
  const b = version({ items: [item({ unit_amount: 10 })], sequence: 10 })
  assert.deepEqual(derive(a, b), derive(b, a))
  assert.equal(derive(a, b).segments.at(-1)!.mrr, 10_00)
})

test('of versions of one instant without a sequence, the last arrival wins', () => {
  const paused = version({ status: 'paused' })
  const active = version({ items: [item({ unit_amount: 9 })] })
  assert.equal(derive(paused, active).segments.at(-1)!.mrr, 9_00)
  assert.equal(derive(active, paused).segments.at(-1)!.mrr, 0)
})

test('a pause with an end ends automatically', () => {
  const paused = version({ status: 'paused', updated_at: '2025-02-01', resumes_at: '2025-03-01' })
  assert.deepEqual(stretches(version(), paused), [
    ['2025-01-01', '2025-02-01', 'active', 20],
    ['2025-02-01', '2025-03-01', 'paused', 0],
    ['2025-03-01', null, 'active', 20],
  ])
})

test('the order of keys in a stored version does not matter', () => {
  const reordered = (entry: SubscriptionVersion) =>
    Object.fromEntries(Object.entries(entry).reverse()) as SubscriptionVersion
  const a = version({ items: [item({ unit_amount: 10 })] })
  const b = version({ items: [item({ unit_amount: 11 })] })
  const { segments } = derive(a, b)
  assert.deepEqual(derive(reordered(a), b).segments, segments)
  assert.deepEqual(derive(reordered(a), a, reordered(b)).segments, segments)
})

test('a version stored as JSON and read again gives the same result', () => {
  const versions = [version({ trial_end: '2025-01-15' }), version({ ...dearer, updated_at: '2025-03-01' })]
  const stored = JSON.parse(JSON.stringify(versions)) as SubscriptionVersion[]
  const derived = derive(...versions)
  assert.deepEqual(derive(...stored), derived)
  assert.deepEqual(JSON.parse(JSON.stringify(derived)), derived)
})

test('versions without changes create no new segment', () => {
  assert.equal(derive(version(), version({ updated_at: '2025-02-01' })).segments.length, 1)
})

test('`since` of an exclusion is the start of its reason, across other changes', () => {
  const trial = { status: 'trialing', trial_end: '2025-02-15' }
  const { segments } = derive(
    version(trial),
    version({ ...trial, ...dearer, updated_at: '2025-02-01' }),
    version({ status: 'unpaid', updated_at: '2025-02-20' }),
  )
  assert.deepEqual(
    segments.map(segment => [segment.items[0]!.reason, day(segment.items[0]!.since)]),
    [
      ['trialing', '2025-01-01'],
      ['trialing', '2025-01-01'],
      ['unpaid', '2025-02-20'],
    ],
  )
})

test('customer and acquisition come from the nearest version that has them', () => {
  const utm = { metadata: { utm_source: 'google', utm_medium: 'cpc' } }
  const { segments } = derive(
    version({ customer: null }),
    version({ ...utm, updated_at: '2025-02-01', customer_name: 'Acme Inc' }),
    version({ ...dearer, customer: null, updated_at: '2025-03-01' }),
  )
  for (const segment of segments) {
    assert.equal(segment.account, 'acme')
    assert.equal(segment.customerName, 'Acme Inc')
    assert.deepEqual(segment.acquisition, { source: 'google', medium: 'cpc', campaign: null })
  }
})

test('a subscription that moves to another account is churn for one and new for the other', () => {
  const { segments } = derive(version(), version({ customer: 'globex', updated_at: '2025-03-01' }))
  const types = (account: string) =>
    deriveAccount(segments.filter(segment => segment.account === account)).flatMap(ledger =>
      ledger.movements.map(movement => movement.type),
    )
  assert.deepEqual(types('acme'), ['new', 'churn'])
  assert.deepEqual(types('globex'), ['new'])
})

const hostile: Payload[] = [
  { items: [{ ...item(), quantity: 1e300 }] },
  { items: Array(3000).fill({}) },
  { items: { data: [] }, discounts: 'all', customer: [], status: 7, currency: [] },
  {
    started_at: 'yesterday',
    updated_at: {},
    ended_at: [],
    cancel_at: true,
    trial_end: -1,
    current_period_end: 1e30,
  },
  { started_at: '9999-12-31', ended_at: '0001-01-01', updated_at: 1 },
  {
    items: [item({ interval: 'year', interval_count: 1200 })],
    current_period_end: '9999-12-30',
    cancel_at_period_end: 'yes',
  },
  { discounts: [{ percent_off: '1e-30', ends_at: 0 }, { amount_off: '0.000001' }, null, 5, []] },
  { id: 12, items: [item({ id: 'x' }), item({ id: 'x' }), item({ id: null }), item({ id: null })] },
]
hostile.forEach((given, index) => {
  test(`garbage never throws (${index + 1})`, () => {
    const { segments } = derive(version(given))
    for (const segment of segments) {
      assert.ok(Number.isSafeInteger(segment.mrr) && segment.mrr >= 0)
      const ids = segment.items.map(entry => entry.id)
      assert.equal(new Set(ids).size, ids.length)
    }
  })
})

test("a customer's discount that is removed early is no ended discount", () => {
  const coupon = {
    percentOff: '10',
    amountsOff: {},
    duration: 'repeating' as const,
    months: 3,
    productIds: null,
  }
  const term = { kind: 'discount' as const, id: 'di_1', customer: 'acme', ofCustomer: true, coupon }
  const causeWith = (deletedAt?: Instant) => {
    const discount = {
      ...term,
      sourceAt: at('2025-01-01'),
      startsAt: at('2025-01-01'),
      ...(deletedAt && { deletedAt }),
    }
    return deriveSubscription([version()], indexTerms([discount])).segments.at(-1)!.cause
  }
  assert.deepEqual(
    [causeWith(), causeWith(at('2025-02-10')), causeWith(at('2025-04-01'))],
    ['discount_end', 'discount', 'discount_end'],
  )
})

test('a discount that is received after its end does not affect the cause of earlier changes', () => {
  const until = (ends_at: string) => ({ discounts: [{ percent_off: 10, duration: 'repeating', ends_at }] })
  const { segments } = derive(
    version({ updated_at: '2025-01-01' }),
    version({ updated_at: '2025-02-01', ...until('2025-06-01') }),
    version({ updated_at: '2025-07-01', ...until('2025-02-01') }),
  )
  const changes = segments.filter(({ cause }) => cause !== undefined)
  assert.deepEqual(
    changes.map(({ from, cause }) => [new Date(from).toISOString().slice(0, 10), cause]),
    [
      ['2025-01-01', 'new_subscription'],
      ['2025-02-01', 'discount'],
      ['2025-06-01', 'discount_end'],
    ],
  )
})
