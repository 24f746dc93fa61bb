// Sample requests in the formats of their senders, as the senders document them. The demo, `kontor trigger` and the test event of a
// source build their requests here. The demo also runs in the console, so this module must not import from Node.
import type { PresetName } from './inbound/presets.ts'
import type { JsonObject } from './json/json.ts'
import { DAY_MS } from './time.ts'

export type Sample = { body: JsonObject; headers?: Record<string, string> }

/** Where a sample is sent: to the event API, to a source with this preset, or to a source of this type without a preset. */
export type SampleTarget = 'events' | { preset: PresetName } | { type: 'webhook' | 'cdp' }

/** `create` returns a sample with new ids. */
export type NamedSample = { name: string; target: SampleTarget; create(now: Date): Sample }

type NativeEvent = { id: string; type: string; at: Date; visitor: string; session: string; user?: string | undefined }

/** An event as a page sends it to the event API. */
export function nativeEvent({ id, type, at, visitor, session, user }: NativeEvent, data: object): JsonObject {
  return {
    ...{ event_type: type, event_id: id, visitor, session_id: session, ...(user && { user_id: user }) },
    ...{ occurred_at: at.toISOString(), data },
  }
}

type CdpCall = { id: string; at: Date; visitor?: string; user?: string | undefined }

/** A call as the SDK of a CDP sends it. */
export function cdpCall({ id, at, visitor, user }: CdpCall, content: JsonObject & { type: string }): JsonObject {
  return {
    ...{ messageId: id, ...(visitor && { anonymousId: visitor }), ...(user && { userId: user }) },
    ...{ timestamp: at.toISOString(), ...content },
  }
}

/** A webhook in Kontor's own format. */
export function webhookEvent<Payload extends object>(id: string, type: string, at: Date, payload: Payload) {
  return { inbound_event_id: id, event_type: type, occurred_at: at.toISOString(), payload }
}

type SampleEvent = { id: string; type: string; at: Date; content: JsonObject }
type Envelope = (event: SampleEvent) => Sample

const kontorEnvelope: Envelope = ({ id, type, at, content }) => ({ body: webhookEvent(id, type, at, content) })

/** How each sender wraps its content: where the id, the type and the time of an event are. */
const ENVELOPES: Record<PresetName | 'kontor' | 'cdp', Envelope> = {
  kontor: kontorEnvelope,
  custom: kontorEnvelope,
  cdp: ({ id, type, at, content }) => ({
    body: cdpCall({ id, at }, { type: 'track', event: type, properties: content }),
  }),
  stripe: ({ id, type, at, content }) => ({ body: stripeEvent(id, type, at, content) }),
  shopify: ({ id, type, at, content }) => ({
    headers: {
      'x-shopify-topic': type.replace('.', '/'),
      'x-shopify-webhook-id': id,
      'x-shopify-event-id': uuid(),
      'x-shopify-shop-domain': 'example.myshopify.com',
      'x-shopify-api-version': '2025-07',
      'x-shopify-triggered-at': at.toISOString(),
    },
    body: content,
  }),
  woocommerce({ id, type, content }) {
    const [resource = '', event = ''] = type.split('.')
    const headers = {
      'x-wc-webhook-topic': type,
      'x-wc-webhook-resource': resource,
      'x-wc-webhook-event': event,
      'x-wc-webhook-delivery-id': id,
      'x-wc-webhook-id': '7',
      'x-wc-webhook-source': 'https://shop.example.com/',
    }
    return { headers, body: content }
  },
  paddle: ({ id, type, at, content }) => ({
    body: {
      ...{ event_id: id, notification_id: ulid('ntf'), event_type: type },
      ...{ occurred_at: at.toISOString(), data: content },
    },
  }),
  github: ({ id, type, content }) => ({
    headers: { 'x-github-event': type.replace('.', '_'), 'x-github-delivery': id },
    body: content,
  }),
  'standard-webhooks': ({ id, type, at, content }) => ({
    headers: { 'webhook-id': id, 'webhook-timestamp': String(unix(at)) },
    body: { type, timestamp: at.toISOString(), data: content },
  }),
  chargebee: ({ id, type, content }) => ({ body: { id, object: 'event', event_type: type, content } }),
  recurly({ id, type, content }) {
    const [object_type, event_type] = type.split('.')
    return { body: { id, object_type, event_type, ...content } }
  },
  lago: ({ id, type, content }) => ({
    headers: { 'x-lago-unique-key': id },
    body: { webhook_type: type, object_type: 'test', test: content },
  }),
  revenuecat: ({ id, type, content }) => ({ body: { api_version: '1.0', event: { id, type, ...content } } }),
}

/** An event of type kontor.test, for `kontor source test`. */
export function testEvent(format: keyof typeof ENVELOPES, at: Date): Sample {
  const content = { test: true, message: 'A sample event sent by `kontor source test`.' }
  const object = format === 'stripe' ? { object: 'kontor_test' } : {}
  return ENVELOPES[format]({ id: `test-${uuid()}`, type: 'kontor.test', at, content: { ...object, ...content } })
}

const EUR = { currency: 'EUR' }
const PAGE = 'https://shop.example.com/products/enamel-mug'
const ITEM = { sku: 'MUG-WHITE', name: 'Enamel mug', price: 14.9, ...EUR }

const PAGE_EVENTS: Record<string, () => object> = {
  page_view: () => ({ page: PAGE, title: 'Enamel mug', referrer: 'https://www.google.com/' }),
  product_view: () => ({ page: PAGE, ...ITEM }),
  add_to_cart: () => ({ page: PAGE, ...ITEM, quantity: 2 }),
  signup: () => ({ page: 'https://shop.example.com/signup', email: person().email }),
  convert: () => ({
    ...{ page: 'https://shop.example.com/thanks', order_id: randomId('o-', 8), amount: 49.9, ...EUR },
    email: person().email,
  }),
}

const CDP_CONTEXT = {
  library: { name: 'kontor trigger', version: '1.0.0' },
  page: { url: 'https://shop.example.com/' },
}

const CDP_CALLS: Record<string, (now: Date) => JsonObject> = {
  track: now =>
    cdpCall(
      { id: uuid(), at: now, visitor: uuid() },
      {
        ...{ type: 'track', event: 'Order Completed', context: CDP_CONTEXT },
        properties: { order_id: randomId('o-', 8), total: 49.9, ...EUR },
      },
    ),
  identify(now) {
    const { name, email } = person()
    const call = { id: uuid(), at: now, visitor: uuid(), user: randomId('u-', 8) }
    return cdpCall(call, { type: 'identify', traits: { name, email }, context: CDP_CONTEXT })
  },
}

const MONTH_S = (30 * DAY_MS) / 1000

// API version 2025-03-31.basil
function stripeEvent(id: string, type: string, at: Date, object: object, previous?: object): JsonObject {
  return {
    ...{ id, object: 'event', api_version: '2025-03-31.basil', created: unix(at), livemode: false },
    ...{ pending_webhooks: 1, request: { id: randomId('req_', 14), idempotency_key: null }, type },
    data: { object, ...(previous && { previous_attributes: previous }) },
  }
}

function stripeSubscription(now: Date, changes: object = {}) {
  const created = unix(now)
  const id = randomId('sub_')
  const price = {
    id: randomId('price_'),
    object: 'price',
    active: true,
    currency: 'eur',
    nickname: 'Pro',
    product: randomId('prod_', 14),
    type: 'recurring',
    unit_amount: 2900,
    unit_amount_decimal: '2900',
    billing_scheme: 'per_unit',
    recurring: { interval: 'month', interval_count: 1, usage_type: 'licensed' },
  }
  const item = {
    ...{ id: randomId('si_', 14), object: 'subscription_item', subscription: id, quantity: 1, price },
    ...{ current_period_start: created, current_period_end: created + MONTH_S },
  }
  return {
    id,
    object: 'subscription',
    customer: randomId('cus_', 14),
    status: 'active',
    currency: 'eur',
    created,
    start_date: created,
    billing_cycle_anchor: created,
    cancel_at_period_end: false,
    canceled_at: null,
    ended_at: null,
    collection_method: 'charge_automatically',
    discounts: [],
    latest_invoice: randomId('in_'),
    metadata: {},
    trial_end: null,
    items: { object: 'list', data: [item], has_more: false },
    ...changes,
  }
}

function stripeInvoice(now: Date, paid_at: number | null, changes: object = {}) {
  const { name, email } = person()
  const at = unix(now)
  const line = {
    ...{ id: randomId('il_'), object: 'line_item', amount: 2900, currency: 'eur', quantity: 1 },
    ...{ description: '1 × Pro (at €29.00 / month)', period: { start: at, end: at + MONTH_S } },
  }
  return {
    id: randomId('in_'),
    object: 'invoice',
    number: `${randomId('', 8).toUpperCase()}-0001`,
    currency: 'eur',
    created: at,
    customer: randomId('cus_', 14),
    customer_name: name,
    customer_email: email,
    billing_reason: 'subscription_cycle',
    subtotal: 2900,
    total: 2900,
    amount_due: 2900,
    amount_paid: 2900,
    amount_remaining: 0,
    attempt_count: 1,
    attempted: true,
    parent: { type: 'subscription_details', subscription_details: { subscription: randomId('sub_'), metadata: {} } },
    lines: { object: 'list', data: [line], has_more: false },
    status: 'paid',
    status_transitions: { finalized_at: at, paid_at, marked_uncollectible_at: null, voided_at: null },
    ...changes,
  }
}

/** The object of an event, and the previous values of the fields that it changed. */
const STRIPE_EVENTS: Record<string, (now: Date) => { object: object; previous?: object }> = {
  'customer.created'(now) {
    const { name, email } = person()
    const id = randomId('cus_', 14)
    return { object: { id, object: 'customer', created: unix(now), email, name, metadata: {}, currency: 'eur' } }
  },
  'customer.subscription.created': now => ({ object: stripeSubscription(now) }),
  'customer.subscription.updated': now => ({
    object: stripeSubscription(now, { cancel_at_period_end: true }),
    previous: { cancel_at_period_end: false },
  }),
  'customer.subscription.deleted': now => ({
    object: stripeSubscription(now, { status: 'canceled', canceled_at: unix(now), ended_at: unix(now) }),
  }),
  'invoice.paid': now => ({ object: stripeInvoice(now, unix(now)) }),
  'invoice.payment_failed'(now) {
    const next_payment_attempt = unix(now) + (3 * DAY_MS) / 1000
    const unpaid = { status: 'open', amount_paid: 0, amount_remaining: 2900, next_payment_attempt }
    return { object: stripeInvoice(now, null, unpaid) }
  },
  'payment_intent.succeeded': now => ({
    object: {
      ...{ id: randomId('pi_'), object: 'payment_intent', amount: 4990, amount_received: 4990 },
      ...{ currency: 'eur', created: unix(now), customer: randomId('cus_', 14), status: 'succeeded' },
      ...{ receipt_email: person().email, metadata: {}, latest_charge: randomId('ch_') },
    },
  }),
  'checkout.session.completed'(now) {
    const { name, email } = person()
    return {
      object: {
        ...{ id: randomId('cs_test_', 58), object: 'checkout.session', created: unix(now), mode: 'payment' },
        ...{ amount_subtotal: 4990, amount_total: 4990, currency: 'eur', payment_status: 'paid' },
        ...{ status: 'complete', payment_intent: randomId('pi_'), customer: randomId('cus_', 14) },
        ...{ customer_details: { email, name }, metadata: {} },
      },
    }
  },
  'charge.refunded': now => ({
    object: {
      ...{ id: randomId('ch_'), object: 'charge', amount: 4990, amount_captured: 4990 },
      ...{ amount_refunded: 4990, currency: 'eur', created: unix(now) - DAY_MS / 1000 },
      ...{ customer: randomId('cus_', 14), payment_intent: randomId('pi_') },
      ...{ paid: true, refunded: true, status: 'succeeded', metadata: {} },
    },
    previous: { amount_refunded: 0, refunded: false },
  }),
}

const gid = (type: string, id: number) => `gid://shopify/${type}/${id}`

function shopifyProduct(now: Date) {
  const id = shopifyId()
  const times = { created_at: now.toISOString(), updated_at: now.toISOString() }
  const variants = ['White', 'Black'].map((color, i) => ({
    ...{ id: id + 1 + i, product_id: id, title: color, option1: color, price: '14.90' },
    ...{ sku: `MUG-${randomId('', 6).toUpperCase()}`, position: i + 1, inventory_quantity: 40, ...times },
  }))
  return {
    ...{ id, admin_graphql_api_id: gid('Product', id), title: 'Enamel mug', handle: 'enamel-mug' },
    ...{ vendor: 'Example', status: 'active', product_type: 'Kitchen', tags: 'kitchen, mug' },
    ...{ body_html: '<p>Holds 350 ml.</p>', ...times, variants },
  }
}

function shopifyCustomer(now: Date) {
  const { first, last, email } = person()
  const id = shopifyId()
  return {
    ...{ id, admin_graphql_api_id: gid('Customer', id), email, first_name: first, last_name: last },
    ...{ verified_email: true, orders_count: 1, total_spent: '49.90', ...EUR, state: 'enabled', tags: '' },
    ...{ created_at: now.toISOString(), updated_at: now.toISOString() },
  }
}

function shopifyOrder(now: Date, financial_status: string) {
  const customer = shopifyCustomer(now)
  const id = shopifyId()
  const number = 1000 + randomInt(100_000)
  const at = now.toISOString()
  const line = {
    ...{ id: shopifyId(), product_id: shopifyId(), variant_id: shopifyId(), sku: 'MUG-WHITE' },
    ...{ title: 'Enamel mug', quantity: 2, price: '20.00', total_discount: '0.00' },
  }
  return {
    ...{ id, admin_graphql_api_id: gid('Order', id), name: `#${number}`, order_number: number },
    ...{ email: customer.email, customer, ...EUR, financial_status, fulfillment_status: null },
    ...{ subtotal_price: '40.00', total_tax: '5.00', total_price: '49.90', line_items: [line] },
    ...{ shipping_lines: [{ title: 'Standard', price: '4.90' }], cancelled_at: null, test: true },
    ...{ created_at: at, processed_at: at, updated_at: at },
  }
}

function shopifyRefund(now: Date) {
  const id = shopifyId()
  const transaction = { id: shopifyId(), kind: 'refund', status: 'success', amount: '20.00', ...EUR }
  return {
    ...{ id, admin_graphql_api_id: gid('Refund', id), order_id: shopifyId(), created_at: now.toISOString() },
    ...{ processed_at: now.toISOString(), note: 'Broken on arrival', transactions: [transaction] },
    refund_line_items: [
      { id: shopifyId(), line_item_id: shopifyId(), quantity: 1, subtotal: 20, restock_type: 'return' },
    ],
  }
}

const SHOPIFY_EVENTS: Record<string, (now: Date) => JsonObject> = {
  'products/create': shopifyProduct,
  'products/update': shopifyProduct,
  'customers/create': shopifyCustomer,
  'orders/create': now => shopifyOrder(now, 'pending'),
  'orders/paid': now => shopifyOrder(now, 'paid'),
  'refunds/create': shopifyRefund,
}

/** WooCommerce writes times without a time zone. */
function woocommerceTimes(now: Date, ...fields: string[]) {
  const local = now.toISOString().slice(0, 19)
  return Object.fromEntries(fields.flatMap(field => [field, `${field}_gmt`]).map(field => [field, local]))
}

const WOOCOMMERCE_EVENTS: Record<string, (now: Date) => JsonObject> = {
  'product.created': now => ({
    ...{ id: woocommerceId(), name: 'Enamel mug', slug: 'enamel-mug', type: 'simple', status: 'publish' },
    ...{ catalog_visibility: 'visible', sku: `MUG-${randomId('', 6).toUpperCase()}`, price: '14.90' },
    ...{ regular_price: '14.90', stock_quantity: 40 },
    ...woocommerceTimes(now, 'date_created', 'date_modified'),
  }),
  'customer.created'(now) {
    const { first, last, email } = person()
    return {
      ...{ id: woocommerceId(), email, first_name: first, last_name: last, role: 'customer' },
      ...{ is_paying_customer: false, ...woocommerceTimes(now, 'date_created', 'date_modified') },
    }
  },
  'order.created'(now) {
    const { first, last, email } = person()
    const id = woocommerceId()
    const line = {
      ...{ id: woocommerceId(), name: 'Enamel mug', product_id: woocommerceId(), quantity: 2 },
      ...{ sku: 'MUG-WHITE', subtotal: '29.80', total: '29.80' },
    }
    return {
      ...{ id, number: String(id), order_key: randomId('wc_order_', 13), status: 'processing', ...EUR },
      ...{ total: '34.70', customer_id: woocommerceId(), payment_method: 'card', line_items: [line] },
      ...{ billing: { first_name: first, last_name: last, email } },
      ...woocommerceTimes(now, 'date_paid', 'date_created', 'date_modified'),
    }
  },
}

const paddlePrice = () => ({
  ...{ id: ulid('pri'), product_id: ulid('pro'), name: 'Monthly', tax_mode: 'account_setting' },
  billing_cycle: { interval: 'month', frequency: 1 },
  unit_price: { amount: '2900', currency_code: 'EUR' },
})

const PADDLE_EVENTS: Record<string, (now: Date) => JsonObject> = {
  'subscription.created'(now) {
    const at = now.toISOString()
    return {
      ...{ id: ulid('sub'), status: 'active', customer_id: ulid('ctm'), currency_code: 'EUR' },
      ...{ collection_mode: 'automatic', created_at: at, started_at: at },
      items: [{ quantity: 1, recurring: true, price: paddlePrice() }],
      current_billing_period: { starts_at: at, ends_at: new Date(now.getTime() + 30 * DAY_MS).toISOString() },
    }
  },
  'transaction.completed': now => ({
    ...{ id: ulid('txn'), status: 'completed', customer_id: ulid('ctm'), subscription_id: null },
    ...{ currency_code: 'EUR', billed_at: now.toISOString(), collection_mode: 'automatic' },
    items: [{ quantity: 1, price: paddlePrice() }],
    details: { totals: { subtotal: '2437', tax: '463', total: '2900', grand_total: '2900', balance: '0' } },
    payments: [{ status: 'captured', amount: '2900', captured_at: now.toISOString() }],
  }),
}

/** Every sample of `kontor trigger`. The name of a sample of the event API is its event type; other names start with the sender. */
export const SAMPLES: readonly NamedSample[] = [
  ...Object.entries(PAGE_EVENTS).map(([type, data]): NamedSample => {
    const create = (at: Date) => {
      const ids = { id: uuid(), visitor: randomId('v-', 12), session: randomId('s-', 12) }
      return { body: nativeEvent({ ...ids, type, at }, data()) }
    }
    return { name: type, target: 'events', create }
  }),
  ...Object.entries(STRIPE_EVENTS).map(([type, content]): NamedSample => {
    const create = (at: Date) => {
      const { object, previous } = content(at)
      return { body: stripeEvent(randomId('evt_'), type, at, object, previous) }
    }
    return { name: `stripe.${type}`, target: { preset: 'stripe' }, create }
  }),
  ...presetSamples('shopify', SHOPIFY_EVENTS, () => uuid()),
  ...presetSamples('woocommerce', WOOCOMMERCE_EVENTS, () => uuid().replaceAll('-', '')),
  ...presetSamples('paddle', PADDLE_EVENTS, () => ulid('evt')),
  {
    name: 'webhook.order.shipped',
    target: { type: 'webhook' },
    create(now) {
      const tracking = randomId('', 12).toUpperCase()
      const payload = { order_id: randomId('o-', 6), carrier: 'DHL', tracking }
      return { body: webhookEvent(uuid(), 'order.shipped', now, payload) }
    },
  },
  ...Object.entries(CDP_CALLS).map(
    ([type, call]): NamedSample => ({
      name: `cdp.${type}`,
      target: { type: 'cdp' },
      create: at => ({ body: call(at) }),
    }),
  ),
]

function presetSamples(
  preset: PresetName,
  contents: Record<string, (now: Date) => JsonObject>,
  newId: () => string,
): NamedSample[] {
  return Object.entries(contents).map(([type, content]) => ({
    name: `${preset}.${type}`,
    target: { preset },
    create: at => ENVELOPES[preset]({ id: newId(), type, at, content: content(at) }),
  }))
}

const NAMES = [
  ...['Ada Novak', 'Bruno Keller', 'Chiara Rossi', 'Emil Larsen', 'Jo Martin'],
  ...['Lena Fischer', 'Noor Haddad', 'Sam Okafor'],
]

/** A different person each time, so that not all samples belong to one. */
function person() {
  const name = NAMES[randomInt(NAMES.length)]!
  const [first, last] = name.split(' ') as [string, string]
  const email = `${first}.${last}.${randomInt(1_000_000)}@example.com`.toLowerCase()
  return { name, first, last, email }
}

const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'

/** For example in_1PqX…, as in the ids of Stripe. */
function randomId(prefix: string, length = 24): string {
  let id = prefix
  for (let i = 0; i < length; i++) id += LETTERS[randomInt(LETTERS.length)]
  return id
}

/** Paddle's ids are ULIDs. */
const ulid = (prefix: string) => randomId(`${prefix}_01`, 24).toLowerCase()
const shopifyId = () => 5_000_000_000_000 + randomInt(900_000_000_000)
const woocommerceId = () => 10_000 + randomInt(90_000_000)
const uuid = () => crypto.randomUUID()
const randomInt = (below: number) => Math.floor(Math.random() * below)
const unix = (at: Date) => Math.floor(at.getTime() / 1000)
