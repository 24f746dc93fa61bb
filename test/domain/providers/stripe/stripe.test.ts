import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isBillingEvent, readBilling } from '../../../../src/domain/billing/read.ts'
import { deriveSubscription } from '../../../../src/domain/billing/timeline.ts'
import type { InvoiceVersion, Refund, SubscriptionVersion } from '../../../../src/domain/billing/types.ts'
import { readStripe } from '../../../../src/domain/providers/stripe/stripe.ts'
import { permutations } from '../../../any-order.ts'
import { countedRefunds } from '../../billing/counted-refunds.ts'
import { at, segmentAt } from '../../billing/subscriptions.ts'
import {
  charge,
  coupon,
  discount,
  invoice,
  olderSubscription,
  price,
  refund,
  stripeEvent,
  subscription,
  unix,
} from './events.ts'

type Fields = Record<string, unknown>
const NOW = at('2025-06-01')

function subscriptionFrom(object: Fields, type = 'customer.subscription.updated'): SubscriptionVersion {
  const change = readStripe(stripeEvent(type, object), NOW)
  assert.equal(change?.kind, 'subscription')
  return (change as { version: SubscriptionVersion }).version
}

function invoiceFrom(object: Fields, type = 'invoice.updated'): InvoiceVersion {
  const change = readStripe(stripeEvent(type, object), NOW)
  assert.equal(change?.kind, 'invoice')
  return (change as { version: InvoiceVersion }).version
}

function refundsFrom(type: string, object: Fields, data: Fields = {}): Refund[] {
  const change = readStripe(stripeEvent(type, object, { data: { object, ...data } }), NOW)
  return change?.kind === 'cash' ? change.refunds : []
}

/** MRR in minor units and reasons, on a day within the first period. */
function worth(object: Fields): [number, (string | null)[]] {
  const segment = segmentAt(deriveSubscription([subscriptionFrom(object)]).segments, at('2025-02-10'))!
  return [segment.mrr, segment.items.map(item => item.reason)]
}

test('objects before and after 2025 are read alike', () => {
  const newer = subscriptionFrom(subscription())
  const older = subscriptionFrom(olderSubscription())
  const itemsOnly = (version: SubscriptionVersion) => ({
    ...version,
    items: version.items.map(item => ({ ...item, currentPeriodStart: null, currentPeriodEnd: null })),
  })
  assert.deepEqual(itemsOnly(newer), itemsOnly(older))
  assert.equal(newer.currentPeriodEnd, at('2025-02-28'))
  assert.equal(newer.currentPeriodStart, at('2025-01-31'))
  assert.equal(newer.sourceAt, at('2025-02-01'))
  assert.equal(newer.startedAt, at('2025-01-31'))
  assert.deepEqual(
    [newer.items[0]!.priceId, newer.items[0]!.productId, newer.items[0]!.name, newer.items[0]!.unitAmount],
    ['price_1Pro', 'prod_Pro', 'Pro', '20'],
  )
})

test('items with a plan and no price are priced by the plan', () => {
  const older = olderSubscription()
  const plan = older.plan
  assert.deepEqual(worth({ ...older, items: { data: [{ id: 'si_1', plan, quantity: 3 }] } }), [60_00, [null]])
  assert.deepEqual(worth({ ...older, items: undefined, quantity: 2, currency: undefined }), [40_00, [null]])
})

test('of several periods the earliest end is used', () => {
  const item = (id: string, end: string) => ({
    id,
    price: price(),
    current_period_end: unix(end),
    quantity: 1,
  })
  const items = { data: [item('si_1', '2025-03-31'), item('si_2', '2025-02-28')] }
  assert.equal(subscriptionFrom(subscription({ items })).currentPeriodEnd, at('2025-02-28'))
})

const amounts: [currency: string, unitAmount: number, minor: number][] = [
  ['usd', 2000, 20_00],
  ['jpy', 2000, 2000],
  ['krw', 2000, 2000],
  ['kwd', 2000, 2_000],
  ['isk', 2000, 20],
  ['ugx', 500_000, 5000],
  ['huf', 2000, 20_00],
  ['twd', 2000, 20_00],
  ['mga', 2000, 2000_00],
]
for (const [currency, unit_amount, minor] of amounts) {
  test(`${unit_amount} in Stripe's ${currency} is ${minor} ISO minor units`, () => {
    const given = price({ currency, unit_amount, unit_amount_decimal: String(unit_amount) })
    assert.deepEqual(worth(subscription({ currency }, { price: given })), [minor, [null]])
  })
}

test('a price finer than a cent is exact', () => {
  const given = price({ unit_amount: null, unit_amount_decimal: '0.5' })
  assert.deepEqual(worth(subscription({}, { price: given, quantity: 333 })), [1_67, [null]])
})

test('units sold in packs are charged per pack', () => {
  const given = price({ transform_quantity: { divide_by: 10, round: 'up' } })
  assert.deepEqual(worth(subscription({}, { price: given, quantity: 21 })), [60_00, [null]])
})

test("a price's default currency is not the subscription's", () => {
  assert.deepEqual(worth(subscription({ currency: 'eur' })), [0, ['missing_price']])
  const withOptions = price({ currency_options: { eur: { unit_amount: 1800, unit_amount_decimal: '1800' } } })
  assert.deepEqual(worth(subscription({ currency: 'eur' }, { price: withOptions })), [18_00, [null]])
})

const itemReasons: [string, Fields, string][] = [
  [
    'metered usage',
    price({ recurring: { interval: 'month', interval_count: 1, usage_type: 'metered' } }),
    'metered_usage',
  ],
  [
    'tiers are never part of an event',
    price({
      billing_scheme: 'tiered',
      tiers_mode: 'graduated',
      unit_amount: null,
      unit_amount_decimal: null,
    }),
    'tiered_price_unknown',
  ],
  ['one-time', price({ type: 'one_time', recurring: null }), 'one_time_price'],
  ['no amount', price({ unit_amount: null, unit_amount_decimal: null, custom_unit_amount: {} }), 'missing_price'],
  ['free', price({ unit_amount: 0, unit_amount_decimal: '0' }), 'free'],
]
for (const [what, given, reason] of itemReasons) {
  test(`Stripe price, ${what}: ${reason}`, () => {
    assert.deepEqual(worth(subscription({}, { price: given })), [0, [reason]])
  })
}

const discounts: [string, Fields, number][] = [
  ['in `discount`, as before 2025', olderSubscription({ discount: discount() }), 18_00],
  ['in `discounts`, expanded', subscription({ discounts: [discount()] }), 18_00],
  ['listed by id beside `discount`', subscription({ discounts: ['di_1'], discount: discount() }), 18_00],
  [
    'with its coupon under `source`',
    subscription({
      discounts: [discount({ coupon: undefined, source: { type: 'coupon', coupon: coupon() } })],
    }),
    18_00,
  ],
  ['on the item', subscription({}, { discounts: [discount()] }), 18_00],
  [
    'of an amount',
    subscription({
      discounts: [discount({ coupon: coupon({ percent_off: null, amount_off: 500, currency: 'usd' }) })],
    }),
    15_00,
  ],
  [
    'of an amount in several currencies',
    subscription({
      discounts: [
        discount({
          coupon: coupon({
            percent_off: null,
            amount_off: 450,
            currency: 'eur',
            currency_options: { usd: { amount_off: 500 } },
          }),
        }),
      ],
    }),
    15_00,
  ],
  ['given once', subscription({ discounts: [discount({ coupon: coupon({ duration: 'once' }) })] }), 20_00],
  [
    'running out',
    subscription({
      discounts: [discount({ end: unix('2025-04-30'), coupon: coupon({ duration: 'repeating' }) })],
    }),
    18_00,
  ],
  [
    'run out',
    subscription({
      discounts: [discount({ end: unix('2025-02-05'), coupon: coupon({ duration: 'repeating' }) })],
    }),
    20_00,
  ],
  [
    'for another product',
    subscription({ discounts: [discount({ coupon: coupon({ applies_to: { products: ['prod_Else'] } }) })] }),
    20_00,
  ],
]
for (const [what, object, mrr] of discounts) {
  test(`a Stripe discount ${what} leaves ${mrr / 100}`, () => assert.deepEqual(worth(object), [mrr, [null]]))
}

const unknownDiscounts: [string, Fields][] = [
  ['by id only', subscription({ discounts: ['di_1'] })],
  ['by id beside another', subscription({ discounts: ['di_1', 'di_2'], discount: discount() })],
  ['with its coupon by id', subscription({ discounts: [discount({ coupon: 'SAVE10' })] })],
  [
    'with its coupon by id under `source`',
    subscription({
      discounts: [discount({ coupon: undefined, source: { type: 'coupon', coupon: 'SAVE10' } })],
    }),
  ],
  [
    'of an amount in another currency',
    subscription({
      discounts: [discount({ coupon: coupon({ percent_off: null, amount_off: 5, currency: 'eur' }) })],
    }),
  ],
  ['on the item by id', subscription({}, { discounts: ['di_1'] })],
]
for (const [what, object] of unknownDiscounts) {
  test(`a Stripe discount ${what} has terms unknown`, () => {
    assert.deepEqual(worth(object), [0, ['discount_terms_unknown']])
  })
}

test('a subscription with paused collection is paused, whatever its status', () => {
  assert.deepEqual(worth(subscription({ pause_collection: { behavior: 'void', resumes_at: null } })), [0, ['paused']])
  assert.equal(
    subscriptionFrom(subscription({ status: 'trialing', pause_collection: { behavior: 'void' } })).status,
    'trialing',
  )
})

test('a deleted subscription ends at its ended_at', () => {
  const object = subscription({
    status: 'canceled',
    ended_at: unix('2025-02-15'),
    canceled_at: unix('2025-02-15'),
  })
  const derived = deriveSubscription([subscriptionFrom(object, 'customer.subscription.deleted')])
  assert.equal(derived.deletedAt, at('2025-02-15'))
  assert.deepEqual(
    derived.segments.map(segment => [segment.status, segment.mrr]),
    [
      ['active', 20_00],
      ['canceled', 0],
    ],
  )
})

test('created and updated within one second: the update wins', () => {
  const created = subscriptionFrom(subscription({ status: 'incomplete' }), 'customer.subscription.created')
  const updated = subscriptionFrom(subscription(), 'customer.subscription.updated')
  for (const versions of [
    [created, updated],
    [updated, created],
  ]) {
    assert.equal(deriveSubscription(versions).segments.at(-1)!.mrr, 20_00)
  }
})

test('customer, reason and acquisition are read from Stripe’s fields', () => {
  const version = subscriptionFrom(
    subscription({
      customer: { id: 'cus_Acme', object: 'customer', name: 'Acme Inc', email: 'billing@acme.example' },
      cancel_at_period_end: true,
      cancel_at: unix('2025-02-28'),
      canceled_at: unix('2025-02-01'),
      cancellation_details: { comment: null, feedback: 'too_expensive', reason: 'cancellation_requested' },
      metadata: { utm_source: 'newsletter', utm_medium: 'email', utm_campaign: 'spring' },
    }),
  )
  assert.deepEqual(
    [version.customer, version.customerName, version.customerEmail],
    ['cus_Acme', 'Acme Inc', 'billing@acme.example'],
  )
  assert.equal(version.cancellationReason, 'too_expensive')
  assert.deepEqual(version.acquisition, { source: 'newsletter', medium: 'email', campaign: 'spring' })
})

test('the subscription of an invoice is found in every API version', () => {
  assert.equal(invoiceFrom(invoice()).subscriptionId, 'sub_1Stripe')
  assert.equal(invoiceFrom(invoice({ parent: undefined, subscription: 'sub_2' })).subscriptionId, 'sub_2')
  assert.equal(invoiceFrom(invoice({ parent: null, subscription: { id: 'sub_3' } })).subscriptionId, 'sub_3')
  const line = { parent: { subscription_item_details: { subscription: 'sub_4' } } }
  assert.equal(invoiceFrom(invoice({ parent: null, lines: { data: [{}, line] } })).subscriptionId, 'sub_4')
  assert.equal(invoiceFrom(invoice({ parent: null })).subscriptionId, null)
})

test('amounts, tax and times of an invoice', () => {
  const paid = invoiceFrom(
    invoice({
      status: 'paid',
      amount_paid: 2380,
      amount_remaining: 0,
      status_transitions: { finalized_at: unix('2025-02-01'), paid_at: unix('2025-02-02') },
    }),
    'invoice.paid',
  )
  assert.deepEqual(
    [paid.status, paid.total, paid.tax, paid.amountDue, paid.amountPaid, paid.amountRemaining],
    ['paid', 23_80, 3_80, 23_80, 23_80, 0],
  )
  assert.deepEqual([paid.finalizedAt, paid.paidAt], [at('2025-02-01'), at('2025-02-02')])
  assert.deepEqual(
    [paid.number, paid.customerName, paid.customerEmail],
    ['ACME-0001', 'Acme Inc', 'billing@acme.example'],
  )
  assert.equal(invoiceFrom(invoice({ tax: 400, total_taxes: undefined })).tax, 4_00)
})

test('failures are read from the event type and the expanded payment', () => {
  assert.equal(invoiceFrom(invoice()).failure, null)
  assert.deepEqual(invoiceFrom(invoice(), 'invoice.payment_failed').failure, {
    kind: 'payment_failed',
    code: null,
    message: null,
  })
  assert.equal(invoiceFrom(invoice(), 'invoice.payment_action_required').failure?.kind, 'action_required')
  const payment_intent = {
    id: 'pi_1',
    last_payment_error: {
      code: 'card_declined',
      decline_code: 'insufficient_funds',
      message: 'Your card has insufficient funds.',
    },
  }
  assert.deepEqual(invoiceFrom(invoice({ payment_intent }), 'invoice.payment_failed').failure, {
    kind: 'payment_failed',
    code: 'insufficient_funds',
    message: 'Your card has insufficient funds.',
  })
})

test('a deleted draft is void; an upcoming invoice has no id and is ignored', () => {
  assert.equal(invoiceFrom(invoice({ status: 'draft' }), 'invoice.deleted').status, 'void')
  assert.equal(readStripe(stripeEvent('invoice.upcoming', invoice({ id: undefined })), NOW), null)
})

test('one refund in several events is one refund', () => {
  const own = refundsFrom('refund.created', refund())
  const updated = refundsFrom('charge.refund.updated', refund())
  const listed = refundsFrom('charge.refunded', charge({ invoice: 'in_1', refunds: { data: [refund()] } }))
  assert.deepEqual([own[0]!.id, updated[0]!.id, listed[0]!.id], ['re_1', 're_1', 're_1'])
  assert.deepEqual([own[0]!.amount, own[0]!.createdAt, own[0]!.counts], [5_00, at('2025-02-03'), true])
  assert.equal(listed[0]!.invoiceId, 'in_1')
})

test('a charge without a list of refunds counts the increase of its total, until the refunds are known', () => {
  const first = refundsFrom('charge.refunded', charge(), { previous_attributes: { amount_refunded: 0 } })
  const second = refundsFrom('charge.refunded', charge({ amount_refunded: 700 }), {
    previous_attributes: { amount_refunded: 500 },
  })
  assert.deepEqual(
    countedRefunds([...first, ...second]).map(entry => entry.amount),
    [5_00, 2_00],
  )
  const named = refundsFrom('refund.created', refund())
  assert.deepEqual(countedRefunds([...first, ...named]), named)
})

test('the refunded total of a charge is a lower bound, whichever refunds are known', () => {
  const sum = (refunds: Refund[]) => countedRefunds(refunds).reduce((total, { amount }) => total + amount!, 0)
  const partial = refundsFrom('refund.created', refund({ amount: 300 }))
  const total = refundsFrom('charge.refunded', charge({ amount_refunded: 800 }), {
    previous_attributes: { amount_refunded: 300 },
  })
  assert.deepEqual([sum([...partial, ...total]), sum([...total, ...partial]), sum(total)], [8_00, 8_00, 8_00])
  const rest = refundsFrom('refund.created', refund({ id: 're_2', amount: 500 }))
  assert.equal(sum([...rest, ...total, ...partial]), 8_00)
  const listed = refundsFrom('charge.refunded', charge({ amount_refunded: 800, refunds: { data: [refund()] } }))
  assert.equal(sum(listed), 8_00)
  assert.equal(sum(refundsFrom('charge.updated', charge({ amount_refunded: 800 }))), 8_00)
})

test('a failed refund does not count', () => {
  assert.deepEqual(countedRefunds(refundsFrom('refund.failed', refund({ status: 'failed' }))), [])
  assert.deepEqual(countedRefunds(refundsFrom('refund.updated', refund({ status: 'canceled' }))), [])
})

test('billing events are recognized by type or shape, and Stripe events by shape', () => {
  const canonical = { id: 'in_9', total: 20, currency: 'USD', status: 'paid' }
  assert.equal(isBillingEvent('invoice.paid', canonical), true)
  assert.equal(isBillingEvent('invoice.paid', stripeEvent('invoice.paid', invoice())), true)
  assert.equal(isBillingEvent('stripe.renamed', stripeEvent('invoice.paid', invoice())), true)
  assert.equal(isBillingEvent('subscription.updated', {}), true)
  for (const [type, subject] of [
    ['order.paid', canonical],
    ['subscription', canonical],
    ['page_view', null],
    ['product.created', stripeEvent('product.created', { id: 'prod_1', object: 'product' })],
    ['charge.succeeded', { id: 'ch_1' }],
  ] as const) {
    assert.equal(isBillingEvent(type, subject), false, type)
  }
})

test('same type, both shapes: canonical amounts are in major units, Stripe amounts in minor units', () => {
  const canonical = readBilling('invoice.paid', { id: 'in_9', total: 20, currency: 'usd', status: 'paid' }, NOW)
  const stripe = readBilling('invoice.paid', stripeEvent('invoice.paid', invoice({ total: 2000 })), NOW)
  assert.equal(canonical?.kind === 'invoice' && canonical.version.total, 20_00)
  assert.equal(stripe?.kind === 'invoice' && stripe.version.total, 20_00)
})

test('a Stripe object forwarded without its event is still in minor units', () => {
  const change = readBilling('subscription.updated', subscription(), NOW)
  assert.equal(change?.kind === 'subscription' && change.version.items[0]!.unitAmount, '20')
  assert.equal(change?.kind === 'subscription' && change.version.sourceAt, NOW)
})

test('an event with only the necessary fields is recognized', () => {
  const { object: _, created: __, ...bare } = subscription()
  const event = { type: 'customer.subscription.updated', data: { object: bare } }
  const change = readBilling('customer.subscription.updated', event, NOW)
  assert.equal(change?.kind === 'subscription' && change.version.items[0]!.unitAmount, '20')
})

test('an event without an object, or with an object of another type, changes nothing', () => {
  for (const subject of [null, 'sub_1', [], {}, { id: '' }, { id: {} }]) {
    assert.equal(readBilling('subscription.updated', subject, NOW), null)
  }
  for (const object of [null, {}, { object: 'subscription' }, { id: 'x', object: 'coupon', created: 1 }]) {
    assert.equal(readStripe(stripeEvent('customer.subscription.updated', object as Fields), NOW), null)
  }
})

test('a Stripe object of nothing but wrong types never throws', () => {
  const junk = [null, 7, 'x', true, [], {}, { data: 7 }, [[]]]
  for (const value of junk) {
    for (const base of [subscription(), invoice(), charge(), refund()]) {
      const spoiled = Object.fromEntries(
        Object.entries(base).map(([key, was]) => [key, ['id', 'object', 'created'].includes(key) ? was : value]),
      )
      const change = readStripe(
        stripeEvent(`${base.object === 'subscription' ? 'customer.' : ''}${base.object}.updated`, spoiled),
        NOW,
      )
      if (change?.kind === 'subscription') deriveSubscription([change.version])
      if (base.object === 'subscription' || base.object === 'invoice') assert.equal(change?.kind, base.object)
    }
  }
})

const SECOND = 1_740_000_000

function firstItem(): Fields {
  return (subscription().items as { data: Fields[] }).data[0]!
}

/** An event of one second: `seats` after it, and before it if the event contains that. */
function seatsChanged(seats: number, before: number | null, more: Fields = {}): SubscriptionVersion {
  const items = (quantity: number) => ({ data: [{ ...firstItem(), quantity }] })
  const event = {
    id: `evt_${before}_${seats}`,
    object: 'event',
    created: SECOND,
    type: before === null ? 'customer.subscription.created' : 'customer.subscription.updated',
    data: {
      object: subscription({ items: items(seats), ...more }),
      ...(before !== null && { previous_attributes: { items: items(before) } }),
    },
  }
  return (readStripe(event, 0) as { version: SubscriptionVersion }).version
}

function lastMrr(versions: SubscriptionVersion[]): number {
  return deriveSubscription(versions).segments.at(-1)!.mrr
}

test('changes of one second are chained by their previous values, in any order of arrival', () => {
  const [eight, nine, ten, nineAgain] = [
    seatsChanged(8, null),
    seatsChanged(9, 8),
    seatsChanged(10, 9),
    seatsChanged(9, 10),
  ]
  for (const arrived of permutations([eight, nine, ten])) assert.equal(lastMrr(arrived), 200_00)
  for (const arrived of permutations([eight, nine, ten, nineAgain])) assert.equal(lastMrr(arrived), 180_00)
})

test('one event from endpoints of two API versions counts once', () => {
  const versions = [seatsChanged(8, null), seatsChanged(9, 8), seatsChanged(8, 9)]
  const sent = versions.flatMap(version => [version, { ...version, billingAnchor: 1 }])
  for (const arrived of permutations(sent.slice(2))) assert.equal(lastMrr([...sent.slice(0, 2), ...arrived]), 160_00)
})

test('the first known event contains the state before it', () => {
  const { segments } = deriveSubscription([seatsChanged(10, 8)])
  assert.deepEqual(
    segments.map(({ mrr, from }) => [mrr, from]),
    [
      [160_00, (subscription().start_date as number) * 1000],
      [200_00, SECOND * 1000],
    ],
  )
})

test('a subscription that was in trial before its first known event does not count before it', () => {
  const event = {
    id: 'evt_1',
    object: 'event',
    created: SECOND,
    type: 'customer.subscription.updated',
    data: { object: subscription(), previous_attributes: { status: 'trialing' } },
  }
  const { segments } = deriveSubscription([(readStripe(event, 0) as { version: SubscriptionVersion }).version])
  assert.deepEqual(
    segments.map(({ status }) => status),
    ['trialing', 'active'],
  )
})

test('known items count, and an exclusion reports that there are more', () => {
  const items = { ...(subscription().items as Fields), has_more: true }
  const { segments } = deriveSubscription([subscriptionFrom(subscription({ items }))])
  assert.deepEqual([segments[0]!.mrr, segments[0]!.cautions], [20_00, ['items_incomplete']])
  assert.deepEqual(
    segments[0]!.items.map(({ id, reason }) => [id === null, reason]),
    [
      [false, null],
      [true, 'items_incomplete'],
    ],
  )
})

const taxed: [string, Fields, number, string[] | undefined][] = [
  ['exclusive', { default_tax_rates: [{ percentage: 19, inclusive: false }] }, 20_00, undefined],
  ['inclusive', { default_tax_rates: [{ percentage: 25, inclusive: true }] }, 16_00, undefined],
  [
    'two inclusive',
    {
      default_tax_rates: [
        { percentage: 20, inclusive: true },
        { percentage: 5.0, inclusive: true },
      ],
    },
    16_00,
    undefined,
  ],
]
for (const [name, fields, mrr, cautions] of taxed) {
  test(`tax, ${name}, is no revenue`, () => {
    const [segment] = deriveSubscription([subscriptionFrom(subscription(fields))]).segments
    assert.deepEqual([segment!.mrr, segment!.cautions], [mrr, cautions])
  })
}

test('inclusive tax of unknown rates is counted, with a warning', () => {
  const items = { data: [{ ...firstItem(), price: price({ tax_behavior: 'inclusive' }) }] }
  const object = subscription({ automatic_tax: { enabled: true }, items })
  const [segment] = deriveSubscription([subscriptionFrom(object)]).segments
  assert.deepEqual([segment!.mrr, segment!.cautions], [20_00, ['inclusive_tax_unknown']])
})
