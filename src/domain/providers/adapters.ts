import { type Fields, readObject } from '../billing/fields.ts'
import type { Adapter } from './adapter.ts'
import { chargebee } from './adapters/chargebee.ts'
import { lago } from './adapters/lago.ts'
import { paddle } from './adapters/paddle.ts'
import { recurly } from './adapters/recurly.ts'
import { revenuecat } from './adapters/revenuecat.ts'
import { shopify } from './adapters/shopify.ts'
import { woocommerce } from './adapters/woocommerce.ts'

const ADAPTERS: Record<string, Adapter> = {
  paddle,
  chargebee,
  recurly,
  lago,
  revenuecat,
  woocommerce,
  shopify,
}

/** Headers that contain the event type, for providers whose bodies do not. */
const TOPICS: Record<string, string> = { woocommerce: 'x-wc-webhook-topic', shopify: 'x-shopify-topic' }

type FoundAdapter = { adapter: Adapter; eventType: string; body: Fields }

/** The adapter of the source's preset, if the body is in the provider's format and not in Kontor's. */
export function findAdapter(
  preset: string | null,
  subject: unknown,
  headers: Record<string, string>,
): FoundAdapter | null {
  const body = readObject(subject)
  if (preset === null || body === null || !Object.hasOwn(ADAPTERS, preset)) return null
  const adapter = ADAPTERS[preset]!
  if (Object.hasOwn(TOPICS, preset)) {
    const eventType = headers[TOPICS[preset]!]
    return eventType === undefined ? null : { adapter, eventType, body }
  }
  return adapter.recognizes(body) ? { adapter, eventType: adapter.eventType(body), body } : null
}

/** The customer of a Paddle, Chargebee or Lago event; null: the body has none of these formats. */
export function readCustomer(body: Fields): { id: unknown; email: unknown } | null {
  if (paddle.recognizes(body)) {
    const data = readObject(body.data)!
    const isCustomer = paddle.eventType(body).startsWith('customer.')
    return { id: isCustomer ? data.id : data.customer_id, email: isCustomer ? data.email : null }
  }
  if (chargebee.recognizes(body)) {
    const content = readObject(body.content)!
    const customer = readObject(content.customer)
    const named = readObject(content.subscription) ?? readObject(content.invoice)
    return { id: customer?.id ?? named?.customer_id, email: customer?.email }
  }
  if (lago.recognizes(body)) {
    const object = readObject(body[String(body.object_type)])!
    const customer = body.object_type === 'customer' ? object : readObject(object.customer)
    return { id: object.external_customer_id ?? customer?.external_id, email: customer?.email }
  }
  return null
}
