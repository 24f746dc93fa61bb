/** Canonical `subscription.*`, `invoice.*`, `refund.*`, `credit_note.*` and `customer.*` events. The payload is the object, with amounts in major units. */

import { knownCurrency, toMajor, toMinor } from '../money.ts'
import {
  type Fields,
  type GivenItem,
  isEffectiveRefund,
  limitTerms,
  readAcquisition,
  readChange,
  readDecimalText,
  readDuration,
  readFailure,
  readFlag,
  readId,
  readInstant,
  readInteger,
  readInterval,
  readInvoiceStatus,
  readList,
  readLowerText,
  readMetadata,
  readObject,
  readQuantity,
  readServices,
  readSubscriptionStatus,
  readText,
  readTiers,
  readUsageType,
  sumPercents,
} from './fields.ts'
import { stripNamespaces } from './namespace.ts'
import type {
  BillingChange,
  CreditNote,
  Discount,
  Instant,
  InvoiceVersion,
  Item,
  Refund,
  ServicePeriod,
  SubscriptionVersion,
  Term,
} from './types.ts'
import { findUnreadable, withUnreadable } from './unreadable.ts'

const CANONICAL = /^(subscription|invoice|refund|credit_note)\.\w|^(customer)\.(?:created|updated)$/

export function isCanonicalType(eventType: string): boolean {
  return CANONICAL.test(eventType)
}

/** null: the type is not a canonical one, or the payload has no id. */
export function readCanonical(eventType: string, payload: unknown, occurredAt: Instant): BillingChange | null {
  const object = readObject(payload)
  const [, money, person] = CANONICAL.exec(eventType) ?? []
  const subject = money ?? person
  const id = readText(object?.id)
  if (!object || !subject || !id) return null
  const sourceAt = readInstant(object.updated_at) ?? occurredAt
  if (subject === 'subscription') {
    const version = readSubscription(eventType, id, object, sourceAt)
    return { kind: 'subscription', version, ...withUnreadable(findUnreadable('subscription', object)) }
  }
  // Test data never counts. Subscriptions are kept, so that the exclusions report can list them.
  if (object.livemode === false) return null
  if (subject === 'customer') return { kind: 'terms', terms: [readCustomer(id, object, sourceAt)] }
  if (subject === 'invoice') {
    const version = readInvoice(eventType, id, object, sourceAt)
    return { kind: 'invoice', version, ...withUnreadable(findUnreadable('invoice', object)) }
  }
  if (subject === 'credit_note') {
    const credits = [readCreditNote(eventType, id, object, sourceAt)]
    return { kind: 'cash', payments: [], refunds: [], credits, ...withUnreadable(findUnreadable('refund', object)) }
  }
  const refunds = [readRefund(eventType, id, object, sourceAt)]
  return { kind: 'cash', payments: [], refunds, ...withUnreadable(findUnreadable('refund', object)) }
}

function readSubscription(eventType: string, id: string, object: Fields, sourceAt: Instant): SubscriptionVersion {
  const currency = knownCurrency(object.currency)
  const items = readList(object.items).map(item => readObject(item) ?? {})
  const resumesAt = readInstant(object.resumes_at)
  return {
    id,
    sourceAt,
    change: readChange(eventType),
    customer: readId(object.customer),
    customerName: readText(object.customer_name) ?? readText(readObject(object.customer)?.name),
    customerEmail: readText(object.customer_email) ?? readText(readObject(object.customer)?.email),
    status: readSubscriptionStatus(eventType, object.status),
    currency,
    startedAt: readInstant(object.started_at),
    trialEnd: readInstant(object.trial_end),
    currentPeriodStart: readInstant(object.current_period_start),
    currentPeriodEnd: readInstant(object.current_period_end),
    billingAnchor: readInstant(object.billing_cycle_anchor),
    cancelAtPeriodEnd: readFlag(object.cancel_at_period_end),
    cancelAt: readInstant(object.cancel_at),
    canceledAt: readInstant(object.canceled_at),
    endedAt: readInstant(object.ended_at),
    cancellationReason: readText(object.cancellation_reason),
    collectionMethod: readText(object.collection_method),
    acquisition: readAcquisition(object.acquisition, object.metadata),
    ...limitTerms(
      items.map(item => readItem(item, currency, object)),
      readList(object.discounts).map(discount => readDiscount(readObject(discount) ?? {}, currency)),
    ),
    ...readSequence(object),
    ...(object.livemode === false && { testMode: true }),
    ...(object.billed_elsewhere === true && { billedElsewhere: true }),
    ...(object.items_unchanged === true && { itemsUnchanged: true }),
    ...(resumesAt !== null && { resumesAt }),
    ...readMetadata(object.metadata),
  }
}

function readCustomer(id: string, object: Fields, sourceAt: Instant): Term {
  const name = readText(object.name) ?? readText(object.customer_name)
  const email = readText(object.email) ?? readText(object.customer_email)
  return { kind: 'customer', id, sourceAt, ...(name && { name }), ...(email && { email }) }
}

function readSequence(object: Fields): { sequence?: number } {
  const sequence = readInteger(object.sequence, 0)
  return sequence === null ? {} : { sequence }
}

/** From the item, else from the subscription. `tax_mode` is a field of adapters. */
function readTax(item: Fields, owner: Fields): Pick<Item, 'inclusiveTax' | 'taxMode'> {
  const isInclusive = readFlag(item.tax_inclusive ?? owner.tax_inclusive)
  const percent = isInclusive ? readDecimalText(item.tax_percent ?? owner.tax_percent) : null
  if (isInclusive && percent === null) return { taxMode: 'inclusive' }
  const inclusiveTax = sumPercents([percent])
  if (inclusiveTax) return { inclusiveTax }
  return item.tax_mode === 'unknown' || item.tax_mode === 'exclusive' ? { taxMode: item.tax_mode } : {}
}

function readItem(item: Fields, currency: string | null, owner: Fields): GivenItem {
  const quantity = readQuantity(item.quantity)
  const tiers = readTiers(item.tiers, item.tiers_mode, (tier, name) => readDecimalText(tier[name]))
  return {
    id: readText(item.id),
    priceId: readText(item.price_id),
    productId: readText(item.product_id),
    name: readText(item.name),
    quantity,
    billedQuantity: quantity,
    unitAmount: readDecimalText(item.unit_amount),
    tiered: readList(item.tiers).length > 0 || readLowerText(item.billing_scheme) === 'tiered',
    ...(tiers && { tiers }),
    ...readTax(item, owner),
    ...(item.price_from_invoice === true && { priceFromInvoice: true }),
    ...readInterval(item.interval, item.interval_count),
    usageType: readUsageType(item.type, item.usage_type, item.interval),
    currentPeriodStart: readInstant(item.current_period_start),
    currentPeriodEnd: readInstant(item.current_period_end),
    discounts: readList(item.discounts).map(discount => readDiscount(readObject(discount) ?? {}, currency)),
  }
}

function readDiscount(discount: Fields, currency: string | null): Discount {
  const endsAt = readInstant(discount.ends_at)
  const foreign = discount.currency != null && knownCurrency(discount.currency) !== currency
  const amountOff = currency && !foreign ? toMinor(discount.amount_off, currency) : null
  const couponId = readText(discount.coupon)
  const startsAt = readInstant(discount.starts_at)
  return {
    ...(couponId !== null && { couponId, ...(startsAt !== null && { startsAt }) }),
    percentOff: readDecimalText(discount.percent_off),
    amountOff: amountOff !== null && amountOff >= 0 ? amountOff : null,
    duration: readDuration(discount.duration, endsAt),
    endsAt,
    productIds: readTargets(discount.applies_to),
  }
}

/** Ids of products or prices; null: all items. */
function readTargets(value: unknown): string[] | null {
  if (!Array.isArray(value)) return null
  return value.flatMap(id => readText(id) ?? [])
}

function readInvoice(eventType: string, id: string, object: Fields, sourceAt: Instant): InvoiceVersion {
  const currency = knownCurrency(object.currency)
  const amount = (value: unknown) => (currency ? toMinor(value, currency) : null)
  return {
    id,
    sourceAt,
    ...readSequence(object),
    number: readText(object.number),
    subscriptionId: readId(object.subscription),
    customer: readId(object.customer),
    customerName: readText(object.customer_name),
    customerEmail: readText(object.customer_email),
    status: readInvoiceStatus(eventType, object.status),
    currency,
    total: amount(object.total),
    tax: amount(object.tax),
    amountDue: amount(object.amount_due),
    amountPaid: amount(object.amount_paid),
    amountRemaining: amount(object.amount_remaining),
    attemptCount: readInteger(object.attempt_count, 0) ?? 0,
    nextPaymentAttemptAt: readInstant(object.next_payment_attempt),
    dueAt: readInstant(object.due_date),
    finalizedAt: readInstant(object.finalized_at),
    paidAt: readInstant(object.paid_at),
    failure: readFailure(eventType, readText(object.failure_code), readText(object.failure_message)),
    ...readServices(readLines(object, amount)),
  }
}

/** The lines, else the whole invoice as one line. */
function readLines(object: Fields, amount: (value: unknown) => number | null): ServicePeriod[] {
  const lines = readList(object.lines).map(line => readObject(line) ?? {})
  if (lines.length > 0)
    return lines.map(line => ({
      amount: amount(line.amount) ?? 0,
      from: readInstant(line.period_start),
      to: readInstant(line.period_end),
    }))
  const net = (amount(object.total) ?? amount(object.amount_due) ?? 0) - (amount(object.tax) ?? 0)
  return [{ amount: net, from: readInstant(object.period_start), to: readInstant(object.period_end) }]
}

function readCreditNote(eventType: string, id: string, object: Fields, sourceAt: Instant): CreditNote {
  const currency = knownCurrency(object.currency)
  const amount = currency ? toMinor(object.amount, currency) : null
  const tax = currency ? (toMinor(object.tax, currency) ?? 0) : 0
  return {
    id,
    sourceAt,
    invoiceId: readId(object.invoice),
    amount: amount !== null && amount >= tax ? amount - tax : null,
    currency,
    createdAt: readInstant(object.created_at) ?? sourceAt,
    counts: isEffectiveRefund(eventType, object.status) && readInvoiceStatus(eventType, object.status) !== 'void',
  }
}

function readRefund(eventType: string, id: string, object: Fields, sourceAt: Instant): Refund {
  const currency = knownCurrency(object.currency)
  const amount = currency ? toMinor(object.amount, currency) : null
  const chargeId = readId(object.charge)
  return {
    id,
    sourceAt,
    ...(chargeId !== null && { paymentId: chargeId }),
    invoiceId: readId(object.invoice),
    chargeId,
    customer: readId(object.customer),
    amount: amount !== null && amount >= 0 ? amount : null,
    currency,
    createdAt: readInstant(object.created_at) ?? sourceAt,
    counts: isEffectiveRefund(eventType, object.status),
    fromChargeTotal: false,
  }
}

/** The payload of a canonical `subscription.updated` event: amounts in major units, times in ISO 8601. */
export function toCanonicalSubscription(version: SubscriptionVersion) {
  const { currency } = version
  return {
    id: stripNamespaces(version.id),
    customer: version.customer && stripNamespaces(version.customer),
    customer_name: version.customerName,
    customer_email: version.customerEmail,
    status: version.status,
    currency,
    started_at: formatTime(version.startedAt),
    trial_end: formatTime(version.trialEnd),
    current_period_start: formatTime(version.currentPeriodStart),
    current_period_end: formatTime(version.currentPeriodEnd),
    cancel_at_period_end: version.cancelAtPeriodEnd,
    cancel_at: formatTime(version.cancelAt),
    canceled_at: formatTime(version.canceledAt),
    ended_at: formatTime(version.endedAt),
    cancellation_reason: version.cancellationReason,
    collection_method: version.collectionMethod,
    updated_at: formatTime(version.sourceAt),
    acquisition: version.acquisition,
    metadata: { ...version.metadata, ...(version.country !== undefined && { country: version.country }) },
    items: version.items.map(item => toCanonicalItem(item)),
    discounts: version.discounts.map(discount => toCanonicalDiscount(discount, currency)),
    livemode: version.testMode !== true,
  }
}

function toCanonicalItem(item: Item) {
  return {
    id: item.id,
    price_id: item.priceId,
    product_id: item.productId,
    name: item.name,
    quantity: item.quantity,
    unit_amount: item.unitAmount === null ? null : Number(item.unitAmount),
    interval: item.interval,
    interval_count: item.intervalCount,
    usage_type: item.usageType,
  }
}

function toCanonicalDiscount(discount: Discount, currency: string | null) {
  return {
    ...(discount.percentOff !== null && { percent_off: Number(discount.percentOff) }),
    ...(discount.amountOff !== null && { amount_off: currency ? toMajor(discount.amountOff, currency) : null }),
    duration: discount.duration,
    ends_at: formatTime(discount.endsAt),
  }
}

function formatTime(at: Instant | null): string | null {
  return at === null ? null : new Date(at).toISOString()
}
