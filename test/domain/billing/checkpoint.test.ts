// Continuing from a checkpoint gives the same result as deriving from all versions, in any order of arrival.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { DEFAULT_POLICY, type Policy } from '../../../src/domain/billing/policy.ts'
import {
  type Checkpoint,
  continueSubscription,
  type DerivedSubscription,
  deriveSubscription,
  type Segment,
} from '../../../src/domain/billing/timeline.ts'
import type { SubscriptionVersion } from '../../../src/domain/billing/types.ts'
import { at, DAY, version } from './subscriptions.ts'

const iso = (day: number) => new Date(at('2025-01-01') + day * DAY).toISOString()
const day = fc.integer({ min: 0, max: 150 })
const rarely = <T>(of: fc.Arbitrary<T>, freq = 6) => fc.option(of, { nil: undefined, freq })

const anyVersion = fc
  .record({
    updated_at: day.map(iso),
    started_at: rarely(day.map(iso)),
    ended_at: rarely(day.map(iso), 20),
    cancel_at: rarely(day.map(iso), 12),
    trial_end: rarely(day.map(iso), 8),
    resumes_at: rarely(day.map(iso), 8),
    status: fc.constantFrom('active', 'active', 'active', 'past_due', 'past_due', 'paused', 'trialing', 'unpaid'),
    customer: fc.constantFrom('acme', 'acme', 'acme', undefined, 'globex'),
    customer_name: fc.constantFrom('Acme', 'Acme', 'Acme', undefined, 'Globex'),
    items: fc.array(
      fc.record({
        id: fc.constantFrom('si_1', 'si_2'),
        unit_amount: fc.constantFrom(10, 20),
        quantity: fc.constantFrom(1, 2),
      }),
      { minLength: 0, maxLength: 2 },
    ),
    discounts: fc.array(fc.record({ percent_off: fc.constantFrom(10, 100), ends_at: day.map(iso) }), {
      maxLength: 1,
    }),
    sequence: rarely(fc.integer({ min: 1, max: 3 }), 4),
    kind: fc.oneof({ weight: 60, arbitrary: fc.constant('updated') }, { weight: 1, arbitrary: fc.constant('deleted') }),
  })
  .map(({ kind, items, ...fields }) => ({
    ...version(
      { ...fields, items: items.map(item => ({ interval: 'month', interval_count: 1, ...item })) },
      `subscription.${kind}`,
    ),
  }))

const policy = fc.record({
  pause: fc.constantFrom('churn' as const, 'keep' as const),
  trialOnPaying: fc.constantFrom('churn' as const, 'keep' as const),
  pastDueGraceDays: fc.constantFrom(null, 0, 3, 20),
})

const SIZES = { minVersions: 4, keepVersions: 2 }

/** Like the ledger: in portions, continuing from the checkpoint if all new versions are later. */
function arrive(arrivals: SubscriptionVersion[][], rules: Policy) {
  const versions: SubscriptionVersion[] = []
  let segments: Segment[] = []
  let checkpoint: Checkpoint | null = null
  let continued = 0
  for (const news of arrivals) {
    versions.push(...news)
    const from: number = checkpoint?.at ?? Number.POSITIVE_INFINITY
    const before: Segment | undefined = segments.findLast(segment => segment.from < from)
    const continues: unknown = checkpoint && before && news.every(({ sourceAt }) => sourceAt > from)
    const window = versions.filter(({ sourceAt }) => sourceAt >= from)
    const derived: DerivedSubscription | null = continues
      ? continueSubscription({ checkpoint: checkpoint!, before: stored(before!) }, window, undefined, rules, SIZES)
      : null
    if (derived) {
      continued++
      segments = [...segments.filter(segment => segment.from < before!.from), ...derived.segments]
      checkpoint = derived.checkpoint ?? checkpoint
    } else ({ segments, checkpoint } = deriveSubscription(versions, undefined, rules, SIZES))
    assert.deepEqual(segments.map(stored), deriveSubscription(versions, undefined, rules).segments.map(stored))
  }
  return continued
}

/** As the database returns it. */
function stored(segment: Segment): Segment {
  return JSON.parse(JSON.stringify(segment))
}

test('continuing from a checkpoint equals deriving from all versions, in any order and in portions', () => {
  let continued = 0
  const history = fc
    .array(anyVersion, { minLength: 6, maxLength: 30 })
    .map(versions => versions.map((own, i) => ({ ...own, eventId: `e${i}` })))
    // mostly in order, as in practice
    .chain(versions =>
      fc.tuple(
        fc.constant([...versions].sort((a, b) => a.sourceAt - b.sourceAt)),
        fc.array(fc.tuple(fc.nat(versions.length - 1), fc.nat(versions.length - 1)), { maxLength: 4 }),
        fc.array(fc.integer({ min: 1, max: 3 }), { minLength: versions.length, maxLength: versions.length }),
      ),
    )
  fc.assert(
    fc.property(history, policy, ([ordered, swaps, sizes], settings) => {
      const versions = [...ordered]
      for (const [a, b] of swaps) [versions[a], versions[b]] = [versions[b]!, versions[a]!]
      const arrivals: SubscriptionVersion[][] = []
      for (let i = 0; i < versions.length; ) {
        const size = sizes[arrivals.length]!
        arrivals.push(versions.slice(i, i + size))
        i += size
      }
      continued += arrive(arrivals, { ...DEFAULT_POLICY, ...settings })
    }),
    { numRuns: Number(process.env.RUNS ?? 60) },
  )
  assert.ok(continued > 20, `only ${continued} went on from a checkpoint`)
})
