import assert from 'node:assert/strict'
import { registerHooks } from 'node:module'
import { after, before, test } from 'node:test'
import { sharedServer, type TestServer, type TestTenant } from '../server.ts'

/** What the lists of the console show besides ids: names, summaries, the newest first. */

let server: TestServer
let tenant: TestTenant
before(async () => {
  server = await sharedServer()
  tenant = await server.anotherTenant('lists')
})
after(() => server.close())

type Row = Record<string, unknown> & { id: string }

const read = (path: string, key = tenant.privateKey) => server.request(path, { key })
const write = (entityType: string, id: string, data: object) =>
  server.request(`/v1/${entityType}s`, {
    ...{ method: 'POST', key: tenant.privateKey },
    body: JSON.stringify({ entityType, id, sourceUpdatedAt: '2026-01-31T09:30:00Z', data }),
    headers: { prefer: 'wait=10' },
  })

test('records are listed newest first, page by page, each once', async () => {
  const ids = ['p-1', 'p-2', 'p-3', 'p-4', 'p-5']
  for (const id of ids) await write('product', id, { name: id })
  await server.settled()
  const seen: string[] = []
  let cursor = ''
  do {
    const { body } = await read(`/v1/products?order=newest&limit=2${cursor}`)
    seen.push(...body.results.map(({ id }: Row) => id))
    cursor = body.next_cursor && `&cursor=${body.next_cursor}`
  } while (cursor)
  assert.deepEqual(seen, ids.toReversed())
  const { body } = await read('/v1/products')
  assert.deepEqual(
    body.results.map(({ id }: Row) => id),
    ids,
  )
})

test('contacts have a name, else an e-mail address, and those of other tenants have none', async () => {
  await write('contact', 'c-1', { name: 'Ada Lovelace', email: 'ada@example.com' })
  await write('contact', 'c-2', { firstName: 'Grace', lastName: 'Hopper' })
  await write('contact', 'c-3', { email: 'alan@example.com' })
  await write('contact', 'c-4', {})
  await server.settled()
  const path = `/v1/contact-names?ids=${encodeURIComponent(['c-1', 'c-2', 'c-3', 'c-4', 'c-unknown'].join('\n'))}`
  const { body } = await read(path)
  assert.deepEqual(
    body.results.toSorted((a: Row, b: Row) => (a.id < b.id ? -1 : 1)),
    [
      { id: 'c-1', name: 'Ada Lovelace' },
      { id: 'c-2', name: 'Grace Hopper' },
      { id: 'c-3', name: 'alan@example.com' },
    ],
  )
  assert.deepEqual((await read(path, server.tenant.privateKey)).body.results, [])
})

test('a conversion is read by its id, by its own tenant only', async () => {
  await server.request('/v1/track/', {
    ...{ method: 'POST', key: tenant.trackingKey },
    body: JSON.stringify({
      event_type: 'convert',
      visitor: 'v-1',
      data: { order_id: 'o-1', amount: 12.5, currency: 'EUR' },
    }),
  })
  await server.settled()
  const [listed] = (await read('/v1/conversions')).body.results
  assert.deepEqual((await read(`/v1/conversions/${listed.id}`)).body, listed)
  assert.equal((await read(`/v1/conversions/${listed.id}`, server.tenant.privateKey)).status, 404)
  assert.equal((await read('/v1/conversions/not-an-id')).status, 404)
})

test('payment issues and exclusions name their accounts', async () => {
  const source = await server.admin.sources.create({ tenant: tenant.id, type: 'webhook' })
  const item = { id: 'i', name: 'Pro', quantity: 1, unit_amount: 49, interval: 'month', interval_count: 1 }
  const send = (customer: string, customer_name: string, status: string) =>
    server.request(source.path, {
      ...{ method: 'POST', key: source.token },
      body: JSON.stringify({
        ...{ inbound_event_id: customer, event_type: 'subscription.created' },
        payload: {
          ...{ id: `sub-${customer}`, customer, customer_name, status, currency: 'EUR', items: [item] },
          started_at: '2026-01-01T00:00:00Z',
        },
      }),
    })
  await send('cus-1', 'Ada Lovelace', 'unpaid')
  await send('cus-2', 'Grace Hopper', 'trialing')
  await server.settled()
  const { body: attention } = await read('/v1/subscriptions/attention?currency=EUR')
  assert.deepEqual(
    attention.payment_issues.results.map((row: Row) => row.customer_name),
    ['Ada Lovelace'],
  )
  const { body: excluded } = await read('/v1/subscriptions/exclusions?currency=EUR')
  assert.deepEqual(excluded.results.map((row: Row) => row.customer_name).toSorted(), ['Ada Lovelace', 'Grace Hopper'])
})

test('an event is summarized by its page, product or amount, in whatever format it arrived', async () => {
  registerHooks({
    resolve: (specifier, context, next) =>
      next(
        specifier === 'kontor-time-zone' ? new URL('../../src/domain/time-zone.ts', import.meta.url).href : specifier,
        context,
      ),
  })
  const { summarize } = await import('../../console/summary.ts')
  const summary = (event_type: string, payload: unknown) => summarize({ event_type, payload: payload as never })
  assert.equal(summary('page', { properties: { url: 'https://shop.example/cart?x=1' } }), '/cart')
  assert.equal(summary('Product Added', { properties: { sku: 'A-1', name: 'Gayo' } }), 'Gayo')
  assert.match(
    summary('invoice.paid', { number: 'A-7', total: 57.03, currency: 'eur', status: 'paid' }),
    /^A-7 · €57\.03$/,
  )
  assert.match(
    summary('customer.subscription.updated', {
      type: 'x',
      data: { object: { status: 'past_due', customer_email: 'ada@example.com' } },
    }),
    /ada@example\.com · past due/,
  )
  for (const odd of [null, 'text', [], 7, { properties: null }, { amount: 'x', currency: {} }, { items: [null] }])
    assert.equal(typeof summary('odd', odd), 'string')
})
