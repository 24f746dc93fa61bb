// Webhooks of shops become products, contacts and orders. The bodies are shortened examples from the providers' documentation.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { inLockstep, permutations } from '../../any-order.ts'
import { sharedServer, type TestServer } from '../../server.ts'
import { eventsOf, makeSource } from '../source.ts'

let server: TestServer
before(async () => {
  server = await sharedServer()
})
after(() => server.close())

// biome-ignore lint/suspicious/noExplicitAny: answers are looked into freely
type Body = any
type Source = Awaited<ReturnType<typeof makeSource>>

let deliveries = 0

/** Posts like Shopify, each time with a new webhook id. */
async function shopify(source: Source, topic: string, body: object, more: Record<string, string> = {}) {
  const headers = { 'x-shopify-topic': topic, 'x-shopify-webhook-id': `w-${++deliveries}`, ...more }
  const answer = await source.post(body, { headers })
  assert.deepEqual([answer.status, answer.body.accepted], [200, 1], JSON.stringify(answer.body))
}

async function woocommerce(source: Source, topic: string, body: object) {
  const headers = { 'x-wc-webhook-topic': topic, 'x-wc-webhook-delivery-id': `d-${++deliveries}` }
  const answer = await source.post(body, { headers })
  assert.deepEqual([answer.status, answer.body.accepted], [200, 1], JSON.stringify(answer.body))
}

/** Null if the record does not exist. */
async function record(path: string): Promise<Body> {
  await server.settled()
  const { status, body } = await server.request(`/v1/${path}`, { key: server.tenant.privateKey })
  assert.ok(status === 200 || status === 404, String(status))
  return status === 200 ? body : null
}

async function conversionsOf(orderId: string): Promise<Body[]> {
  await server.settled()
  const { body } = await server.request('/v1/conversions?limit=100', { key: server.tenant.privateKey })
  return body.results.filter((row: Body) => row.source_object_id === orderId)
}

const product = (id: number, updated_at: string, variants: object[], more: object = {}) => ({
  ...{ id, title: 'Example T-Shirt', vendor: 'Acme', product_type: 'Shirts', handle: `shirt-${id}` },
  ...{ status: 'active', created_at: '2021-12-30T20:00:00-05:00', updated_at, variants, ...more },
})
const variant = (id: number, title: string, more: object = {}) => ({
  ...{ id, title, sku: `SKU-${id}`, price: '19.99', inventory_quantity: 75, ...more },
})
const order = (id: number, more: object = {}) => ({
  ...{
    id,
    name: `#${id}`,
    order_number: id,
    email: 'jon@example.com',
    currency: 'USD',
    total_price: '403.00',
  },
  ...{ created_at: '2021-12-31T19:00:00-05:00', updated_at: '2021-12-31T19:00:00-05:00', user_id: 548380009 },
  ...{
    financial_status: 'paid',
    line_items: [{ name: 'Shirt', sku: 'SKU-1', quantity: 2, price: '199.00' }],
  },
  ...{ customer: { id: 207119551, email: 'jon@example.com' }, ...more },
})

test('shopify: a product with one variant is one record, with the object as received', async () => {
  const shop = await makeSource(server, { preset: 'shopify' })
  await shopify(shop, 'products/create', product(101, '2024-01-01T10:00:00Z', [variant(1, 'Default Title')]))
  const found = await record('products/SKU-1')
  assert.deepEqual([found.id, found.externalId, found.sourceUpdatedAt], ['101', null, '2024-01-01T10:00:00.000Z'])
  const { source, ...data } = found.data
  assert.deepEqual(data, {
    ...{ sku: 'SKU-1', name: 'Example T-Shirt', price: '19.99', inventory: 75, title: 'Example T-Shirt' },
    ...{ product_id: '101', handle: 'shirt-101', vendor: 'Acme', type: 'Shirts', status: 'active' },
  })
  assert.equal(source.variants[0].id, 1)
  await shopify(shop, 'products/delete', { id: 101 }, { 'x-shopify-triggered-at': '2024-01-02T10:00:00.877041743Z' })
  assert.equal(await record('products/101'), null)
  // arrives later, but is older than the delete
  await shopify(shop, 'products/update', product(101, '2024-01-02T09:00:00Z', [variant(1, 'Default Title')]))
  assert.equal(await record('products/101'), null)
})

test('shopify: one record per variant; variants missing from a newer version are deleted, in any order', async () => {
  const shop = await makeSource(server, { preset: 'shopify' })
  const three = [variant(21, 'S'), variant(22, 'M'), variant(23, 'L')]
  await shopify(shop, 'products/update', product(102, '2024-01-01T10:00:00Z', three))
  const medium = await record('products/SKU-22')
  assert.deepEqual([medium.id, medium.data.name, medium.data.price], ['102/22', 'Example T-Shirt - M', '19.99'])
  assert.deepEqual([medium.data.source.id, medium.data.source.sku], [22, 'SKU-22'])
  // The newer version first: it has neither M nor the variant of an older version that arrives later.
  await shopify(
    shop,
    'products/update',
    product(102, '2024-01-03T10:00:00Z', [variant(21, 'S', { price: '9.00' }), variant(23, 'L')]),
  )
  await shopify(shop, 'products/update', product(102, '2024-01-02T10:00:00Z', [...three, variant(24, 'XL')]))
  assert.equal((await record('products/SKU-21')).data.price, '9.00')
  for (const gone of ['SKU-22', 'SKU-24']) assert.equal(await record(`products/${gone}`), null)
  assert.ok(await record('products/SKU-23'))
  // with only one variant left, the record has the id of the product
  await shopify(shop, 'products/update', product(102, '2024-01-04T10:00:00Z', [variant(23, 'L')]))
  assert.equal((await record('products/SKU-23')).id, '102')
  assert.equal(await record('products/102%2F21'), null)
  await shopify(shop, 'products/update', product(102, '2024-01-05T10:00:00Z', three))
  assert.equal(await record('products/102'), null)
  await shopify(shop, 'products/delete', { id: 102 })
  for (const { sku } of three) assert.equal(await record(`products/${sku}`), null)
})

test('shopify: records imported under the handle are replaced by records with the real ids', async () => {
  const shop = await makeSource(server, { preset: 'shopify' })
  const write = (id: string, data: object) =>
    server.request('/v1/products', {
      ...{ method: 'POST', key: server.tenant.privateKey },
      body: JSON.stringify({ entityType: 'product', id, sourceUpdatedAt: new Date().toISOString(), data }),
    })
  await write('shirt-103', { handle: 'shirt-103', sku: 'CSV-1' })
  await write('shirt-103/Blue', { handle: 'shirt-103', sku: 'CSV-2' })
  await write('shirt-103x', { handle: 'shirt-103x', sku: 'CSV-3' })
  await write('shirt-103/own', { sku: 'CSV-4' })
  await server.settled()
  await shopify(shop, 'products/update', product(103, '2020-01-01T10:00:00Z', [variant(31, 'S'), variant(32, 'M')]))
  for (const gone of ['CSV-1', 'CSV-2']) assert.equal(await record(`products/${gone}`), null)
  for (const stays of ['CSV-3', 'CSV-4', 'SKU-31']) assert.ok(await record(`products/${stays}`))
})

test('shopify: an order is one conversion with its contact, even if canceled or refunded; a deleted order is none', async () => {
  const shop = await makeSource(server, { preset: 'shopify' })
  await shopify(shop, 'customers/create', {
    ...{
      id: 207119551,
      email: 'jon@example.com',
      first_name: 'Jon',
      last_name: 'Snow',
      verified_email: true,
    },
    ...{ created_at: '2021-12-31T19:00:00-05:00', updated_at: '2021-12-31T19:00:00-05:00', orders_count: 1 },
    default_address: { company: 'The Wall', country_code: 'US', phone: '555' },
  })
  await shopify(shop, 'orders/create', order(5001))
  await shopify(shop, 'orders/paid', order(5001, { updated_at: '2022-01-01T10:00:00Z' }))
  const [contact, found] = [await record('contacts/207119551'), await record('orders/5001')]
  assert.deepEqual([contact.data.firstName, contact.data.company, contact.data.country], ['Jon', 'The Wall', 'US'])
  assert.deepEqual(
    [found.data.contactId, found.data.total_price, found.data.currency, found.data.source.user_id],
    ['207119551', '403.00', 'USD', 548380009],
  )
  const tracked = await server.request('/v1/track/', {
    ...{ method: 'POST', key: server.tenant.trackingKey },
    body: JSON.stringify({ event_type: 'convert', visitor: 'v-5001', data: { order_id: '5001', amount: 1 } }),
  })
  assert.equal(tracked.status, 200)
  await shopify(
    shop,
    'orders/cancelled',
    order(5001, { updated_at: '2022-01-02T10:00:00Z', cancelled_at: '2022-01-02T10:00:00Z' }),
  )
  await shopify(shop, 'refunds/create', {
    ...{ id: 929361462, order_id: 5001, created_at: '2022-01-03T10:00:00Z', refund_line_items: [] },
    transactions: [{ kind: 'refund', status: 'success', amount: '403.00' }],
  })
  const rows = await conversionsOf('5001')
  assert.deepEqual(
    rows.map(row => [row.source, row.amount, row.currency, row.contact_id, row.contact_name, row.occurred_at]),
    [['orders', 403, 'USD', '207119551', 'Jon Snow', '2022-01-01T00:00:00.000Z']],
  )
  const refunded = await record('orders/5001')
  assert.deepEqual(
    [refunded.data.refunded_amount, refunded.data.source.refunds.length, refunded.data.source.id],
    ['403', 1, 5001],
  )
  // The same refund as in the order, sent again.
  await shopify(shop, 'refunds/create', {
    id: 929361462,
    order_id: 5001,
    created_at: '2022-01-03T10:00:00Z',
    transactions: [],
  })
  assert.equal((await record('orders/5001')).data.source.refunds.length, 1)
  await shopify(shop, 'orders/delete', { id: 5001 })
  assert.deepEqual(await conversionsOf('5001'), [])
  assert.equal(await record('orders/5001'), null)
})

test('shopify: refunds and versions of an order add up in any order of arrival after the order', async () => {
  const shop = await makeSource(server, { preset: 'shopify' })
  const refund = (id: number, at: string, amount: string) => ({
    ...{ id, created_at: at, refund_line_items: [] },
    transactions: [{ kind: 'refund', status: 'success', amount, currency: 'USD' }],
  })
  const [r1, r2] = [refund(1, '2022-01-12T00:00:00Z', '30.00'), refund(2, '2022-01-13T00:00:00Z', '20.00')]
  const updated = { updated_at: '2022-01-11T00:00:00Z', note: 'x', refunds: [] }
  const events: ((id: number) => [topic: string, body: object])[] = [
    id => ['orders/updated', order(id, updated)],
    id => ['refunds/create', { ...r1, order_id: id }],
    id => ['refunds/create', { ...r2, order_id: id }],
    id => ['orders/updated', order(id, { ...updated, updated_at: '2022-01-14T00:00:00Z', refunds: [r1] })],
  ]
  const sequences = permutations(events)
  await Promise.all(sequences.map((_, i) => shopify(shop, 'orders/create', order(6100 + i))))
  await server.settled()
  await inLockstep(sequences, (event, i) => shopify(shop, ...event(6100 + i)), server.settled)
  for (const [i, sequence] of sequences.entries()) {
    const id = 6100 + i
    const { data } = await record(`orders/${id}`)
    const ids = data.source.refunds.map((known: Body) => known.id).sort()
    assert.deepEqual(
      [data.refunded_amount, ids, data.source.note],
      ['50', [1, 2], 'x'],
      JSON.stringify(sequence.map(e => e(id)[0])),
    )
  }
})

test('shopify: a line has its total after discounts, and a failed refund is not counted', async () => {
  const shop = await makeSource(server, { preset: 'shopify' })
  const line = (name: string, ...amounts: unknown[]) => ({
    ...{ name, quantity: 2, price: '10.00' },
    ...(amounts.length > 0 && { discount_allocations: amounts.map(amount => ({ amount })) }),
  })
  const transactions = ['error', 'failure', 'success'].map(status => ({ kind: 'refund', status, amount: '1.00' }))
  await shopify(
    shop,
    'orders/create',
    order(6401, {
      line_items: [line('Full'), line('Reduced', '1.50', '0.505'), line('Odd', 'a lot')],
      refunds: [{ id: 1, created_at: '2022-01-03T10:00:00Z', transactions }],
    }),
  )
  const { data } = await record('orders/6401')
  assert.deepEqual(data.line_items, [
    { name: 'Full', quantity: 2, price: '10.00' },
    { name: 'Reduced', quantity: 2, price: '10.00', total: '17.995' },
    { name: 'Odd', quantity: 2, price: '10.00' },
  ])
  assert.equal(data.refunded_amount, '1')
})

test('shopify: a refund in the currency of the customer is converted by the rate of the order', async () => {
  const shop = await makeSource(server, { preset: 'shopify' })
  const money = (amount: string, currency_code: string) => ({ amount, currency_code })
  const paid = {
    ...{ currency: 'EUR', total_price: '100.00', presentment_currency: 'USD' },
    total_price_set: { shop_money: money('100.00', 'EUR'), presentment_money: money('110.00', 'USD') },
  }
  const refund = (id: number, amount: string, currency: string) => ({
    ...{ id, created_at: '2022-01-03T10:00:00Z', refund_line_items: [] },
    transactions: [{ kind: 'refund', status: 'success', amount, currency }],
  })
  await shopify(shop, 'orders/create', order(6201, paid))
  await shopify(shop, 'refunds/create', { ...refund(1, '11.00', 'USD'), order_id: 6201 })
  assert.equal((await record('orders/6201')).data.refunded_amount, '10')
  await shopify(shop, 'refunds/create', { ...refund(2, '5.00', 'EUR'), order_id: 6201 })
  assert.equal((await record('orders/6201')).data.refunded_amount, '15')
  // no rate for this currency
  await shopify(shop, 'refunds/create', { ...refund(3, '7.00', 'SEK'), order_id: 6201 })
  assert.equal((await record('orders/6201')).data.refunded_amount, '15')
  await shopify(shop, 'orders/create', order(6202, { ...paid, refunds: [refund(4, '110.00', 'USD')] }))
  assert.equal((await record('orders/6202')).data.refunded_amount, '100')
})

test('shopify: test orders and test notifications are listed as tests and have no other effect', async () => {
  const shop = await makeSource(server, { preset: 'shopify' })
  await shopify(shop, 'orders/create', order(6301, { test: true }))
  await shopify(shop, 'orders/create', order(6302), { 'x-shopify-test': 'true' })
  await shopify(shop, 'orders/create', order(6303, { test: false }), { 'x-shopify-test': 'false' })
  for (const [id, isReal] of [
    ['6301', false],
    ['6302', false],
    ['6303', true],
  ] as const) {
    assert.equal((await record(`orders/${id}`)) !== null, isReal, id)
    assert.equal((await conversionsOf(id)).length, isReal ? 1 : 0, id)
  }
  const events = await eventsOf(server, shop.id)
  assert.deepEqual(events.map((event: Body) => event.meta.test === true).sort(), [false, true, true])
})

test('of concurrent webhooks and writes from several sources, the newest version wins', async () => {
  const shops = [await makeSource(server, { preset: 'shopify' }), await makeSource(server, { preset: 'shopify' })]
  const moment = (n: number) => new Date(Date.UTC(2024, 0, 1, 0, 0, n)).toISOString()
  const numbers = Array.from({ length: 48 }, (_, i) => (i * 29) % 48)
  await Promise.all(
    numbers.map(async n => {
      const id = 6000 + (n % 3)
      if (n % 4 === 3) {
        const body = {
          entityType: 'order',
          id: String(id),
          sourceUpdatedAt: moment(n),
          data: { total: n, currency: 'USD' },
        }
        const { status } = await server.request('/v1/orders', {
          ...{ method: 'POST', key: server.tenant.privateKey, body: JSON.stringify(body) },
        })
        assert.equal(status, 202)
      } else
        await shopify(shops[n % 2]!, 'orders/updated', order(id, { updated_at: moment(n), total_price: String(n) }))
      await shopify(
        shops[n % 2]!,
        'products/update',
        product(
          6000,
          moment(n),
          n === 47 ? [variant(61, 'S'), variant(62, 'M')] : [variant(61, 'S'), variant(63 + n, 'X')],
        ),
      )
    }),
  )
  for (const [id, amount] of [
    ['6000', 45],
    ['6001', 46],
    ['6002', 47],
  ] as const) {
    assert.equal((await record(`orders/${id}`)).sourceUpdatedAt, moment(amount))
    assert.deepEqual(
      (await conversionsOf(id)).map(row => row.amount),
      [amount],
    )
  }
  await server.settled()
  const { rows } = await server.pool.query(
    `select id from records where entity_type = 'product' and id like '6000%' and not deleted order by id`,
  )
  assert.deepEqual(
    rows.map(({ id }) => id),
    ['6000/61', '6000/62'],
  )
  assert.equal((await record('products/6000%2F62')).data.sku, 'SKU-62')
})

test('shopify: the staff member who took an order is not used as a user id', async () => {
  const shop = await makeSource(server, { preset: 'shopify' })
  for (const [id, email] of [
    [5101, 'ann@example.com'],
    [5102, 'ben@example.com'],
  ] as const)
    await shopify(shop, 'orders/create', order(id, { email, customer: null }))
  const profiles = (await eventsOf(server, shop.id)).map(event => event.node)
  assert.equal(new Set(profiles).size, 2)
})

test('shopify: other topics are events only, and there are no records if the source disables them', async () => {
  const shop = await makeSource(server, { preset: 'shopify' })
  await shopify(shop, 'orders/edited', {
    order_edit: { id: 1, order_id: 5201, created_at: '2024-01-01T00:00:00Z' },
  })
  await shopify(shop, 'customers/redact', { shop_id: 1, customer: { id: 5201 }, orders_to_redact: [] })
  await shopify(shop, 'products/update', { id: 'x'.repeat(300), variants: [] })
  await shopify(shop, 'checkouts/create', {
    id: 5201,
    total_price: '1.00',
    created_at: '2024-01-01T00:00:00Z',
  })
  const off = await makeSource(server, { preset: 'shopify', records: false })
  await shopify(off, 'orders/create', order(5202))
  assert.equal(await record('orders/5202'), null)
  assert.equal((await eventsOf(server, off.id)).length, 1)
  assert.equal(await record('orders/5201'), null)
  assert.equal(await record('contacts/5201'), null)
})

test('shopify: thousands of variants and characters that cannot be stored are handled', async () => {
  const shop = await makeSource(server, { preset: 'shopify' })
  const many = Array.from({ length: 3000 }, (_, i) => ({ id: i + 1, sku: `BULK-${i + 1}` }))
  await shopify(shop, 'products/update', product(104, '2024-01-01T10:00:00Z', many))
  assert.equal((await record('products/BULK-2048')).id, '104/2048')
  assert.equal(await record('products/BULK-2049'), null)
  const strange = JSON.stringify(order(5301, { note: 'a?b' })).replace('a?b', 'a\\u0000b\\ud800')
  await shopify(shop, 'orders/create', strange as never)
  assert.equal((await record('orders/5301')).data.source.note, 'a\ufffdb\ufffd')
})

test('woocommerce: a variation that the product no longer lists is gone, in any order of arrival', async () => {
  const shop = await makeSource(server, { preset: 'woocommerce' })
  const at = (day: string) => ({ date_modified_gmt: `2022-01-${day}T10:00:00` })
  const parent = (id: number, day: string, variations: number[]) => ({
    ...{ id, name: 'Shirt', type: 'variable', catalog_visibility: 'visible', parent_id: 0, variations, ...at(day) },
  })
  const variation = (id: number, parent_id: number) => ({
    ...{ id, parent_id, type: 'variation', name: `Shirt ${id}`, price: '9.00', ...at('02') },
  })
  const events = [
    (id: number) => parent(id, '01', [51, 52]),
    (id: number) => variation(51, id),
    (id: number) => variation(52, id),
    (id: number) => parent(id, '03', [51]),
  ]
  const sequences = permutations(events)
  await inLockstep(sequences, (event, i) => woocommerce(shop, 'product.updated', event(8100 + i)), server.settled)
  for (const [i, sequence] of sequences.entries()) {
    const id = 8100 + i
    const found = [await record(`products/${id}%2F51`), await record(`products/${id}%2F52`)]
    assert.deepEqual([found[0] !== null, found[1] !== null], [true, false], String(sequence.map(e => e(id).id)))
  }
})

test('woocommerce: products, variations, customers and orders; a cart is no order, a guest no contact', async () => {
  const shop = await makeSource(server, { preset: 'woocommerce' })
  const dates = { date_created: '2017-03-22T16:28:02', date_created_gmt: '2017-03-22T19:28:02' }
  const at = (time: string) => ({ ...dates, date_modified_gmt: time })
  const parent = {
    id: 799,
    name: 'Ship Your Idea',
    type: 'variable',
    catalog_visibility: 'visible',
    parent_id: 0,
  }
  await woocommerce(shop, 'product.created', {
    ...parent,
    ...at('2017-03-23T10:00:00'),
    sku: '',
    variations: [733, 732],
  })
  for (const [id, time] of [
    [732, '2017-03-23T10:00:00'],
    [733, '2017-03-23T11:00:00'],
  ] as const)
    await woocommerce(shop, 'product.updated', {
      ...{
        id,
        parent_id: 799,
        type: 'variation',
        name: `Ship - ${id}`,
        sku: `W-${id}`,
        price: '9.00',
        ...at(time),
      },
    })
  assert.equal((await record('products/W-732')).id, '799/732')
  assert.deepEqual(
    [(await record('products/799')).data.name, (await record('products/799')).sourceUpdatedAt],
    ['Ship Your Idea', '2017-03-23T10:00:00.000Z'],
  )
  await woocommerce(shop, 'product.updated', { ...parent, ...at('2017-03-24T10:00:00'), variations: [733] })
  assert.equal(await record('products/W-732'), null)
  // An older version that arrives later removes nothing.
  await woocommerce(shop, 'product.updated', { ...parent, ...at('2017-03-23T12:00:00'), variations: [] })
  assert.equal((await record('products/W-733')).data.price, '9.00')
  await woocommerce(shop, 'product.deleted', { id: 799 })
  const late = { id: 734, parent_id: 799, type: 'variation', name: 'Late', sku: 'W-734', price: '9.00' }
  await woocommerce(shop, 'product.created', { ...late, date_modified_gmt: '2017-03-24T11:00:00' })
  for (const gone of ['799', 'W-733', 'W-734']) assert.equal(await record(`products/${gone}`), null)
  const simple = { id: 800, type: 'simple', name: 'Without a date of its making', sku: 'W-800', price: '2' }
  await woocommerce(shop, 'product.updated', { ...simple, date_modified_gmt: '2017-03-24T11:00:00' })
  assert.equal((await record('products/W-800')).id, '800')

  await woocommerce(shop, 'customer.created', {
    ...{
      id: 25,
      email: 'john.doe@example.com',
      first_name: 'John',
      last_name: 'Doe',
      is_paying_customer: false,
    },
    ...{ billing: { company: 'Doe Ltd', country: 'DE' }, ...at('2017-03-21T16:11:14') },
  })
  const placed = {
    ...{ id: 727, number: '727', order_key: 'wc_order_58d2d042d1d', status: 'processing', currency: 'EUR' },
    ...{ total: '29.35', customer_id: 25, billing: { email: 'john.doe@example.com' } },
    // WooCommerce rounds the price of one piece
    line_items: [{ name: 'Mug', quantity: 3, subtotal: '35.00', total: '29.35', price: 9.7833333333333 }],
  }
  await woocommerce(shop, 'order.created', { ...placed, ...at('2017-03-22T19:28:08') })
  const cart = { ...placed, id: 728, status: 'checkout-draft', ...at('2017-03-22T19:28:08') }
  await woocommerce(shop, 'order.created', cart)
  await woocommerce(shop, 'order.updated', {
    ...placed,
    id: 729,
    customer_id: 0,
    ...at('2017-03-22T19:28:08'),
  })
  const found = await record('orders/727')
  assert.deepEqual(
    [found.data.total_price, found.data.contactId, found.data.source.order_key],
    ['29.35', '25', 'wc_order_58d2d042d1d'],
  )
  assert.deepEqual(found.data.line_items, [{ name: 'Mug', quantity: 3, price: 9.7833333333333, total: '29.35' }])
  const [row] = await conversionsOf('727')
  assert.deepEqual(
    [row.amount, row.currency, row.contact_name, row.company_name, row.occurred_at],
    [29.35, 'EUR', 'John Doe', 'Doe Ltd', '2017-03-22T19:28:02.000Z'],
  )
  assert.equal(await record('orders/728'), null)
  assert.equal((await record('orders/729')).data.contactId, undefined)
  await woocommerce(shop, 'order.deleted', { id: 727 })
  assert.deepEqual(await conversionsOf('727'), [])
  await woocommerce(shop, 'customer.deleted', { id: 25 })
  assert.equal(await record('contacts/25'), null)
  const tampered = await shop.post(
    { ...placed, ...dates },
    { headers: { 'x-wc-webhook-topic': 'order.deleted', 'x-wc-webhook-delivery-id': 'd' } },
  )
  assert.equal(tampered.status, 400)
})
