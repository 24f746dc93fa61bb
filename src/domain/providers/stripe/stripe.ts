/** Native Stripe events, in the object shapes before and after the 2025 API versions. */

import { type Fields, readInstant, readObject, readText } from '../../billing/fields.ts'
import type { BillingChange, Instant, Term } from '../../billing/types.ts'
import { readCreditNote, readDispute, readInvoice, readInvoicePayments, readPayments, readRefunds } from './cash.ts'
import type { StripeSubject } from './objects.ts'
import { readSubscription, readSubscriptionTerms, readTerms } from './subscription.ts'

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
      return {
        kind: 'invoice',
        version: readInvoice(id, subject),
        payments: readInvoicePayments(id, subject),
      }
    case 'dispute':
      return { kind: 'cash', payments: [], refunds: [readDispute(id, subject)] }
    default: {
      const payments = readPayments(id, subject)
      const refunds = subject.object.object === 'credit_note' ? readCreditNote(id, subject) : readRefunds(subject)
      return payments.length > 0 || refunds.length > 0 ? { kind: 'cash', payments, refunds } : null
    }
  }
}

function termsShown(id: string, subject: StripeSubject): { terms?: Term[] } {
  const terms = readSubscriptionTerms(id, subject)
  return terms.length > 0 ? { terms } : {}
}
