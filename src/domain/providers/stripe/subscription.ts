import { isDeepStrictEqual } from 'node:util'
import {
  acquisitionOf,
  boundedTerms,
  countryOf,
  decimalOrNull,
  type Fields,
  fieldsOf,
  flag,
  type GivenItem,
  idOfReference,
  instant,
  intervalCountOf,
  listOf,
  lowerText,
  percentSum,
  quantityOf,
  text,
  tiersOf,
  usageTypeOf,
  whole,
} from '../../billing/fields.ts'
import type { Discount, Instant, Item, SubscriptionFacts, SubscriptionVersion } from '../../billing/types.ts'
import { changeOf, durationOf, subscriptionStatus } from '../../billing/vocabulary.ts'
import { knownCurrency } from '../../money.ts'
import { stripeMajorText, stripeMinor } from './amounts.ts'
import type { StripeSubject } from './subject.ts'

export function subscriptionOf(id: string, subject: StripeSubject): SubscriptionVersion {
  const { type, object, previous, sourceAt, eventId } = subject
  const facts = factsOf(type, object)
  const isChange = type.endsWith('.updated') && Object.keys(previous).length > 0
  return {
    id,
    sourceAt,
    change: changeOf(type),
    ...facts,
    ...(eventId !== null && { fact: eventId }),
    ...(isChange && { before: differences(factsOf(type, withValues(object, previous)), facts) }),
  }
}

/** The object with other values for some of its fields: inside of an object only those that changed are given. */
function withValues(object: Fields, values: Fields): Fields {
  const result = { ...object }
  for (const [name, value] of Object.entries(values)) {
    const own = fieldsOf(object[name])
    const other = fieldsOf(value)
    result[name] = own && other ? withValues(own, other) : value
  }
  return result
}

function differences(before: SubscriptionFacts, after: SubscriptionFacts): Partial<SubscriptionFacts> {
  const names = Object.keys({ ...after, ...before }) as (keyof SubscriptionFacts)[]
  const other = names.filter(name => !isDeepStrictEqual(before[name], after[name]))
  return Object.fromEntries(other.map(name => [name, before[name] ?? null]))
}

function factsOf(type: string, object: Fields): SubscriptionFacts {
  const listed = listOf(fieldsOf(object.items)?.data).map(item => fieldsOf(item) ?? {})
  // subscriptions of old API versions with a single plan
  const given =
    listed.length === 0 && fieldsOf(object.plan) ? [{ plan: object.plan, quantity: object.quantity }] : listed
  const currency = knownCurrency(object.currency) ?? knownCurrency(priceOf(given[0] ?? {}).currency)
  const terms = boundedTerms(
    given.map(item => itemOf(item, currency, object)),
    discountsOf(object, currency),
  )
  const customer = fieldsOf(object.customer)
  const pause = fieldsOf(object.pause_collection)
  const resumesAt = instant(pause?.resumes_at)
  const status = subscriptionStatus(type, object.status)
  return {
    customer: idOfReference(object.customer),
    customerName: text(customer?.name),
    customerEmail: text(customer?.email),
    // collection paused: nothing is charged, though Stripe leaves the status as it was
    status: pause && (status === 'active' || status === 'past_due') ? 'paused' : status,
    currency,
    startedAt: instant(object.start_date) ?? instant(object.created),
    trialEnd: instant(object.trial_end),
    currentPeriodStart:
      instant(object.current_period_start) ?? extreme(Math.max, terms.items, 'currentPeriodStart'),
    currentPeriodEnd:
      instant(object.current_period_end) ?? extreme(Math.min, terms.items, 'currentPeriodEnd'),
    billingAnchor: instant(object.billing_cycle_anchor),
    cancelAtPeriodEnd: flag(object.cancel_at_period_end),
    cancelAt: instant(object.cancel_at),
    canceledAt: instant(object.canceled_at),
    endedAt: instant(object.ended_at),
    cancellationReason: cancellationReason(fieldsOf(object.cancellation_details)),
    collectionMethod: text(object.collection_method) ?? text(object.billing),
    acquisition: acquisitionOf(null, object.metadata),
    ...terms,
    ...(object.livemode === false && { testMode: true }),
    ...(fieldsOf(object.items)?.has_more === true && { itemsIncomplete: true }),
    ...(given.some(item => isTaxUnknown(item, object)) && { inclusiveTaxUnknown: true }),
    ...(resumesAt !== null && { resumesAt }),
    ...countryOf(object.metadata),
  }
}

/** What the customer said, else why Stripe ended it. */
function cancellationReason(details: Fields | null): string | null {
  return text(details?.feedback) ?? text(details?.comment) ?? text(details?.reason)
}

function extreme(
  pick: (...values: number[]) => number,
  items: Item[],
  field: 'currentPeriodStart' | 'currentPeriodEnd',
): Instant | null {
  const known = items.map(item => item[field]).filter(at => at !== null)
  return known.length > 0 ? pick(...known) : null
}

/** `price`, or `plan` before there were prices. */
function priceOf(item: Fields): Fields {
  return fieldsOf(item.price) ?? fieldsOf(item.plan) ?? {}
}

/** Percent of the rates that are part of the price: an item's own take the place of the subscription's. */
function inclusiveTaxOf(item: Fields, owner: Fields): string | null {
  const own = listOf(item.tax_rates)
  const rates = (own.length > 0 ? own : listOf(owner.default_tax_rates)).map(rate => fieldsOf(rate) ?? {})
  return percentSum(rates.map(rate => (rate.inclusive === true ? decimalOrNull(rate.percentage) : null)))
}

/** Tax that Stripe works out itself is in the price, and no rate is told. */
function isTaxUnknown(item: Fields, owner: Fields): boolean {
  const isInclusive = lowerText(priceOf(item).tax_behavior) === 'inclusive'
  const isAutomatic = fieldsOf(owner.automatic_tax)?.enabled === true
  return isInclusive && isAutomatic && inclusiveTaxOf(item, owner) === null
}

function itemOf(item: Fields, currency: string | null, owner: Fields): GivenItem {
  const price = priceOf(item)
  const plan = fieldsOf(item.plan)
  // a price without `recurring` is a plan (which carries its terms itself), or not recurring at all
  const terms = fieldsOf(price.recurring) ?? price
  const quantity = quantityOf(item.quantity)
  const amounts = inCurrency(price, currency)
  const tiers = tiersOf(amounts?.tiers, price.tiers_mode, (tier, name) =>
    stripeMajorText(tier[`${name}_decimal`] ?? tier[name], currency),
  )
  const inclusiveTax = inclusiveTaxOf(item, owner)
  return {
    id: text(item.id),
    priceId: text(price.id) ?? text(item.price),
    productId: idOfReference(price.product),
    name:
      text(price.nickname) ?? text(plan?.nickname) ?? text(fieldsOf(price.product)?.name) ?? text(plan?.name),
    quantity,
    billedQuantity: inPacks(quantity, fieldsOf(price.transform_quantity) ?? fieldsOf(price.transform_usage)),
    unitAmount: unitAmountOf(amounts, currency),
    tiered: price.billing_scheme === 'tiered' || listOf(price.tiers).length > 0,
    ...(tiers && { tiers }),
    ...(inclusiveTax && { inclusiveTax }),
    interval: lowerText(terms.interval),
    intervalCount: intervalCountOf(terms.interval_count),
    usageType: usageTypeOf(price.type, terms.usage_type),
    currentPeriodStart: instant(item.current_period_start),
    currentPeriodEnd: instant(item.current_period_end),
    discounts: discountsOf(item, currency),
  }
}

/** In the subscription's own currency: a price may have several, and shows its default. */
function inCurrency(price: Fields, currency: string | null): Fields | null {
  if (knownCurrency(price.currency) === currency) return price
  return fieldsOf(fieldsOf(price.currency_options)?.[currency?.toLowerCase() ?? ''])
}

function unitAmountOf(amounts: Fields | null, currency: string | null): string | null {
  if (!amounts) return null
  return stripeMajorText(
    amounts.unit_amount_decimal ?? amounts.unit_amount ?? amounts.amount_decimal ?? amounts.amount,
    currency,
  )
}

function inPacks(quantity: number | null, packs: Fields | null): number | null {
  const size = whole(packs?.divide_by, 1)
  if (quantity === null || size === null) return quantity
  return lowerText(packs?.round) === 'down' ? Math.floor(quantity / size) : Math.ceil(quantity / size)
}

/**
 * `discounts` (objects, or ids until expanded) and the older single `discount`, which some API versions send beside
 * it. An id whose object is nowhere in the event keeps its place, with terms unknown.
 */
function discountsOf(owner: Fields, currency: string | null): Discount[] {
  const single = fieldsOf(owner.discount)
  const listed = listOf(owner.discounts)
  if (listed.length === 0) return single ? [discountOf(single, currency)] : []
  return listed.map(entry =>
    discountOf(
      fieldsOf(entry) ?? (single && idOfReference(single) === entry ? single : { id: entry }),
      currency,
    ),
  )
}

/** Discounts that stand on it as objects, also those of its items. */
export function shownDiscounts(object: Fields): Fields[] {
  const items = listOf(fieldsOf(object.items)?.data).map(item => fieldsOf(item) ?? {})
  return [object, ...items].flatMap(owner =>
    [owner.discount, ...listOf(owner.discounts)].map(fieldsOf).filter(entry => entry !== null),
  )
}

function discountOf(discount: Fields, currency: string | null): Discount {
  const given = discount.coupon ?? fieldsOf(discount.source)?.coupon
  const coupon = fieldsOf(given) ?? {}
  const id = text(discount.id)
  const couponId = idOfReference(given)
  const promotionCodeId = idOfReference(discount.promotion_code)
  const startsAt = instant(discount.start)
  const endsAt = instant(discount.end)
  const products = listOf(fieldsOf(coupon.applies_to)?.products).map(idOfReference)
  const ofCurrency =
    knownCurrency(coupon.currency) === currency
      ? coupon
      : fieldsOf(fieldsOf(coupon.currency_options)?.[currency?.toLowerCase() ?? ''])
  const amountOff = stripeMinor(ofCurrency?.amount_off, currency)
  return {
    percentOff: decimalOrNull(coupon.percent_off),
    amountOff: amountOff !== null && amountOff >= 0 ? amountOff : null,
    duration: durationOf(coupon.duration, endsAt),
    endsAt,
    productIds: products.length > 0 ? products.filter(id => id !== null) : null,
    ...(id && { id }),
    ...(couponId && { couponId }),
    ...(promotionCodeId && { promotionCodeId }),
    ...(startsAt && { startsAt }),
  }
}
