import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { business } from '../books/business.ts'
import { ndjsonOf, pagesOf, type StripeLists, stripeLists } from '../books/stripe/lists.ts'
import { stripeEvents } from '../books/stripe.ts'
import { kontor, temporaryDirectory, useDatabase } from '../cli/kontor.ts'
import { startServer, TEST_SECRET_KEY } from '../server.ts'
import { startStripe, tooManyRequests } from './stripe-api.ts'

const server = await startServer()
after(server.close)
useDatabase(server.databaseUrl, { KONTOR_SECRET_KEY: TEST_SECRET_KEY })

// biome-ignore lint/suspicious/noExplicitAny: tests look into answers freely
type Body = any

const history = business({ seed: 5, months: 8, accounts: 25 })
const lists = stripeLists(history, 'new', { expand: true })
const { subscription_items: _, invoice_lines: __, ...importable } = lists
const { subscriptions, invoices, refunds } = lists

/** When the history ended, so when its lists were read. */
const AS_OF = new Date(Math.floor(Date.now() / 1000) * 1000).toISOString()

async function run(
  t: { after(f: () => void): void },
  command: string,
  content: string,
  tenant: string,
  ...more: string[]
) {
  const file = join(await temporaryDirectory(t as never), 'stripe.json')
  await writeFile(file, content)
  const asOf = more.includes('--as-of') ? [] : ['--as-of', AS_OF]
  const url = command === 'import' ? ['--url', server.url, ...asOf] : []
  return kontor(command, 'stripe', file, '--tenant', tenant, ...url, ...more)
}

const mrr = async (tenant: { privateKey: string }) =>
  (await server.request('/v1/subscriptions/overview?currency=EUR', { key: tenant.privateKey })).body.mrr

test("a Stripe account's lists are imported once and reconcile without differences", async t => {
  const tenant = await server.anotherTenant('account')
  const content = ndjsonOf(importable)
  const objects = content.trimEnd().split('\n').length
  const first = await run(t, 'import', content, 'account')
  assert.equal(first.code, 0, first.err)
  const { seconds: _s, ...counts } = first.json() as Body
  assert.deepEqual(counts, { read: objects, accepted: objects, duplicates: 0, rejected: 0 })
  const before = await mrr(tenant)
  assert.ok(before > 0)
  const { rows } = await server.pool.query(
    `select count(*)::int as events, count(meta::json ->> 'ip')::int as addresses from events where tenant_id = $1`,
    [Number(tenant.id.slice(4))],
  )
  assert.deepEqual(rows, [{ events: objects, addresses: 0 }])

  // the same objects as indented pages
  const pages = Object.entries(importable).flatMap(([name, list]) => pagesOf(name, list, 10))
  const again = await run(t, 'import', pages.map(page => JSON.stringify(page, null, 2)).join('\n'), 'account')
  assert.deepEqual((again.json() as Body).duplicates, objects, again.err)
  assert.equal(await mrr(tenant), before)

  const reconciled = await run(t, 'reconcile', content, 'account')
  assert.deepEqual((reconciled.json() as Body).differences, [])
  assert.equal(reconciled.code, 0)
})

test('every difference is listed by id, and counted', async t => {
  const paid = invoices.find(({ status, livemode }) => status === 'paid' && livemode !== false)!
  const active = subscriptions.find(({ status, livemode }) => status === 'active' && livemode !== false)!
  const changed = ndjsonOf({
    subscriptions: [
      ...subscriptions.filter(({ id }) => id !== active.id),
      { ...active, status: 'past_due' },
      { ...active, id: 'sub_unheard_of' },
    ],
    invoices: invoices.filter(({ id }) => id !== paid.id),
    refunds,
  } as Partial<StripeLists>)
  const run1 = await run(t, 'reconcile', changed, 'account')
  assert.equal(run1.code, 1)
  const { differences } = run1.json() as Body
  assert.deepEqual(
    differences.map(({ kind, id, field, there, here }: Body) => [kind, id, field, there, here]),
    [
      ['subscription', active.id, 'status', 'past_due', 'active'],
      ['subscription', 'sub_unheard_of', 'existence', 'active', null],
      ['invoice', paid.id, 'existence', null, 'paid'],
    ],
  )
})

test('live webhooks and an import update the same subscriptions', async t => {
  const tenant = await server.anotherTenant('live')
  const source = await server.admin.sources.create({
    ...{
      tenant: tenant.id,
      type: 'webhook',
      namespace: 'stripe',
      rate_limit: { events: 1_000_000, per_seconds: 1 },
    },
  })
  // Stripe creates its events shortly after the change.
  const events = stripeEvents(history, 'new').map((event: Body) => ({ ...event, created: event.created + 2 }))
  for (let from = 0; from < events.length; from += 200)
    await server.request(source.path, {
      method: 'POST',
      key: source.token!,
      body: JSON.stringify(events.slice(from, from + 200)),
    })
  await server.settled()
  const customers = new Set(invoices.filter(({ status }) => status === 'paid').map(({ customer }) => String(customer)))
  const payments = async () => {
    const rows = []
    for (const customer of [...customers].slice(0, 5)) {
      const path = `/v1/subscriptions/account?currency=EUR&customer=${customer}&page_size=100`
      const { timeline } = (await server.request(path, { key: tenant.privateKey })).body
      const paid = timeline.results.filter(({ description }: Body) => /was paid/.test(description))
      rows.push(...paid.map(({ occurred_at, amount, invoice_id }: Body) => [occurred_at, amount, invoice_id]))
    }
    return rows
  }
  const [before, paymentsBefore] = [await mrr(tenant), await payments()]
  assert.ok(paymentsBefore.length > 0)
  const done = await run(t, 'import', ndjsonOf(importable), 'live')
  assert.equal(done.code, 0, done.err)
  assert.equal(await mrr(tenant), before)
  assert.deepEqual(await payments(), paymentsBefore)
  const reconciled = await run(t, 'reconcile', ndjsonOf({ subscriptions, invoices, refunds }), 'live')
  assert.deepEqual((reconciled.json() as Body).differences, [])
})

test('with a key, objects are read from the Stripe API page by page', async () => {
  const stripe = await startStripe(lists)
  process.env.KONTOR_STRIPE_API_URL = stripe.url
  stripe.intercept = (_, count) => (count % 5 === 0 ? tooManyRequests('0') : null)
  try {
    const run1 = await kontor('reconcile', 'stripe', '--tenant', 'account', '--key', 'rk_live_reading')
    assert.equal(run1.code, 0, run1.err)
    const { compared, differences } = run1.json() as Body
    assert.deepEqual(differences, [])
    assert.equal(compared.invoices, invoices.filter(({ livemode }) => livemode !== false).length)
    const refused = await kontor('reconcile', 'stripe', '--tenant', 'account', '--key', 'rk_live_wrong')
    assert.equal(refused.code, 1)
    assert.match(refused.err, /answered 401: Invalid API Key/)
  } finally {
    delete process.env.KONTOR_STRIPE_API_URL
    stripe.close()
  }
  assert.equal((await kontor('reconcile', 'stripe', '--tenant', 'account')).code, 2)
})
