import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { sharedServer, type TestServer, type TestTenant } from '../server.ts'
import { ask, type Body, created, item, reportOf, send } from './shop.ts'

let server: TestServer
let tenant: TestTenant
before(async () => {
  server = await sharedServer()
  tenant = await server.anotherTenant('segments')
  await server.admin.policies.set(tenant.id, {
    plan_groups: { Business: ['Team', 'price_scale'], Personal: ['Solo'] },
    channels: [{ channel: 'partners', source: ['*.partner.com'] }],
  })
  const plan = (name: string, amount: number, changes = {}) => item(amount, { id: name, name, ...changes })
  await send(
    server,
    [
      created('a', {
        metadata: { segment: 'enterprise', seats: 40, beta: true, notes: 'x'.repeat(200) },
        acquisition: { source: 'google', medium: 'cpc' },
        items: [plan('Team', 50), plan('Extra', 5)],
      }),
      created('b', {
        metadata: { segment: 'startup' },
        acquisition: { source: 'a.partner.com' },
        items: [plan('Solo', 9)],
      }),
      created('c', { items: [plan('Scale', 20, { price_id: 'price_scale' })] }),
    ],
    tenant,
  )
})
after(() => server.close())

async function parts(by: string, query = {}): Promise<Record<string, number>> {
  const { mrr, results } = await reportOf(server, 'breakdown', { by, ...query }, tenant)
  const name = by.startsWith('metadata.') ? 'metadata' : by
  assert.equal(
    results.reduce((sum: number, row: Body) => sum + row.mrr, 0),
    mrr,
  )
  return Object.fromEntries(results.map((row: Body) => [row[name], row.mrr]))
}

test('MRR is broken down by metadata, plan group and channel', async () => {
  assert.deepEqual(await parts('metadata.segment'), { enterprise: 55, unknown: 20, startup: 9 })
  assert.deepEqual(await parts('metadata.seats'), { 40: 55, unknown: 29 })
  assert.deepEqual(await parts('metadata.beta'), { true: 55, unknown: 29 })
  assert.deepEqual(await parts('metadata.notes'), { unknown: 84 })
  assert.deepEqual(await parts('plan_group'), { Business: 70, Personal: 9, ungrouped: 5 })
  assert.deepEqual(await parts('channel'), { paid_search: 55, unattributed: 20, partners: 9 })
  for (const by of ['metadata.', 'metadata', 'color', ''])
    assert.deepEqual(
      (await ask(server, 'breakdown', { currency: 'EUR', by }, { tenant })).body.errors?.[0].pointer,
      '/by',
    )
})

test('every report can be filtered by them', async () => {
  const mrr = async (filter: Record<string, string>) => (await reportOf(server, 'overview', filter, tenant)).mrr
  assert.equal(await mrr({ 'metadata.segment': 'enterprise' }), 55)
  assert.equal(await mrr({ plan_group: 'Business' }), 70)
  assert.equal(await mrr({ channel: 'partners', 'metadata.segment': 'startup' }), 9)
  assert.equal(await mrr({ channel: 'partners', 'metadata.segment': 'enterprise' }), 0)
  assert.equal((await ask(server, 'revenue', { currency: 'EUR', 'metadata.segment': 'x' }, { tenant })).status, 400)
})

test('an erasure removes metadata', async () => {
  const own = await server.anotherTenant('erased metadata')
  const metadata = { segment: 'jo@example.com' }
  await send(server, [created('s', { customer: 'jo@example.com', customer_email: 'jo@example.com', metadata })], own)
  const text = async () => {
    const sql = `select string_agg(body::text, '') as text from (
      select body from billing_segments where tenant_id = $1 union all
      select body from billing_versions where tenant_id = $1 and kind = 'subscription') b`
    return (await server.pool.query<{ text: string }>(sql, [Number(own.id.slice(4))])).rows[0]!.text
  }
  assert.match(await text(), /jo@example\.com/)
  const { key } = await server.admin.keys.create({ kind: 'admin' })
  const body = JSON.stringify({ tenant: own.id, email: 'jo@example.com' })
  assert.equal((await server.request('/admin/v1/erasures', { method: 'POST', key, body })).status, 201)
  assert.doesNotMatch(await text(), /jo@example\.com/)
})

test('plan groups that are not lists of names are rejected', async () => {
  for (const plan_groups of ['{', [], { Business: 'Team' }, { '': ['Team'] }, { Business: [7] }])
    await assert.rejects(server.admin.policies.set(tenant.id, { plan_groups }))
  const { plan_groups } = await server.admin.policies.set(tenant.id, { plan_groups: '{"All":["Team"]}' })
  assert.deepEqual(plan_groups, { All: ['Team'] })
})
