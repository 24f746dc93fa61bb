/** Converts events of any provider to billing changes. Every event reaches the ledger through this file. */

import type { NormalizedEvent } from '../events/types.ts'
import type { ProviderFact } from '../providers/adapter.ts'
import { findAdapter } from '../providers/adapters.ts'
import {
  carriesStripeObject,
  isStripeBillingEvent,
  isStripeObject,
  isThinEvent,
  readBareStripe,
  readStripe,
} from '../providers/stripe/stripe.ts'
import { isCanonicalType, readCanonical } from './canonical.ts'
import { readInstant } from './fields.ts'
import type { BillingChange, Instant, Term } from './types.ts'

export type BillingEvent = Pick<NormalizedEvent, 'eventType' | 'subject' | 'preset' | 'headers' | 'occurredAt'>

/** `unrecognized`: it looks like a billing event, but no part of it could be read. */
type BillingReading = { changes: BillingChange[]; unrecognized: boolean }

/** Never throws. */
export function readBillingEvent(event: BillingEvent): BillingReading {
  const { eventType, subject } = event
  const occurredAt = event.occurredAt.getTime()
  const found = findAdapter(event.preset, subject, event.headers)
  if (found) {
    const { adapter, eventType: ownType, body } = found
    const facts = adapter.read({ eventType: ownType, body, occurredAt })
    const changes = (facts ?? []).flatMap(entry => toBillingChanges(entry, occurredAt))
    return { changes, unrecognized: facts === null || (facts.length > 0 && changes.length === 0) }
  }
  const change = isBillingEvent(eventType, subject) ? readBilling(eventType, subject, occurredAt) : null
  return change
    ? { changes: [change], unrecognized: false }
    : { changes: [], unrecognized: isUnrecognized(eventType, subject) }
}

function toBillingChanges(fact: ProviderFact, occurredAt: Instant): BillingChange[] {
  if ('term' in fact)
    return [{ kind: 'terms', terms: [{ ...fact.term, sourceAt: readInstant(fact.at) ?? occurredAt }] }]
  const change = readCanonical(fact.type, fact.payload, occurredAt)
  if (change?.kind === 'subscription') {
    const { id, sourceAt } = change.version
    const terms = (fact.coupons ?? []).map(
      (couponId): Term => ({
        ...{ kind: 'discount', id: `${id}/${couponId}`, sourceAt },
        ...{ couponId, subscription: id, ofCustomer: false },
      }),
    )
    return [{ ...change, ...(terms.length > 0 && { terms }) }]
  }
  if (change?.kind === 'cash' && fact.isDispute)
    return [{ ...change, refunds: change.refunds.map(refund => ({ ...refund, kind: 'dispute' })) }]
  return change ? [change] : []
}

/** `subject` is the business object of the event. A Stripe event is recognized by its shape, not by its type. */
export function isBillingEvent(eventType: string, subject: unknown): boolean {
  if (carriesStripeObject(subject)) return isStripeBillingEvent(subject)
  return isCanonicalType(eventType) || isForwardedStripeObject(eventType, subject)
}

/** Reads a canonical or Stripe event; null: it is neither, or has no id. Never throws. */
export function readBilling(eventType: string, subject: unknown, occurredAt: Instant): BillingChange | null {
  if (carriesStripeObject(subject)) return readStripe(subject, occurredAt)
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
/** An upcoming invoice has no id, so there is nothing to store. */
const NOT_FACTS = new Set(['invoice.upcoming'])

/** Whether an event without billing changes has the name of a billing event. */
function isUnrecognized(eventType: string, subject: unknown): boolean {
  const own = (subject as { type?: unknown } | null)?.type
  const name = carriesStripeObject(subject) && typeof own === 'string' ? own : eventType
  return isThinEvent(subject) || (SEEMS_BILLING.test(name) && !NOT_FACTS.has(name))
}
