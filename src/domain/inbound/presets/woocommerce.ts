import type { JsonObject } from '../../json/json.ts'
import { type Preset, readIdString, readString, wholeBody } from '../preset.ts'
import { base64Bytes, verifyPlain } from '../signatures.ts'

export const woocommerce: Preset = {
  name: 'woocommerce',
  keepHeaders: [
    'x-wc-webhook-topic',
    'x-wc-webhook-delivery-id',
    'x-wc-webhook-id',
    'x-wc-webhook-source',
    'x-wc-webhook-resource',
  ],
  verify(request) {
    const header = request.headers['x-wc-webhook-signature']?.trim()
    if (!header) return { ok: false, code: 'signature_missing' }
    return verifyPlain(request, header, base64Bytes, 'woocommerce')
  },
  eventType: headers => readString(headers['x-wc-webhook-topic']),
  // two webhooks of one shop may have the same delivery id, which is a hash
  eventId(headers, body) {
    const delivery = readString(headers['x-wc-webhook-delivery-id'])
    if (delivery === null) return null
    return [delivery, readString(headers['x-wc-webhook-topic']), readIdString(body.id)].filter(Boolean).join('/')
  },
  contradiction: (headers, body) => findContradiction(readString(headers['x-wc-webhook-topic']) ?? '', body),
  subject: wholeBody,
  // WooCommerce sends this unsigned form once, when the webhook is saved
  isPing: body => body.length < 40 && /^webhook_id=\d+$/.test(body.toString('latin1').trim()),
}

/** A field that only objects of this resource have. */
const WOOCOMMERCE_FIELDS: Record<string, string> = {
  product: 'catalog_visibility',
  order: 'order_key',
  customer: 'is_paying_customer',
  subscription: 'billing_period',
  coupon: 'discount_type',
}

/** Why the body cannot belong to its topic; null: it can. See `Preset.contradiction`. */
function findContradiction(topic: string, body: JsonObject): string | null {
  const [resource = '', action] = topic.split('.')
  if (!Object.hasOwn(WOOCOMMERCE_FIELDS, resource)) return null
  const isWhole = 'date_created' in body || 'date_created_gmt' in body
  if (action === 'deleted' && isWhole)
    return `the topic ${topic} does not match the body, which is a complete object; topics are not signed`
  // subscriptions also have the fields of orders
  const found = Object.keys(WOOCOMMERCE_FIELDS).findLast(name => WOOCOMMERCE_FIELDS[name]! in body)
  if (found === undefined || found === resource) return null
  return `the topic ${topic} does not match the body, which is of type ${found}; topics are not signed`
}
