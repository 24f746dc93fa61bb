import { type Fields, readInstant, readList, readObject, readText } from '../billing/fields.ts'
import { parseDecimal } from '../money.ts'
import { type Adapter, divideAmount, type ProviderEvent, type ProviderFact } from './adapter.ts'
import { chargebee } from './adapters/chargebee.ts'
import { lago } from './adapters/lago.ts'
import { paddle } from './adapters/paddle.ts'
import { revenuecat } from './adapters/revenuecat.ts'

/** Recurly's webhooks contain ids but no objects. Kontor only counts them; send the objects as canonical events. */
const recurly: Adapter = {
  recognizes: body =>
    typeof body.object_type === 'string' && typeof body.event_type === 'string' && readText(body.site_id) !== null,
  eventType: body => `${body.object_type}.${body.event_type}`,
  read: ({ eventType }) => (BILLING.test(eventType) ? null : []),
}

const BILLING = /^(subscription|invoice|charge_invoice|credit_invoice|payment|transaction|refund)\b/

/** Shopify's subscription contracts. Their webhooks contain the customer and the interval, but no products or prices. */
const shopify: Adapter = {
  recognizes: () => false,
  eventType: () => '',
  read({ eventType, body }) {
    if (/^subscription_billing_attempts\//.test(eventType)) return null
    if (!/^subscription_contracts\//.test(eventType)) return []
    const id = readText(body.id) ?? readText(body.admin_graphql_api_id)
    if (id === null) return null
    const { interval, interval_count } = readObject(body.billing_policy) ?? {}
    return [
      {
        type: eventType === 'subscription_contracts/create' ? 'subscription.created' : 'subscription.updated',
        payload: {
          id,
          customer: body.customer_id,
          status: body.status === 'failed' ? 'past_due' : body.status,
          currency: body.currency_code,
          metadata: { interval, interval_count },
          // without a price it appears among the exclusions (missing_items)
          items: [],
        },
      },
    ]
  },
}

/** WooCommerce Subscriptions. Orders, products and customers become records. */
const woocommerce: Adapter = {
  // its objects have no envelope: the preset identifies them, and a header contains the topic
  recognizes: () => false,
  eventType: () => '',
  read(event) {
    if (!event.eventType.startsWith('subscription.')) return []
    return readText(event.body.id) ? [toSubscription(event)] : null
  },
}

const WOOCOMMERCE_STATUSES: Record<string, string> = {
  ...{ 'pending-cancel': 'active', switched: 'canceled', trash: 'canceled', 'wc-active': 'active' },
}

/** Prefers the date in UTC to the one in the shop's time zone. A missing date is empty or 0. */
function readDate(body: Fields, name: string): string | null {
  const given = readText(body[`${name}_gmt`]) ?? readText(body[name])
  return given === null || given === '0' || given.startsWith('0000') ? null : given.replace(' ', 'T')
}

/** A subscription in its trial has the status active. */
function isInTrial({ body, occurredAt }: ProviderEvent): boolean {
  const trialEnd = readInstant(readDate(body, 'trial_end_date'))
  return trialEnd !== null && trialEnd > (readInstant(readDate(body, 'date_modified')) ?? occurredAt)
}

function toSubscription(event: ProviderEvent): ProviderFact {
  const { eventType: type, body } = event
  const status = readText(body.status)
  const billing = readObject(body.billing) ?? {}
  const names = [readText(billing.first_name), readText(billing.last_name)].filter(Boolean).join(' ')
  const mapped = status === null ? body.status : (WOOCOMMERCE_STATUSES[status] ?? status)
  const end = readDate(body, 'end_date')
  const canceledAt = readDate(body, 'cancelled_date')
  const isEnded = mapped === 'canceled' || mapped === 'cancelled' || mapped === 'expired'
  const customer = readText(body.customer_id)
  const lines = readList(body.line_items).map(line => readObject(line) ?? {})
  // fees recur like lines; a negative one is a discount
  const fees = readList(body.fee_lines).map(fee => readObject(fee) ?? {})
  const isNegative = ({ total }: Fields) => (parseDecimal(total)?.digits ?? 0n) < 0n
  return {
    type,
    payload: {
      id: body.id,
      // a guest has only an e-mail address
      customer: customer === '0' ? null : customer,
      customer_name: names || billing.company,
      customer_email: billing.email,
      status: mapped === 'active' && isInTrial(event) ? 'trialing' : mapped,
      currency: body.currency,
      started_at: readDate(body, 'start_date') ?? readDate(body, 'date_created'),
      trial_end: readDate(body, 'trial_end_date'),
      current_period_start: readDate(body, 'last_payment_date'),
      current_period_end: readDate(body, 'next_payment_date') ?? end,
      // a subscription of fixed length has its end from the beginning
      cancel_at: isEnded ? null : end,
      canceled_at: canceledAt,
      ended_at: isEnded ? (end ?? canceledAt ?? readDate(body, 'date_modified')) : null,
      updated_at: readDate(body, 'date_modified'),
      collection_method: body.requires_manual_renewal === true ? 'send_invoice' : 'charge_automatically',
      items: [...lines, ...fees.filter(fee => !isNegative(fee))].map(line => toItem(line, body)),
      discounts: fees.filter(isNegative).map(({ total }) => ({
        amount_off: String(total).replace('-', ''),
        duration: 'forever',
      })),
    },
  }
}

/** A line's `total` is the recurring charge: after recurring discounts, before tax. */
function toItem(line: Fields, body: Fields): Fields {
  return {
    id: line.id,
    price_id: Number(line.variation_id ?? 0) > 0 ? line.variation_id : (line.product_id ?? line.name),
    product_id: line.product_id,
    name: line.name,
    quantity: line.quantity,
    unit_amount: divideAmount(line.total ?? line.subtotal, line.quantity),
    interval: body.billing_period,
    interval_count: body.billing_interval,
  }
}

const ADAPTERS: Record<string, Adapter> = { paddle, chargebee, recurly, lago, revenuecat, woocommerce, shopify }

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
