import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { makeSource } from '../inbound/source.ts'
import { startServer, type TestServer, type TestTenant } from '../server.ts'
import { ask, type Body, created, ended, inDays, item, reportOf, send, updated } from './shop.ts'

let server: TestServer
before(async () => {
  server = await startServer()
})
after(() => server.close())

async function track(tenant: TestTenant, event: object): Promise<void> {
  const { status } = await server.request('/v1/track', {
    method: 'POST',
    key: tenant.trackingKey,
    body: JSON.stringify(event),
  })
  assert.equal(status, 200)
}

async function contact(tenant: TestTenant, id: string, data: object): Promise<void> {
  const { status } = await server.request('/v1/contacts', {
    method: 'POST',
    key: tenant.privateKey,
    body: JSON.stringify({ entityType: 'contact', id, sourceUpdatedAt: inDays(0), data }),
  })
  assert.equal(status, 202)
}

async function sourcesOf(tenant: TestTenant, query = {}): Promise<Record<string, number>> {
  const { sources } = await reportOf(server, 'acquisition', query, tenant)
  return Object.fromEntries(sources.results.map((row: Body) => [row.source, row.mrr]))
}

test('the source of an account is that of its subscription, else of its metadata, else of its first touch', async () => {
  const tenant = await server.tenantWithServerKey('order of words')
  await track(tenant, {
    event_type: 'page_view',
    visitor: 'v1',
    user_id: 'u1',
    data: { page: 'https://shop.example/?utm_source=touch' },
  })
  await track(tenant, {
    event_type: 'login',
    user_id: 'u1',
    data: { contact_id: 'cus_own', email: 'own@example.com' },
  })
  await track(tenant, { event_type: 'login', user_id: 'u1', data: { contact_id: 'cus_touch' } })
  await send(
    server,
    [
      created('own', {
        acquisition: { source: 'word', medium: 'mouth', campaign: 'may' },
        metadata: { utm_source: 'meta' },
      }),
      created('meta', { metadata: { utm_source: 'meta', utm_medium: 'cpc', utm_campaign: 'june' } }),
      created('touch'),
      created('nowhere'),
    ],
    tenant,
  )
  const { sources, mrr, coverage } = await reportOf(server, 'acquisition', {}, tenant)
  assert.deepEqual(sources.results.map(({ source, medium, campaign }: Body) => [source, medium, campaign]).sort(), [
    ['meta', 'cpc', 'june'],
    ['touch', null, null],
    ['unattributed', null, null],
    ['word', 'mouth', 'may'],
  ])
  assert.equal(
    sources.results.reduce((sum: number, row: Body) => sum + row.mrr, 0),
    mrr,
  )
  assert.deepEqual([coverage.accounts_attributed, coverage.attribution_rate], [3, 0.75])
})

test('the first touch with a source or referrer precedes a direct one, and later ones do not count', async () => {
  const tenant = await server.tenantWithServerKey('touches')
  const view = (visitor: string, page: string, days: number, referrer?: string) =>
    track(tenant, { event_type: 'page_view', visitor, occurred_at: inDays(days), data: { page, referrer } })
  await view('v1', 'https://shop.example/', -9)
  await view('v1', 'https://shop.example/?utm_source=first', -8)
  await view('v1', 'https://shop.example/?utm_source=second', -7)
  await view('v2', 'https://shop.example/', -9, 'https://www.news.example/story')
  await view('v3', 'https://shop.example/', -9)
  for (const n of [1, 2, 3]) {
    await track(tenant, { event_type: 'login', visitor: `v${n}`, data: { contact_id: `cus_s${n}` } })
  }
  await send(
    server,
    [1, 2, 3].map(n => created(`s${n}`, { items: [item(n)] })),
    tenant,
  )
  assert.deepEqual(await sourcesOf(tenant), { first: 1, 'news.example': 2, direct: 3 })
})

test('later knowledge changes the source: an identify call, an e-mail address, a contact record, an earlier touch', async () => {
  const tenant = await server.tenantWithServerKey('later')
  await send(server, [created('s', { customer: 'cus_1', customer_email: 'Ada@Example.com' })], tenant)
  assert.deepEqual(await sourcesOf(tenant), { unattributed: 10 })
  await track(tenant, {
    event_type: 'page_view',
    visitor: 'v',
    data: { page: 'https://shop.example/?utm_source=late' },
  })
  await server.settled()
  assert.deepEqual(await sourcesOf(tenant), { unattributed: 10 })
  await track(tenant, { event_type: 'signup', visitor: 'v', data: { email: 'ada@example.com' } })
  await server.settled()
  assert.deepEqual(await sourcesOf(tenant), { late: 10 })
  await track(tenant, {
    event_type: 'page_view',
    visitor: 'v',
    occurred_at: inDays(-40),
    data: { page: 'https://shop.example/?utm_source=earlier' },
  })
  await server.settled()
  assert.deepEqual(await sourcesOf(tenant), { earlier: 10 })
  // also as of an earlier date
  assert.deepEqual(await sourcesOf(tenant, { as_of: inDays(-20) }), { earlier: 10 })
  await send(
    server,
    [updated('s', { customer: 'cus_1', updated_at: inDays(-1), acquisition: { source: 'own' } })],
    tenant,
  )
  assert.deepEqual(await sourcesOf(tenant), { own: 10 })

  await send(server, [created('r', { customer: 'cus_2' })], tenant)
  await track(tenant, {
    event_type: 'page_view',
    user_id: 'u2',
    data: { page: 'https://shop.example/?utm_source=record' },
  })
  await contact(tenant, 'cus_2', { userId: 'u2', name: 'Grace', email: 'grace@example.com' })
  await server.settled()
  assert.deepEqual(await sourcesOf(tenant), { own: 10, record: 10 })
})

test('events that arrive together, in any order, give the same source', async () => {
  const tenant = await server.tenantWithServerKey('together')
  const events = Array.from({ length: 12 }, (_, i) => [
    { event_type: 'page_view', visitor: `v${i}`, data: { page: 'https://shop.example/?utm_source=ad' } },
    { event_type: 'signup', visitor: `v${i}`, data: { email: `p${i}@example.com` } },
  ])
  const source = await makeSource(server, { tenant: tenant.id })
  const begins = (i: number) => {
    const { type, data } = created(`s${i}`, { customer_email: `p${i}@example.com` })
    return source.post({ event_type: type, payload: data })
  }
  await Promise.all([...events.flat().map(event => track(tenant, event)), ...events.map((_, i) => begins(i))])
  await server.settled()
  assert.deepEqual(await sourcesOf(tenant), { ad: 120 })
})

test('an unverified event is no touch if it was received after the first payment or states an older time', async () => {
  const { id, ...keys } = await server.anotherTenant('forged touches')
  const tenant = { id, ...keys }
  const view = (visitor: string, source: string, occurred_at?: string) =>
    track(tenant, { event_type: 'page_view', visitor, occurred_at, data: { page: `/?utm_source=${source}` } })
  const login = (n: number) =>
    track(tenant, { event_type: 'login', visitor: `v${n}`, data: { contact_id: `cus_s${n}` } })
  const pays = (n: number, started_at: string) =>
    send(server, [created(`s${n}`, { customer: `cus_s${n}`, started_at, items: [item(n)] })], tenant)
  // 1: received after the first payment. 2: dated two days before its receipt. 4, 8: before the first payment.
  await view('v1', 'forged')
  await view('v2', 'forged', inDays(-2))
  await view('v4', 'genuine')
  await view('v4', 'forged', new Date(Date.now() - 3_600_000).toISOString())
  await pays(8, new Date(Date.now() + 60_000).toISOString())
  await view('v8', 'genuine')
  for (const n of [1, 2, 4, 8]) await login(n)
  await server.settled()
  await pays(1, inDays(-1))
  await pays(2, new Date(Date.now() + 60_000).toISOString())
  await pays(4, new Date(Date.now() + 60_000).toISOString())
  await server.settled()
  const query = { as_of: new Date(Date.now() + 120_000).toISOString() }
  assert.deepEqual(await sourcesOf(tenant, query), { unattributed: 3, genuine: 12 })
})

test('all MRR of an account belongs to one source: that of its oldest subscription', async () => {
  const tenant = await server.anotherTenant('one source')
  await send(
    server,
    [
      created('younger', { customer: 'c', started_at: inDays(-10), acquisition: { source: 'second' } }),
      created('older', {
        customer: 'c',
        started_at: inDays(-50),
        acquisition: { source: 'first' },
        items: [item(5)],
      }),
      created('oldest', { customer: 'c', started_at: inDays(-90), items: [item(1)] }),
    ],
    tenant,
  )
  const { sources } = await reportOf(server, 'acquisition', {}, tenant)
  assert.deepEqual(
    sources.results.map((row: Body) => [row.source, row.accounts, row.subscriptions, row.mrr, row.mrr_share, row.arpa]),
    [['first', 1, 3, 16, 1, 16]],
  )
})

test('cohort and retention of a source', async () => {
  const tenant = await server.anotherTenant('cohort')
  const from = (source: string) => ({ acquisition: { source } })
  await send(
    server,
    [
      // expanded, churned, returned within the horizon, did not return, is new
      created('grew', from('ads')),
      updated('grew', { ...from('ads'), updated_at: inDays(-5), items: [item(25)] }),
      created('left', from('ads')),
      ended('left', inDays(-10), from('ads')),
      created('back', from('ads')),
      updated('back', { ...from('ads'), updated_at: inDays(-20), status: 'paused' }),
      updated('back', { ...from('ads'), updated_at: inDays(-3), items: [item(7)] }),
      created('gone', from('ads')),
      ended('gone', inDays(-70), from('ads')),
      created('new', { ...from('ads'), started_at: inDays(-4) }),
      created('only new', { ...from('podcast'), started_at: inDays(-4) }),
    ],
    tenant,
  )
  const { sources, horizon } = await reportOf(server, 'acquisition', {}, tenant)
  assert.equal(horizon, 30)
  const [ads, podcast] = sources.results
  assert.deepEqual(
    [ads.cohort_accounts, ads.cohort_starting_mrr, ads.retained_mrr, ads.retention_rate, ads.retention_status],
    [3, 30, 32, 32 / 30, 'available'],
  )
  assert.deepEqual([ads.accounts, ads.mrr], [3, 42])
  assert.deepEqual(
    [
      podcast.cohort_accounts,
      podcast.cohort_starting_mrr,
      podcast.retained_mrr,
      podcast.retention_rate,
      podcast.retention_status,
    ],
    [0, 0, null, null, 'horizon_not_reached'],
  )
  const ninety = await reportOf(server, 'acquisition', { horizon: 90 }, tenant)
  assert.deepEqual([ninety.sources.results[0].cohort_accounts, ninety.sources.results[0].retained_mrr], [4, 32])
  const overview = await reportOf(server, 'overview', {}, tenant)
  assert.deepEqual(overview.acquisition_sources, sources)
})

test('a source that lost all accounts is listed with a retention of 0', async () => {
  const tenant = await server.anotherTenant('lost')
  await send(server, [created('s', { acquisition: { source: 'fair' } }), ended('s', inDays(-2))], tenant)
  const { sources } = await reportOf(server, 'acquisition', {}, tenant)
  assert.deepEqual(
    [
      sources.results[0].source,
      sources.results[0].mrr,
      sources.results[0].retained_mrr,
      sources.results[0].retention_rate,
    ],
    ['fair', 0, 0, 0],
  )
})

test('without a snapshot of the day the retention is unknown', async () => {
  const tenant = await server.anotherTenant('gap')
  await send(server, [created('s', { acquisition: { source: 'x' } })], tenant)
  const day = inDays(-30).slice(0, 10)
  await server.pool.query(
    `update billing_snapshots set days = days - datemultirange(daterange($1::date, $1::date, '[]'))
     where tenant_id = (select id from tenants where name = 'gap')`,
    [day],
  )
  const { sources, coverage } = await reportOf(server, 'acquisition', {}, tenant)
  const { retained_mrr, retention_rate, retention_status } = sources.results[0]
  assert.deepEqual([retained_mrr, retention_rate, retention_status], [null, null, 'insufficient_history'])
  assert.deepEqual([coverage.snapshot_gaps, coverage.movements_complete], [1, false])
  assert.equal((await reportOf(server, 'acquisition', { horizon: 60 }, tenant)).sources.results[0].retained_mrr, 10)
})

test('horizon is 30, 60 or 90, and sources are paged', async () => {
  for (const horizon of [29, 45, 'x']) {
    const { status, body } = await ask(server, 'acquisition', { currency: 'EUR', horizon })
    assert.deepEqual([status, body.errors[0].pointer], [400, '/horizon'])
  }
  const tenant = await server.anotherTenant('source pages')
  await send(
    server,
    Array.from({ length: 9 }, (_, i) => created(`s${i}`, { items: [item(i + 1)], acquisition: { source: `src${i}` } })),
    tenant,
  )
  const found: string[] = []
  for (const page of [1, 2, 3]) {
    const { sources } = await reportOf(server, 'acquisition', { page, page_size: 4 }, tenant)
    assert.deepEqual([sources.count, sources.pages, sources.page_size], [9, 3, 4])
    found.push(...sources.results.map((row: Body) => row.source))
  }
  assert.deepEqual(found, ['src8', 'src7', 'src6', 'src5', 'src4', 'src3', 'src2', 'src1', 'src0'])
})
