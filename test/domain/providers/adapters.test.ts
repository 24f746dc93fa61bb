import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { readBillingEvent } from '../../../src/domain/billing/read.ts'
import { divideAmount, minorToMajor } from '../../../src/domain/providers/adapter.ts'
import { readShopChanges } from '../../../src/domain/providers/shops.ts'
import { runs } from '../../long.ts'

const NOW = new Date('2026-01-01T00:00:00Z')

/** Bodies that look like those of a provider, with anything in every field. */
const FIELDS = [
  ...['id', 'status', 'items', 'currency_code', 'currency', 'customer', 'discount', 'coupons', 'payments', 'totals'],
  ...['variants', 'line_items', 'updated_at', 'lago_id', 'plan', 'price', 'original_transaction_id', 'variations'],
  ...['price_in_purchased_currency', 'purchased_at_ms', 'expiration_at_ms', 'subscription_items', 'details', 'type'],
]
const anything = fc.letrec(tie => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.constantFrom(null, '', 'x', 'EUR', '12.5', -1, 0, 3, 1e300, '2026-01-01', true, {}, []),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(fc.constantFrom(...FIELDS), tie('value'), { maxKeys: 8 }),
  ),
})).value

const SHAPES: [preset: string, body: (inside: unknown) => object, types: string[]][] = [
  [
    'paddle',
    data => ({ event_id: 'e', occurred_at: '2026-01-01', data }),
    ['subscription.x', 'transaction.x', 'adjustment.x', 'discount.x', 'customer.x'],
  ],
  [
    'chargebee',
    inside => ({
      object: 'event',
      content: { subscription: inside, invoice: inside, transaction: inside, coupon: inside },
    }),
    ['payment_failed'],
  ],
  [
    'lago',
    inside => ({ object_type: 'o', o: inside }),
    ['subscription.started', 'invoice.x', 'credit_note.created', 'customer.x'],
  ],
  [
    'revenuecat',
    event => ({ event }),
    ['INITIAL_PURCHASE', 'RENEWAL', 'CANCELLATION', 'EXPIRATION', 'NON_RENEWING_PURCHASE'],
  ],
  [
    'woocommerce',
    inside => inside as object,
    ['subscription.updated', 'product.updated', 'order.created', 'customer.updated'],
  ],
  [
    'shopify',
    inside => inside as object,
    ['products/update', 'orders/create', 'customers/update', 'refunds/create', 'subscription_contracts/update'],
  ],
  ['recurly', () => ({ object_type: 'subscription', site_id: 's' }), ['x']],
]

test('adapters and connectors never throw, for any body of any provider', () => {
  for (const [preset, bodyOf, types] of SHAPES)
    fc.assert(
      fc.property(anything, fc.constantFrom(...types), (inside, type) => {
        const isObject = typeof inside === 'object' && inside !== null && !Array.isArray(inside)
        const body = bodyOf(isObject ? inside : {}) as Record<string, unknown>
        const event = isObject && body.event === inside ? { event: { ...inside, type } } : {}
        const subject = { event_type: type, webhook_type: type, ...body, ...event }
        const headers = { 'x-shopify-topic': type, 'x-wc-webhook-topic': type }
        const common = { preset, subject, headers, occurredAt: NOW, receivedAt: NOW, eventType: type }
        const { changes } = readBillingEvent(common)
        for (const change of changes) if (change.kind === 'subscription') assert.ok(change.version.id.length > 0)
        for (const change of readShopChanges({ ...common, payload: '{}' })) assert.match(change.at, /^\d{4}-.*Z$/)
      }),
      { numRuns: runs(150) },
    )
})

test('amounts are exact: minor units by currency, the total of a line divided by its quantity', () => {
  assert.deepEqual(
    [
      minorToMajor('1999', 'EUR'),
      minorToMajor(5000, 'jpy'),
      minorToMajor('1', 'KWD'),
      minorToMajor(null, 'EUR'),
      minorToMajor('1', 'XXX'),
    ],
    ['19.99', '5000', '0.001', undefined, undefined],
  )
  assert.deepEqual(
    [
      divideAmount('200.00', 3),
      divideAmount('29.35', 1),
      divideAmount('10', 0),
      divideAmount('x', 1),
      divideAmount('9', undefined),
    ],
    ['66.666666666666', '29.35', undefined, 'x', '9'],
  )
})
