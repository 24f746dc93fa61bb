import { toMajor } from '../money.ts'
import { withoutNamespaces } from './namespace.ts'
import type { Discount, Instant, Item, SubscriptionVersion } from './types.ts'

/** A subscription as the canonical event `subscription.updated` would tell it: amounts in major units, instants in ISO 8601. */
export function canonicalSubscription(version: SubscriptionVersion) {
  const { currency } = version
  return {
    id: withoutNamespaces(version.id),
    customer: version.customer && withoutNamespaces(version.customer),
    customer_name: version.customerName,
    customer_email: version.customerEmail,
    status: version.status,
    currency,
    started_at: time(version.startedAt),
    trial_end: time(version.trialEnd),
    current_period_start: time(version.currentPeriodStart),
    current_period_end: time(version.currentPeriodEnd),
    cancel_at_period_end: version.cancelAtPeriodEnd,
    cancel_at: time(version.cancelAt),
    canceled_at: time(version.canceledAt),
    ended_at: time(version.endedAt),
    cancellation_reason: version.cancellationReason,
    collection_method: version.collectionMethod,
    updated_at: time(version.sourceAt),
    acquisition: version.acquisition,
    metadata: version.country === undefined ? {} : { country: version.country },
    items: version.items.map(item => canonicalItem(item)),
    discounts: version.discounts.map(discount => canonicalDiscount(discount, currency)),
    livemode: version.testMode !== true,
  }
}

function canonicalItem(item: Item) {
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

function canonicalDiscount(discount: Discount, currency: string | null) {
  return {
    ...(discount.percentOff !== null && { percent_off: Number(discount.percentOff) }),
    ...(discount.amountOff !== null && {
      amount_off: currency ? toMajor(discount.amountOff, currency) : null,
    }),
    duration: discount.duration,
    ends_at: time(discount.endsAt),
  }
}

function time(at: Instant | null): string | null {
  return at === null ? null : new Date(at).toISOString()
}
