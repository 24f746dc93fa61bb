/** WooCommerce: products, their variations (webhooks of their own), customers and orders, by the topic of the webhook. */

import { readList } from '../../billing/fields.ts'
import { isObject, type JsonObject } from '../../json/json.ts'
import { idIn, lineFields, present, type ShopChange, type ShopEvent, sharedText, timeOf } from './shop.ts'

export const WOOCOMMERCE_TOPIC = 'x-wc-webhook-topic'

/** Carts, not orders. */
const DRAFTS = new Set(['checkout-draft', 'auto-draft'])

export function woocommerceChanges(event: ShopEvent): ShopChange[] {
  const [resource, action] = (event.headers[WOOCOMMERCE_TOPIC] ?? '').split('.')
  const { subject } = event
  const id = idIn(subject.id)
  if (id === null || !(resource === 'product' || resource === 'customer' || resource === 'order')) return []
  if (action === 'deleted') return [deletionOf(event, resource, id)]
  const dates = [...datesOf(subject, 'date_modified'), ...datesOf(subject, 'date_created')]
  if (dates.every(date => date === undefined)) return []
  const at = timeOf(event, ...dates)
  if (resource === 'product') return [productOf(event, id, at)]
  if (resource === 'order' && DRAFTS.has(String(subject.status))) return []
  const fields = resource === 'order' ? orderFields(subject) : customerFields(subject)
  const entityType = resource === 'order' ? 'order' : 'contact'
  return [{ op: 'write', at, record: { entityType, id, fields, source: event.payload } }]
}

/** Dates stand there twice: in the shop's own time, and in UTC. */
function datesOf(object: JsonObject, name: string): unknown[] {
  return [object[`${name}_gmt`], object[name]]
}

function deletionOf(event: ShopEvent, resource: 'product' | 'customer' | 'order', id: string): ShopChange {
  const at = timeOf(event)
  if (resource === 'product')
    return { op: 'product', at, id, records: [], kept: [], isSnapshot: false, handle: null }
  return { op: 'delete', at, entityType: resource === 'order' ? 'order' : 'contact', id }
}

function productOf(event: ShopEvent, id: string, at: string): ShopChange {
  const product = event.subject
  const parent = idIn(product.parent_id)
  const isVariation = product.type === 'variation' && parent !== null
  const ownId = isVariation ? `${parent}/${id}` : id
  const record = {
    entityType: 'product',
    id: ownId,
    fields: productFields(product),
    source: event.payload,
  } as const
  if (isVariation) return { op: 'write', at, record }
  const kept = readList(product.variations).flatMap(variation => {
    const variationId = idIn(isObject(variation) ? variation.id : variation)
    return variationId === null ? [] : [`${id}/${variationId}`]
  })
  return { op: 'product', at, id, records: [record], kept, isSnapshot: false, handle: null }
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
    product_id: idIn(product.parent_id),
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
    // a guest's is 0
    contactId: idIn(order.customer_id),
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
      .map(line => lineFields(line, 'variation_id')),
  })
}
