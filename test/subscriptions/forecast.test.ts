import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { sharedServer, type TestServer } from '../server.ts'
import { ask, type Body, created, ended, inDays, item, type ReportQuery, reportOf, send, updated } from './shop.ts'

let server: TestServer
before(async () => {
  server = await sharedServer()
})
after(() => server.close())

const cents = (amount: number) => Math.round(amount * 100) + 0
const change = (row: Body) =>
  cents(row.new) +
  cents(row.expansion) +
  cents(row.reactivation) +
  cents(row.trial_ends) -
  cents(row.contraction) -
  cents(row.churn)

test('a forecast lists every scheduled change, and its months add up', async () => {
  const tenant = await server.anotherTenant('forecast')
  await send(
    server,
    [
      created('stays', { items: [item(100)] }),
      created('leaves', { cancel_at: inDays(20), items: [item(30)] }),
      created('discounted', {
        items: [item(40)],
        discounts: [{ percent_off: 50, duration: 'repeating', ends_at: inDays(25) }],
      }),
      created('starts', { started_at: inDays(10), updated_at: inDays(-1), items: [item(7)] }),
      created('tries', { status: 'trialing', trial_end: inDays(5), items: [item(9)] }),
      created('tries-and-leaves', {
        status: 'trialing',
        trial_end: inDays(5),
        cancel_at: inDays(5),
        items: [item(11)],
      }),
      created('tries-long', { status: 'trialing', trial_end: inDays(500), items: [item(13)] }),
      created('paused', { status: 'paused', resumes_at: inDays(15), items: [item(21)] }),
      created('yearly', {
        started_at: inDays(-350),
        ...{
          current_period_start: inDays(-350),
          current_period_end: inDays(15),
          items: [item(120, { interval: 'year' })],
        },
      }),
      created('dollars', { currency: 'USD', cancel_at: inDays(3) }),
    ],
    tenant,
  )
  const report = await reportOf(server, 'forecast', { months: 3 }, tenant)
  const { mrr } = await reportOf(server, 'overview', {}, tenant)
  assert.equal(report.opening_mrr, mrr)
  assert.equal(report.months.length, 3)
  let before = cents(report.opening_mrr)
  for (const month of report.months) {
    assert.equal(before + cents(month.net), cents(month.mrr), month.date)
    assert.equal(change(month), cents(month.net), month.date)
    before = cents(month.mrr)
  }
  assert.equal(report.months.at(-1).mrr, mrr - 30 + 20 + 7 + 9 + 21)
  const rows = report.results.map((row: Body) => [
    row.kind,
    row.subscription_id,
    row.customer,
    row.amount,
    row.mrr_delta,
  ])
  assert.deepEqual(rows, [
    ['trial_end', 'tries', 'cus_tries', 9, 9],
    ['start', 'starts', 'cus_starts', 7, 7],
    ['resume', 'paused', 'cus_paused', 21, 21],
    ['renewal', 'yearly', 'cus_yearly', 120, 0],
    ['cancellation', 'leaves', 'cus_leaves', -30, -30],
    ['discount_end', 'discounted', 'cus_discounted', 20, 20],
  ])
  const paged: Body[] = []
  for (let page = 1; page <= 3; page++)
    paged.push(...(await reportOf(server, 'forecast', { page, page_size: 2 }, tenant)).results)
  assert.deepEqual(paged, report.results)
  const filtered = await reportOf(server, 'forecast', { interval: 'year' }, tenant)
  assert.deepEqual([filtered.opening_mrr, filtered.results.map((row: Body) => row.kind)], [10, ['renewal']])
  const errors = async (query: ReportQuery) => {
    const { status, body } = await ask(server, 'forecast', { currency: 'EUR', ...query }, { tenant })
    return [status, body.errors?.[0].pointer]
  }
  assert.deepEqual(await errors({ months: 13 }), [400, '/months'])
  assert.deepEqual(await errors({ as_of: '2025-01-01' }), [400, '/as_of'])
  assert.deepEqual(await errors({ months: 12 }), [200, undefined])
})

test('a forecast lists every renewal of its months, on the last day of a short month too', async () => {
  const tenant = await server.anotherTenant('renewals of a year')
  const year = new Date().getUTCFullYear()
  const started_at = new Date(Date.UTC(year - 1, 0, 31)).toISOString()
  const discountEnd = inDays(100)
  const quarterly = { started_at, items: [item(30, { interval_count: 3 })] }
  await send(
    server,
    [
      created('quarterly', quarterly),
      created('leaving', { ...quarterly, cancel_at: inDays(200) }),
      created('discounted', {
        ...quarterly,
        discounts: [{ percent_off: 50, duration: 'repeating', ends_at: discountEnd }],
      }),
    ],
    tenant,
  )
  const report = await reportOf(server, 'forecast', { months: 12, page_size: 100 }, tenant)
  const asOf = new Date(report.as_of)
  const until = Date.UTC(year, asOf.getUTCMonth() + 12, 1)
  // 31 January, 30 April, 31 July, 31 October
  const days = Array.from({ length: 9 }, (_, i) => Date.UTC(year, 3 * i + 1, 0))
  const due = days.filter(day => day > asOf.getTime() && day < until).map(day => new Date(day).toISOString())
  const renewals = report.results.filter((row: Body) => row.kind === 'renewal')
  const of = (id: string) =>
    renewals.filter((row: Body) => row.subscription_id === id).map((row: Body) => [row.at, row.amount, row.mrr_delta])
  assert.ok(due.length >= 4)
  assert.deepEqual(
    of('quarterly'),
    due.map(at => [at, 30, 0]),
  )
  assert.deepEqual(
    of('discounted'),
    due.map(at => [at, at < discountEnd ? 15 : 30, 0]),
  )
  assert.deepEqual(of('leaving'), [])
  assert.equal(report.count, renewals.length + 2)
  const { body } = await ask(
    server,
    'forecast',
    { currency: 'EUR', months: 12 },
    { tenant, headers: { accept: 'text/csv' } },
  )
  assert.equal(body.trim().split('\n').length, report.count + 1)
})

test('churn reasons add up to the churn of each month', async () => {
  const tenant = await server.anotherTenant('churn reasons')
  const at = (day: string) => `${day}T12:00:00Z`
  const started_at = at('2025-01-01')
  const left = (id: string, day: string, amount: number, more: Record<string, unknown> = {}) => [
    created(id, { started_at, items: [item(amount)], ...('customer' in more && { customer: more.customer }) }),
    ended(id, at(day), { started_at, items: [item(amount)], ...more }),
  ]
  await send(
    server,
    [
      ...left('a', '2025-02-03', 10, { cancellation_reason: 'too_expensive' }),
      ...left('b', '2025-02-10', 20, { cancellation_reason: 'too_expensive' }),
      ...left('c', '2025-02-11', 5),
      ...left('d', '2025-03-01', 7, { cancellation_reason: 'missing_features' }),
      created('e', { started_at }),
      updated('e', { started_at, updated_at: at('2025-03-05'), status: 'unpaid' }),
      created('f', { started_at }),
      updated('f', { started_at, updated_at: at('2025-03-06'), status: 'paused' }),
      // one of two subscriptions: not churn
      created('g1', { customer: 'cus_g', started_at }),
      ...left('g2', '2025-03-07', 3, { customer: 'cus_g', cancellation_reason: 'unused' }),
    ],
    tenant,
  )
  const window = { from: '2025-01-01', to: '2025-03-31' }
  const { results, totals } = await reportOf(server, 'churn-reasons', window, tenant)
  assert.deepEqual(
    results.map((row: Body) => [row.date, row.reason, row.accounts, row.mrr]),
    [
      ['2025-02-01', 'too_expensive', 2, 30],
      ['2025-02-01', 'unknown', 1, 5],
      ['2025-03-01', 'pause', 1, 10],
      ['2025-03-01', 'payment_failed', 1, 10],
      ['2025-03-01', 'missing_features', 1, 7],
    ],
  )
  assert.deepEqual(totals[0], { reason: 'too_expensive', accounts: 2, mrr: 30 })
  for (const { date, churn } of (await reportOf(server, 'history', window, tenant)).results) {
    const sum = results.reduce((all: number, row: Body) => all + (row.date === date ? row.mrr : 0), 0)
    assert.equal(sum, churn, date)
  }
  assert.equal((await ask(server, 'churn-reasons', { currency: 'EUR', plan: 'x' }, { tenant })).status, 400)
  const earlier = await reportOf(server, 'churn-reasons', { as_of: '2025-02-05' }, tenant)
  assert.deepEqual(earlier.totals, [{ reason: 'too_expensive', accounts: 1, mrr: 10 }])
})
