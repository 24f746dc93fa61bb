import { DAY_MS } from '../../domain/time.ts'
import { idWith, type MakeSample, person, uuid } from './sample.ts'

const MONTH_MS = 30 * DAY_MS

/** Paddle's ids are ULIDs. */
const ulid = (prefix: string) => idWith(`${prefix}_01`, 24).toLowerCase()

const paddleSample =
  (event_type: string, data: (now: Date) => object): MakeSample =>
  now => {
    const ids = { event_id: ulid('evt'), notification_id: ulid('ntf') }
    return { body: { ...ids, event_type, occurred_at: now.toISOString(), data: data(now) } }
  }

const price = () => ({
  ...{ id: ulid('pri'), product_id: ulid('pro'), name: 'Monthly', tax_mode: 'account_setting' },
  ...{
    billing_cycle: { interval: 'month', frequency: 1 },
    unit_price: { amount: '2900', currency_code: 'EUR' },
  },
})

/** As Paddle Billing's reference shows them, shortened. */
export const paddle: Record<string, MakeSample> = {
  'subscription.created': paddleSample('subscription.created', now => ({
    ...{
      id: ulid('sub'),
      status: 'active',
      customer_id: ulid('ctm'),
      currency_code: 'EUR',
      collection_mode: 'automatic',
    },
    ...{
      created_at: now.toISOString(),
      started_at: now.toISOString(),
      items: [{ quantity: 1, recurring: true, price: price() }],
    },
    current_billing_period: {
      starts_at: now.toISOString(),
      ends_at: new Date(now.getTime() + MONTH_MS).toISOString(),
    },
  })),
  'transaction.completed': paddleSample('transaction.completed', now => ({
    ...{
      id: ulid('txn'),
      status: 'completed',
      customer_id: ulid('ctm'),
      subscription_id: null,
      currency_code: 'EUR',
    },
    ...{
      billed_at: now.toISOString(),
      collection_mode: 'automatic',
      items: [{ quantity: 1, price: price() }],
    },
    details: { totals: { subtotal: '2437', tax: '463', total: '2900', grand_total: '2900', balance: '0' } },
    payments: [{ status: 'captured', amount: '2900', captured_at: now.toISOString() }],
  })),
}

/** In Kontor's own shape, for sources without a preset. */
export const webhook: Record<string, MakeSample> = {
  'order.shipped': now => ({
    body: {
      ...{ inbound_event_id: uuid(), event_type: 'order.shipped', occurred_at: now.toISOString() },
      payload: { order_id: idWith('o-', 6), carrier: 'DHL', tracking: idWith('', 12).toUpperCase() },
    },
  }),
}

const cdpContext = () => ({
  library: { name: 'kontor trigger', version: '1.0.0' },
  page: { url: 'https://shop.example.com/' },
})

/** As Segment's spec has them. */
export const cdp: Record<string, MakeSample> = {
  track: now => ({
    body: {
      ...{
        type: 'track',
        event: 'Order Completed',
        messageId: uuid(),
        anonymousId: uuid(),
        timestamp: now.toISOString(),
      },
      properties: { order_id: idWith('o-', 8), total: 49.9, currency: 'EUR' },
      context: cdpContext(),
    },
  }),
  identify: now => {
    const { name, email } = person()
    const ids = { type: 'identify', messageId: uuid(), anonymousId: uuid(), userId: idWith('u-', 8) }
    return { body: { ...ids, timestamp: now.toISOString(), traits: { name, email }, context: cdpContext() } }
  },
}

const tracked =
  (event_type: string, data: () => object): MakeSample =>
  now => ({
    body: {
      ...{ event_type, event_id: uuid(), visitor: idWith('v-', 12), session_id: idWith('s-', 12) },
      ...{ occurred_at: now.toISOString(), data: data() },
    },
  })

const page = 'https://shop.example.com/products/enamel-mug'
const item = { sku: 'MUG-WHITE', name: 'Enamel mug', price: 14.9, currency: 'EUR' }

/** What a page sends to the event API. */
export const events: Record<string, MakeSample> = {
  page_view: tracked('page_view', () => ({ page, title: 'Enamel mug', referrer: 'https://www.google.com/' })),
  product_view: tracked('product_view', () => ({ page, ...item })),
  add_to_cart: tracked('add_to_cart', () => ({ page, ...item, quantity: 2 })),
  signup: tracked('signup', () => ({ page: 'https://shop.example.com/signup', email: person().email })),
  convert: tracked('convert', () => ({
    ...{ page: 'https://shop.example.com/thanks', order_id: idWith('o-', 8), amount: 49.9, currency: 'EUR' },
    email: person().email,
  })),
}
