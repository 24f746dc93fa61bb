// Rendered events are consistent, and agree with the company's data.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Business, business } from './business.ts'
import { CANONICAL_FEATURES, canonicalEvents } from './canonical.ts'
import { CHARGEBEE_CURRENCIES, CHARGEBEE_FEATURES, chargebeeEvents } from './chargebee.ts'
import { keepBooks } from './ledger.ts'
import { major, sum } from './money.ts'
import { PADDLE_CURRENCIES, PADDLE_FEATURES, paddleEvents } from './paddle.ts'
import { ndjsonOf, pagesOf, stripeLists } from './stripe/lists.ts'
import type { Fields } from './stripe/old.ts'
import { API_VERSIONS, type StripeEvent, stripeEvents, type Version } from './stripe.ts'

// biome-ignore lint/suspicious/noExplicitAny: bodies are looked into freely
type Body = any

const history = business({ seed: 11, months: 12, accounts: 45 })
const events: Record<Version, StripeEvent[]> = {
  old: stripeEvents(history, 'old'),
  new: stripeEvents(history, 'new'),
}
const VERSIONS = ['old', 'new'] as const

const objectsOf = (version: Version, kind: string): Body[] =>
  events[version].map(event => event.data.object as Body).filter(({ object }) => object === kind)

test('an event has the same id in both versions, and events are ordered by time', () => {
  for (const version of VERSIONS) {
    const ids = events[version].map(({ id }) => id)
    assert.equal(new Set(ids).size, ids.length)
    for (const [i, { created, api_version }] of events[version].entries()) {
      assert.ok(i === 0 || events[version][i - 1]!.created <= created)
      assert.equal(api_version, API_VERSIONS[version])
    }
  }
  const common = events.new.filter(({ type }) => type !== 'invoice_payment.paid').map(({ id }) => id)
  assert.deepEqual(
    events.old.map(({ id }) => id),
    common,
  )
})

test('previous attributes restore the previous version of an object', () => {
  const patched = (object: Fields, previous: Fields): Fields => {
    const result = { ...object }
    for (const [name, was] of Object.entries(previous)) {
      const is = result[name]
      const isNested = typeof was === 'object' && was !== null && !Array.isArray(was) && typeof is === 'object' && is
      result[name] = isNested ? patched(is as Fields, was as Fields) : was
    }
    return result
  }
  // Missing values are null in previous attributes.
  const withoutNulls = (value: unknown) => JSON.parse(JSON.stringify(value), (_, field) => field ?? undefined)
  for (const version of VERSIONS) {
    const seen = new Map<string, Fields>()
    let checked = 0
    for (const { type, data } of events[version]) {
      if (!/^customer\.subscription\.(created|updated|deleted)$/.test(type)) continue
      const { object } = data
      const before = seen.get(String(object.id))
      if (type.endsWith('updated')) {
        assert.deepEqual(withoutNulls(patched(object, data.previous_attributes ?? {})), withoutNulls(before))
        checked++
      }
      seen.set(String(object.id), object)
    }
    assert.ok(checked > 50)
  }
})

test('lines, discounts and taxes of an invoice add up to its total', () => {
  for (const version of VERSIONS)
    for (const invoice of objectsOf(version, 'invoice')) {
      const lines: Body[] = invoice.lines.data
      const taxes: Body[] = version === 'new' ? invoice.total_taxes : invoice.total_tax_amounts
      const isExclusive = (tax: Body) => (version === 'new' ? tax.tax_behavior === 'exclusive' : !tax.inclusive)
      const discounted = sum(invoice.total_discount_amounts.map((discount: Body) => discount.amount))
      const added = sum(taxes.filter(isExclusive).map(tax => tax.amount))
      assert.equal(sum(lines.map(line => line.amount)), invoice.subtotal)
      assert.equal(
        sum(lines.flatMap(line => line.discount_amounts.map((discount: Body) => discount.amount))),
        discounted,
      )
      assert.equal(invoice.subtotal - discounted + added, invoice.total)
      assert.equal(invoice.amount_due - invoice.amount_paid, invoice.amount_remaining)
      const ofLines = lines.flatMap(line => (version === 'new' ? line.taxes : line.tax_amounts))
      assert.equal(sum(ofLines.map((tax: Body) => tax.amount)), sum(taxes.map(tax => tax.amount)))
    }
})

test('each version has only its own fields', () => {
  for (const subscription of objectsOf('new', 'subscription')) {
    assert.ok(!('discount' in subscription) && !('current_period_end' in subscription))
    assert.ok(subscription.discounts.every((discount: unknown) => typeof discount === 'string'))
    assert.ok(subscription.items.data.every((item: Body) => item.current_period_end > 0))
  }
  for (const subscription of objectsOf('old', 'subscription')) {
    assert.equal(subscription.discount?.id ?? null, subscription.discounts[0] ?? null)
    assert.ok(subscription.current_period_end > subscription.current_period_start)
    assert.ok(!('billing_mode' in subscription))
  }
  for (const invoice of objectsOf('new', 'invoice'))
    assert.ok(!('subscription' in invoice) && !('payment_intent' in invoice) && !('charge' in invoice))
  for (const invoice of objectsOf('old', 'invoice')) assert.ok(!('parent' in invoice) && 'payment_intent' in invoice)
  assert.ok(objectsOf('new', 'charge').every(charge => !('invoice' in charge)))
  assert.ok(objectsOf('old', 'charge').every(charge => 'invoice' in charge))
})

test('payments of invoices minus refunds equal the collected amount of the books', () => {
  const books = keepBooks(history.facts)
  const invoices = new Map(objectsOf('new', 'invoice').map(invoice => [invoice.id, invoice]))
  const paid = objectsOf('new', 'invoice_payment').filter(({ livemode }) => livemode)
  for (const currency of history.currencies) {
    const ours = paid.filter(
      ({ invoice, currency: code }) => invoices.get(invoice).parent && code === currency.toLowerCase(),
    )
    const { amount, refunded, disputed, count } = books.collected(currency, 0, history.until)
    assert.equal(sum(ours.map(invoice => invoice.amount_paid)), amount + refunded + disputed)
    assert.equal(ours.length, count)
  }
})

test('lists at the end equal the objects of the last events', () => {
  for (const version of VERSIONS) {
    const lists = stripeLists(history, version)
    for (const [name, kind] of [['subscriptions', 'subscription'] as const, ['disputes', 'dispute'] as const]) {
      const last = new Map(objectsOf(version, kind).map(object => [object.id, object]))
      assert.deepEqual(new Map(lists[name].map(object => [object.id, object])), last)
    }
    const pages = pagesOf('invoices', lists.invoices, 50)
    assert.deepEqual(
      pages.flatMap(page => page.data),
      lists.invoices,
    )
    assert.deepEqual(
      pages.map(page => page.has_more),
      pages.map((_, i) => i < pages.length - 1),
    )
    const lines = ndjsonOf(lists).trimEnd().split('\n')
    assert.equal(lines.length, sum(Object.values(lists).map(list => list.length)))
  }
  const expanded = stripeLists(history, 'new', { expand: true }).subscriptions as Body[]
  assert.ok(expanded.some(({ discounts }) => discounts[0]?.source.coupon.duration))
})

test('a large subscription contains ten items, and has a list of all', () => {
  const large = business({ seed: 12, months: 3, accounts: 4, features: { largeSubscriptions: true } })
  const { subscriptions, subscription_items } = stripeLists(large, 'new') as Record<string, Body[]>
  const long = subscriptions!.find(({ items }) => items.has_more)!
  assert.equal(long.items.data.length, 10)
  assert.ok(subscription_items!.filter(({ subscription }) => subscription === long.id).length >= 30)
})

/** The number of subscriptions by final status, according to the company. */
function statuses({ facts }: Business, name: (status: string, fact: Body) => string): Record<string, number> {
  const last = new Map<string, string>()
  for (const fact of facts)
    if (fact.kind === 'subscription') last.set(fact.after.id, name(fact.after.status, fact.after))
  return counted([...last.values()])
}

function counted(names: string[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const name of names.toSorted()) counts[name] = (counts[name] ?? 0) + 1
  return counts
}

test("canonical payloads end in the company's states, with amounts in major units", () => {
  const known = business({ seed: 13, months: 12, accounts: 60, features: CANONICAL_FEATURES })
  const last = new Map<string, Body>()
  for (const { event_type, payload } of canonicalEvents(known))
    if (event_type.startsWith('subscription.')) last.set(String(payload.id), payload)
  const isPaused = (subscription: Body) => subscription.pause && subscription.status !== 'canceled'
  // A pause with a date ends without a payload.
  const stated = [...last.values()].map(({ status, resumes_at }) =>
    status === 'paused' && Date.parse(resumes_at) / 1000 < known.until ? 'active' : status,
  )
  assert.deepEqual(
    counted(stated),
    statuses(known, (status, subscription) => (isPaused(subscription) ? 'paused' : status)),
  )
  const books = keepBooks(known.facts)
  for (const currency of known.currencies) {
    const totals = new Map<string, number>()
    for (const { payload } of canonicalEvents(known))
      if (payload.currency === currency && payload.finalized_at && payload.livemode !== false)
        totals.set(String(payload.id), payload.status === 'void' ? 0 : Number(payload.total))
    const { amount } = books.invoiced(currency, 0, known.until)
    assert.ok(Math.abs(sum(totals.values()) - major(amount, currency)) < 1e-6)
  }
})

test("Paddle's entities end in the company's states, and their totals are consistent", () => {
  const known = business({
    seed: 14,
    months: 12,
    accounts: 60,
    features: PADDLE_FEATURES,
    currencies: PADDLE_CURRENCIES,
  })
  const events: Body[] = paddleEvents(known)
  assert.equal(new Set(events.map(event => event.event_id)).size, events.length)
  const last = new Map(
    events.filter(event => event.event_type.startsWith('subscription.')).map(({ data }) => [data.id, data.status]),
  )
  assert.deepEqual(
    counted([...last.values()]),
    statuses(known, (status, { pause }) => (pause && status !== 'canceled' ? 'paused' : status)),
  )
  const completed = events.filter(event => event.event_type === 'transaction.completed').map(({ data }) => data)
  for (const { details, payments } of completed) {
    const { subtotal, discount, tax, total } = details.totals
    assert.equal(Number(subtotal) - Number(discount) + Number(tax), Number(total))
    const captured = payments.filter((payment: Body) => payment.status === 'captured')
    assert.equal(sum(captured.map((payment: Body) => Number(payment.amount))), Number(total))
  }
  const books = keepBooks(known.facts)
  for (const currency of known.currencies) {
    const { amount, refunded, disputed } = books.collected(currency, 0, known.until)
    const ours = completed.filter(transaction => transaction.subscription_id && transaction.currency_code === currency)
    assert.equal(sum(ours.map(transaction => Number(transaction.details.totals.total))), amount + refunded + disputed)
  }
})

test("Chargebee's resources end in the company's states, with ascending versions", () => {
  const known = business({
    seed: 15,
    months: 12,
    accounts: 60,
    features: CHARGEBEE_FEATURES,
    currencies: CHARGEBEE_CURRENCIES,
  })
  const events: Body[] = chargebeeEvents(known)
  assert.equal(new Set(events.map(event => event.id)).size, events.length)
  const last = new Map<string, Body>()
  for (const { content } of events) {
    const { subscription } = content
    if (!subscription) continue
    assert.ok(subscription.resource_version >= (last.get(subscription.id)?.resource_version ?? 0))
    last.set(subscription.id, subscription)
  }
  assert.deepEqual(
    counted([...last.values()].map(({ status }) => status)),
    statuses(known, (status, { pause, cancelAt }) => {
      if (status === 'canceled') return 'cancelled'
      if (pause) return 'paused'
      return status === 'trialing' ? 'in_trial' : cancelAt === null ? 'active' : 'non_renewing'
    }),
  )
  const books = keepBooks(known.facts)
  for (const currency of known.currencies) {
    const paid = events.filter(
      ({ event_type, content }) =>
        event_type === 'payment_succeeded' &&
        content.invoice.subscription_id &&
        content.transaction.currency_code === currency,
    )
    const { amount, refunded, count } = books.collected(currency, 0, known.until)
    assert.equal(sum(paid.map(({ content }) => content.transaction.amount)), amount + refunded)
    assert.equal(paid.length, count)
  }
})
