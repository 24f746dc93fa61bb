// As the shops' webhook documentation shows them, shortened.
import { randomInt } from 'node:crypto'
import { idWith, type MakeSample, numberId, person, uuid } from './sample.ts'

function shopifyHeaders(topic: string, now: Date): Record<string, string> {
  return {
    ...{ 'x-shopify-topic': topic, 'x-shopify-webhook-id': uuid(), 'x-shopify-event-id': uuid() },
    ...{ 'x-shopify-shop-domain': 'example.myshopify.com', 'x-shopify-api-version': '2025-07' },
    'x-shopify-triggered-at': now.toISOString(),
  }
}

const gid = (type: string, id: number) => `gid://shopify/${type}/${id}`

function shopifyProduct(now: Date) {
  const id = numberId()
  const variants = ['White', 'Black'].map((colour, i) => ({
    ...{
      id: id + 1 + i,
      product_id: id,
      title: colour,
      option1: colour,
      sku: `MUG-${idWith('', 6).toUpperCase()}`,
      price: '14.90',
    },
    ...{
      position: i + 1,
      inventory_quantity: 40,
      created_at: now.toISOString(),
      updated_at: now.toISOString(),
    },
  }))
  return {
    ...{
      id,
      admin_graphql_api_id: gid('Product', id),
      title: 'Enamel mug',
      handle: 'enamel-mug',
      vendor: 'Example',
      status: 'active',
    },
    ...{
      product_type: 'Kitchen',
      body_html: '<p>Holds 350 ml.</p>',
      tags: 'kitchen, mug',
      created_at: now.toISOString(),
    },
    ...{ updated_at: now.toISOString(), variants },
  }
}

function shopifyCustomer(now: Date) {
  const { first, last, email } = person()
  const id = numberId()
  return {
    ...{
      id,
      admin_graphql_api_id: gid('Customer', id),
      email,
      first_name: first,
      last_name: last,
      verified_email: true,
    },
    ...{
      orders_count: 1,
      total_spent: '49.90',
      currency: 'EUR',
      state: 'enabled',
      tags: '',
      created_at: now.toISOString(),
    },
    updated_at: now.toISOString(),
  }
}

function shopifyOrder(now: Date, financial_status: string) {
  const customer = shopifyCustomer(now)
  const id = numberId()
  const number = 1000 + randomInt(100_000)
  const line = {
    ...{
      id: numberId(),
      product_id: numberId(),
      variant_id: numberId(),
      sku: 'MUG-WHITE',
      title: 'Enamel mug',
      quantity: 2,
    },
    ...{ price: '20.00', total_discount: '0.00' },
  }
  return {
    ...{
      id,
      admin_graphql_api_id: gid('Order', id),
      name: `#${number}`,
      order_number: number,
      email: customer.email,
      customer,
    },
    ...{
      currency: 'EUR',
      subtotal_price: '40.00',
      total_tax: '5.00',
      total_price: '49.90',
      financial_status,
      fulfillment_status: null,
    },
    ...{
      line_items: [line],
      shipping_lines: [{ title: 'Standard', price: '4.90' }],
      created_at: now.toISOString(),
    },
    ...{ processed_at: now.toISOString(), updated_at: now.toISOString(), cancelled_at: null, test: true },
  }
}

const shopifySample =
  (topic: string, body: (now: Date) => Record<string, unknown>): MakeSample =>
  now => ({ body: body(now), headers: shopifyHeaders(topic, now) })

export const shopify: Record<string, MakeSample> = {
  'products/create': shopifySample('products/create', shopifyProduct),
  'products/update': shopifySample('products/update', shopifyProduct),
  'customers/create': shopifySample('customers/create', shopifyCustomer),
  'orders/create': shopifySample('orders/create', now => shopifyOrder(now, 'pending')),
  'orders/paid': shopifySample('orders/paid', now => shopifyOrder(now, 'paid')),
  'refunds/create': shopifySample('refunds/create', now => {
    const id = numberId()
    const transaction = {
      id: numberId(),
      kind: 'refund',
      status: 'success',
      amount: '20.00',
      currency: 'EUR',
    }
    return {
      ...{ id, admin_graphql_api_id: gid('Refund', id), order_id: numberId(), created_at: now.toISOString() },
      ...{ processed_at: now.toISOString(), note: 'Broken on arrival', transactions: [transaction] },
      refund_line_items: [
        { id: numberId(), line_item_id: numberId(), quantity: 1, subtotal: 20, restock_type: 'return' },
      ],
    }
  }),
}

/** WooCommerce writes times without a zone. */
const local = (now: Date) => now.toISOString().slice(0, 19)

const wooSample =
  (topic: string, body: (now: Date) => Record<string, unknown>): MakeSample =>
  now => {
    const [resource = '', event = ''] = topic.split('.')
    const headers = {
      ...{ 'x-wc-webhook-topic': topic, 'x-wc-webhook-resource': resource, 'x-wc-webhook-event': event },
      ...{ 'x-wc-webhook-delivery-id': uuid().replaceAll('-', ''), 'x-wc-webhook-id': '7' },
      'x-wc-webhook-source': 'https://shop.example.com/',
    }
    return { body: body(now), headers }
  }

const wooId = () => 10_000 + randomInt(90_000_000)
const wooTimes = (now: Date) => ({
  date_created: local(now),
  date_created_gmt: local(now),
  date_modified: local(now),
  date_modified_gmt: local(now),
})

export const woocommerce: Record<string, MakeSample> = {
  'product.created': wooSample('product.created', now => ({
    ...{
      id: wooId(),
      name: 'Enamel mug',
      slug: 'enamel-mug',
      type: 'simple',
      status: 'publish',
      catalog_visibility: 'visible',
    },
    ...{
      sku: `MUG-${idWith('', 6).toUpperCase()}`,
      price: '14.90',
      regular_price: '14.90',
      stock_quantity: 40,
      ...wooTimes(now),
    },
  })),
  'customer.created': wooSample('customer.created', now => {
    const { first, last, email } = person()
    return {
      id: wooId(),
      email,
      first_name: first,
      last_name: last,
      role: 'customer',
      is_paying_customer: false,
      ...wooTimes(now),
    }
  }),
  'order.created': wooSample('order.created', now => {
    const { first, last, email } = person()
    const id = wooId()
    const line = {
      id: wooId(),
      name: 'Enamel mug',
      product_id: wooId(),
      quantity: 2,
      sku: 'MUG-WHITE',
      subtotal: '29.80',
      total: '29.80',
    }
    return {
      ...{
        id,
        number: String(id),
        order_key: idWith('wc_order_', 13),
        status: 'processing',
        currency: 'EUR',
        total: '34.70',
      },
      ...{
        customer_id: wooId(),
        billing: { first_name: first, last_name: last, email },
        payment_method: 'card',
        line_items: [line],
      },
      ...{ date_paid: local(now), date_paid_gmt: local(now), ...wooTimes(now) },
    }
  }),
}
