// A user's program: reads what write.mjs wrote, and the subscriptions that the test sent.
import assert from 'node:assert/strict'
import { Kontor } from '@kontor/sdk'

const { KONTOR_URL: url, PRIVATE_KEY: privateKey } = process.env
const kontor = new Kontor({ url, privateKey })

async function all(rows) {
  const found = []
  for await (const row of rows) found.push(row)
  return found
}

const mug = await kontor.products.get('MUG-01')
assert.deepEqual([mug.id, mug.externalId, mug.sourceUpdatedAt], ['p-1', 'ext-1', '2026-01-31T09:30:00.000Z'])
const products = await all(kontor.products.list())
assert.equal(new Set(products.map(({ id }) => id)).size, 2_345)
assert.equal(products.length, 2_345)
assert.equal((await all(kontor.products.list({ limit: 130 }))).length, 130)
const { updatedAt } = products[2_000]
const later = await all(kontor.products.list({ updatedSince: new Date(updatedAt) }))
assert.deepEqual(
  later,
  products.filter(product => product.updatedAt >= updatedAt),
)
const deleted = (await all(kontor.products.list({ includeDeleted: true }))).filter(product => product.deleted)
assert.deepEqual(
  deleted.map(({ id }) => id),
  ['gone'],
)
assert.deepEqual(
  (await all(kontor.contacts.list())).map(({ id }) => id),
  ['c/1 ä?'],
)

const views = await all(kontor.events.list({ event_type: 'page_view' }))
assert.deepEqual(
  views.map(({ payload }) => payload.properties.n).sort((a, b) => a - b),
  Array.from({ length: 1_200 }, (_, n) => n),
)
const [seen] = await all(kontor.events.list({ event_type: 'seen', since: '2026-03-01', until: new Date('2026-03-02') }))
assert.deepEqual(
  [seen.inbound_event_id, seen.visitor, seen.session_id, seen.occurred_at, seen.payload.properties],
  ['e-1', 'v-1', 's-1', '2026-03-01T09:00:00.000Z', { sku: 'MUG-01' }],
)
const outcome = await kontor.events.lookup({ event_id: 'e-1' })
assert.deepEqual([outcome.status, outcome.event.id], ['stored', seen.id])
assert.equal((await kontor.events.get(seen.id)).status, 'stored')
assert.equal(await kontor.events.lookup({ event_id: 'never seen' }), null)
assert.equal((await all(kontor.events.list({ event_type: 'last words' }))).length, 1)

const sales = await all(kontor.conversions.list())
assert.deepEqual(
  sales.map(sale => [sale.source_object_id, sale.amount, sale.contact_name]),
  [
    ['o-2', 12.5, null],
    ['o-1', 49.9, 'Ada'],
  ],
)

const currency = 'EUR'
const overview = await kontor.subscriptions.overview({ currency, page_size: 10 })
assert.deepEqual([overview.mrr, overview.accounts.count, overview.accounts.results.length], [1_200, 120, 10])
const accounts = await all(kontor.subscriptions.accounts({ currency }))
assert.equal(new Set(accounts.map(({ customer }) => customer)).size, 120)
assert.equal((await all(kontor.subscriptions.accounts({ currency, page_size: 7 }))).length, 120)
assert.equal(
  accounts.reduce((sum, { mrr }) => sum + mrr, 0),
  overview.mrr,
)
const account = await kontor.subscriptions.account({ currency, customer: 'cus-7' })
assert.deepEqual([account.summary.customer, account.summary.mrr], ['cus-7', 10])
assert.equal(await kontor.subscriptions.account({ currency, customer: 'unknown' }), null)
assert.deepEqual(
  (await all(kontor.subscriptions.items({ currency, customer: 'cus-7' }))).map(({ plan_name }) => plan_name),
  ['Tea'],
)
assert.ok((await all(kontor.subscriptions.timeline({ currency, customer: 'cus-7' }))).length > 0)
assert.equal((await all(kontor.subscriptions.movements({ currency }))).length, 120)
const attention = await kontor.subscriptions.attention({ currency, days: 60 })
assert.equal(attention.days, 60)
const upcoming = await all(kontor.subscriptions.upcomingBilling({ currency, days: 60 }))
assert.equal(upcoming.length, attention.upcoming_billing.count)
for (const list of ['paymentIssues', 'renewals', 'cancellations'])
  assert.ok(await all(kontor.subscriptions[list]({ currency })))
const [source] = await all(kontor.subscriptions.sources({ currency, horizon: 90 }))
assert.deepEqual([source.source, source.mrr], ['unattributed', 1_200])
assert.equal((await kontor.subscriptions.acquisition({ currency })).mrr, 1_200)
assert.equal((await all(kontor.subscriptions.exclusions({ currency: 'USD' }))).length, 120)
assert.equal((await kontor.subscriptions.retention({ currency })).currency, 'EUR')
assert.equal((await kontor.subscriptions.forecast({ currency, months: 2 })).months.length, 2)
assert.deepEqual((await kontor.subscriptions.churnReasons({ currency })).totals, [])
assert.ok((await kontor.subscriptions.revenue({ currency })).results.length > 0)
assert.deepEqual((await kontor.subscriptions.books()).months, [])
await assert.rejects(kontor.subscriptions.overview({ currency: 'XYZW' }), {
  status: 400,
  code: 'invalid_request',
})
