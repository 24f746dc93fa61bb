import assert from 'node:assert/strict'
import test from 'node:test'
import { type Shop, shopYear } from '../../demo/shop.ts'
import { createYear } from '../../demo/year.ts'
import { deriveAccount, type MovementType } from '../../src/domain/billing/account.ts'
import { readCanonical } from '../../src/domain/billing/canonical.ts'
import { deriveInvoice } from '../../src/domain/billing/cash.ts'
import { chargesBetween } from '../../src/domain/billing/price.ts'
import { type DerivedSubscription, deriveSubscription } from '../../src/domain/billing/timeline.ts'
import type { InvoiceVersion, SubscriptionVersion } from '../../src/domain/billing/types.ts'
import { END, everyShop } from './shops.ts'

type Read = {
  subscriptions: Map<string, SubscriptionVersion[]>
  invoices: Map<string, InvoiceVersion[]>
}

/** The billing events as the server reads them. */
function read({ billing }: Shop): Read {
  const subscriptions: Read['subscriptions'] = new Map()
  const invoices: Read['invoices'] = new Map()
  for (const event of billing) {
    const change = readCanonical(event.event_type, event.payload, Date.parse(event.occurred_at))
    if (change?.kind === 'subscription') put(subscriptions, change.version.id, change.version)
    if (change?.kind === 'invoice') put(invoices, change.version.id, change.version)
  }
  return { subscriptions, invoices }
}

function put<T>(lists: Map<string, T[]>, key: string, value: T): void {
  const list = lists.get(key)
  if (list) list.push(value)
  else lists.set(key, [value])
}

test('every billing event is understood', () => {
  everyShop(({ billing }) => {
    for (const event of billing) {
      if (event.event_type === 'order.returned') continue
      assert.ok(readCanonical(event.event_type, event.payload, Date.parse(event.occurred_at)), event.event_type)
      assert.equal(event.payload.updated_at, event.occurred_at)
    }
  })
})

test('a subscription is created first, and ends at most once and last', () => {
  everyShop(shop => {
    for (const [id, versions] of read(shop).subscriptions) {
      assert.equal(versions[0]!.change, 'created', id)
      assert.equal(versions[0]!.sourceAt, versions[0]!.startedAt, id)
      const times = versions.map(({ sourceAt }) => sourceAt)
      assert.deepEqual(
        times,
        [...new Set(times)].sort((a, b) => a - b),
        `${id} has one version an instant`,
      )
      const deletion = versions.findIndex(({ change }) => change === 'deleted')
      assert.ok(deletion < 0 || deletion === versions.length - 1, id)
      for (const version of versions) assert.ok(version.currentPeriodStart! < version.currentPeriodEnd!, id)
    }
  })
})

test('nothing is excluded because of missing data', () => {
  const expected = new Set(
    'canceled incomplete incomplete_expired unpaid trialing paused one_time_price metered_usage free fully_discounted'.split(
      ' ',
    ),
  )
  everyShop(shop => {
    for (const versions of read(shop).subscriptions.values())
      for (const { items } of deriveSubscription(versions).segments)
        for (const { reason } of items) assert.ok(reason === null || expected.has(reason), reason ?? '')
  })
})

test('a renewal is invoiced at the price of the plan and its add-ons, minus discounts', () => {
  let compared = 0
  everyShop(shop => {
    const { subscriptions, invoices } = read(shop)
    const derived = new Map([...subscriptions].map(([id, versions]) => [id, deriveSubscription(versions)]))
    for (const [first] of invoices.values()) {
      const subscription = first!.subscriptionId && derived.get(first!.subscriptionId)
      const charge = subscription && expectedCharge(subscription, first!.finalizedAt!)
      if (!charge) continue
      const net = first!.total! - first!.tax!
      if (charge.includesMetered) assert.ok(net > charge.amount!)
      else assert.equal(net, charge.amount, first!.id)
      compared++
    }
  })
  assert.ok(compared > 2_000, `${compared} renewals were compared`)
})

/** The charge due at `at`, from the state just before it, without a one-time discount on the first invoice. */
function expectedCharge({ segments }: DerivedSubscription, at: number) {
  const before = segments.findLast(({ from, to }) => from < at && (to === null || to >= at))
  if (!before || before.status === 'trialing') return null
  return chargesBetween(before.cycles, at - 1, at)[0]
}

test('an invoice is paid in full, or still owed in full', () => {
  everyShop(shop => {
    for (const [id, versions] of read(shop).invoices) {
      for (const version of versions) assert.equal(version.amountPaid! + version.amountRemaining!, version.total, id)
      const states = deriveInvoice(versions)
      assert.equal(states.filter(({ status }) => status === 'paid').length <= 1, true, id)
      for (const { finalizedAt, paidAt } of states) assert.ok(paidAt === null || finalizedAt! <= paidAt, id)
    }
  })
})

test('no more is refunded than was paid before', () => {
  everyShop(shop => {
    const { invoices } = read(shop)
    const refunds = shop.billing.filter(({ event_type }) => event_type === 'refund.created')
    for (const { payload } of refunds) {
      const paid = invoices.get(payload.invoice as string)!.find(({ status }) => status === 'paid')!
      assert.ok(Math.round((payload.amount as number) * 100) <= paid.amountPaid!)
      assert.ok(Date.parse(payload.created_at as string) > paid.paidAt!)
    }
  })
})

test('in a year there is every kind of movement, in euros and dollars, and something that needs attention', () => {
  const shop = shopYear(createYear({ seed: 1, scale: 1, end: END }))
  const { subscriptions, invoices } = read(shop)
  const byCustomer = new Map<string, DerivedSubscription['segments']>()
  for (const versions of subscriptions.values())
    for (const segment of deriveSubscription(versions).segments) put(byCustomer, segment.customer!, segment)
  const ledgers = [...byCustomer.values()].flatMap(segments => deriveAccount(segments))
  const types = new Set(ledgers.flatMap(({ movements }) => movements.map(({ type }) => type)))
  const all: MovementType[] = ['new', 'expansion', 'contraction', 'churn', 'reactivation']
  assert.deepEqual([...types].sort(), all.sort())
  assert.deepEqual([...new Set(ledgers.map(({ currency }) => currency))].sort(), ['EUR', 'USD'])

  const now = [...subscriptions.values()].flatMap(
    versions => deriveSubscription(versions).segments.findLast(({ from }) => from <= END) ?? [],
  )
  assert.ok(now.some(({ cancelling }) => cancelling))
  assert.ok(now.some(({ status }) => status === 'trialing'))
  const owed = [...invoices.values()].map(versions => deriveInvoice(versions).at(-1)!)
  assert.ok(owed.some(({ status }) => status === 'uncollectible'))
  assert.ok(owed.some(({ status, failure }) => status === 'open' && failure))
})
