import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import fc from 'fast-check'
import { isLong } from '../long.ts'
import { sharedServer, type TestServer } from '../server.ts'
import { type BillingEvent, inDays, item, reportOf, send, subscription } from './shop.ts'

let server: TestServer
before(async () => {
  server = await sharedServer()
})
after(() => server.close())

const days = fc.integer({ min: -80, max: -1 })
const items = fc.array(
  fc.record({
    amount: fc.integer({ min: 0, max: 30 }),
    interval: fc.constantFrom('month', 'year', 'week'),
    usage: fc.constantFrom('licensed', 'licensed', 'licensed', 'metered'),
  }),
  { maxLength: 3 },
)
const status = fc.constantFrom('active', 'active', 'active', 'past_due', 'trialing', 'paused', 'unpaid', 'canceled')

const subscriptionEvent = fc
  .record({
    id: fc.constantFrom('s1', 's2', 's3', 's4'),
    customer: fc.constantFrom('c1', 'c2', null),
    days,
    items,
    status,
    currency: fc.constantFrom('EUR', 'EUR', 'USD'),
    deleted: fc.constantFrom(false, false, false, true),
    cancelAtPeriodEnd: fc.boolean(),
    source: fc.constantFrom(null, 'ads', 'mail'),
    discount: fc.constantFrom(null, 10, 100),
  })
  .map(
    (given): BillingEvent => ({
      type: given.deleted ? 'subscription.deleted' : 'subscription.updated',
      data: subscription(given.id, {
        customer: given.customer,
        currency: given.currency,
        status: given.status,
        started_at: inDays(-90).slice(0, 10),
        updated_at: inDays(given.days).slice(0, 10),
        cancel_at_period_end: given.cancelAtPeriodEnd,
        current_period_end: inDays(10).slice(0, 10),
        items: given.items.map(({ amount, interval, usage }, i) =>
          item(amount, { id: `si_${i}`, interval, usage_type: usage }),
        ),
        discounts: given.discount === null ? [] : [{ percent_off: given.discount, duration: 'forever' }],
        acquisition: given.source === null ? null : { source: given.source },
      }),
    }),
  )

const invoiceEvent = fc
  .record({
    id: fc.constantFrom('i1', 'i2'),
    subscription: fc.constantFrom('s1', 's2', 'unseen', null),
    days,
    total: fc.integer({ min: 0, max: 50 }),
    status: fc.constantFrom('open', 'paid', 'void', 'uncollectible'),
    attempts: fc.integer({ min: 0, max: 2 }),
  })
  .map(
    (given): BillingEvent => ({
      type: `invoice.${given.status === 'open' ? 'finalized' : given.status}`,
      data: {
        id: given.id,
        subscription: given.subscription,
        currency: 'EUR',
        total: given.total,
        status: given.status,
        attempt_count: given.attempts,
        updated_at: inDays(given.days).slice(0, 10),
      },
    }),
  )

test('shuffled events give the same reports', async () => {
  let run = 0
  await fc.assert(
    fc.asyncProperty(
      fc
        .array(fc.oneof({ weight: 3, arbitrary: subscriptionEvent }, invoiceEvent), {
          minLength: 3,
          maxLength: 14,
        })
        // with sequence numbers: otherwise the order of arrival decides between versions of one instant
        .map(events => events.map(({ type, data }, sequence) => ({ type, data: { ...data, sequence } })))
        .chain(events =>
          fc.tuple(
            fc.constant(events),
            fc.shuffledSubarray([...events, ...events.slice(0, 3)], {
              minLength: events.length + Math.min(3, events.length),
            }),
            fc.integer({ min: 1, max: 5 }),
          ),
        ),
      async ([events, reordered, portion]) => {
        const straight = await server.anotherTenant(`straight ${run}`)
        const mixed = await server.anotherTenant(`mixed ${run++}`)
        await send(server, events, straight)
        for (let i = 0; i < reordered.length; i += portion) {
          await send(server, reordered.slice(i, i + portion), mixed)
        }
        for (const as_of of [inDays(0), inDays(-30), inDays(15)]) {
          for (const currency of ['EUR', 'USD']) {
            for (const report of ['overview', 'attention', 'acquisition', 'movements']) {
              const query = { currency, as_of, page_size: 100 }
              const expected = await reportOf(server, report, query, straight)
              assert.deepEqual(comparable(await reportOf(server, report, query, mixed)), comparable(expected))
              if (report === 'overview') assertSums(expected)
            }
          }
        }
      },
    ),
    { numRuns: isLong ? 5 : 3, endOnFailure: true },
  )
})

/** Without the ids of source events, which differ by tenant. */
function comparable(report: object): unknown {
  return JSON.parse(JSON.stringify(report, (name, value) => (name === 'event_id' ? undefined : value)))
}

// biome-ignore lint/suspicious/noExplicitAny: tests look into answers freely
function assertSums(overview: any): void {
  // sums of major units have rounding errors, and -0 is not 0
  const cents = (amount: number) => Math.round(amount * 100) + 0
  const sum = (rows: { mrr: number }[]) => rows.reduce((total, row) => total + cents(row.mrr), 0)
  assert.equal(sum(overview.accounts.results), cents(overview.mrr))
  assert.equal(sum(overview.acquisition_sources.results), cents(overview.mrr))
  assert.equal(overview.accounts.results.length, overview.accounts.count)
  assert.equal(overview.exclusions.results.length, overview.exclusions.count)
  const m = overview.movements
  const closing = m.opening_mrr + m.new + m.expansion + m.reactivation - m.contraction - m.churn
  assert.equal(cents(closing), cents(m.closing_mrr))
  assert.equal(m.closing_mrr, overview.mrr)
  for (const row of overview.accounts.results) assert.ok(row.mrr >= 0)
}
