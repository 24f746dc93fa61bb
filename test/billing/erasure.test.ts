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
    const { rows } = await server.pool.query(`select t::text as row from billing_${table} t where tenant_id = $1`, [
      tenantId,
    ])
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

test('an erasure removes warnings about the refunds of a person, and no others', async () => {
  const tenant = await server.anotherTenant('refund warnings')
  const tenantId = Number(tenant.id.slice(4))
  const refund = (id: string, more: object) => ({
    type: 'refund.created',
    data: { id, currency: 'EUR', created_at: inDays(-1), updated_at: inDays(-1), ...more },
  })
  const ada = { customer: 'cus_ada', customer_name: 'Ada Lovelace', customer_email: 'ada@example.com' }
  await send(
    server,
    [
      created('a', ada),
      invoice('paid', 'in_a', { subscription: 'a', ...ada, status: 'paid', total: 10, updated_at: inDays(-3) }),
      refund('by invoice', { invoice: 'in_a', amount: 'Ada Lovelace, five' }),
      refund('by customer', { customer: 'cus_ada', amount: 'Ada Lovelace, six' }),
      refund('of another', { customer: 'cus_bob', amount: 'seven' }),
    ],
    tenant,
  )
  const warned = async () =>
    (
      await server.pool.query('select object_id as id from billing_warnings where tenant_id = $1 order by 1', [
        tenantId,
      ])
    ).rows
  assert.equal((await warned()).length, 3)
  await anonymizeBilling(server.pool, tenantId, { customers: ['cus_ada'], emails: ['ada@example.com'] })
  assert.deepEqual(await warned(), [{ id: 'of another' }])
})

test('an erasure renames an account that a provider names by the e-mail address, also in its discounts', async () => {
  const tenant = await server.anotherTenant('named by e-mail')
  const tenantId = Number(tenant.id.slice(4))
  const { id, token } = await server.admin.sources.create({ tenant: tenant.id, type: 'webhook', preset: 'lago' })
  const customer = { external_id: 'Ada@Example.com', name: 'Ada Lovelace', email: 'ada@example.com' }
  const events = [
    { webhook_type: 'customer.updated', object_type: 'customer', customer },
    {
      ...{ webhook_type: 'subscription.started', object_type: 'subscription' },
      subscription: {
        ...{
          lago_id: 's',
          external_customer_id: customer.external_id,
          customer,
          status: 'active',
          started_at: inDays(-9),
        },
        ...{ plan_amount_cents: 1000, plan_amount_currency: 'EUR', plan: { code: 'p', interval: 'monthly' } },
      },
    },
    {
      ...{ webhook_type: 'invoice.created', object_type: 'invoice' },
      invoice: {
        ...{ lago_id: 'i', status: 'finalized', currency: 'EUR', coupons_amount_cents: 100, total_amount_cents: 900 },
        ...{ customer, issuing_date: inDays(-9).slice(0, 10), updated_at: inDays(-9) },
      },
    },
  ]
  for (const [n, body] of events.entries()) {
    const headers = { 'x-lago-unique-key': `k${n}` }
    const options = { method: 'POST', key: token, headers, body: JSON.stringify(body) }
    assert.equal((await server.request(`/ingest/inbound/${id}`, options)).status, 200)
  }
  await server.settled()
  await anonymizeBilling(server.pool, tenantId, { customers: [], emails: ['ada@example.com'] })
  for (const table of [...TABLES, 'terms', 'refunds', 'payments']) {
    const { rows } = await server.pool.query(`select t::text as row from billing_${table} t where tenant_id = $1`, [
      tenantId,
    ])
    for (const { row } of rows) assert.doesNotMatch(row, /lovelace|ada@/i, table)
  }
  const { body } = await server.request('/v1/subscriptions/exclusions?currency=EUR', { key: tenant.privateKey })
  assert.deepEqual(
    [body.results[0].reason_code, /^erased-/.test(body.results[0].customer)],
    ['discount_terms_unknown', true],
  )
})
