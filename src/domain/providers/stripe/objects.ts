import type { Fields } from '../../billing/fields.ts'
import type { Instant } from '../../billing/types.ts'
import { isObject, type JsonObject } from '../../json/json.ts'
import { type Decimal, decimalText, decimalToMinor, parseDecimal } from '../../money.ts'

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

/** What a Stripe event is about, whatever its envelope was. */
export type StripeSubject = {
  type: string
  object: Fields
  /** Values before the change, of the fields that changed. */
  previous: Fields
  sourceAt: Instant
  /** Null where the object came without its event. */
  eventId: string | null
}

/** Amounts as Stripe writes them: whole numbers of its own minor units, which are not always ISO 4217's. */

/** https://docs.stripe.com/currencies: MGA has two digits in ISO 4217 and none here. */
const WITHOUT_DECIMALS = new Set('BIF CLP DJF GNF JPY KMF KRW MGA PYG RWF VND VUV XAF XOF XPF'.split(' '))
/** ISK and UGX have no minor unit, but Stripe still writes 5 of them as 500: they fall under the usual two. */
const WITH_THREE_DECIMALS = new Set('BHD JOD KWD OMR TND'.split(' '))

function stripeDigits(currency: string): number {
  if (WITHOUT_DECIMALS.has(currency)) return 0
  return WITH_THREE_DECIMALS.has(currency) ? 3 : 2
}

function majorDecimal(amount: unknown, currency: string): Decimal | null {
  const parsed = parseDecimal(amount)
  return parsed && { digits: parsed.digits, scale: parsed.scale + stripeDigits(currency) }
}

/** Whole ISO 4217 minor units. */
export function stripeMinor(amount: unknown, currency: string | null): number | null {
  const major = currency ? majorDecimal(amount, currency) : null
  return major && decimalToMinor(major, currency!)
}

/** Exact decimal text in major units, for prices finer than the minor unit. */
export function stripeMajorText(amount: unknown, currency: string | null): string | null {
  const major = currency ? majorDecimal(amount, currency) : null
  return major && major.digits >= 0n ? decimalText(major) : null
}
