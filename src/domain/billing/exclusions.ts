/** Why something does not count, and what to do about it. */

import type { Instant, ReasonCode, SubscriptionStatus } from './types.ts'

/** In order of precedence: the first reason that applies is reported. */
export const REASONS: Record<ReasonCode, { reason: string; fixHint: string }> = {
  test_mode: {
    reason: 'The subscription belongs to the test mode of its billing system.',
    fixHint: 'No action needed: test data never counts.',
  },
  other_currency: {
    reason: "The subscription's currency is not the currency of this report.",
    fixHint: "Request the report in the subscription's currency, or with currency=reporting.",
  },
  billed_elsewhere: {
    reason: 'Another billing system charges the subscription and reports it.',
    fixHint: 'Connect that billing system as a source, for example Stripe for purchases with the store STRIPE.',
  },
  missing_currency: {
    reason: 'The subscription has no currency, or one that is not in ISO 4217.',
    fixHint: 'Send `currency` with the subscription as a three-letter ISO 4217 code.',
  },
  canceled: {
    reason: 'The subscription has ended.',
    fixHint:
      'No action needed. If the subscription should still be active, send its current state with a newer `updated_at`.',
  },
  incomplete: {
    reason: 'The first payment is not complete, or the status of the subscription is unknown.',
    fixHint: 'Complete the first payment; if it is complete, send the subscription with its `status`.',
  },
  incomplete_expired: {
    reason: 'The first payment was never completed and the subscription has expired.',
    fixHint: 'Start a new subscription for this customer.',
  },
  unpaid: {
    reason: 'All payment attempts failed and the subscription is unpaid.',
    fixHint: 'Collect the open invoices or update the payment method.',
  },
  past_due: {
    reason: "The subscription has been past due for longer than the policy's grace period.",
    fixHint: 'Collect the open invoices, or change `past_due_grace_days` in the policy.',
  },
  trialing: {
    reason: 'The subscription is in its trial.',
    fixHint: 'No action needed: it counts when the trial has ended and an event reports it as active.',
  },
  paused: {
    reason: 'The subscription, or the collection of its payments, is paused.',
    fixHint: 'Resume it in the billing system.',
  },
  not_started: {
    reason: 'The subscription starts in the future.',
    fixHint: 'No action needed: it counts from `started_at` on.',
  },
  missing_items: { reason: 'The subscription has no items.', fixHint: 'Send the subscription with its `items`.' },
  items_incomplete: {
    reason: 'The subscription has more items than its event listed. The known items count.',
    fixHint: 'Send the subscription with all of its items.',
  },
  missing_price: {
    reason: 'The item has no readable price in the currency of the subscription.',
    fixHint:
      'Send `unit_amount` (zero or more, in major units) and, if not 1, `quantity`. Their product can be at most 10^15 minor units (such as cents).',
  },
  one_time_price: {
    reason: 'The item is billed once and does not recur.',
    fixHint: 'No action needed: one-time charges are not recurring revenue.',
  },
  missing_interval: {
    reason: 'The item has no billing interval.',
    fixHint: 'Send `interval` (day, week, month or year) and `interval_count`.',
  },
  unsupported_interval: {
    reason: 'The billing interval of the item cannot be converted to months.',
    fixHint: 'Use day, week, month or year, with an `interval_count` of 1 or more.',
  },
  metered_usage: {
    reason: 'The item is billed by usage, which is unknown in advance.',
    fixHint: 'No action needed: usage is part of invoiced and collected amounts.',
  },
  tiered_price_unknown: {
    reason: 'The item has a tiered price whose tiers are unknown.',
    fixHint: 'Send `tiers` and `tiers_mode`, or the average `unit_amount` for the quantity.',
  },
  discount_terms_unknown: {
    reason: 'A discount applies whose terms are unknown, or whose amount is in another currency.',
    fixHint:
      'Send `percent_off` or `amount_off`, and `ends_at` for a repeating discount. With Stripe, also send `customer.discount.*` and `coupon.*` events.',
  },
  free: {
    reason: 'The item costs nothing.',
    fixHint: 'No action needed. If the item should have a price, set it in the billing system.',
  },
  fully_discounted: {
    reason: 'Discounts reduce the price to 0.',
    fixHint: 'No action needed: it counts when the discount ends.',
  },
  pending_subscription: {
    reason: 'An invoice refers to this subscription, but the subscription itself has not been received.',
    fixHint: 'Send the subscription, for example by replaying its events from the billing system.',
  },
}

export type Exclusion = {
  subscriptionId: string
  itemId: string | null
  customer: string | null
  status: SubscriptionStatus | null
  code: ReasonCode
  /** Minor units of the report's currency; null: it cannot be priced. */
  excludedMrr: number | null
  since: Instant
}

/** The row of a subscription that is known only from invoices. */
export function pendingExclusion(subscriptionId: string, customer: string | null, firstInvoiceAt: Instant): Exclusion {
  return {
    subscriptionId,
    itemId: null,
    customer,
    status: null,
    code: 'pending_subscription',
    excludedMrr: null,
    since: firstInvoiceAt,
  }
}

/** The provider that sent a subscription; null: it came in canonical fields. */
type Provider = string | null

/** Hints with the provider's field names and units: Stripe's amounts are in minor units. */
const STRIPE_HINTS: Partial<Record<ReasonCode, string>> = {
  missing_items: "Send Stripe's subscription object with its `items.data`.",
  missing_price:
    "Set the price in the subscription's currency in Stripe (`unit_amount` in minor units, or `currency_options`), and have Stripe send the subscription again.",
  missing_interval:
    'Set a recurring price for the item in Stripe (`recurring.interval`), and have Stripe send the subscription again.',
  tiered_price_unknown:
    'Stripe events do not include tiers. Send the subscription from the API with `expand[]=items.data.price.tiers`.',
}

const PROVIDER_HINTS: Partial<Record<ReasonCode, (name: string) => string>> = {
  missing_items: name => `Have ${name} send the subscription again, with its items.`,
  missing_price: name =>
    `Set a price in the currency of the subscription in ${name}, and have it send the subscription again.`,
  missing_interval: name => `Set the billing interval of the item in ${name}, and have it send the subscription again.`,
  tiered_price_unknown: name => `Have ${name} send the subscription with the tiers of its price, or with its amount.`,
}

const NAMES: Record<string, string> = {
  ...{ shopify: 'Shopify', woocommerce: 'WooCommerce', paddle: 'Paddle', chargebee: 'Chargebee' },
  ...{ recurly: 'Recurly', lago: 'Lago', revenuecat: 'RevenueCat' },
}

/** Whether the hint depends on the provider. */
export const hasProviderHints = (code: ReasonCode): boolean => code in PROVIDER_HINTS

/** What to do about it, with the provider's field names. */
export function fixHint(code: ReasonCode, provider: Provider): string {
  const name = provider === null ? undefined : NAMES[provider]
  const hint = provider === 'stripe' ? STRIPE_HINTS[code] : name && PROVIDER_HINTS[code]?.(name)
  return hint || REASONS[code].fixHint
}
