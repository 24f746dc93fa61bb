/** Native Stripe events, in the object shapes before and after the 2025 API versions. */

import { isDeepStrictEqual } from 'node:util'
import {
  type Fields,
  type GivenItem,
  limitTerms,
  readAcquisition,
  readChange,
  readDecimalText,
  readDuration,
  readFlag,
  readId,
  readInstant,
  readInteger,
  readIntervalCount,
  readList,
  readLowerText,
  readMetadata,
  readObject,
  readQuantity,
  readSubscriptionStatus,
  readText,
  readTiers,
  readUsageType,
  sumPercents,
} from '../../billing/fields.ts'
import type {
  BillingChange,
  CouponTerms,
  Discount,
  Instant,
  Item,
  SubscriptionFacts,
  SubscriptionVersion,
  Term,
} from '../../billing/types.ts'
import { findStripeUnreadable, withUnreadable } from '../../billing/unreadable.ts'
import { knownCurrency } from '../../money.ts'
import {
  readCredit,
  readCreditNote,
  readDispute,
  readInvoice,
  readInvoicePayments,
  readPayments,
  readRefunds,
} from './cash.ts'
import { type StripeSubject, stripeMajorText, stripeMinor, THIN } from './objects.ts'

const BILLING_OBJECTS = new Set([
  'subscription',
  'invoice',
  'refund',
  'charge',
  'payment_intent',
  'invoice_payment',
  'dispute',
  'credit_note',
  'customer',
  'discount',
  'coupon',
  'promotion_code',
])

/** The object type by event type. The `object` field of the object takes precedence. */
const OBJECT_BY_TYPE: [RegExp, string][] = [
  [/^customer\.subscription\.\w/, 'subscription'],
  [/^customer\.discount\.\w/, 'discount'],
  [/^customer\.(created|updated)$/, 'customer'],
  [/^coupon\.\w/, 'coupon'],
  [/^promotion_code\.\w/, 'promotion_code'],
  [/^invoice\.\w/, 'invoice'],
  [/^invoice_payment\.\w/, 'invoice_payment'],
  [/^credit_note\.\w/, 'credit_note'],
  [/^payment_intent\.\w/, 'payment_intent'],
  [/^charge\.dispute\.\w/, 'dispute'],
  [/^(refund|charge\.refund)\.\w/, 'refund'],
  [/^charge\.\w/, 'charge'],
]

/** A `type` next to `data.object` distinguishes Stripe's `invoice.paid` from the canonical one. */
export function carriesStripeObject(value: unknown): boolean {
  const event = readObject(value)
  return typeof event?.type === 'string' && readObject(readObject(event.data)?.object) !== null
}

/** Whether it is an event of Stripe's API v2, which refers to its object without containing it. */
export function isThinEvent(value: unknown): boolean {
  return readObject(value)?.object === THIN
}

/** Whether it is a Stripe object. Canonical payloads have neither `object` nor a numeric `created`. */
export function isStripeObject(value: unknown): boolean {
  const fields = readObject(value)
  return typeof fields?.created === 'number' && BILLING_OBJECTS.has(fields.object as string)
}

export function isStripeBillingEvent(value: unknown): boolean {
  return carriesStripeObject(value) && readObjectType(value as Fields) !== null
}

function readObjectType(event: Fields): string | null {
  const byType = OBJECT_BY_TYPE.find(([type]) => type.test(event.type as string))?.[1]
  const own = readText(readObject(readObject(event.data)?.object)?.object)
  if (!byType || (own !== null && !BILLING_OBJECTS.has(own))) return null
  return own ?? byType
}

/** Reads the billing change in a Stripe event; null: none. */
export function readStripe(value: unknown, occurredAt: Instant): BillingChange | null {
  const event = readObject(value)
  if (!event || !isStripeBillingEvent(event)) return null
  const data = readObject(event.data)!
  return toBillingChange({
    type: event.type as string,
    object: {
      ...readObject(data.object),
      object: readObjectType(event),
      ...(event.livemode === false && { livemode: false }),
    },
    previous: readObject(data.previous_attributes) ?? {},
    sourceAt: readInstant(event.created) ?? occurredAt,
    eventId: readText(event.id),
  })
}

/** The same for an object without a Stripe event. Type and time are those of the event that contained it. */
export function readBareStripe(eventType: string, value: unknown, occurredAt: Instant): BillingChange | null {
  const object = readObject(value)
  if (!object || !isStripeObject(object)) return null
  return toBillingChange({ type: eventType, object, previous: {}, sourceAt: occurredAt, eventId: null })
}

function toBillingChange(subject: StripeSubject): BillingChange | null {
  const change = readChangeOf(subject)
  return change && { ...change, ...withUnreadable(findStripeUnreadable(subject.object)) }
}

function readChangeOf(subject: StripeSubject): BillingChange | null {
  const id = readText(subject.object.id)
  if (!id) return null
  // test data involves no money; test subscriptions are stored so that reports can list them as excluded
  if (subject.object.livemode === false && subject.object.object !== 'subscription') return null
  switch (subject.object.object) {
    case 'subscription':
      return { kind: 'subscription', version: readSubscription(id, subject), ...termsShown(id, subject) }
    case 'customer':
    case 'discount':
    case 'coupon':
    case 'promotion_code': {
      const terms = readTerms(id, subject)
      return terms.length > 0 ? { kind: 'terms', terms } : null
    }
    case 'invoice':
      return { kind: 'invoice', version: readInvoice(id, subject), payments: readInvoicePayments(id, subject) }
    case 'dispute':
      return { kind: 'cash', payments: [], refunds: [readDispute(id, subject)] }
    case 'credit_note':
      return {
        kind: 'cash',
        payments: [],
        refunds: readCreditNote(id, subject),
        credits: [readCredit(id, subject)],
      }
    default: {
      const payments = readPayments(id, subject)
      const refunds = readRefunds(subject)
      return payments.length > 0 || refunds.length > 0 ? { kind: 'cash', payments, refunds } : null
    }
  }
}

function termsShown(id: string, subject: StripeSubject): { terms?: Term[] } {
  const terms = readSubscriptionTerms(id, subject)
  return terms.length > 0 ? { terms } : {}
}

function readSubscription(id: string, subject: StripeSubject): SubscriptionVersion {
  const { type, object, previous, sourceAt, eventId } = subject
  const facts = readFacts(type, object)
  const isChange = type.endsWith('.updated') && Object.keys(previous).length > 0
  return {
    id,
    sourceAt,
    change: readChange(type),
    ...facts,
    ...(eventId !== null && { fact: eventId }),
    ...(isChange && { before: differences(readFacts(type, withValues(object, previous)), facts) }),
  }
}

/** Replaces some fields. `values` contains only the changed fields of nested objects. */
function withValues(object: Fields, values: Fields): Fields {
  const result = { ...object }
  for (const [name, value] of Object.entries(values)) {
    const own = readObject(object[name])
    const other = readObject(value)
    result[name] = own && other ? withValues(own, other) : value
  }
  return result
}

function differences(before: SubscriptionFacts, after: SubscriptionFacts): Partial<SubscriptionFacts> {
  const names = Object.keys({ ...after, ...before }) as (keyof SubscriptionFacts)[]
  const other = names.filter(name => !isDeepStrictEqual(before[name], after[name]))
  return Object.fromEntries(other.map(name => [name, before[name] ?? null]))
}

function readFacts(type: string, object: Fields): SubscriptionFacts {
  const listed = readList(readObject(object.items)?.data).map(item => readObject(item) ?? {})
  // old API versions have a single plan
  const given =
    listed.length === 0 && readObject(object.plan) ? [{ plan: object.plan, quantity: object.quantity }] : listed
  const currency = knownCurrency(object.currency) ?? knownCurrency(readPrice(given[0] ?? {}).currency)
  const terms = limitTerms(
    given.map(item => readItem(item, currency, object)),
    readDiscounts(object, currency),
  )
  const customer = readObject(object.customer)
  const pause = readObject(object.pause_collection)
  const resumesAt = readInstant(pause?.resumes_at)
  const status = readSubscriptionStatus(type, object.status)
  return {
    customer: readId(object.customer),
    customerName: readText(customer?.name),
    customerEmail: readText(customer?.email),
    // with collection paused nothing is charged, but Stripe does not change the status
    status: pause && (status === 'active' || status === 'past_due') ? 'paused' : status,
    currency,
    startedAt: readInstant(object.start_date) ?? readInstant(object.created),
    trialEnd: readInstant(object.trial_end),
    currentPeriodStart:
      readInstant(object.current_period_start) ?? extreme(Math.max, terms.items, 'currentPeriodStart'),
    currentPeriodEnd: readInstant(object.current_period_end) ?? extreme(Math.min, terms.items, 'currentPeriodEnd'),
    billingAnchor: readInstant(object.billing_cycle_anchor),
    cancelAtPeriodEnd: readFlag(object.cancel_at_period_end),
    cancelAt: readInstant(object.cancel_at),
    canceledAt: readInstant(object.canceled_at),
    endedAt: readInstant(object.ended_at),
    cancellationReason: cancellationReason(readObject(object.cancellation_details)),
    collectionMethod: readText(object.collection_method) ?? readText(object.billing),
    acquisition: readAcquisition(null, object.metadata),
    ...terms,
    ...(object.livemode === false && { testMode: true }),
    ...(readObject(object.items)?.has_more === true && { itemsIncomplete: true }),
    ...(resumesAt !== null && { resumesAt }),
    ...(pause && status === 'trialing' && { collectionPaused: true }),
    ...readMetadata(object.metadata),
  }
}

/** The customer's reason, else Stripe's. */
function cancellationReason(details: Fields | null): string | null {
  return readText(details?.feedback) ?? readText(details?.comment) ?? readText(details?.reason)
}

function extreme(
  pick: (...values: number[]) => number,
  items: Item[],
  field: 'currentPeriodStart' | 'currentPeriodEnd',
): Instant | null {
  const known = items.map(item => item[field]).filter(at => at !== null)
  return known.length > 0 ? pick(...known) : null
}

/** `price`, or `plan` in old API versions. */
function readPrice(item: Fields): Fields {
  return readObject(item.price) ?? readObject(item.plan) ?? {}
}

/** The sum of the inclusive tax rates in percent. An item's rates replace those of the subscription. */
function readInclusiveTax(item: Fields, owner: Fields): string | null {
  const own = readList(item.tax_rates)
  const rates = (own.length > 0 ? own : readList(owner.default_tax_rates)).map(rate => readObject(rate) ?? {})
  return sumPercents(rates.map(rate => (rate.inclusive === true ? readDecimalText(rate.percentage) : null)))
}

/** Whether the price includes tax that Stripe computes automatically, without a rate in the event. */
function isTaxUnknown(item: Fields, owner: Fields): boolean {
  const isInclusive = readLowerText(readPrice(item).tax_behavior) === 'inclusive'
  const isAutomatic = readObject(owner.automatic_tax)?.enabled === true
  return isInclusive && isAutomatic && readInclusiveTax(item, owner) === null
}

function readItem(item: Fields, currency: string | null, owner: Fields): GivenItem {
  const price = readPrice(item)
  const plan = readObject(item.plan)
  // a price without `recurring` is a plan, which contains its terms itself, or is not recurring
  const terms = readObject(price.recurring) ?? price
  const quantity = readQuantity(item.quantity)
  const amounts = inCurrency(price, currency)
  const tiers = readTiers(amounts?.tiers, price.tiers_mode, (tier, name) =>
    stripeMajorText(tier[`${name}_decimal`] ?? tier[name], currency),
  )
  const inclusiveTax = readInclusiveTax(item, owner)
  return {
    id: readText(item.id),
    priceId: readText(price.id) ?? readText(item.price),
    productId: readId(price.product),
    name:
      readText(price.nickname) ??
      readText(plan?.nickname) ??
      readText(readObject(price.product)?.name) ??
      readText(plan?.name),
    quantity,
    billedQuantity: inPacks(quantity, readObject(price.transform_quantity) ?? readObject(price.transform_usage)),
    unitAmount: readUnitAmount(amounts, currency),
    tiered: price.billing_scheme === 'tiered' || readList(price.tiers).length > 0,
    ...(tiers && { tiers }),
    ...(inclusiveTax && { inclusiveTax }),
    ...(isTaxUnknown(item, owner) && { taxMode: 'inclusive' }),
    interval: readLowerText(terms.interval),
    intervalCount: readIntervalCount(terms.interval_count),
    usageType: readUsageType(price.type, terms.usage_type),
    currentPeriodStart: readInstant(item.current_period_start),
    currentPeriodEnd: readInstant(item.current_period_end),
    discounts: readDiscounts(item, currency),
  }
}

/** The price in the subscription's currency. A price may have several currencies and shows its default one. */
function inCurrency(price: Fields, currency: string | null): Fields | null {
  if (knownCurrency(price.currency) === currency) return price
  return readObject(readObject(price.currency_options)?.[currency?.toLowerCase() ?? ''])
}

function readUnitAmount(amounts: Fields | null, currency: string | null): string | null {
  if (!amounts) return null
  return stripeMajorText(
    amounts.unit_amount_decimal ?? amounts.unit_amount ?? amounts.amount_decimal ?? amounts.amount,
    currency,
  )
}

function inPacks(quantity: number | null, packs: Fields | null): number | null {
  const size = readInteger(packs?.divide_by, 1)
  if (quantity === null || size === null) return quantity
  return readLowerText(packs?.round) === 'down' ? Math.floor(quantity / size) : Math.ceil(quantity / size)
}

/**
 * `discounts` (objects, or ids if not expanded) and the older single `discount`, which some API versions send as well.
 * An id without an object keeps its place, with unknown terms.
 */
function readDiscounts(owner: Fields, currency: string | null): Discount[] {
  const single = readObject(owner.discount)
  const listed = readList(owner.discounts)
  if (listed.length === 0) return single ? [readDiscount(single, currency)] : []
  return listed.map(entry =>
    readDiscount(readObject(entry) ?? (single && readId(single) === entry ? single : { id: entry }), currency),
  )
}

/** Expanded discounts of the object and of its items. */
function listExpandedDiscounts(object: Fields): Fields[] {
  const items = readList(readObject(object.items)?.data).map(item => readObject(item) ?? {})
  return [object, ...items].flatMap(owner =>
    [owner.discount, ...readList(owner.discounts)].map(readObject).filter(entry => entry !== null),
  )
}

function readDiscount(discount: Fields, currency: string | null): Discount {
  const given = discount.coupon ?? readObject(discount.source)?.coupon
  const coupon = readObject(given) ?? {}
  const id = readText(discount.id)
  const couponId = readId(given)
  const promotionCodeId = readId(discount.promotion_code)
  const startsAt = readInstant(discount.start)
  const endsAt = readInstant(discount.end)
  const products = readList(readObject(coupon.applies_to)?.products).map(readId)
  const ofCurrency =
    knownCurrency(coupon.currency) === currency
      ? coupon
      : readObject(readObject(coupon.currency_options)?.[currency?.toLowerCase() ?? ''])
  const amountOff = stripeMinor(ofCurrency?.amount_off, currency)
  return {
    percentOff: readDecimalText(coupon.percent_off),
    amountOff: amountOff !== null && amountOff >= 0 ? amountOff : null,
    duration: readDuration(coupon.duration, endsAt),
    endsAt,
    productIds: products.length > 0 ? products.filter(id => id !== null) : null,
    ...(id && { id }),
    ...(couponId && { couponId }),
    ...(promotionCodeId && { promotionCodeId }),
    ...(startsAt && { startsAt }),
  }
}

function readTerms(id: string, subject: StripeSubject): Term[] {
  const { type, object, previous, sourceAt } = subject
  switch (object.object) {
    case 'coupon':
      return couponTerm(object, sourceAt)
    case 'promotion_code': {
      const given = object.coupon ?? readObject(object.promotion)?.coupon
      return [...couponTerm(given, sourceAt), { kind: 'promotion_code', id, sourceAt, ...couponReference(given) }]
    }
    case 'discount':
      return discountTerms(object, sourceAt, type.endsWith('.deleted') ? { deletedAt: sourceAt } : {})
    case 'customer':
      return customerTerms(id, object, previous, sourceAt)
    default:
      return []
  }
}

/** The terms of the discounts that a subscription contains as objects. */
function readSubscriptionTerms(id: string, { object, sourceAt }: StripeSubject): Term[] {
  const customer = readId(object.customer)
  return listExpandedDiscounts(object).flatMap(discount =>
    discountTerms({ customer, subscription: id, ...discount }, sourceAt, { ofCustomer: false }),
  )
}

/** A customer's discount has ended if another one, or none, replaced it. */
function customerTerms(id: string, customer: Fields, previous: Fields, sourceAt: Instant): Term[] {
  const name = readText(customer.name)
  const email = readText(customer.email)
  const gone = readText(readObject(previous.discount)?.id)
  const now = readObject(customer.discount)
  return [
    { kind: 'customer', id, sourceAt, ...(name && { name }), ...(email && { email }) },
    ...(now ? discountTerms({ customer: id, ...now }, sourceAt, {}) : []),
    ...(gone !== null && gone !== readText(now?.id)
      ? [{ kind: 'discount' as const, id: gone, sourceAt, deletedAt: sourceAt }]
      : []),
  ]
}

function discountTerms(discount: Fields, sourceAt: Instant, more: Partial<Term>): Term[] {
  const id = readText(discount.id)
  if (id === null) return []
  const given = discount.coupon ?? readObject(discount.source)?.coupon
  const promotionCodeId = readId(discount.promotion_code)
  const customer = readId(discount.customer)
  const subscription = readId(discount.subscription)
  const startsAt = readInstant(discount.start)
  const endsAt = readInstant(discount.end)
  const isOfCustomer = subscription === null && discount.subscription_item == null && discount.invoice == null
  return [
    ...couponTerm(given, sourceAt),
    {
      kind: 'discount',
      id,
      sourceAt,
      ...couponReference(given),
      ...(promotionCodeId && { promotionCodeId }),
      ...(customer && { customer }),
      ...(subscription && { subscription }),
      ofCustomer: isOfCustomer && discount.checkout_session == null,
      ...(startsAt && { startsAt }),
      ...(endsAt && { endsAt }),
      ...more,
    },
  ]
}

function couponReference(given: unknown): Partial<Term> {
  const couponId = readId(given)
  const coupon = readObject(given) && couponTerms(readObject(given)!)
  return { ...(couponId && { couponId }), ...(coupon && { coupon }) }
}

/** A coupon that is contained as an object; later references to its id use these terms. */
function couponTerm(given: unknown, sourceAt: Instant): Term[] {
  const object = readObject(given)
  const id = readText(object?.id)
  const coupon = object && couponTerms(object)
  return id !== null && coupon ? [{ kind: 'coupon', id, sourceAt, coupon }] : []
}

/** Null: the object has no terms. */
function couponTerms(coupon: Fields): CouponTerms | null {
  const percentOff = readDecimalText(coupon.percent_off)
  const options = Object.entries(readObject(coupon.currency_options) ?? {}).map(
    ([currency, option]) => [knownCurrency(currency), readObject(option)?.amount_off] as const,
  )
  const amounts = [...options, [knownCurrency(coupon.currency), coupon.amount_off] as const].flatMap(
    ([currency, amount]) => {
      const minor = stripeMinor(amount, currency)
      return currency !== null && minor !== null && minor >= 0 ? [[currency, minor] as const] : []
    },
  )
  if (percentOff === null && amounts.length === 0) return null
  const products = readList(readObject(coupon.applies_to)?.products).flatMap(entry => readId(entry) ?? [])
  return {
    percentOff,
    amountsOff: Object.fromEntries(amounts),
    duration: readDuration(coupon.duration, null),
    months: readInteger(coupon.duration_in_months, 1),
    ...(readObject(coupon.applies_to) && { productIds: products.length > 0 ? products : null }),
  }
}
