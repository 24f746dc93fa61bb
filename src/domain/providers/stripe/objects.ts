import type { Fields } from '../../billing/fields.ts'
import type { Instant } from '../../billing/types.ts'
import { isObject, type JsonObject } from '../../json/json.ts'
import { type Decimal, decimalText, decimalToMinor, parseDecimal } from '../../money.ts'

/** Stripe objects that concern money. A canonical payload has neither `object` nor a numeric `created`. */
const OBJECTS = new Set([
  'charge',
  'checkout.session',
  'customer',
  'invoice',
  'payment_intent',
  'refund',
  'subscription',
])

/** Thin events refer to their object without containing it. */
export const THIN = 'v2.core.event'

/** Whether the body is a Stripe event. */
export function isStripeEvent(body: JsonObject): boolean {
  const isEvent = body.object === 'event' || body.object === THIN
  return isEvent && typeof body.id === 'string' && typeof body.type === 'string'
}

/** The object inside a Stripe event, or a Stripe object sent without an event; null: neither. */
export function stripeObject(body: JsonObject): JsonObject | null {
  if (isStripeEvent(body)) return isObject(body.data) && isObject(body.data.object) ? body.data.object : null
  return typeof body.created === 'number' && OBJECTS.has(body.object as string) ? body : null
}

/** The object of a Stripe event, with or without its envelope. */
export type StripeSubject = {
  type: string
  object: Fields
  /** The previous values of the changed fields. */
  previous: Fields
  sourceAt: Instant
  /** Null: the object was sent without an event. */
  eventId: string | null
}

// Stripe's amounts are integers in its own minor units, which differ from ISO 4217 for some currencies.

/** https://docs.stripe.com/currencies. MGA has two digits in ISO 4217 but none at Stripe. */
const WITHOUT_DECIMALS = new Set('BIF CLP DJF GNF JPY KMF KRW MGA PYG RWF VND VUV XAF XOF XPF'.split(' '))
/** ISK and UGX have no minor unit, but Stripe uses two digits for them. */
const WITH_THREE_DECIMALS = new Set('BHD JOD KWD OMR TND'.split(' '))

function stripeDigits(currency: string): number {
  if (WITHOUT_DECIMALS.has(currency)) return 0
  return WITH_THREE_DECIMALS.has(currency) ? 3 : 2
}

function majorDecimal(amount: unknown, currency: string): Decimal | null {
  const parsed = parseDecimal(amount)
  return parsed && { digits: parsed.digits, scale: parsed.scale + stripeDigits(currency) }
}

/** Converts to ISO 4217 minor units. */
export function stripeMinor(amount: unknown, currency: string | null): number | null {
  const major = currency ? majorDecimal(amount, currency) : null
  return major && decimalToMinor(major, currency!)
}

/** Exact decimal text in major units, for prices finer than the minor unit. */
export function stripeMajorText(amount: unknown, currency: string | null): string | null {
  const major = currency ? majorDecimal(amount, currency) : null
  return major && major.digits >= 0n ? decimalText(major) : null
}
