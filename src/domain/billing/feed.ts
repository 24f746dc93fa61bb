/** Which events are about billing, and what they say: the one way from an event to the ledger. */

import type { NormalizedEvent } from '../events/events.ts'
import type { Told } from '../providers/adapter.ts'
import { adapterOf } from '../providers/adapters.ts'
import {
  carriesStripeObject,
  isStripeBillingEvent,
  isStripeObject,
  readBareStripe,
  readStripe,
} from '../providers/stripe/stripe.ts'
import { isCanonicalType, readCanonical } from './canonical.ts'
import { instant } from './fields.ts'
import type { BillingChange, Instant, Term } from './types.ts'

export type BillingEvent = Pick<
  NormalizedEvent,
  'eventType' | 'subject' | 'preset' | 'headers' | 'occurredAt'
>

/** `unrecognized`: it should have said something, and nothing of it was understood. */
type BillingReading = { changes: BillingChange[]; unrecognized: boolean }

/** What an event of any provider changes. Never throws. */
export function readBillingEvent(event: BillingEvent): BillingReading {
  const { eventType, subject } = event
  const occurredAt = event.occurredAt.getTime()
  const found = adapterOf(event.preset, subject, event.headers)
  if (found) {
    const { adapter, eventType: ownType, body } = found
    const told = adapter.tell({ eventType: ownType, body, occurredAt })
    const changes = (told ?? []).flatMap(entry => changeOfTold(entry, occurredAt))
    return { changes, unrecognized: told === null || (told.length > 0 && changes.length === 0) }
  }
  const change = isBillingEvent(eventType, subject) ? readBilling(eventType, subject, occurredAt) : null
  return change
    ? { changes: [change], unrecognized: false }
    : { changes: [], unrecognized: isUnrecognized(eventType, subject) }
}

function changeOfTold(told: Told, occurredAt: Instant): BillingChange[] {
  if ('term' in told)
    return [{ kind: 'terms', terms: [{ ...told.term, sourceAt: instant(told.at) ?? occurredAt }] }]
  const change = readCanonical(told.type, told.payload, occurredAt)
  if (change?.kind === 'subscription') {
    const { id, sourceAt } = change.version
    const terms = (told.coupons ?? []).map(
      (couponId): Term => ({
        ...{ kind: 'discount', id: `${id}/${couponId}`, sourceAt },
        ...{ couponId, subscription: id, ofCustomer: false },
      }),
    )
    return [{ ...change, ...(terms.length > 0 && { terms }) }]
  }
  if (change?.kind === 'cash' && told.isDispute)
    return [{ ...change, refunds: change.refunds.map(refund => ({ ...refund, kind: 'dispute' })) }]
  return change ? [change] : []
}

/** `subject` is the business object of the event; a Stripe event is told by its shape, whatever name it was given. */
export function isBillingEvent(eventType: string, subject: unknown): boolean {
  if (carriesStripeObject(subject)) return isStripeBillingEvent(subject)
  return isCanonicalType(eventType) || isForwardedStripeObject(eventType, subject)
}

/** What a canonical or a Stripe event changes; null when it is neither, or names no object. Never throws. */
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
/** An invoice that is only expected has no id: there is nothing to keep. */
const NOT_FACTS = new Set(['invoice.upcoming'])

/** Whether an event that says nothing to the ledger should have: its name is a billing event's. */
function isUnrecognized(eventType: string, subject: unknown): boolean {
  const own = (subject as { type?: unknown } | null)?.type
  const name = carriesStripeObject(subject) && typeof own === 'string' ? own : eventType
  return SEEMS_BILLING.test(name) && !NOT_FACTS.has(name)
}
