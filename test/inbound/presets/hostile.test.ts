// Any value in any field of a provider's subscription gives a right number, an exclusion with a reason, or a warning.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { sampled } from '../../long.ts'
import { sharedServer, type TestServer } from '../../server.ts'
import { makeSource } from '../source.ts'
import { type Body, chargebeeEvent, paddleEvent, providerTenant, revenuecatEvent, stripeEvent } from './provider.ts'

let server: TestServer
before(async () => {
  server = await sharedServer()
})
after(() => server.close())

const AT = Date.parse('2026-03-01T10:00:00Z') / 1000
const ISO = '2026-03-01T10:00:00Z'
const MISSING = Symbol('missing')

const VALUES: unknown[] = [
  ...[MISSING, null, '', 'abc', '\u0000', '4\u0000', '4', ' 4 ', 4, 0, -4, 0.5, 1e15, 1e300, '9'.repeat(400)],
  ...[true, [], {}, [4], { amount: 4 }, '4,5', '0x10', '٤'],
]

/** The MRR for a value, or null: the value must not count silently. A base document has an MRR of 10 USD. */
type Expected = (value: unknown) => number | null
const read = (value: unknown) =>
  (typeof value === 'number' || (typeof value === 'string' && /^ *\d+(\.\d+)? *$/.test(value))) && Number(value) <= 1e15
    ? Number(value)
    : null
const factor =
  (one: number, fallback: number | null = null): Expected =>
  value => {
    const number = read(value)
    if (value === MISSING || value === null) return fallback
    return number === null ? null : Math.round(number * one * 100) / 100
  }
const interval: Expected = value => {
  const count = read(value)
  if (value === MISSING) return 10
  return count && Number.isInteger(count) && count <= 1200 ? Math.round(1000 / count) / 100 : null
}
/** Any other text must not count silently. */
const word: Expected = () => null
/** It does not affect the price. */
const irrelevant: Expected = () => 10

type Provider = {
  headers?: Record<string, string>
  event(id: string, n: number): Body
  /** Fields by path: numbers are places in lists. */
  fields: Record<string, Expected>
}

const PROVIDERS: Record<string, Provider> = {
  stripe: {
    event: id =>
      stripeEvent('customer.subscription.created', AT, {
        ...{ id, object: 'subscription', customer: `c ${id}`, status: 'active', currency: 'usd', created: AT },
        items: {
          data: [
            {
              ...{ id: `si ${id}`, quantity: 1 },
              price: {
                id: 'p',
                currency: 'usd',
                unit_amount: 1000,
                recurring: { interval: 'month', interval_count: 1 },
              },
            },
          ],
        },
      }),
    fields: {
      'data.object.items.data.0.quantity': factor(10, 10),
      'data.object.items.data.0.price.unit_amount': factor(0.01),
      'data.object.items.data.0.price.recurring.interval': word,
      'data.object.items.data.0.price.recurring.interval_count': interval,
      'data.object.status': value => (value === MISSING || value === null || value === '' ? 10 : null),
      'data.object.items': word,
      'data.object.metadata': irrelevant,
      'data.object.trial_end': irrelevant,
    },
  },
  paddle: {
    event: (id, n) =>
      paddleEvent('subscription.created', `2026-03-01T10:00:00.${String(n).padStart(6, '0')}Z`, {
        ...{ id, status: 'active', customer_id: `c ${id}`, currency_code: 'USD', started_at: ISO },
        items: [
          {
            ...{ quantity: 1, recurring: true },
            price: {
              ...{
                id: 'pri',
                product_id: 'pro',
                tax_mode: 'external',
                billing_cycle: { interval: 'month', frequency: 1 },
              },
              unit_price: { amount: '1000', currency_code: 'USD' },
            },
          },
        ],
      }),
    fields: {
      'data.items.0.quantity': factor(10, 10),
      'data.items.0.price.unit_price.amount': factor(0.01),
      'data.items.0.price.unit_price': word,
      'data.items.0.price.billing_cycle.interval': word,
      'data.items.0.price.billing_cycle.frequency': interval,
      'data.status': value => (value === MISSING || value === null || value === '' ? 10 : null),
      'data.items': word,
      'data.custom_data': irrelevant,
      'data.discount': irrelevant,
    },
  },
  chargebee: {
    event: id =>
      chargebeeEvent('subscription_created', AT, {
        subscription: {
          ...{ id, customer_id: `c ${id}`, status: 'active', currency_code: 'USD', started_at: AT, updated_at: AT },
          ...{ billing_period: 1, billing_period_unit: 'month' },
          subscription_items: [{ item_price_id: 'p', item_type: 'plan', quantity: 1, unit_price: 1000 }],
        },
      }),
    fields: {
      'content.subscription.subscription_items.0.quantity': factor(10, 10),
      'content.subscription.subscription_items.0.unit_price': factor(0.01),
      'content.subscription.subscription_items.0.amount': value =>
        value === MISSING || value === null ? 10 : factor(0.01)(value),
      'content.subscription.subscription_items.0.unit_price_in_decimal': value =>
        value === MISSING || value === null ? 10 : factor(1)(value),
      'content.subscription.billing_period': interval,
      'content.subscription.billing_period_unit': word,
      'content.subscription.status': value => (value === MISSING || value === null || value === '' ? 10 : null),
      'content.subscription.subscription_items': word,
      'content.subscription.meta_data': irrelevant,
    },
  },
  lago: {
    headers: { 'x-lago-unique-key': 'k#' },
    event: id => ({
      ...{ webhook_type: 'subscription.started', object_type: 'subscription' },
      subscription: {
        ...{ lago_id: id, external_customer_id: `c ${id}`, status: 'active', started_at: ISO },
        ...{ plan_amount_cents: 1000, plan_amount_currency: 'USD', plan: { code: 'p', interval: 'monthly' } },
      },
    }),
    fields: {
      'subscription.plan_amount_cents': factor(0.01),
      'subscription.plan.interval': word,
      'subscription.status': value => (value === MISSING || value === null || value === '' ? 10 : null),
      'subscription.plan.minimum_commitment': irrelevant,
      'subscription.plan.minimum_commitment.amount_cents': value => {
        const committed = factor(0.01, 10)(value)
        return committed === null ? null : Math.max(10, committed)
      },
      'subscription.plan.fixed_charges': value => (Array.isArray(value) && value.length > 0 ? null : 10),
      'subscription.applied_coupons': value => (Array.isArray(value) && value.length > 0 ? null : 10),
    },
  },
  revenuecat: {
    event: id =>
      revenuecatEvent('INITIAL_PURCHASE', AT * 1000, {
        ...{ original_transaction_id: id, app_user_id: `c ${id}`, currency: 'USD', tax_percentage: 0 },
        ...{ purchased_at_ms: AT * 1000, expiration_at_ms: (AT + 31 * 86_400) * 1000, price_in_purchased_currency: 10 },
      }),
    fields: {
      'event.price_in_purchased_currency': factor(1),
      'event.tax_percentage': value => {
        const share = read(value)
        // coverage warns about an unknown share, and names the first subscriptions
        return share === null || share > 1 ? 10 : 10 * (1 - share)
      },
      'event.expiration_at_ms': word,
      'event.period_type': irrelevant,
    },
  },
  woocommerce: {
    headers: { 'x-wc-webhook-topic': 'subscription.created', 'x-wc-webhook-delivery-id': 'd#' },
    event: (id, n) => ({
      ...{
        id,
        status: 'active',
        currency: 'USD',
        billing_period: 'month',
        billing_interval: '1',
        customer_id: `c ${id}`,
      },
      ...{ start_date_gmt: '2026-03-01T10:00:00', date_modified_gmt: '2026-03-01T10:00:00', order_key: `wc ${n}` },
      line_items: [{ id: 1, name: 'Coffee', product_id: 7, quantity: 2, subtotal: '10.00', total: '10.00' }],
    }),
    fields: {
      // the total of a line is for all units
      'line_items.0.quantity': value =>
        read(value) === 0 ? null : read(value) ? 10 : value === MISSING || value === null ? 10 : null,
      'line_items.0.total': value => (value === MISSING || value === null ? 10 : factor(1)(value)),
      billing_interval: interval,
      billing_period: word,
      status: value => (value === MISSING || value === null || value === '' ? 10 : null),
      line_items: word,
      fee_lines: value => (Array.isArray(value) && value.length > 0 ? null : 10),
    },
  },
}

/** A copy of the document with another value at a path. */
function withValue(document: Body, path: string[], value: unknown): Body {
  const [name, ...rest] = path as [string, ...string[]]
  const copy: Body = Array.isArray(document) ? [...document] : { ...document }
  if (rest.length > 0) copy[name] = withValue(copy[name] ?? {}, rest, value)
  else if (value === MISSING) delete copy[name]
  else copy[name] = value
  return copy
}

const inWords = (value: unknown) => (value === MISSING ? 'missing' : (JSON.stringify(value) ?? '').slice(0, 40))

for (const [preset, { headers = {}, event, fields }] of Object.entries(PROVIDERS))
  test(`${preset}: no value of a field counts silently`, async () => {
    const tenant = await providerTenant(server, `hostile ${preset}`)
    const cases = sampled(
      Object.entries(fields).flatMap(([path, expected]) =>
        VALUES.map((value, n) => ({ id: `${path.replaceAll('.', '_')}-${n}`, path, value, expected: expected(value) })),
      ),
    )
    const source = await makeSource(server, { preset, tenant: tenant.id })
    const refused = new Set<string>()
    for (const [n, { id, path, value }] of cases.entries()) {
      const numbered = Object.entries(headers).map(([name, text]) => [name, text.replace('#', `${n}`)])
      const body = withValue(event(id, n), path.split('.'), value)
      const { status } = await source.post(body, { headers: Object.fromEntries(numbered) })
      // the sender learns about a body that contradicts its topic
      if (status === 400) refused.add(id)
      else assert.equal(status, 200)
    }
    await server.settled()
    const { items, rows, warned } = await outcomes(tenant)
    const silent = cases.flatMap(({ id, path, value, expected }) => {
      const mrr = items.get(id)
      const isExplained = rows.has(id) || warned.has(id) || refused.has(id)
      if (mrr === undefined && !isExplained) return [`${path} = ${inWords(value)}: lost`]
      const isRight = mrr === expected || (expected !== null && mrr === 0 && expected === 0)
      return isRight || isExplained ? [] : [`${path} = ${inWords(value)}: ${mrr}, expected ${expected}`]
    })
    assert.deepEqual(silent, [])
  })

/** MRR by subscription, and the subscriptions with an exclusion or with a warning on their event. */
async function outcomes(tenant: Awaited<ReturnType<typeof providerTenant>>) {
  const all = async (path: string, list: string) => {
    const results: Body[] = []
    for (let page = 1; ; page++) {
      const body = await tenant.get(`${path}&page=${page}&page_size=100`)
      results.push(...(list === '' ? body : body[list]).results)
      if ((list === '' ? body : body[list]).results.length < 100) return results
    }
  }
  const accounts = await all('/v1/subscriptions/overview?currency=USD', 'accounts')
  const excluded = await all('/v1/subscriptions/exclusions?currency=USD', '')
  const warned: string[] = []
  for (let cursor = ''; ; ) {
    const body = await tenant.get(`/v1/events?limit=100${cursor}`)
    for (const { meta, payload } of body.results)
      if (meta.warnings) warned.push(...[...JSON.stringify(payload).matchAll(/"([\w]+-\d+)"/g)].map(match => match[1]!))
    if (body.next_cursor === null) break
    cursor = `&cursor=${encodeURIComponent(body.next_cursor)}`
  }
  const { coverage } = await tenant.overview('USD')
  for (const warning of coverage.warnings) warned.push(...[...warning.matchAll(/([\w]+-\d+)/g)].map(match => match[1]!))
  return {
    items: new Map(accounts.map((row: Body) => [String(row.customer).replace(/^c /, ''), row.mrr])),
    rows: new Map(excluded.map((row: Body) => [row.subscription_id, row.reason_code])),
    warned: new Set(warned),
  }
}
