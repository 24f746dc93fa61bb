import type { JsonObject } from '../../json/json.ts'
import { type Preset, readString, wholeBody } from '../preset.ts'
import { base64Bytes, verifyPlain } from '../signatures.ts'

export const shopify: Preset = {
  name: 'shopify',
  keepHeaders: [
    'x-shopify-topic',
    'x-shopify-webhook-id',
    'x-shopify-event-id',
    'x-shopify-shop-domain',
    'x-shopify-triggered-at',
  ],
  verify(request) {
    const header = request.headers['x-shopify-hmac-sha256']?.trim()
    if (!header) return { ok: false, code: 'signature_missing' }
    return verifyPlain(request, header, base64Bytes, 'shopify')
  },
  eventType: headers => readString(headers['x-shopify-topic']),
  // a repeated delivery has the same webhook id
  eventId: headers => readString(headers['x-shopify-webhook-id']) ?? readString(headers['x-shopify-event-id']),
  contradiction: (headers, body) => findContradiction(readString(headers['x-shopify-topic']) ?? '', body),
  subject: wholeBody,
  // the `user_id` of an order is that of a staff member
  userId: () => null,
}

const SHOPIFY_TYPES: Record<string, string> = {
  orders: 'Order',
  draft_orders: 'DraftOrder',
  products: 'Product',
  customers: 'Customer',
  refunds: 'Refund',
}

/** Why the body cannot belong to its topic; null: it can. See `Preset.contradiction`. */
function findContradiction(topic: string, body: JsonObject): string | null {
  const [resource = '', action] = topic.split('/')
  const expected = SHOPIFY_TYPES[resource]
  if (expected === undefined) return null
  const found = shopifyType(body)
  if (found !== null && found !== expected)
    return `the topic ${topic} does not match the body, which is of type ${found}; topics are not signed`
  const isWhole = 'created_at' in body || ownShape(body) !== null
  if (action === 'delete' && isWhole)
    return `the topic ${topic} does not match the body, which is a complete object; topics are not signed`
  return null
}

function shopifyType(body: JsonObject): string | null {
  const { admin_graphql_api_id: gid } = body
  const named = typeof gid === 'string' ? /^gid:\/\/shopify\/([A-Za-z]+)\//.exec(gid)?.[1] : undefined
  return named !== undefined && Object.values(SHOPIFY_TYPES).includes(named) ? named : ownShape(body)
}

function ownShape(body: JsonObject): string | null {
  const has = (name: string) => name in body
  if (Array.isArray(body.line_items) && (has('order_number') || has('financial_status'))) return 'Order'
  if (Array.isArray(body.variants) && (has('handle') || has('product_type'))) return 'Product'
  if (Array.isArray(body.refund_line_items)) return 'Refund'
  if (has('orders_count') && has('verified_email')) return 'Customer'
  return null
}
