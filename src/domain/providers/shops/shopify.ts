/** Shopify: products with their variants, customers, orders and refunds. The topic selects the type. */

import { readList } from '../../billing/fields.ts'
import { isObject, type JsonObject } from '../../json/json.ts'
import { type Decimal, decimalText, multiplyDecimals, parseDecimal, sumDecimals } from '../../money.ts'
import {
  lineFields,
  MAX_VARIANTS,
  present,
  readShopId,
  readTime,
  type ShopChange,
  type ShopEvent,
  type ShopRecord,
  sharedText,
} from './shop.ts'

export const SHOPIFY_TOPIC = 'x-shopify-topic'
const TRIGGERED_AT = 'x-shopify-triggered-at'

export function shopifyChanges(event: ShopEvent): ShopChange[] {
  const [resource, action] = (event.headers[SHOPIFY_TOPIC] ?? '').split('/')
  const { subject } = event
  if (resource === 'refunds' && action === 'create') return toRefund(event)
  const id = readShopId(subject.id)
  if (id === null || !(resource === 'products' || resource === 'customers' || resource === 'orders')) return []
  if (action === 'delete') return [toDeletion(event, resource, id)]
  if (!isWhole(resource, subject)) return []
  const at = readTime(event, subject.updated_at, subject.created_at, event.headers[TRIGGERED_AT])
  if (resource === 'products') return [toProduct(event, id, at)]
  const fields = resource === 'orders' ? orderFields(subject) : customerFields(subject)
  const entityType = resource === 'orders' ? 'order' : 'contact'
  return [{ op: 'write', at, record: { entityType, id, fields, source: event.payload } }]
}

/** Some topics (orders/edited, customers/redact …) refer to an object without containing it. */
function isWhole(resource: string, subject: JsonObject): boolean {
  if (resource === 'products') return Array.isArray(subject.variants)
  return subject.updated_at !== undefined || subject.created_at !== undefined
}

function toDeletion(event: ShopEvent, resource: 'products' | 'customers' | 'orders', id: string): ShopChange {
  const at = readTime(event, event.headers[TRIGGERED_AT])
  if (resource === 'products') return { op: 'product', at, id, records: [], kept: [], isSnapshot: true, handle: null }
  return { op: 'delete', at, entityType: resource === 'orders' ? 'order' : 'contact', id }
}

function toProduct(event: ShopEvent, id: string, at: string): ShopChange {
  const product = event.subject
  const variants = readList(product.variants).filter(isObject).slice(0, MAX_VARIANTS)
  const shared = present({
    title: sharedText(product.title),
    product_id: id,
    handle: sharedText(product.handle),
    vendor: sharedText(product.vendor),
    type: sharedText(product.product_type),
    status: sharedText(product.status),
  })
  const records: ShopRecord[] =
    variants.length > 1
      ? variants.flatMap(variant => {
          const variantId = readShopId(variant.id)
          if (variantId === null || id.length + variantId.length > 254) return []
          const fields = { ...variantFields(product, variant), ...shared, variant_id: variantId }
          // each variant stores only its own object; storing the whole product would multiply its size
          return [
            {
              ...({ entityType: 'product', id: `${id}/${variantId}`, fields } as const),
              source: JSON.stringify(variant),
            },
          ]
        })
      : [
          {
            ...({ entityType: 'product', id } as const),
            fields: { ...variantFields(product, variants[0] ?? {}), ...shared },
            source: event.payload,
          },
        ]
  return { op: 'product', at, id, records, kept: [], isSnapshot: true, handle: sharedText(product.handle) ?? null }
}

function variantFields(product: JsonObject, variant: JsonObject): JsonObject {
  const title = sharedText(product.title)
  const option = sharedText(variant.title)
  const isOnly = option === undefined || option === 'Default Title'
  return present({
    sku: variant.sku,
    name: isOnly ? title : `${title ?? ''} - ${option}`,
    price: variant.price,
    compareAtPrice: variant.compare_at_price,
    barcode: variant.barcode,
    inventory: variant.inventory_quantity,
  })
}

function customerFields(customer: JsonObject): JsonObject {
  const address = isObject(customer.default_address) ? customer.default_address : {}
  return present({
    email: customer.email,
    firstName: customer.first_name,
    lastName: customer.last_name,
    phone: customer.phone ?? address.phone,
    company: address.company,
    city: address.city,
    country: address.country_code,
    zip: address.zip,
    totalSpent: customer.total_spent,
    totalOrders: customer.orders_count,
    tags: customer.tags,
    created_at: customer.created_at,
  })
}

function orderFields(order: JsonObject): JsonObject {
  const customer = isObject(order.customer) ? order.customer : {}
  return present({
    name: order.name,
    contactId: readShopId(customer.id),
    email: order.email || order.contact_email || customer.email,
    phone: order.phone,
    total_price: order.total_price,
    subtotal_price: order.subtotal_price,
    total_tax: order.total_tax,
    total_discounts: order.total_discounts,
    refunded_amount: sumRefunds(readList(order.refunds), order),
    currency: order.currency,
    created_at: order.created_at,
    cancelled_at: order.cancelled_at,
    financial_status: order.financial_status,
    fulfillment_status: order.fulfillment_status,
    source_name: order.source_name,
    tags: order.tags,
    line_items: readList(order.line_items)
      .filter(isObject)
      .map(line => lineFields(line, 'variant_id', lineTotal(line))),
  })
}

/** What a line costs after the discounts of the line and of the order. Shopify sends only the price of one piece. */
function lineTotal({ price, quantity, discount_allocations }: JsonObject): string | null {
  const discounts = readList(discount_allocations).map(entry => parseDecimal(isObject(entry) ? entry.amount : null))
  const [each, pieces] = [parseDecimal(price), parseDecimal(quantity)]
  const known = discounts.filter(amount => amount !== null)
  if (known.length === 0 || known.length < discounts.length || each === null || pieces === null) return null
  const discount = sumDecimals(known)
  return decimalText(sumDecimals([multiplyDecimals(each, pieces), { ...discount, digits: -discount.digits }]))
}

/** The states of a transaction that moved no money. */
const FAILED = new Set<unknown>(['failure', 'error'])

/** The amount paid out by these refunds of an order, in its currency, as exact decimal text; null: nothing. */
export function sumRefunds(refunds: unknown[], order: JsonObject): string | null {
  const paid = refunds
    .flatMap(refund => (isObject(refund) ? readList(refund.transactions) : []))
    .flatMap(entry => (isObject(entry) && entry.kind === 'refund' && !FAILED.has(entry.status) ? [entry] : []))
    .flatMap(entry => toShopMoney(entry, order) ?? [])
  return paid.length === 0 ? null : decimalText(sumDecimals(paid))
}

/**
 * The amount of a transaction in the currency of the shop. The customer may have paid in another one: then by the rate of the
 * order's total. Null: no amount, or no rate.
 */
function toShopMoney({ amount: given, currency }: JsonObject, order: JsonObject): Decimal | null {
  const amount = parseDecimal(given)
  if (amount === null || typeof currency !== 'string' || !order.currency || currency === order.currency) return amount
  const { shop_money: shop, presentment_money: paid } = isObject(order.total_price_set) ? order.total_price_set : {}
  if (!isObject(shop) || !isObject(paid) || paid.currency_code !== currency) return null
  const [to, from] = [parseDecimal(shop.amount), parseDecimal(paid.amount)]
  if (to === null || from === null || from.digits <= 0n) return null
  const dividend = amount.digits * to.digits * 10n ** BigInt(from.scale)
  const divisor = from.digits * 10n ** BigInt(amount.scale)
  return { digits: (2n * dividend + divisor) / (2n * divisor), scale: to.scale }
}

function toRefund(event: ShopEvent): ShopChange[] {
  const { subject } = event
  const orderId = readShopId(subject.order_id)
  if (orderId === null || readShopId(subject.id) === null) return []
  const at = readTime(event, subject.processed_at, subject.created_at, event.headers[TRIGGERED_AT])
  return [{ op: 'refund', at, orderId, refund: subject }]
}
