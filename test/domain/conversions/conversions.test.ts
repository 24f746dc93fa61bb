import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  contactFacts,
  DEFAULT_CONVERSION_TYPES,
  orderConversion,
  readConversion,
} from '../../../src/domain/conversions/conversions.ts'
import { inboundEvent, trackEvent } from '../events/received.ts'

const types = new Set(DEFAULT_CONVERSION_TYPES)
const conversion = (eventType: string, data: object, listed = types) =>
  readConversion(trackEvent({ event_type: eventType, visitor: 'v1', data }), listed)

test('a conversion is a convert event, or a type that the tenant lists', () => {
  assert.equal(conversion('page_view', {}), null)
  assert.ok(conversion('convert', {}, new Set()))
  assert.equal(conversion('purchase', {}, new Set()), null)
  assert.ok(conversion('signup', {}, new Set(['signup'])))
  for (const type of DEFAULT_CONVERSION_TYPES) assert.ok(conversion(type, {}), type)
})

test('amount, currency, order id and type are read from the available fields', () => {
  assert.deepEqual(
    conversion('convert', { amount: 49.9, total: 1, currency: 'eur', order_id: 'o1', email: 'A@b.de' }),
    {
      orderId: 'o1',
      saleKey: null,
      conversionType: 'convert',
      source: 'tracking',
      sourceObjectId: 'o1',
      amount: '49.9',
      currency: 'EUR',
      contactId: null,
      email: 'a@b.de',
    },
  )
  assert.equal(conversion('convert', { conversion_type: 'lead' })?.conversionType, 'lead')
  assert.equal(conversion('convert', { orderId: 5 })?.orderId, '5')
  assert.equal(conversion('convert', { customer_id: 17 })?.contactId, '17')
  assert.equal(conversion('convert', {})?.orderId, null)
  assert.equal(conversion('convert', { id: 'x' })?.sourceObjectId, 'x')
})

test('amounts are exact decimals, invalid values are null', () => {
  const cases: [object, string | null][] = [
    [{ total: '49.90' }, '49.9'],
    [{ total_price: '1234567890123.45' }, '1234567890123.45'],
    [{ value: 0 }, '0'],
    [{ revenue: -5.25 }, '-5.25'],
    [{ amount: 1e-7 }, '0.0000001'],
    [{ amount: null, total: 3 }, '3'],
    [{ amount: 'free', total: 3 }, null],
    [{ amount: '49,90' }, null],
    [{ amount: true }, null],
    [{ amount: { value: 1 } }, null],
    [{ amount: [5] }, null],
    [{ amount: '1e999' }, null],
    [{}, null],
  ]
  for (const [data, amount] of cases) {
    assert.equal(conversion('convert', data)?.amount, amount, JSON.stringify(data))
  }
  for (const currency of ['euro', '', 5, null, 'XXX']) assert.equal(conversion('convert', { currency })?.currency, null)
})

test('an event about an order contains the order id', () => {
  assert.equal(conversion('order.paid', { id: 'o1' })?.orderId, 'o1')
  assert.equal(conversion('Order Completed', { id: 'o1', order_id: 'o2' })?.orderId, 'o2')
  assert.equal(conversion('orders/paid', { id: 'o1' }, new Set(['orders/paid']))?.orderId, 'o1')
  assert.equal(conversion('purchase', { id: 'o1' })?.orderId, null)
  assert.equal(conversion('purchase', { order_id: 'undefined' })?.orderId, null)
})

test("a paid invoice is a billing sale, in Stripe's minor units or in canonical major units", () => {
  const stripe = (object: object) =>
    readConversion(
      inboundEvent({
        id: 'evt_1',
        object: 'event',
        type: 'invoice.paid',
        created: 1735732800,
        data: { object },
      }),
      types,
    )
  const invoice = {
    id: 'in_1',
    object: 'invoice',
    amount_paid: 4990,
    total: 9999,
    currency: 'eur',
    created: 1,
  }
  assert.deepEqual(stripe(invoice), {
    orderId: null,
    saleKey: 'invoice:in_1',
    conversionType: 'invoice.paid',
    source: 'billing',
    sourceObjectId: 'in_1',
    amount: '49.9',
    currency: 'EUR',
    contactId: null,
    email: null,
  })
  assert.equal(stripe({ ...invoice, currency: 'jpy' })?.amount, '4990')
  assert.equal(stripe({ ...invoice, currency: undefined })?.amount, null)
  assert.equal(stripe({ ...invoice, metadata: { order_id: 'o1' } })?.orderId, 'o1')

  const canonical = { event_type: 'invoice.paid', payload: { id: 'in_2', total: 49.9, currency: 'EUR' } }
  assert.partialDeepStrictEqual(readConversion(inboundEvent(canonical), types), {
    orderId: null,
    saleKey: 'invoice:in_2',
    source: 'billing',
    amount: '49.9',
  })
  const bareObject = readConversion(inboundEvent({ event_type: 'invoice.paid', payload: invoice }), types)
  assert.equal(bareObject?.amount, '49.9')
})

test('large numeric ids keep all digits', () => {
  const body = '{"event_type":"order.paid","payload":{"id":820982911946154508,"total_price":"199.00","currency":"USD"}}'
  assert.partialDeepStrictEqual(readConversion(inboundEvent(body), types), {
    orderId: '820982911946154508',
    saleKey: null,
    amount: '199',
    source: 'webhook',
  })
})

test('an order record has an amount, a contact and a time', () => {
  const order = {
    total: '49.90',
    currency: 'eur',
    customerId: 'c1',
    email: ' Ada@Example.com',
    date: '2024-05-06',
  }
  assert.deepEqual(orderConversion(order), {
    amount: '49.9',
    currency: 'EUR',
    contactId: 'c1',
    email: 'ada@example.com',
    placedAt: new Date('2024-05-06T00:00:00Z'),
  })
  const times = { created_at: 'soon', placedAt: '2024-01-01T00:00:00Z', date: '2023-01-01' }
  assert.deepEqual(orderConversion(times).placedAt, new Date('2024-01-01T00:00:00Z'))
  assert.deepEqual(orderConversion({ customer_id: 0 }), {
    amount: null,
    currency: null,
    contactId: null,
    email: null,
    placedAt: null,
  })
})

test('a contact has a name, an e-mail and a company', () => {
  assert.deepEqual(contactFacts({ name: 'Ada L', first_name: 'A', email: 'Ada@Example.com', company_name: 'Ltd' }), {
    name: 'Ada L',
    email: 'Ada@Example.com',
    company: 'Ltd',
  })
  assert.equal(contactFacts({ firstName: 'Ada', last_name: 'Lovelace' }).name, 'Ada Lovelace')
  assert.equal(contactFacts({ last_name: 'Lovelace' }).name, 'Lovelace')
  assert.deepEqual(contactFacts({ name: {}, email: 'none', company: [] }), {
    name: null,
    email: null,
    company: null,
  })
})
