import { type EventSource, MAX_EVENT_TYPE_LENGTH, type NormalizedEvent } from '../events/events.ts'
import { isLongerThan, looseId } from '../events/normalize/items.ts'
import { parseEmail, parseId, readContactId } from '../identity/identity.ts'
import { isObject, type JsonObject } from '../json/json.ts'
import { decimalText, knownCurrency, parseDecimal } from '../money.ts'
import { paddleSale } from '../providers/adapters/paddle.ts'
import { stripeMajorText, stripeObject } from '../providers/stripe/objects.ts'
import { parseTimestamp } from '../time.ts'

/** Event types that are conversions until a tenant says otherwise. */
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

/** What an event says about a sale. */
export type Conversion = {
  /** What names the same order is one sale, within one person. */
  orderId: string | null
  /** What names the same invoice (`invoice:…`) is one sale; null: a sale of its own. */
  saleKey: string | null
  conversionType: string
  source: EventSource | 'billing'
  /** The order, invoice or object that was bought. */
  sourceObjectId: string | null
  amount: string | null
  currency: string | null
  /** The buyer, where the event names them: `contactId | contact_id | customerId | customer_id`, `email`. */
  contactId: string | null
  email: string | null
}

/** Exact decimal text in major units. */
type Price = { amount: string | null; currency: string | null }

export function conversionOf(event: NormalizedEvent, types: ReadonlySet<string>): Conversion | null {
  const { subject } = event
  const sale = event.sourceConfigId === null ? null : paddleSale(subject)
  if (sale) return paddleConversion(event, sale)
  if (event.eventType !== 'convert' && !types.has(event.eventType)) return null
  const stripe = stripeObject(subject)
  const object = stripe ?? subject
  const orderId = orderIdOf(event.eventType, object)
  // Only a source says what was billed: with a key from a page, an invoice is an event like any other.
  const billing = event.sourceConfigId !== null && event.eventType.startsWith('invoice.')
  const objectId = parseId(object.id)
  return {
    orderId,
    saleKey: billing && objectId && !orderId ? `invoice:${objectId}` : null,
    conversionType: conversionTypeOf(object) ?? event.eventType,
    source: billing ? 'billing' : event.source,
    sourceObjectId: billing ? (objectId ?? orderId) : (orderId ?? objectId),
    ...(stripe ? stripePrice(stripe) : priceOf(object)),
    contactId: readContactId(object),
    email: parseEmail(object.email) ?? event.email,
  }
}

/** Paddle collects the money itself: a completed transaction is a sale, whatever the tenant lists. */
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

function conversionTypeOf(object: JsonObject): string | null {
  const given = object.conversion_type
  return typeof given === 'string' && given !== '' && !isLongerThan(given, MAX_EVENT_TYPE_LENGTH)
    ? given
    : null
}

/** `order_id | orderId`, also as Stripe metadata; in an event about an order (order.paid, Order Completed) its own id. */
function orderIdOf(eventType: string, object: JsonObject): string | null {
  const metadata = isObject(object.metadata) ? object.metadata : null
  const named = parseId(object.order_id ?? object.orderId ?? metadata?.order_id ?? metadata?.orderId)
  return named ?? (/^orders?\b|^order_/i.test(eventType) ? parseId(object.id) : null)
}

/** What an order record says about its sale; `placedAt` is null where it does not say when that was. */
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
  return { ...priceOf(data), contactId: readContactId(data), email: parseEmail(data.email), placedAt }
}

/** Where the price of a sale stands: the first that is there counts. */
export const PRICE_FIELDS = ['amount', 'total', 'total_price', 'value', 'revenue', 'amount_paid'] as const
export const STRIPE_PRICE_FIELDS = [
  'amount_paid',
  'amount_total',
  'amount_received',
  'amount',
  'total',
] as const

function firstOf(data: JsonObject, fields: readonly string[]): unknown {
  for (const field of fields) {
    const value = data[field]
    if (value !== undefined && value !== null) return value
  }
  return null
}

/** Amount and currency in major units; nonsense is no amount. */
function priceOf(data: JsonObject): Price {
  return { amount: amountText(firstOf(data, PRICE_FIELDS)), currency: knownCurrency(data.currency) }
}

function amountText(value: unknown): string | null {
  const decimal = parseDecimal(value)
  return decimal && decimalText(decimal)
}

/** Stripe counts in minor units of its own. */
function stripePrice(object: JsonObject): Price {
  const currency = knownCurrency(object.currency)
  return { amount: stripeMajorText(firstOf(object, STRIPE_PRICE_FIELDS), currency), currency }
}

type ContactFacts = { name: string | null; email: string | null; company: string | null }

export function contactFacts(data: JsonObject): ContactFacts {
  const first = textOf(data.firstName ?? data.first_name)
  const last = textOf(data.lastName ?? data.last_name)
  const parts = first && last ? `${first} ${last}` : (first ?? last)
  return {
    name: textOf(data.name) ?? parts,
    email: parseEmail(data.email) && textOf(data.email),
    company: textOf(data.company) ?? textOf(data.company_name) ?? textOf(data.companyName),
  }
}

function textOf(value: unknown): string | null {
  return looseId(typeof value === 'string' ? value.trim() : value)
}

/** What events say of one sale. Amounts are exact decimal text. */
export type EventSale = {
  tenantId: number
  saleKey: string
  /** What the row is listed under, once there is one. */
  id: string
  orderId: string | null
  eventId: string
  occurredAt: Date
  eventType: string
  conversionType: string
  source: string
  sourceConfigId: string | null
  objectId: string | null
  amount: string | null
  currency: string | null
  /** The event that amount and currency are of, and whether its sender holds a secret. */
  priceEventId: string
  priceAt: Date
  priceTrusted: boolean
  /** Whoever the first event names that names one; the rank is that event's. */
  visitor: string | null
  visitorRank: string | null
  node: number | null
  nodeRank: string | null
  /** More than one visitor named it. */
  severalVisitors: boolean
}

/** Sorts as text in the order in which events speak for a sale: with an amount before without, then by time, then by id. */
export function rankOfSale(sale: Pick<EventSale, 'amount' | 'occurredAt' | 'eventId'>): string {
  return `${sale.amount === null ? 1 : 0} ${sale.occurredAt.toISOString()} ${sale.eventId}`
}

/**
 * Of several events that name one sale, the first with an amount speaks, whatever came when. What it cost is told by those
 * who hold a secret, if there are any: a key that stands in every page can name an order before the shop does.
 *
 * `upsertEventSales` has the same rule in SQL, for what a batch brings and what is there already: to read the row first would cost every
 * sale a round trip and a lock. test/store/folded-sales.test.ts holds the two equal.
 */
export function foldSales(sales: EventSale[]): EventSale {
  const first = sales.reduce((a, b) => (rankOfSale(b) < rankOfSale(a) ? b : a))
  const { amount, currency, priceEventId, priceAt, priceTrusted } = sales.toSorted(comparePrices)[0]!
  const { visitor, visitorRank } = firstNaming(sales, 'visitor', 'visitorRank')
  const { node, nodeRank } = firstNaming(sales, 'node', 'nodeRank')
  const visitors = new Set(sales.flatMap(sale => sale.visitor ?? []))
  return {
    ...first,
    ...{ amount, currency, priceEventId, priceAt, priceTrusted },
    ...{ visitor, visitorRank, node, nodeRank },
    severalVisitors: visitors.size > 1 || sales.some(({ severalVisitors }) => severalVisitors),
  }
}

function firstNaming(
  sales: EventSale[],
  name: 'visitor' | 'node',
  rank: 'visitorRank' | 'nodeRank',
): EventSale {
  return sales.reduce((a, b) => (b[name] !== null && (a[name] === null || b[rank]! < a[rank]!) ? b : a))
}

function comparePrices(a: EventSale, b: EventSale): number {
  if ((a.amount === null) !== (b.amount === null)) return a.amount === null ? 1 : -1
  if (a.priceTrusted !== b.priceTrusted) return a.priceTrusted ? -1 : 1
  const time = a.priceAt.getTime() - b.priceAt.getTime()
  return time !== 0 ? time : a.priceEventId < b.priceEventId ? -1 : 1
}
