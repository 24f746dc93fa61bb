// MRR excludes tax, whatever the provider calls it; if the tax is unknown, coverage warns.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { sharedServer, type TestServer } from '../../server.ts'
import { makeSource } from '../source.ts'
import { chargebeeEvent, paddleEvent, providerTenant, revenuecatEvent } from './provider.ts'

let server: TestServer
before(async () => {
  server = await sharedServer()
})
after(() => server.close())

const AT = Date.parse('2026-03-01T10:00:00Z') / 1000

test('chargebee: tax_inclusive of an invoice, in any order, with rates of its lines or only a total', async () => {
  const item = (id: string, amount: number) => ({
    ...{ item_price_id: id, item_type: 'plan', quantity: 1, unit_price: amount, amount, object: 'subscription_item' },
  })
  const subscription = (id: string, more: object = {}) => ({
    ...{ id, customer_id: `c_${id}`, status: 'active', currency_code: 'EUR', started_at: AT, updated_at: AT },
    ...{ billing_period: 1, billing_period_unit: 'month', subscription_items: [item('pro', 11900)], ...more },
  })
  const line = (more: object) => ({ entity_type: 'plan_item_price', entity_id: 'pro', amount: 11900, ...more })
  const invoice = (id: string, more: object) => ({
    ...{ id: `inv_${id}`, subscription_id: id, customer_id: `c_${id}`, status: 'paid', currency_code: 'EUR', date: AT },
    ...{ total: 11900, tax: 1900, sub_total: 10000, amount_paid: 11900, updated_at: AT, ...more },
  })
  const inclusive = { price_type: 'tax_inclusive' }
  const created = (id: string, more: object = {}, invoiceMore?: object) =>
    chargebeeEvent('subscription_created', AT, {
      subscription: subscription(id, more),
      ...(invoiceMore && { invoice: invoice(id, invoiceMore) }),
    })
  const tenant = await providerTenant(server, 'chargebee tax')
  const pair = [line({ tax_rate: 19, tax_amount: 1900, is_taxed: true })]
  await tenant.send('chargebee', [
    created('together', {}, { ...inclusive, line_items: pair }),
    chargebeeEvent('invoice_generated', AT, { invoice: invoice('late', { ...inclusive, line_items: pair }) }),
    created('late'),
    created('total', {}, inclusive),
    created('net', {}, { price_type: 'tax_exclusive', line_items: pair }),
    created('untaxed', {}, { ...inclusive, line_items: [line({ is_taxed: false })] }),
    created('none'),
    created('unknown', inclusive),
    // a later invoice without the price does not hide its rate
    created('other', {}, { ...inclusive, line_items: pair }),
    chargebeeEvent('invoice_generated', AT + 60, {
      invoice: {
        ...invoice('other', { ...inclusive, line_items: [line({ entity_id: 'setup', tax_rate: 19 })] }),
        id: 'inv_2',
      },
    }),
    created(
      'addon',
      { subscription_items: [item('pro', 11900), item('addon', 1000)] },
      { ...inclusive, line_items: pair },
    ),
  ])
  const found = await tenant.overview('EUR')
  assert.deepEqual(await tenant.mrrs('EUR'), {
    ...{ c_together: 100, c_late: 100, c_total: 100, c_net: 119, c_untaxed: 119, c_none: 119 },
    ...{ c_unknown: 119, c_other: 100, c_addon: 110 },
  })
  assert.deepEqual(found.coverage.warnings, [
    'Subscriptions addon, unknown: prices include tax at an unknown rate; MRR is too high.',
  ])
})

test('paddle: a transaction shows whether prices of account_setting include tax, and at which rate', async () => {
  const price = (tax_mode: string) => ({
    ...{
      id: 'pri_1',
      product_id: 'pro_1',
      name: 'Pro',
      tax_mode,
      unit_price: { amount: '1200', currency_code: 'GBP' },
    },
    billing_cycle: { interval: 'month', frequency: 1 },
  })
  const subscription = (id: string, tax_mode: string, status = 'active') => ({
    ...{ id, status, customer_id: `ctm_${id}`, currency_code: 'GBP', started_at: '2026-03-01T10:00:00Z' },
    items: [{ quantity: 5, recurring: true, price: price(tax_mode), product: { name: 'Pro' } }],
  })
  const transaction = (id: string, details: object, more: object = {}) => ({
    ...{ id: `txn_${id}`, status: 'completed', customer_id: `ctm_${id}`, subscription_id: id, currency_code: 'GBP' },
    ...{ billed_at: '2026-03-01T10:00:00Z', details, payments: [], ...more },
  })
  const line = (subtotal: string, tax: string, total: string, more: object = {}) => ({
    line_items: [
      {
        ...{ price_id: 'pri_1', quantity: 5, tax_rate: '0.2', proration: null },
        ...{ unit_totals: { subtotal, discount: '0', tax, total }, ...more },
      },
    ],
    totals: { subtotal: `${Number(subtotal) * 5}`, tax: `${Number(tax) * 5}`, total: `${Number(total) * 5}` },
  })
  const totals = (subtotal: string, tax: string, total: string) => ({ totals: { subtotal, discount: '0', tax, total } })
  const times = Array.from({ length: 30 }, (_, n) => `2026-03-01T10:00:00.0000${10 + n}Z`).values()
  const at = () => times.next().value!
  const created = (id: string, mode = 'account_setting', status?: string) =>
    paddleEvent('subscription.created', at(), subscription(id, mode, status))
  const paid = (id: string, details: object) => paddleEvent('transaction.completed', at(), transaction(id, details))
  const tenant = await providerTenant(server, 'paddle tax')
  await tenant.send('paddle', [
    ...[created('inclusive'), paid('inclusive', line('1000', '200', '1200'))],
    ...[paid('before', line('1000', '200', '1200')), created('before')],
    ...[created('exclusive'), paid('exclusive', line('1200', '240', '1440'))],
    ...[created('internal', 'internal'), paid('internal', line('1000', '200', '1200'))],
    ...[created('external', 'external'), paid('external', line('1200', '240', '1440'))],
    ...[created('totals'), paid('totals', totals('5000', '1000', '6000'))],
    ...[created('net totals'), paid('net totals', totals('6000', '1200', '7200'))],
    ...[created('untaxed'), paid('untaxed', line('1200', '0', '1200', { tax_rate: '0' }))],
    ...[created('prorated'), paid('prorated', line('500', '100', '600', { proration: { rate: '0.5' } }))],
    ...[created('none'), created('trial', 'account_setting', 'trialing'), created('rate', 'internal')],
  ])
  assert.deepEqual(await tenant.mrrs('GBP'), {
    ...{ ctm_inclusive: 50, ctm_before: 50, ctm_internal: 50, ctm_totals: 50, ctm_exclusive: 60, ctm_external: 60 },
    ...{ 'ctm_net totals': 60, ctm_untaxed: 60, ctm_none: 60, ctm_prorated: 60, ctm_trial: 0, ctm_rate: 60 },
  })
  assert.deepEqual((await tenant.overview('GBP')).coverage.warnings, [
    'Subscription rate: prices include tax at an unknown rate; MRR is too high.',
    'Subscriptions none, prorated: prices may include tax, which no invoice shows; MRR may be too high.',
  ])
})

test('paddle: another rate applies from its transaction on, also one that returns', async () => {
  const subscription = {
    ...{
      id: 'sub_1',
      status: 'active',
      customer_id: 'ctm_1',
      currency_code: 'EUR',
      started_at: '2026-01-01T10:00:00Z',
    },
    items: [
      {
        ...{ quantity: 1, recurring: true },
        price: {
          ...{
            id: 'pri_1',
            product_id: 'pro_1',
            tax_mode: 'internal',
            unit_price: { amount: '1200', currency_code: 'EUR' },
          },
          billing_cycle: { interval: 'month', frequency: 1 },
        },
      },
    ],
  }
  const transaction = (id: string, tax_rate: string, subtotal: string) => ({
    ...{ id, status: 'completed', customer_id: 'ctm_1', subscription_id: 'sub_1', currency_code: 'EUR' },
    details: {
      line_items: [{ price_id: 'pri_1', quantity: 1, tax_rate, unit_totals: { subtotal, tax: '1', total: '1200' } }],
    },
  })
  const events = [
    paddleEvent('subscription.created', '2026-01-01T10:00:00.000001Z', subscription),
    paddleEvent('transaction.completed', '2026-01-01T10:00:05.000000Z', transaction('txn_1', '0.2', '1000')),
    paddleEvent('subscription.updated', '2026-03-01T10:00:00.000001Z', subscription),
    paddleEvent('transaction.completed', '2026-03-01T10:00:05.000000Z', transaction('txn_3', '0.2', '1000')),
    paddleEvent('subscription.updated', '2026-02-01T10:00:00.000001Z', subscription),
    paddleEvent('transaction.completed', '2026-02-01T10:00:05.000000Z', transaction('txn_2', '0.25', '960')),
  ]
  for (const [i, order] of [events, events.toReversed(), [...events.slice(4), ...events.slice(0, 4)]].entries()) {
    const tenant = await providerTenant(server, `paddle rates ${i}`)
    const source = await makeSource(server, { preset: 'paddle', tenant: tenant.id })
    for (const event of order) {
      assert.equal((await source.post(event)).status, 200)
      await server.settled()
    }
    assert.deepEqual(
      [await tenant.mrrs('EUR', '2026-01-20'), await tenant.mrrs('EUR', '2026-02-20'), await tenant.mrrs('EUR')],
      [{ ctm_1: 10 }, { ctm_1: 9.6 }, { ctm_1: 10 }],
    )
  }
})

test('revenuecat: tax_percentage is the share of tax in the price; without it, coverage warns', async () => {
  const at = AT * 1000
  const period = { purchased_at_ms: at, expiration_at_ms: at + 31 * 86_400_000, currency: 'EUR' }
  const purchase = (id: string, more: object) =>
    revenuecatEvent('INITIAL_PURCHASE', at, {
      ...{ original_transaction_id: id, app_user_id: `u_${id}`, ...period, price_in_purchased_currency: 12, ...more },
    })
  const tenant = await providerTenant(server, 'revenuecat tax')
  await tenant.send('revenuecat', [
    purchase('taxed', { tax_percentage: 0.1667 }),
    purchase('quarter', { tax_percentage: '0.25' }),
    purchase('none', { tax_percentage: 0 }),
    purchase('unknown', { tax_percentage: null }),
    purchase('above', { tax_percentage: 20 }),
    purchase('text', { tax_percentage: 'a fifth' }),
    revenuecatEvent('CANCELLATION', at + 1000, {
      ...{ original_transaction_id: 'unknown', app_user_id: 'u_unknown', ...period, cancel_reason: 'UNSUBSCRIBE' },
    }),
  ])
  const found = await tenant.overview('EUR', '2026-03-15')
  assert.deepEqual(await tenant.mrrs('EUR', '2026-03-15'), {
    ...{ u_taxed: 10, u_quarter: 9, u_none: 12, u_unknown: 12, u_above: 12, u_text: 12 },
  })
  assert.deepEqual(found.coverage.warnings, [
    'Subscription text: `items[0].tax_percent` cannot be read: "a fifth"',
    'Subscriptions above, text, unknown: prices include tax at an unknown rate; MRR is too high.',
  ])
  assert.equal(found.collected.amount, 72)
})
