import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { anonymizeBilling } from '../../src/pipeline/billing/erasure.ts'
import { sharedServer, type TestServer } from '../server.ts'
import { created, inDays, invoice, reportOf, send, updated } from '../subscriptions/shop.ts'
import { assertSums } from './sums.ts'

let server: TestServer
before(async () => {
  server = await sharedServer()
})
after(() => server.close())

const TABLES = [
  'versions',
  'segments',
  'accounts',
  'account_states',
  'movements',
  'invoices',
  'invoice_states',
  'agenda',
]

test('preview and receipt count the same: accounts found by their ids, and a request with many events once', async () => {
  const tenant = await server.anotherTenant('counted')
  const { key } = await server.admin.keys.create({ kind: 'admin' })
  const post = (path: string, by: string, body: object) =>
    server.request(path, { method: 'POST', key: by, body: JSON.stringify(body) })
  const contact = { entityType: 'contact', id: 'cus_bo', sourceUpdatedAt: inDays(-9) }
  await post('/v1/contacts', tenant.privateKey, { ...contact, data: { email: 'bo@example.com' } })
  const batch = Array.from({ length: 1_200 }, (_, i) => ({
    ...{ type: 'track', event: 'Seen', messageId: `m-${i}`, userId: 'bo@example.com' },
  }))
  assert.equal((await post('/v1/batch', tenant.trackingKey, { batch })).status, 200)
  await send(server, [created('s-bo', { customer: 'cus_bo', customer_email: 'bo@example.com' })], tenant)
  const order = { tenant: tenant.id, email: 'bo@example.com' }
  const preview = await post('/admin/v1/erasures', key, { ...order, dry_run: true })
  // and the event with the subscription
  assert.equal(preview.body.would_erase.events, 1_201)
  // and the write of the contact
  assert.equal(preview.body.would_erase.log_entries, 3)
  assert.equal(preview.body.would_erase.billing, 1)
  const receipt = await post('/admin/v1/erasures', key, order)
  assert.equal(receipt.status, 201)
  assert.deepEqual(receipt.body.erased, preview.body.would_erase)
  const { profile_id: profile } = preview.body
  const gone = await server.request(`/admin/v1/people/${profile}?tenant=${tenant.id}`, { key })
  assert.deepEqual([gone.status, gone.body.code], [404, 'person_not_found'])
})

test('an erasure removes the person from the ledger and keeps amounts; a late repeat restores nothing', async () => {
  const tenantId = Number(server.tenant.id.slice(4))
  const ada = { customer: 'cus_ada', customer_name: 'Ada Lovelace', customer_email: 'Ada@Example.com' }
  const grace = { customer: null, customer_name: 'Grace Hopper', customer_email: 'Grace@Example.com' }
  const events = [
    created('a', ada),
    created('g1', grace),
    created('g2', grace),
    invoice('paid', 'in_1', {
      subscription: 'a',
      ...ada,
      status: 'paid',
      total: 10,
      paid_at: inDays(-3),
      updated_at: inDays(-3),
    }),
    created('other', { customer_name: 'Another Person' }),
  ]
  await send(server, events)
  const before = await reportOf(server, 'overview')
  const changed = await anonymizeBilling(server.pool, tenantId, {
    customers: ['cus_ada'],
    emails: ['ada@example.com', 'grace@example.com'],
  })
  assert.equal(changed, 3)
  await send(server, [events[0]!, events[3]!])
  // and a new derivation stays anonymous, with the same account
  await send(server, [updated('g1', { customer: null, updated_at: inDays(-1) })])
  for (const table of TABLES) {
    const { rows } = await server.pool.query(`select t::text as row from billing_${table} t`)
    for (const { row } of rows) assert.doesNotMatch(row, /lovelace|hopper|ada@|grace@/i, table)
  }
  const after = await reportOf(server, 'overview')
  assert.deepEqual(
    [after.mrr, after.active_accounts, after.invoiced],
    [before.mrr, before.active_accounts, before.invoiced],
  )
  const names = after.accounts.results.map((row: { customer_name: string | null }) => row.customer_name)
  assert.deepEqual(names.filter(Boolean), ['Another Person'])
  assert.ok(
    after.accounts.results.some(
      ({ customer, mrr }: { customer: string; mrr: number }) => /^erased-/.test(customer) && mrr === 20,
    ),
  )
  assert.ok((await assertSums(server, server.tenant)) > 0)
})
