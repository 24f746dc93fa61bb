/** Which events are about billing, and what they say: the one way from an event to the ledger. */

import {
  isStripeBillingEvent,
  isStripeEvent,
  isStripeObject,
  readBareStripe,
  readStripe,
} from '../providers/stripe/stripe.ts'
import { isCanonicalType, readCanonical } from './canonical.ts'
import type { BillingChange, Instant } from './types.ts'

/** `subject` is the business object of the event; a Stripe event is told by its shape, whatever name it was given. */
export function isBillingEvent(eventType: string, subject: unknown): boolean {
  if (isStripeEvent(subject)) return isStripeBillingEvent(subject)
  return isCanonicalType(eventType) || isForwardedStripeObject(eventType, subject)
}

/** What the event changes; null when it is no billing event, or one that names no object. Never throws. */
export function readBilling(eventType: string, subject: unknown, occurredAt: Instant): BillingChange | null {
  if (isStripeEvent(subject)) return readStripe(subject, occurredAt)
  if (isForwardedStripeObject(eventType, subject)) return readBareStripe(eventType, subject, occurredAt)
  return readCanonical(eventType, subject, occurredAt)
}

function isForwardedStripeObject(eventType: string, subject: unknown): boolean {
  return (
    isStripeObject(subject) &&
    /^((customer\.)?(subscription|discount)|customer|coupon|promotion_code|invoice|invoice_payment|payment_intent|credit_note|refund|charge)\.\w/.test(
      eventType,
    )
  )
}

const SEEMS_BILLING =
  /(^|[./-])(subscriptions?|invoices?|refunds?|charges?|credit_notes?|transactions?|payments?|disputes?|adjustments?)([./-]|$)/i
/** An invoice that is only expected has no id: there is nothing to keep. */
const NOT_FACTS = new Set(['invoice.upcoming'])

/** Whether an event that says nothing to the ledger should have: its name is a billing event's. */
export function isUnrecognized(eventType: string, subject: unknown): boolean {
  const own = (subject as { type?: unknown } | null)?.type
  const name = isStripeEvent(subject) && typeof own === 'string' ? own : eventType
  return SEEMS_BILLING.test(name) && !NOT_FACTS.has(name)
}
