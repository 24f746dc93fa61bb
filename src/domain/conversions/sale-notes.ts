import type { NormalizedEvent } from '../events/types.ts'
import { MAX_ID_LENGTH, parseId } from '../identity/identifiers.ts'
import { isObject, type JsonObject } from '../json/json.ts'
import { knownCurrency, parseDecimal } from '../money.ts'
import { paddleSale } from '../providers/adapters/paddle.ts'
import { stripeObject } from '../providers/stripe/objects.ts'
import { PRICE_FIELDS, STRIPE_PRICE_FIELDS } from './conversions.ts'

const MAX_VALUE = 60

/** Explains why an event about a sale may not count as its sender expects. Null if there is nothing to explain. */
export function saleNote(event: NormalizedEvent, isConversion: boolean): string | null {
  const { subject, eventType } = event
  if (event.sourceConfigId !== null && paddleSale(subject)) return null
  const stripe = stripeObject(subject)
  const object = stripe ?? subject
  const fields = stripe ? STRIPE_PRICE_FIELDS : PRICE_FIELDS
  const field = fields.find(name => object[name] !== undefined && object[name] !== null)
  if (isConversion) return [...priceNotes(object, fields, field), ...orderNotes(object)].join('; ') || null
  // Objects of a provider have amounts even if they are not sales.
  if (stripe || field === undefined || typeof object.currency !== 'string') return null
  return `it is not a conversion: ${JSON.stringify(eventType)} is not one of the tenant's conversion types`
}

function priceNotes(object: JsonObject, fields: readonly string[], field: string | undefined): string[] {
  if (field === undefined) return [`it counts as a conversion without an amount: it has none of ${fields.join(', ')}`]
  const notes: string[] = []
  const amount = parseDecimal(object[field])
  if (amount === null)
    notes.push(
      `it counts as a conversion without an amount: ${field} is ${describeValue(object[field])}, which is not a number`,
    )
  else if (amount.digits < 0n) notes.push(`its ${field} is negative and reduces revenue`)
  if (knownCurrency(object.currency) === null)
    notes.push(
      object.currency === undefined || object.currency === null
        ? 'it has no currency, so it does not count in any revenue total'
        : `its currency is ${describeValue(object.currency)}, which is not an ISO 4217 code, so it does not count in any revenue total`,
    )
  return notes
}

/** Explains an order id that is not valid. */
function orderNotes(object: JsonObject): string[] {
  const name = (['order_id', 'orderId'] as const).find(name => object[name] !== undefined && object[name] !== null)
  const given = name === undefined ? '' : object[name]
  if (given === '' || parseId(given) !== null) return []
  const why =
    typeof given === 'string' && given.trim().length > MAX_ID_LENGTH
      ? `has ${given.trim().length} characters, more than ${MAX_ID_LENGTH}`
      : `is ${describeValue(given)}, which is not an order id`
  return [`its ${name} ${why}, so it counts as a separate sale`]
}

function describeValue(value: unknown): string {
  if (Array.isArray(value)) return 'a list'
  return isObject(value) ? 'an object' : JSON.stringify(String(value).slice(0, MAX_VALUE))
}
