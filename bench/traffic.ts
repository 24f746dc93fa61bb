import type { Sent } from './load.ts'

const VISITORS = 5_000
const KINDS = 1_000

function range<T>(count: number, make: (index: number) => T): T[] {
  return Array.from({ length: count }, (_, index) => make(index))
}

/** Single tracking events of many visitors. */
export function trackingEvents(): Sent[] {
  return range(VISITORS, index => ({
    method: 'POST',
    path: '/v1/track/',
    body: JSON.stringify({
      event_type: index % 20 === 0 ? 'add_to_cart' : 'page_view',
      visitor: `visitor-${index}`,
      session_id: `session-${index}`,
      data: {
        page: `https://shop.example/collections/mugs/products/mug-${index % 300}?variant=${index}`,
        title: 'Mug, blue, 300 ml',
        referrer: 'https://www.search.example/',
      },
    }),
  }))
}

/** CDP batches of 100 events of several people, with unique message ids and current times. */
export function cdpBatches(): Sent[] {
  return createBatches((batch, item) => cdpEvent((batch * 100 + item * 7) % VISITORS, item))
}

/** The same with events of about 250 bytes. */
export function smallBatches(): Sent[] {
  return createBatches((batch, item) => {
    const { context, ...event } = cdpEvent((batch * 100 + item * 7) % VISITORS, item)
    return { ...event, context: { locale: context.locale, page: { path: context.page.path } } }
  })
}

/** The same for one person, so that all events have the same ordering key. */
export function cdpBatchesOfOnePerson(): Sent[] {
  return createBatches((_, item) => cdpEvent(0, item))
}

function createBatches(createEvent: (batch: number, item: number) => unknown): Sent[] {
  return range(50, batch => ({
    method: 'POST',
    path: '/v1/batch',
    body: JSON.stringify({
      sentAt: '@now@Z',
      batch: range(100, item => createEvent(batch, item)),
    }),
  }))
}

function cdpEvent(person: number, item: number) {
  const common = {
    messageId: `m-@@-${item}`,
    anonymousId: `visitor-${person}`,
    // spread over a second
    timestamp: `@now@.${String((item * 37 + person) % 1_000).padStart(3, '0')}Z`,
    context: {
      library: { name: 'analytics.js', version: '2.11.1' },
      page: { url: `https://shop.example/products/${item}`, path: `/products/${item}` },
      locale: 'en-GB',
    },
  }
  if (item % 25 === 0) {
    return { ...common, type: 'identify', userId: `user-${person}`, traits: { plan: 'basic' } }
  }
  if (item % 3 === 0) return { ...common, type: 'page', name: 'Product', properties: { index: item } }
  return {
    ...common,
    type: 'track',
    event: 'Product Viewed',
    properties: { product_id: `p-${item}`, price: 12.9 },
  }
}

/** Products with unique ids. */
export function productWrites(): Sent[] {
  return range(KINDS, index => ({
    method: 'POST',
    path: '/v1/products',
    body: JSON.stringify({
      entityType: 'product',
      id: 'p-@@',
      sourceUpdatedAt: '2026-01-31T09:30:00Z',
      data: {
        sku: 'SKU-@@',
        name: `Mug ${index}`,
        price: 12.9,
        currency: 'EUR',
        description: 'A mug of stoneware, glazed blue, for 300 ml of tea or coffee.',
        tags: ['mug', 'blue', 'stoneware'],
      },
    }),
  }))
}

/** Batches of 1,000 products with unique ids. */
export function productBatches(): Sent[] {
  return range(10, () => ({
    method: 'POST',
    path: '/v1/products/batch',
    body: JSON.stringify({
      records: range(KINDS, index => ({ ...record('product', index), id: `p-@@-${index}` })),
    }),
  }))
}

/** Batches of the records that `contactReads` and `productReads` read. */
export function storedRecords(count: number): Sent[] {
  return (['contact', 'product'] as const).flatMap(entityType =>
    range(count / KINDS, batch => ({
      method: 'POST' as const,
      path: `/v1/${entityType}s/batch`,
      body: JSON.stringify({
        records: range(KINDS, index => record(entityType, batch * KINDS + index)),
      }),
    })),
  )
}

function record(entityType: 'contact' | 'product', number: number) {
  return {
    entityType,
    id: `r-${number}`,
    sourceUpdatedAt: '2026-01-31T09:30:00Z',
    data:
      entityType === 'product'
        ? { sku: `SKU-${number}`, name: `Mug ${number}`, price: 12.9, currency: 'EUR' }
        : { name: `Person ${number}`, email: `person-${number}@shop.example`, company: 'Mugs & Sons' },
  }
}

export function contactReads(count: number): Sent[] {
  return range(count, index => ({ method: 'GET', path: `/v1/contacts/r-${(index * 7_919) % count}` }))
}

export function productReads(count: number): Sent[] {
  return range(count, index => ({ method: 'GET', path: `/v1/products/SKU-${(index * 7_919) % count}` }))
}

/** Single events of an external system about many orders, with unique ids. */
export function inboundEvents(path: string): Sent[] {
  return range(KINDS, index => ({
    method: 'POST',
    path,
    body: JSON.stringify(inboundEvent('evt-@@', index)),
  }))
}

export function inboundBatches(path: string, items: number): Sent[] {
  return range(50, batch => ({
    method: 'POST',
    path,
    body: JSON.stringify(range(items, item => inboundEvent(`evt-@@-${item}`, batch * items + item))),
  }))
}

function inboundEvent(id: string, order: number) {
  return {
    inbound_event_id: id,
    event_type: 'order.shipped',
    payload: {
      order_id: `o-${order}`,
      carrier: 'DHL',
      tracking_number: `00340434${order}`,
      address: { city: 'Hamburg', country: 'DE' },
      lines: [{ sku: `SKU-${order % 300}`, quantity: 2, price: 12.9 }],
    },
  }
}
