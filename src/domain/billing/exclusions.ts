/** Why something does not count, in words, and what to do about it. */

import type { Instant, ReasonCode, SubscriptionStatus } from './types.ts'

/** In the order in which reasons are looked for: the first that holds is the one given. */
export const REASONS: Record<ReasonCode, { reason: string; fixHint: string }> = {
  test_mode: {
    reason: 'The subscription belongs to the test mode of its billing system.',
    fixHint: 'Nothing to do: test data is kept apart and never counts.',
  },
  other_currency: {
    reason: 'The subscription is billed in another currency than this report.',
    fixHint: "Ask for the report in the subscription's currency; amounts are never converted.",
  },
  missing_currency: {
    reason: 'The subscription has no currency, or none that ISO 4217 knows.',
    fixHint: 'Send `currency` with the subscription as a three-letter ISO 4217 code.',
  },
  canceled: {
    reason: 'The subscription has ended.',
    fixHint:
      'Nothing to do, unless it should still run: then send its current state with a newer `updated_at`.',
  },
  incomplete: {
    reason: 'The first payment is not complete, or the status of the subscription is not known.',
    fixHint: 'Complete the first payment; if it is complete, send the subscription with its `status`.',
  },
  incomplete_expired: {
    reason: 'The first payment was never completed and the subscription has expired.',
    fixHint: 'Start a new subscription for this customer.',
  },
  unpaid: {
    reason: 'Payment has failed for good and the subscription is unpaid.',
    fixHint: 'Collect the open invoices or update the payment method.',
  },
  past_due: {
    reason: "The subscription has been past due for longer than the policy's days of grace.",
    fixHint: 'Collect the open invoices, or change `past_due_grace_days` of the policy.',
  },
  trialing: {
    reason: 'The subscription is in its trial.',
    fixHint: 'Counts once the trial is over and an event says that it is active.',
  },
  paused: {
    reason: 'The subscription, or the collection of its payments, is paused.',
    fixHint: 'Resume it in the billing system.',
  },
  not_started: {
    reason: 'The subscription starts in the future.',
    fixHint: 'Counts by itself from `started_at` on.',
  },
  missing_items: {
    reason: 'The subscription has no items.',
    fixHint: 'Send the subscription with its `items`.',
  },
  items_incomplete: {
    reason: 'The subscription has more items than its event listed; those that are known count.',
    fixHint: 'Send the subscription with all of its items.',
  },
  missing_price: {
    reason: 'The item has no price that can be read, or not in the currency of the subscription.',
    fixHint: 'Send `unit_amount` (zero or more, in major units) and, if not 1, `quantity`.',
  },
  missing_interval: {
    reason: 'The item does not say how often it is billed.',
    fixHint: 'Send `interval` (day, week, month or year) and `interval_count`.',
  },
  unsupported_interval: {
    reason: 'The billing interval of the item cannot be turned into months.',
    fixHint: 'Use day, week, month or year, with an `interval_count` of 1 or more.',
  },
  one_time_price: {
    reason: 'The item is billed once and does not recur.',
    fixHint: 'Nothing to do: one-time charges are not recurring revenue.',
  },
  metered_usage: {
    reason: 'The item is billed by usage, which is not known in advance.',
    fixHint: 'Nothing to do: usage shows up in invoiced and collected amounts.',
  },
  tiered_price_unknown: {
    reason: 'The item has a tiered price, and what its quantity comes to is not known.',
    fixHint: 'Send its `tiers` and `tiers_mode`, or the `unit_amount` that the quantity comes to on average.',
  },
  discount_terms_unknown: {
    reason: 'A discount applies whose terms are not known.',
    fixHint:
      'Send `percent_off` or `amount_off`, and `ends_at` where it is repeating; with Stripe, send `customer.discount.*` and `coupon.*` events too.',
  },
  free: {
    reason: 'The item costs nothing.',
    fixHint: 'Nothing to do, unless it should have a price.',
  },
  fully_discounted: {
    reason: 'Discounts take the whole price away.',
    fixHint: 'Counts by itself once the discount ends.',
  },
  pending_subscription: {
    reason: 'An invoice names this subscription, but the subscription itself has not arrived.',
    fixHint: 'Send the subscription, for instance by replaying its events from the billing system.',
  },
}

export type Exclusion = {
  subscriptionId: string
  itemId: string | null
  customer: string | null
  status: SubscriptionStatus | null
  code: ReasonCode
  /** Minor units of the report's currency; null where it cannot be priced in it. */
  excludedMrr: number | null
  since: Instant
}

/** The one row for a subscription of which only invoices are known. */
export function pendingExclusion(
  subscriptionId: string,
  customer: string | null,
  firstInvoiceAt: Instant,
): Exclusion {
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
