import { isLongerThan, looseId } from '../events/normalize/tracking-items.ts'
import { type EventSource, MAX_EVENT_TYPE_LENGTH, type NormalizedEvent } from '../events/types.ts'
import { parseEmail, parseId, readContactId } from '../identity/identifiers.ts'
import { isObject, type JsonObject } from '../json/json.ts'
import { decimalText, knownCurrency, parseDecimal } from '../money.ts'
import { paddleSale } from '../providers/adapters/paddle.ts'
import { stripeMajorText, stripeObject } from '../providers/stripe/objects.ts'
import { parseTimestamp } from '../time.ts'

/** Event types that are conversions unless a tenant changes the list. */
export const DEFAULT_CONVERSION_TYPES: readonly string[] = [
  'convert',
  'conversion',
  'purchase',
  'order_completed',
  'Order Completed',
  'checkout.completed',
  'order.paid',
  'invoice.paid',
]

/** The sale that an event reports. */
export type Conversion = {
  /** Events of one person with the same order id are one sale. */
  orderId: string | null
  /** Events with the same invoice (`invoice:…`) are one sale. Null: a separate sale. */
  saleKey: string | null
  conversionType: string
  source: EventSource | 'billing'
  /** The order, invoice or object that was bought. */
  sourceObjectId: string | null
  amount: string | null
  currency: string | null
  /** The buyer, if the event identifies one: `contactId | contact_id | customerId | customer_id`, `email`. */
  contactId: string | null
  email: string | null
}

/** Exact decimal text in major units. */
type Price = { amount: string | null; currency: string | null }

export function readConversion(event: NormalizedEvent, types: ReadonlySet<string>): Conversion | null {
  const { subject } = event
  const sale = event.sourceConfigId === null ? null : paddleSale(subject)
  if (sale) return paddleConversion(event, sale)
  if (event.eventType !== 'convert' && !types.has(event.eventType)) return null
  const stripe = stripeObject(subject)
  const object = stripe ?? subject
  const orderId = readOrderId(event.eventType, object)
  // Only a source reports billing. An invoice event sent with a tracking key is an ordinary event.
  const billing = event.sourceConfigId !== null && event.eventType.startsWith('invoice.')
  const objectId = parseId(object.id)
  return {
    orderId,
    saleKey: billing && objectId && !orderId ? `invoice:${objectId}` : null,
    conversionType: readConversionType(object) ?? event.eventType,
    source: billing ? 'billing' : event.source,
    sourceObjectId: billing ? (objectId ?? orderId) : (orderId ?? objectId),
    ...(stripe ? stripePrice(stripe) : readPrice(object)),
    contactId: readContactId(object),
    email: parseEmail(object.email) ?? event.email,
  }
}

/** Paddle collects the payment, so a completed transaction is always a sale, whatever types the tenant lists. */
function paddleConversion(
  event: NormalizedEvent,
  { id, amount, currency, data }: NonNullable<ReturnType<typeof paddleSale>>,
): Conversion {
  const objectId = parseId(id)
  const custom = isObject(data.custom_data) ? data.custom_data : {}
  const orderId = parseId(custom.order_id ?? custom.orderId)
  return {
    orderId,
    saleKey: objectId && !orderId ? `invoice:${objectId}` : null,
    conversionType: event.eventType,
    source: 'billing',
    sourceObjectId: objectId ?? orderId,
    amount: amountText(amount),
    currency: knownCurrency(currency),
    contactId: readContactId(data),
    email: parseEmail(data.email) ?? event.email,
  }
}

export function orderSaleKey(orderId: string): string {
  return `order:${orderId}`
}

function readConversionType(object: JsonObject): string | null {
  const given = object.conversion_type
  return typeof given === 'string' && given !== '' && !isLongerThan(given, MAX_EVENT_TYPE_LENGTH) ? given : null
}

/** `order_id | orderId`, also as Stripe metadata; for an event about an order (order.paid, Order Completed) the object's id. */
function readOrderId(eventType: string, object: JsonObject): string | null {
  const metadata = isObject(object.metadata) ? object.metadata : null
  const named = parseId(object.order_id ?? object.orderId ?? metadata?.order_id ?? metadata?.orderId)
  return named ?? (/^orders?\b|^order_/i.test(eventType) ? parseId(object.id) : null)
}

/** The sale of an order record. `placedAt` is null if the record has no such time. */
type OrderConversion = Price & {
  contactId: string | null
  email: string | null
  placedAt: Date | null
}

const PLACED_AT = [
  ...['created_at', 'createdAt', 'placed_at', 'placedAt', 'ordered_at', 'orderedAt'],
  ...['occurred_at', 'occurredAt', 'date'],
]

export function orderConversion(data: JsonObject): OrderConversion {
  let placedAt: Date | null = null
  for (const field of PLACED_AT) placedAt ??= parseTimestamp(data[field])
  return { ...readPrice(data), contactId: readContactId(data), email: parseEmail(data.email), placedAt }
}

/** The fields of the price of a sale. The first one present counts. */
export const PRICE_FIELDS = ['amount', 'total', 'total_price', 'value', 'revenue', 'amount_paid'] as const
export const STRIPE_PRICE_FIELDS = ['amount_paid', 'amount_total', 'amount_received', 'amount', 'total'] as const

function firstPresent(data: JsonObject, fields: readonly string[]): unknown {
  for (const field of fields) {
    const value = data[field]
    if (value !== undefined && value !== null) return value
  }
  return null
}

/** Amount and currency in major units. An invalid amount is null. */
function readPrice(data: JsonObject): Price {
  return { amount: amountText(firstPresent(data, PRICE_FIELDS)), currency: knownCurrency(data.currency) }
}

function amountText(value: unknown): string | null {
  const decimal = parseDecimal(value)
  return decimal && decimalText(decimal)
}

/** Stripe uses minor units, with exceptions of its own. */
function stripePrice(object: JsonObject): Price {
  const currency = knownCurrency(object.currency)
  return { amount: stripeMajorText(firstPresent(object, STRIPE_PRICE_FIELDS), currency), currency }
}

type ContactFacts = { name: string | null; email: string | null; company: string | null }

export function contactFacts(data: JsonObject): ContactFacts {
  const first = readText(data.firstName ?? data.first_name)
  const last = readText(data.lastName ?? data.last_name)
  const parts = first && last ? `${first} ${last}` : (first ?? last)
  return {
    name: readText(data.name) ?? parts,
    email: parseEmail(data.email) && readText(data.email),
    company: readText(data.company) ?? readText(data.company_name) ?? readText(data.companyName),
  }
}

function readText(value: unknown): string | null {
  return looseId(typeof value === 'string' ? value.trim() : value)
}

/** Of the unverified claims of a sale, the row has the first, and their number. A metric counts those beyond this limit. */
export const MAX_CLAIMS = 20

/** One sale as reported by events. Event ids sort by time of receipt. */
export type EventSale = {
  tenantId: number
  saleKey: string
  /** The public id of the row. */
  id: string
  orderId: string | null
  /** The event that determines the sale. Null: verified input reports the sale, and these events are only claims. */
  facts: SaleFacts | null
  /** The first verified event with a visitor, and the first one with a person. */
  visitor: { eventId: string; visitor: string } | null
  person: { eventId: string; node: number } | null
  /** The first unverified event, and the number of unverified events. */
  claim: { eventId: string; visitor: string | null; node: number | null } | null
  claims: number
  /** More than one visitor sent this sale. */
  severalVisitors: boolean
}

/** Amounts are exact decimal text. */
export type SaleFacts = {
  eventId: string
  verified: boolean
  occurredAt: Date
  eventType: string
  conversionType: string
  source: string
  sourceConfigId: string | null
  objectId: string | null
  amount: string | null
  currency: string | null
}

/**
 * Folds several events of one sale, in whichever order they arrive. Verified events determine the sale; unverified ones
 * do so only without them, because anyone with the public tracking key can send an order id before the shop. Among equals, the
 * first event with an amount determines it.
 *
 * `upsertEventSales` implements the same rule in SQL to fold a batch with stored rows. Reading the rows first would cost
 * every sale a round trip and a lock. test/store/folded-sales.test.ts verifies that both agree.
 */
export function foldSales(sales: EventSale[]): EventSale {
  const visitors = new Set(sales.flatMap(({ visitor, claim }) => [visitor?.visitor ?? [], claim?.visitor ?? []].flat()))
  return {
    ...sales[0]!,
    id: sales.reduce((first, { id }) => (id < first ? id : first), sales[0]!.id),
    facts: first(sales, sale => sale.facts, factsRank),
    visitor: first(sales, sale => sale.visitor, receiptRank),
    person: first(sales, sale => sale.person, receiptRank),
    claim: first(sales, sale => sale.claim, claimRank),
    claims: sales.reduce((sum, { claims }) => sum + claims, 0),
    severalVisitors: visitors.size > 1 || sales.some(({ severalVisitors }) => severalVisitors),
  }
}

function first<T>(sales: EventSale[], read: (sale: EventSale) => T | null, rank: (value: T) => string): T | null {
  const [lowest] = sales.flatMap(sale => read(sale) ?? []).sort((a, b) => (rank(a) < rank(b) ? -1 : 1))
  return lowest ?? null
}

/** Of events at one time, the event type decides, so that the order of arrival does not. */
function factsRank({ verified, amount, occurredAt, eventType, eventId }: SaleFacts): string {
  return `${verified ? 0 : 1} ${amount === null ? 1 : 0} ${occurredAt.toISOString()} ${eventType}\0${eventId}`
}

function receiptRank({ eventId }: { eventId: string }): string {
  return eventId
}

/** An event without a visitor adds at most a person to the sale. */
function claimRank({ eventId, visitor, node }: NonNullable<EventSale['claim']>): string {
  return `${visitor !== null ? 0 : node !== null ? 1 : 2} ${eventId}`
}

/** What unverified events add to a sale that verified input reports: a visitor. */
export function asClaim(sale: EventSale): EventSale {
  return sale.facts?.verified === false ? { ...sale, facts: null } : sale
}
