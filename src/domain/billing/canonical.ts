/** Canonical `subscription.*`, `invoice.*`, `refund.*` and `customer.*` events: the payload is the object, amounts in major units. */

import { knownCurrency, toMinor } from '../money.ts'
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
  listOf,
  lowerText,
  percentSum,
  quantityOf,
  termOf,
  text,
  tiersOf,
  usageTypeOf,
  whole,
} from './fields.ts'
import type {
  BillingChange,
  Discount,
  Instant,
  InvoiceVersion,
  Refund,
  SubscriptionVersion,
  Term,
} from './types.ts'
import {
  changeOf,
  durationOf,
  failureOf,
  invoiceStatus,
  refundCounts,
  subscriptionStatus,
} from './vocabulary.ts'

const CANONICAL = /^(subscription|invoice|refund)\.\w|^(customer)\.(?:created|updated)$/

export function isCanonicalType(eventType: string): boolean {
  return CANONICAL.test(eventType)
}

/** What a canonical event says; null when its type is none of ours or its payload names no object. */
export function readCanonical(
  eventType: string,
  payload: unknown,
  occurredAt: Instant,
): BillingChange | null {
  const object = fieldsOf(payload)
  const [, money, person] = CANONICAL.exec(eventType) ?? []
  const subject = money ?? person
  const id = text(object?.id)
  if (!object || !subject || !id) return null
  const sourceAt = instant(object.updated_at) ?? occurredAt
  if (subject === 'subscription') {
    return { kind: 'subscription', version: subscriptionOf(eventType, id, object, sourceAt) }
  }
  // test money is no money; subscriptions are kept, to say why they do not count
  if (object.livemode === false) return null
  if (subject === 'customer') return { kind: 'terms', terms: [customerOf(id, object, sourceAt)] }
  if (subject === 'invoice') return { kind: 'invoice', version: invoiceOf(eventType, id, object, sourceAt) }
  return { kind: 'cash', payments: [], refunds: [refundOf(eventType, id, object, sourceAt)] }
}

function subscriptionOf(
  eventType: string,
  id: string,
  object: Fields,
  sourceAt: Instant,
): SubscriptionVersion {
  const currency = knownCurrency(object.currency)
  const items = listOf(object.items).map(item => fieldsOf(item) ?? {})
  const resumesAt = instant(object.resumes_at)
  return {
    id,
    sourceAt,
    change: changeOf(eventType),
    customer: idOfReference(object.customer),
    customerName: text(object.customer_name) ?? text(fieldsOf(object.customer)?.name),
    customerEmail: text(object.customer_email) ?? text(fieldsOf(object.customer)?.email),
    status: subscriptionStatus(eventType, object.status),
    currency,
    startedAt: instant(object.started_at),
    trialEnd: instant(object.trial_end),
    currentPeriodStart: instant(object.current_period_start),
    currentPeriodEnd: instant(object.current_period_end),
    billingAnchor: instant(object.billing_cycle_anchor),
    cancelAtPeriodEnd: flag(object.cancel_at_period_end),
    cancelAt: instant(object.cancel_at),
    canceledAt: instant(object.canceled_at),
    endedAt: instant(object.ended_at),
    cancellationReason: text(object.cancellation_reason),
    collectionMethod: text(object.collection_method),
    acquisition: acquisitionOf(object.acquisition, object.metadata),
    ...boundedTerms(
      items.map(item => itemOf(item, currency, object)),
      listOf(object.discounts).map(discount => discountOf(fieldsOf(discount) ?? {}, currency)),
    ),
    ...sequenceOf(object),
    ...(object.livemode === false && { testMode: true }),
    ...(object.items_unchanged === true && { itemsUntold: true }),
    ...(items.some(item => isTaxUnknown(item, object)) && { inclusiveTaxUnknown: true }),
    ...(resumesAt !== null && { resumesAt }),
    ...countryOf(object.metadata),
  }
}

function customerOf(id: string, object: Fields, sourceAt: Instant): Term {
  const name = text(object.name) ?? text(object.customer_name)
  const email = text(object.email) ?? text(object.customer_email)
  return { kind: 'customer', id, sourceAt, ...(name && { name }), ...(email && { email }) }
}

function sequenceOf(object: Fields): { sequence?: number } {
  const sequence = whole(object.sequence, 0)
  return sequence === null ? {} : { sequence }
}

/** Said of the item, or else of the subscription. */
function taxOf(item: Fields, owner: Fields): { inclusive: boolean; percent: string | null } {
  const inclusive = flag(item.tax_inclusive ?? owner.tax_inclusive)
  return { inclusive, percent: inclusive ? decimalOrNull(item.tax_percent ?? owner.tax_percent) : null }
}

function isTaxUnknown(item: Fields, owner: Fields): boolean {
  const { inclusive, percent } = taxOf(item, owner)
  return inclusive && percent === null
}

function itemOf(item: Fields, currency: string | null, owner: Fields): GivenItem {
  const quantity = quantityOf(item.quantity)
  const tiers = tiersOf(item.tiers, item.tiers_mode, (tier, name) => decimalOrNull(tier[name]))
  const inclusiveTax = percentSum([taxOf(item, owner).percent])
  return {
    id: text(item.id),
    priceId: text(item.price_id),
    productId: text(item.product_id),
    name: text(item.name),
    quantity,
    billedQuantity: quantity,
    unitAmount: decimalOrNull(item.unit_amount),
    tiered: listOf(item.tiers).length > 0 || lowerText(item.billing_scheme) === 'tiered',
    ...(tiers && { tiers }),
    ...(inclusiveTax && { inclusiveTax }),
    ...termOf(item.interval, item.interval_count),
    usageType: usageTypeOf(item.type, item.usage_type, item.interval),
    currentPeriodStart: instant(item.current_period_start),
    currentPeriodEnd: instant(item.current_period_end),
    discounts: listOf(item.discounts).map(discount => discountOf(fieldsOf(discount) ?? {}, currency)),
  }
}

function discountOf(discount: Fields, currency: string | null): Discount {
  const endsAt = instant(discount.ends_at)
  const foreign = discount.currency != null && knownCurrency(discount.currency) !== currency
  const amountOff = currency && !foreign ? toMinor(discount.amount_off, currency) : null
  const couponId = text(discount.coupon)
  const startsAt = instant(discount.starts_at)
  return {
    ...(couponId !== null && { couponId, ...(startsAt !== null && { startsAt }) }),
    percentOff: decimalOrNull(discount.percent_off),
    amountOff: amountOff !== null && amountOff >= 0 ? amountOff : null,
    duration: durationOf(discount.duration, endsAt),
    endsAt,
    productIds: null,
  }
}

function invoiceOf(eventType: string, id: string, object: Fields, sourceAt: Instant): InvoiceVersion {
  const currency = knownCurrency(object.currency)
  const amount = (value: unknown) => (currency ? toMinor(value, currency) : null)
  return {
    id,
    sourceAt,
    ...sequenceOf(object),
    number: text(object.number),
    subscriptionId: idOfReference(object.subscription),
    customer: idOfReference(object.customer),
    customerName: text(object.customer_name),
    customerEmail: text(object.customer_email),
    status: invoiceStatus(eventType, object.status),
    currency,
    total: amount(object.total),
    tax: amount(object.tax),
    amountDue: amount(object.amount_due),
    amountPaid: amount(object.amount_paid),
    amountRemaining: amount(object.amount_remaining),
    attemptCount: whole(object.attempt_count, 0) ?? 0,
    nextPaymentAttemptAt: instant(object.next_payment_attempt),
    dueAt: instant(object.due_date),
    finalizedAt: instant(object.finalized_at),
    paidAt: instant(object.paid_at),
    failure: failureOf(eventType, text(object.failure_code), text(object.failure_message)),
  }
}

function refundOf(eventType: string, id: string, object: Fields, sourceAt: Instant): Refund {
  const currency = knownCurrency(object.currency)
  const amount = currency ? toMinor(object.amount, currency) : null
  const chargeId = idOfReference(object.charge)
  return {
    id,
    sourceAt,
    ...(chargeId !== null && { paymentId: chargeId }),
    invoiceId: idOfReference(object.invoice),
    chargeId,
    customer: idOfReference(object.customer),
    amount: amount !== null && amount >= 0 ? amount : null,
    currency,
    createdAt: instant(object.created_at) ?? sourceAt,
    counts: refundCounts(eventType, object.status),
    fromChargeTotal: false,
  }
}
