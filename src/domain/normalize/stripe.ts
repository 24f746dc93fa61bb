import { isObject, type JsonObject } from '../json.ts'

/** A Stripe event as Stripe posts it. */
export function isStripeEvent(body: JsonObject): boolean {
  return body.object === 'event' && typeof body.id === 'string' && typeof body.type === 'string'
}

/** The invoice, subscription … inside a Stripe event; null for anything else. */
export function stripeObject(body: JsonObject): JsonObject | null {
  if (!isStripeEvent(body)) return null
  return isObject(body.data) && isObject(body.data.object) ? body.data.object : null
}
