/** WooCommerce: products, variations (with separate webhooks), customers and orders. The topic selects the type. */

import { readList } from '../../billing/fields.ts'
import { isObject, type JsonObject } from '../../json/json.ts'
import { lineFields, present, readShopId, readTime, type ShopChange, type ShopEvent, sharedText } from './shop.ts'

export const WOOCOMMERCE_TOPIC = 'x-wc-webhook-topic'

/** Orders with these statuses are carts. */
const DRAFTS = new Set(['checkout-draft', 'auto-draft'])

export function woocommerceChanges(event: ShopEvent): ShopChange[] {
  const [resource, action] = (event.headers[WOOCOMMERCE_TOPIC] ?? '').split('.')
  const { subject } = event
  const id = readShopId(subject.id)
  if (id === null || !(resource === 'product' || resource === 'customer' || resource === 'order')) return []
  if (action === 'deleted') return [toDeletion(event, resource, id)]
  const dates = [...readDates(subject, 'date_modified'), ...readDates(subject, 'date_created')]
  if (dates.every(date => date === undefined)) return []
  const at = readTime(event, ...dates)
  if (resource === 'product') return [toProduct(event, id, at)]
  if (resource === 'order' && DRAFTS.has(String(subject.status))) return []
  const fields = resource === 'order' ? orderFields(subject) : customerFields(subject)
  const entityType = resource === 'order' ? 'order' : 'contact'
  return [{ op: 'write', at, record: { entityType, id, fields, source: event.payload } }]
}

/** The date in UTC, and in the shop's time zone. */
function readDates(object: JsonObject, name: string): unknown[] {
  return [object[`${name}_gmt`], object[name]]
}

function toDeletion(event: ShopEvent, resource: 'product' | 'customer' | 'order', id: string): ShopChange {
  const at = readTime(event)
  if (resource === 'product') return { op: 'product', at, id, records: [], kept: [], isSnapshot: false, handle: null }
  return { op: 'delete', at, entityType: resource === 'order' ? 'order' : 'contact', id }
}

function toProduct(event: ShopEvent, id: string, at: string): ShopChange {
  const product = event.subject
  const parent = readShopId(product.parent_id)
  const isVariation = product.type === 'variation' && parent !== null
  const ownId = isVariation ? `${parent}/${id}` : id
  const record = { entityType: 'product', id: ownId, fields: productFields(product), source: event.payload } as const
  if (isVariation) return { op: 'write', at, record }
  const kept = listVariations(id, product.variations)
  return { op: 'product', at, id, records: [record], kept, isSnapshot: false, handle: null }
}

/** The record ids of the variations that a product lists. */
export function listVariations(productId: string, variations: unknown): string[] {
  return readList(variations).flatMap(variation => {
    const variationId = readShopId(isObject(variation) ? variation.id : variation)
    return variationId === null ? [] : [`${productId}/${variationId}`]
  })
}

function productFields(product: JsonObject): JsonObject {
  return present({
    sku: product.sku,
    name: sharedText(product.name),
    price: product.price,
    compareAtPrice: product.regular_price,
    handle: sharedText(product.slug),
    type: product.type,
    status: product.status,
    inventory: product.stock_quantity,
    product_id: readShopId(product.parent_id),
  })
}

function customerFields(customer: JsonObject): JsonObject {
  const billing = isObject(customer.billing) ? customer.billing : {}
  return present({
    email: customer.email || billing.email,
    firstName: customer.first_name || billing.first_name,
    lastName: customer.last_name || billing.last_name,
    phone: billing.phone,
    company: billing.company,
    city: billing.city,
    country: billing.country,
    zip: billing.postcode,
    username: customer.username,
    created_at: customer.date_created_gmt ?? customer.date_created,
  })
}

function orderFields(order: JsonObject): JsonObject {
  const billing = isObject(order.billing) ? order.billing : {}
  return present({
    name: order.number,
    // 0 for guests
    contactId: readShopId(order.customer_id),
    email: billing.email,
    phone: billing.phone,
    total_price: order.total,
    total_tax: order.total_tax,
    total_discounts: order.discount_total,
    currency: order.currency,
    created_at: order.date_created_gmt ?? order.date_created,
    paid_at: order.date_paid_gmt ?? order.date_paid,
    status: order.status,
    line_items: readList(order.line_items)
      .filter(isObject)
      // The total is before tax. It is exact, unlike the price of one piece.
      .map(line => lineFields(line, 'variation_id', line.total)),
  })
}
