import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { anonymizeBilling } from '../../src/pipeline/billing/erasure.ts'
import { eventually } from '../eventually.ts'
import { sharedServer, type TestServer, type TestTenant } from '../server.ts'
import {
  ask,
  type BillingEvent,
  type Body,
  created,
  ended,
  item,
  type ReportQuery,
  reportOf,
  send,
  updated,
} from './shop.ts'

let server: TestServer
let adminKey: string
before(async () => {
  server = await sharedServer()
  adminKey = (await server.admin.keys.create({ kind: 'admin' })).key
})
after(() => server.close())

const at = (day: string) => `${day}T00:00:00.000Z`
const january = { started_at: at('2025-01-10') }
const march = { as_of: '2025-04-01' }

const SHOP = [
  created('stays', { ...january, acquisition: { source: 'ads' }, customer_name: 'Ada Lovelace' }),
  created('grows', { ...january, items: [item(20, { name: 'Team' })] }),
  updated('grows', { ...january, updated_at: at('2025-03-12'), items: [item(30, { name: 'Team' })] }),
  created('leaves', { ...january, items: [item(7)] }),
  ended('leaves', at('2025-03-20'), { ...january, items: [item(7)] }),
  created('dollars', { ...january, currency: 'USD', items: [item(40)] }),
]

/** What changes figures of March after it was closed. */
const LATE = [
  created('late', { started_at: at('2025-03-05'), items: [item(100, { name: 'Team' })] }),
  ended('stays', at('2025-03-25'), january),
  updated('grows', { ...january, updated_at: at('2025-02-10'), items: [item(25, { name: 'Team' })] }),
  created('dollars2', { customer: 'cus_dollars', currency: 'USD', started_at: at('2025-03-31'), items: [item(2)] }),
]

/** Facts about April only. */
const LATER = [
  updated('stays', { ...january, updated_at: at('2025-04-05'), customer_name: 'Ada King' }),
  updated('grows', { ...january, updated_at: at('2025-04-02'), items: [item(99)] }),
  ended('dollars', at('2025-04-02'), { ...january, currency: 'USD', items: [item(40)] }),
  created('april', { started_at: at('2025-04-03') }),
]

/** Every figure of a month that books keep. */
async function figuresOf(tenant: TestTenant, query: ReportQuery = march, month = '2025-03'): Promise<Body> {
  const report = (name: string, more: ReportQuery = {}) => reportOf(server, name, { ...query, ...more }, tenant)
  const { mrr, arr, arpa, committed_mrr, ...overview } = await report('overview')
  const { active_accounts, active_subscriptions, movements, rates, accounts, acquisition_sources } = overview
  const inMonth = { since: `${month}-01`, until: `${month}-28` }
  const listed = await report('movements', inMonth)
  return {
    ...{ mrr, arr, arpa, committed_mrr, active_accounts, active_subscriptions, movements, rates, accounts },
    acquisition_sources,
    listed: [listed.totals, listed.results],
    largest: (await report('movements', { ...inMonth, order: 'size', page_size: 2, page: 2 })).results,
    plans: (await report('breakdown', { by: 'plan' })).results,
    sources: (await report('breakdown', { by: 'source' })).results,
    cohorts: (await report('retention')).cohorts,
    acquisition: (await report('acquisition')).sources,
    team: (await report('overview', { plan: 'Team' })).movements,
    months: (await report('history', { from: `${month}-01`, to: `${month}-28`, retention_months: 1 })).results,
    days: (await report('history', { from: `${month}-01`, to: `${month}-28`, interval: 'day' })).results,
    dollars: (await report('overview', { currency: 'USD' })).mrr,
  }
}

const asClosed = { ...march, basis: 'as_closed' }
const close = (tenant: TestTenant, month = '2025-03') => server.admin.books.close(tenant.id, month)

async function keptRows(tenant: TestTenant): Promise<number> {
  const sql = 'select from billing_closed_accounts where tenant_id = $1'
  return (await server.pool.query(sql, [Number(tenant.id.slice(4))])).rows.length
}

async function booksOf(tenant: TestTenant, query: ReportQuery = {}): Promise<Body> {
  const { status, body } = await ask(server, 'books', query, { tenant })
  assert.equal(status, 200)
  return body
}

test('figures of a closed month do not change; late facts are restatements that explain the difference', async () => {
  const tenant = await server.anotherTenant('late facts')
  await send(server, SHOP, tenant)
  const then = await figuresOf(tenant)
  assert.equal(then.mrr, 40)
  assert.deepEqual(await figuresOf(tenant, asClosed), then)
  await close(tenant)
  await send(server, LATER, tenant)
  assert.deepEqual(await figuresOf(tenant, asClosed), then)
  assert.deepEqual((await booksOf(tenant)).results, [])
  // most events change no closed month, so no account is kept
  assert.equal(await keptRows(tenant), 0)
  for (const late of LATE) await send(server, [late], tenant)
  assert.deepEqual(await figuresOf(tenant, asClosed), then)
  const now = await figuresOf(tenant)
  assert.equal(now.mrr, 130)
  const { months, results, count } = await booksOf(tenant)
  assert.deepEqual([months.length, months[0].month, months[0].restatements, count], [1, '2025-03', 4, 4])
  assert.deepEqual(
    results.map((row: Body) => [row.month, row.customer, row.currency, row.amount]),
    [
      ['2025-03', 'cus_dollars', 'USD', 2],
      // the movement of March starts from another amount
      ['2025-03', 'cus_grows', 'EUR', 0],
      ['2025-03', 'cus_stays', 'EUR', -10],
      ['2025-03', 'cus_late', 'EUR', 100],
    ],
  )
  const { results: events } = (await server.request('/v1/events?limit=4', { key: tenant.privateKey })).body
  assert.deepEqual(
    results.map((row: Body) => [row.event_id, row.received_at]),
    events.map((event: Body) => [event.id, event.received_at]),
  )
  assert.deepEqual((await booksOf(tenant, { page_size: 3, page: 2 })).results, results.slice(3))
  assert.deepEqual((await booksOf(tenant, { month: '2025-02' })).results, [])
})

test('a change at the very end of a closed month belongs to the next month and is no restatement', async () => {
  const tenant = await server.anotherTenant('midnight')
  await send(server, [...SHOP, ended('stays', at('2025-04-01'), january)], tenant)
  await close(tenant)
  await send(server, [created('midnight', { started_at: at('2025-04-01'), items: [item(500)] })], tenant)
  assert.deepEqual((await booksOf(tenant)).results, [])
  const mrr = async (as_of: string) => {
    const both = ['as_closed', 'restated'].map(basis => reportOf(server, 'overview', { as_of, basis }, tenant))
    return (await Promise.all(both)).map(report => report.mrr)
  }
  assert.deepEqual(await mrr('2025-04-01'), [30, 530])
  assert.deepEqual(await mrr('2025-03-31T23:59:59Z'), [40, 40])
  for (const basis of ['as_closed', 'restated']) {
    const months = { from: '2025-03-01', to: '2025-03-31', basis }
    assert.equal((await reportOf(server, 'history', months, tenant)).results[0].mrr, 40, basis)
  }
})

test('for a month that is not closed, both bases are the same', async () => {
  const tenant = await server.anotherTenant('open months')
  await send(server, SHOP, tenant)
  await close(tenant)
  await send(server, [...LATE, ...LATER], tenant)
  for (const [month, as_of] of [
    ['2025-02', '2025-03-01'],
    ['2025-04', '2025-05-01'],
  ] as const)
    assert.deepEqual(
      await figuresOf(tenant, { as_of, basis: 'as_closed' }, month),
      await figuresOf(tenant, { as_of, basis: 'restated' }, month),
    )
  const year = await reportOf(
    server,
    'history',
    { from: '2025-01-01', to: '2025-04-30', as_of: '2025-05-01', basis: 'as_closed' },
    tenant,
  )
  assert.deepEqual(
    year.results.map((row: Body) => row.mrr),
    [37, 42, 40, 209],
  )
})

test('each month keeps what was known when it was closed, and a reopened month follows the ledger again', async () => {
  const tenant = await server.anotherTenant('several months')
  await send(server, SHOP, tenant)
  const february = { as_of: '2025-03-01', basis: 'as_closed' }
  const first = await figuresOf(tenant, february, '2025-02')
  await close(tenant, '2025-02')
  await send(server, LATE, tenant)
  const second = await figuresOf(tenant)
  await close(tenant)
  const third = updated('grows', { ...january, updated_at: at('2025-02-20'), items: [item(1)] })
  await send(server, [third], tenant)
  assert.deepEqual(await figuresOf(tenant, february, '2025-02'), first)
  assert.deepEqual(await figuresOf(tenant, asClosed), second)
  const sums = (results: Body[]) =>
    ['2025-02', '2025-03'].map(month =>
      results.reduce((sum, row) => sum + (row.month === month && row.currency === 'EUR' ? row.amount : 0), 0),
    )
  const { results } = await booksOf(tenant)
  // 25 from 10 February, 1 from 20 February, 30 from 12 March
  assert.deepEqual(sums(results), [-19, 0])
  assert.equal((await reportOf(server, 'overview', { as_of: '2025-03-01' }, tenant)).mrr - first.mrr, -19)
  await server.admin.books.reopen(tenant.id, '2025-02')
  const { basis: _, ...restated } = february
  assert.deepEqual(await figuresOf(tenant, february, '2025-02'), await figuresOf(tenant, restated, '2025-02'))
  assert.deepEqual(await figuresOf(tenant, asClosed), second)
  const left = await booksOf(tenant)
  assert.deepEqual([left.months.map((row: Body) => row.month), sums(left.results)], [['2025-03'], [0, 0]])
  const now = await figuresOf(tenant)
  await server.admin.books.reopen(tenant.id, '2025-03')
  assert.deepEqual(await figuresOf(tenant, asClosed), now)
  assert.deepEqual(await booksOf(tenant), { months: [], results: [], page: 1, page_size: 50, count: 0, pages: 0 })
  assert.equal(await keptRows(tenant), 0)
})

test('a policy, another time zone and a new acquisition source do not change a closed month', async () => {
  const tenant = await server.anotherTenant('policies')
  const paused = { ...january, updated_at: at('2025-03-15'), status: 'paused' }
  const twice = ['2025-03-08T08:00:00Z', '2025-03-08T09:00:00Z'].map((updated_at, i) =>
    updated('twice', { ...january, updated_at, items: [item(50 + i)] }),
  )
  await send(
    server,
    [...SHOP, created('pauses', january), updated('pauses', paused), created('twice', january), ...twice],
    tenant,
  )
  const { policy: _, ...then } = await figuresOf(tenant)
  await close(tenant)
  const settings = {
    pause: 'keep',
    net_within_day: true,
    time_zone: 'Pacific/Auckland',
    retention_base: 'end_of_month',
  }
  await server.admin.policies.set(tenant.id, settings)
  await eventually('the policy', async () => (await server.admin.policies.show(tenant.id)).applied)
  const earlier = created('stays0', {
    customer: 'cus_stays',
    started_at: at('2025-01-01'),
    acquisition: { source: 'seo' },
  })
  await send(server, [{ ...earlier, data: { ...earlier.data, items: [item(0)] } }], tenant)
  assert.deepEqual(await figuresOf(tenant, asClosed), then)
  const { results } = await booksOf(tenant)
  assert.deepEqual(
    results.map((row: Body) => [row.customer, row.amount, row.event_id]),
    [['cus_pauses', 10, null]],
  )
  assert.notDeepEqual((await figuresOf(tenant)).sources, then.sources)
})

test('an erasure removes the person from closed months and keeps the sums', async () => {
  const tenant = await server.anotherTenant('erased')
  const email = 'Grace@Example.com'
  const metadata = { office: 'hopper' }
  const grace = { ...january, customer: null, customer_name: 'Grace Hopper', customer_email: email, metadata }
  await send(server, [...SHOP, created('g', grace)], tenant)
  const then = await figuresOf(tenant)
  const offices = async (query: ReportQuery) => {
    const { mrr, results } = await reportOf(server, 'breakdown', { ...query, by: 'metadata.office' }, tenant)
    return [mrr, results.map((row: Body) => row.metadata)]
  }
  assert.deepEqual(await offices(march), [then.mrr, ['unknown', 'hopper']])
  await close(tenant)
  await send(server, [updated('g', { ...grace, updated_at: at('2025-03-02'), items: [item(11)] })], tenant)
  await anonymizeBilling(server.pool, Number(tenant.id.slice(4)), { customers: [], emails: [email.toLowerCase()] })
  const now = await figuresOf(tenant, asClosed)
  assert.deepEqual([now.mrr, now.movements, now.rates, now.days], [then.mrr, then.movements, then.rates, then.days])
  assert.deepEqual(await offices(asClosed), [then.mrr, ['unknown']])
  assert.deepEqual((await offices(march))[1], ['unknown'])
  const { rows } = await server.pool.query(
    `select a::text from billing_closed_accounts a where tenant_id = $1
     union all select r::text from billing_restatements r where tenant_id = $1`,
    [Number(tenant.id.slice(4))],
  )
  assert.equal(rows.length, 2)
  assert.doesNotMatch(JSON.stringify([rows, now, await booksOf(tenant)]), /grace|hopper/i)
})

test('closing waits for the end of the month in the time zone, happens once and is audited', async () => {
  const tenant = await server.anotherTenant('audited')
  const post = (path: string, month: string, key = adminKey) =>
    server.request(`/admin/v1/tenants/${tenant.id}/books/${path}`, {
      method: 'POST',
      key,
      body: JSON.stringify({ month }),
    })
  const thisMonth = new Date().toISOString().slice(0, 7)
  const early = await post('close', thisMonth)
  assert.deepEqual([early.status, early.body.code], [409, 'month_not_ended'])
  for (const month of ['2025-13', '0000-01', '2025-3', '']) assert.equal((await post('close', month)).status, 400)
  assert.equal((await post('close', '2025-03', tenant.privateKey)).status, 401)
  const [one, two] = await Promise.all([post('close', '2025-03'), post('close', '2025-03')])
  assert.deepEqual([one.status, one.body], [200, two.body])
  assert.deepEqual(
    [one.body.month, one.body.time_zone, one.body.policy_version, one.body.restatements],
    ['2025-03', 'UTC', 1, 0],
  )
  assert.equal((await post('reopen', '2025-02')).status, 404)
  assert.equal((await post('reopen', '2025-03')).status, 200)
  assert.deepEqual((await post('reopen', '2025-03')).body.code, 'month_not_closed')
  const { results } = (await server.request(`/admin/v1/audit?tenant=${tenant.id}`, { key: adminKey })).body
  const rows = results.filter(({ action }: Body) => action.startsWith('books.'))
  assert.deepEqual(
    rows.map(({ action, before: was, after: is }: Body) => [action, was?.month, is?.month]),
    [
      ['books.reopen', '2025-03', undefined],
      ['books.close', undefined, '2025-03'],
    ],
  )
})

test('another tenant sees neither the months nor the restatements', async () => {
  const [tenant, other] = [await server.anotherTenant('closed here'), await server.anotherTenant('open there')]
  await send(server, SHOP, tenant)
  await send(server, SHOP, other)
  await close(tenant)
  for (const shop of [tenant, other]) await send(server, LATE, shop)
  assert.deepEqual((await booksOf(other)).months, [])
  assert.deepEqual(await figuresOf(other, asClosed), await figuresOf(other))
  assert.equal((await booksOf(tenant)).count, 4)
})

test('a fact that arrives while the month is being closed is in its figures or is a restatement', async () => {
  const tenant = await server.anotherTenant('concurrent')
  const events = (round: number): BillingEvent[] =>
    Array.from({ length: 8 }, (_, i) => created(`r${round}-${i}`, { started_at: at('2025-03-05') }))
  for (const round of [1, 2, 3]) {
    await Promise.all([
      send(server, events(round), tenant),
      server.admin.books.close(tenant.id, `2025-0${round + 2}`),
      send(server, [updated(`r1-${round}`, { started_at: at('2025-03-05'), updated_at: at('2025-03-06') })], tenant),
    ])
    const { results } = await booksOf(tenant, { month: '2025-03', page_size: 100 })
    const closed = await reportOf(server, 'overview', asClosed, tenant)
    const restated = await reportOf(server, 'overview', march, tenant)
    assert.equal(restated.mrr, 80 * round)
    const sum = results.reduce((total: number, row: Body) => total + row.amount, 0)
    assert.equal(restated.mrr - closed.mrr, sum)
  }
})

test('random facts and a merge of accounts after closings: the figures as closed and the restatements add up', async () => {
  const tenant = await server.anotherTenant('random')
  let state = 7
  const random = (below: number) => {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff
    return (state >> 8) % below
  }
  const fact = (): BillingEvent => {
    const id = `s${random(9)}`
    const shape = { customer: `cus_${random(4)}`, started_at: at(`2025-01-${10 + random(9)}`) }
    const when = `2025-0${1 + random(4)}-${10 + random(18)}T0${random(9)}:00:00Z`
    if (random(6) === 0) return ended(id, when, shape)
    const currency = random(5) === 0 ? 'USD' : 'EUR'
    return updated(id, { ...shape, currency, updated_at: when, items: [item(random(50), { name: `P${random(3)}` })] })
  }
  const facts = (count: number) => Array.from({ length: count }, fact)
  const closed = new Map<string, Body>()
  const queries: Record<string, ReportQuery> = Object.fromEntries(
    [2, 3, 4, 5].map(n => [`2025-0${n - 1}`, { as_of: `2025-0${n}-01`, basis: 'as_closed' }]),
  )
  await send(server, facts(30), tenant)
  for (const month of ['2025-02', '2025-01', '2025-04', '2025-03']) {
    closed.set(month, await figuresOf(tenant, { as_of: queries[month]!.as_of! }, month))
    await close(tenant, month)
    await send(server, facts(12), tenant)
    for (const [own, figures] of closed) assert.deepEqual(await figuresOf(tenant, queries[own]!, own), figures, own)
  }
  await server.admin.accounts.merge(tenant.id, { account: 'cus_0', into: 'cus_1' })
  await send(server, facts(4), tenant)
  for (const [month, figures] of closed) {
    assert.deepEqual(await figuresOf(tenant, queries[month]!, month), figures, month)
    const { results } = await booksOf(tenant, { month, page_size: 100 })
    const sum = (currency: string) =>
      results.reduce((total: number, row: Body) => total + (row.currency === currency ? row.amount : 0), 0)
    const as_of = queries[month]!.as_of!
    const { mrr } = await reportOf(server, 'overview', { as_of }, tenant)
    const { mrr: dollars } = await reportOf(server, 'overview', { as_of, currency: 'USD' }, tenant)
    assert.deepEqual([mrr - figures.mrr, dollars - figures.dollars], [sum('EUR'), sum('USD')], month)
  }
})
