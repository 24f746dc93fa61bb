import { isObject, type JsonObject } from '../../json/json.ts'

/** Stripe's own objects that carry money; a canonical payload has neither `object` nor a numeric `created`. */
const OBJECTS = new Set([
  'charge',
  'checkout.session',
  'customer',
  'invoice',
  'payment_intent',
  'refund',
  'subscription',
])

/** Thin events name their object and do not carry it. */
const THIN = 'v2.core.event'

/** A Stripe event as Stripe posts it. */
export function isStripeEvent(body: JsonObject): boolean {
  const isEvent = body.object === 'event' || body.object === THIN
  return isEvent && typeof body.id === 'string' && typeof body.type === 'string'
}

/** The invoice, subscription … inside a Stripe event, or sent without one; null for anything else. */
export function stripeObject(body: JsonObject): JsonObject | null {
  if (isStripeEvent(body)) return isObject(body.data) && isObject(body.data.object) ? body.data.object : null
  return typeof body.created === 'number' && OBJECTS.has(body.object as string) ? body : null
}
