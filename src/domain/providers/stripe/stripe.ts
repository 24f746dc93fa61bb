/** Native Stripe events, in the object shapes before and after the 2025 API versions. */

import { type Fields, readInstant, readObject, readText } from '../../billing/fields.ts'
import type { BillingChange, Instant, Term } from '../../billing/types.ts'
import { creditNoteOf, disputeOf, invoiceOf, paymentsNamedBy, paymentsOf, refundsOf } from './cash.ts'
import type { StripeSubject } from './objects.ts'
import { subscriptionOf, termsOf, termsShownBy } from './subscription.ts'

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

/** What the name of an event says it is about; the object itself has the last word. */
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

/** A `type` beside the object in `data` tells Stripe's `invoice.paid` from the canonical one. */
export function carriesStripeObject(value: unknown): boolean {
  const event = readObject(value)
  return typeof event?.type === 'string' && readObject(readObject(event.data)?.object) !== null
}

/** One of Stripe's own objects; canonical payloads have neither `object` nor a numeric `created`. */
export function isStripeObject(value: unknown): boolean {
  const fields = readObject(value)
  return typeof fields?.created === 'number' && BILLING_OBJECTS.has(fields.object as string)
}

export function isStripeBillingEvent(value: unknown): boolean {
  return carriesStripeObject(value) && aboutOf(value as Fields) !== null
}

function aboutOf(event: Fields): string | null {
  const byType = OBJECT_BY_TYPE.find(([type]) => type.test(event.type as string))?.[1]
  const own = readText(readObject(readObject(event.data)?.object)?.object)
  if (!byType || (own !== null && !BILLING_OBJECTS.has(own))) return null
  return own ?? byType
}

/** What a Stripe event says about billing; null when it says nothing. */
export function readStripe(value: unknown, occurredAt: Instant): BillingChange | null {
  const event = readObject(value)
  if (!event || !isStripeBillingEvent(event)) return null
  const data = readObject(event.data)!
  return changeOfObject({
    type: event.type as string,
    object: {
      ...readObject(data.object),
      object: aboutOf(event),
      ...(event.livemode === false && { livemode: false }),
    },
    previous: readObject(data.previous_attributes) ?? {},
    sourceAt: readInstant(event.created) ?? occurredAt,
    eventId: readText(event.id),
  })
}

/** The same for an object without its event: the name and time of the event that carried it stand in. */
export function readBareStripe(eventType: string, value: unknown, occurredAt: Instant): BillingChange | null {
  const object = readObject(value)
  if (!object || !isStripeObject(object)) return null
  return changeOfObject({ type: eventType, object, previous: {}, sourceAt: occurredAt, eventId: null })
}

function changeOfObject(subject: StripeSubject): BillingChange | null {
  const id = readText(subject.object.id)
  if (!id) return null
  // test money is no money; subscriptions are kept, to say why they do not count
  if (subject.object.livemode === false && subject.object.object !== 'subscription') return null
  switch (subject.object.object) {
    case 'subscription':
      return { kind: 'subscription', version: subscriptionOf(id, subject), ...termsShown(id, subject) }
    case 'customer':
    case 'discount':
    case 'coupon':
    case 'promotion_code': {
      const terms = termsOf(id, subject)
      return terms.length > 0 ? { kind: 'terms', terms } : null
    }
    case 'invoice':
      return { kind: 'invoice', version: invoiceOf(id, subject), payments: paymentsNamedBy(id, subject) }
    case 'dispute':
      return { kind: 'cash', payments: [], refunds: [disputeOf(id, subject)] }
    default: {
      const payments = paymentsOf(id, subject)
      const refunds = subject.object.object === 'credit_note' ? creditNoteOf(id, subject) : refundsOf(subject)
      return payments.length > 0 || refunds.length > 0 ? { kind: 'cash', payments, refunds } : null
    }
  }
}

function termsShown(id: string, subject: StripeSubject): { terms?: Term[] } {
  const terms = termsShownBy(id, subject)
  return terms.length > 0 ? { terms } : {}
}
