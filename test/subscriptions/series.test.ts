import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { sharedServer, type TestServer } from '../server.ts'
import { ask, type Body, created, ended, inDays, invoice, item, reportOf, send, updated } from './shop.ts'

let server: TestServer
before(async () => {
  server = await sharedServer()
  await send(server, BOOKS)
})
after(() => server.close())

const at = (day: string) => `${day}T00:00:00.000Z`
const cents = (amount: number) => Math.round(amount * 100) + 0

/** Changes at midnight, within a day and at the end of a month; two subscriptions of one account; a reactivation; another currency. */
const BOOKS = [
  created('a', { started_at: at('2025-01-31') }),
  updated('a', { started_at: at('2025-01-31'), updated_at: '2025-02-28T23:59:59.999Z', items: [item(30)] }),
  updated('a', { started_at: at('2025-01-31'), updated_at: at('2025-03-01'), items: [item(20)] }),
  created('a2', { customer: 'cus_a', started_at: '2025-03-09T13:00:00Z', items: [item(7)] }),
  ended('a2', at('2025-04-07'), { customer: 'cus_a', started_at: '2025-03-09T13:00:00Z', items: [item(7)] }),
  created('b', { started_at: '2025-02-03T08:00:00Z', items: [item(120, { interval: 'year' })] }),
  updated('b', { started_at: '2025-02-03T08:00:00Z', updated_at: '2025-03-15T10:00:00Z', status: 'unpaid' }),
  updated('b', {
    started_at: '2025-02-03T08:00:00Z',
    updated_at: '2025-03-20T10:00:00Z',
    items: [item(5, { quantity: 3 })],
  }),
  created('c', { started_at: '2025-03-15T09:00:00Z', status: 'trialing', trial_end: at('2025-04-15') }),
  updated('c', { started_at: '2025-03-15T09:00:00Z', updated_at: at('2025-04-15'), items: [item(99.99)] }),
  created('d', { started_at: '2025-02-10T00:00:00Z', currency: 'USD', items: [item(40)] }),
]

const TYPES = ['new', 'expansion', 'contraction', 'churn', 'reactivation']

for (const interval of ['day', 'week', 'month']) {
  test(`every ${interval} of the history equals the reports as of its start and end`, async () => {
    const query = { interval, from: '2025-01-30', to: '2025-04-20', as_of: '2025-04-20T12:00:00Z' }
    const { results } = await reportOf(server, 'history', query)
    assert.equal(results.length, { day: 81, week: 12, month: 4 }[interval])
    for (const [i, row] of results.entries()) {
      const next = results[i + 1]?.date
      const end = next ? new Date(Date.parse(next) - 1).toISOString() : query.as_of
      const overview = await reportOf(server, 'overview', { as_of: end, page_size: 1 })
      assert.deepEqual(
        [row.mrr, row.arr, row.active_accounts, row.active_subscriptions],
        [overview.mrr, overview.arr, overview.active_accounts, overview.active_subscriptions],
        row.date,
      )
      const since = new Date(Date.parse(row.date) - 1).toISOString()
      const { totals, results: moved } = await reportOf(server, 'movements', { since, until: end })
      for (const type of TYPES) {
        assert.equal(row[type], totals[type], `${row.date} ${type}`)
        const own = moved.filter((movement: Body) => movement.movement_type === type)
        const sum = own.reduce((total: number, movement: Body) => total + Math.abs(movement.mrr_delta), 0)
        assert.equal(cents(row[type]), cents(sum), `${row.date} ${type}`)
      }
      assert.equal(row.net, totals.net)
      assert.equal(cents(row.net), cents(row.mrr) - cents(results[i - 1]?.mrr ?? 0))
    }
  })
}

test('movements are ordered by time or by size, on every page and with every filter', async () => {
  for (const filter of [{}, { interval: 'month' }] as Record<string, string>[]) {
    const { results: byTime } = await reportOf(server, 'movements', filter)
    assert.ok(byTime.length > 5)
    const bySize: Body[] = []
    for (let page = 1, pages = 1; page <= pages; page++) {
      const query = { ...filter, order: 'size', page_size: 2, page }
      const report = await reportOf(server, 'movements', query)
      pages = report.pages
      bySize.push(...report.results)
    }
    const sizeOf = ({ mrr_delta }: Body) => Math.abs(mrr_delta)
    assert.deepEqual(
      bySize,
      byTime.toSorted((a: Body, b: Body) => sizeOf(b) - sizeOf(a)),
    )
  }
})

test('history has twelve months by default, the current one as of now, none in the future', async () => {
  const months = await reportOf(server, 'history')
  assert.deepEqual([months.interval, months.results.length], ['month', 12])
  assert.equal(months.results.at(-1).date, `${inDays(0).slice(0, 7)}-01`)
  assert.equal(months.results.at(-1).mrr, (await reportOf(server, 'overview')).mrr)
  const future = await reportOf(server, 'history', { from: inDays(0), to: inDays(400), interval: 'day' })
  assert.deepEqual(
    future.results.map((row: Body) => row.date),
    [inDays(0).slice(0, 10)],
  )
  assert.deepEqual((await reportOf(server, 'history', { from: inDays(40) })).results, [])
  const weeks = await reportOf(server, 'history', {
    from: '2025-03-05T18:00:00Z',
    to: '2025-03-17',
    interval: 'week',
  })
  // extended to Mondays
  assert.deepEqual(
    weeks.results.map((row: Body) => row.date),
    ['2025-03-03', '2025-03-10', '2025-03-17'],
  )
})

test('history has at most 1,500 buckets, and from must not be after to', async () => {
  const errors = async (query: Record<string, string>) => {
    const { status, body } = await ask(server, 'history', { currency: 'EUR', ...query })
    return [status, body.errors?.map((error: Body) => error.pointer)]
  }
  const to = '2025-04-10'
  assert.deepEqual(await errors({ from: '2021-03-03', to, interval: 'day' }), [200, undefined])
  assert.deepEqual(await errors({ from: '2021-03-02', to, interval: 'day' }), [400, ['/from']])
  assert.deepEqual(await errors({ from: '0001-01-01', to: '9999-12-31', interval: 'day' }), [400, ['/from']])
  assert.deepEqual(await errors({ from: '2025-04-11', to }), [400, ['/from']])
  assert.deepEqual(await errors({ from: 'soon', interval: 'hour' }), [400, ['/from', '/interval']])
})

test('rates are computed from the accounts and movements of the 30 days', async () => {
  const tenant = await server.anotherTenant('rates')
  const changed = (id: string, days: number, amount: number) =>
    updated(id, { updated_at: inDays(-days), items: [item(amount)] })
  const events = [
    ...['kept', 'grew', 'shrank', 'left', 'returned', 'twice'].map(id => created(id)),
    changed('grew', 20, 25),
    changed('shrank', 19, 4),
    ended('left', inDays(-18)),
    changed('returned', 17, 0),
    changed('returned', 10, 12),
    changed('twice', 16, 0),
    changed('twice', 15, 8),
    changed('twice', 14, 0),
    created('came', { started_at: inDays(-12), items: [item(30)] }),
    created('came-and-went', { started_at: inDays(-12) }),
    ended('came-and-went', inDays(-2), { started_at: inDays(-12) }),
  ]
  await send(server, events, tenant)
  const { rates, arpa, movements, policy } = await reportOf(server, 'overview', {}, tenant)
  const lost = 6 + 10 + 10 + 10 + 8 + 10
  assert.deepEqual([movements.opening_mrr, movements.contraction + movements.churn], [60, lost])
  assert.equal(arpa, 16.2)
  assert.deepEqual(rates, {
    // two of six churned
    customer_churn_rate: 2 / 6,
    gross_mrr_churn_rate: lost / 60,
    net_mrr_churn_rate: (lost - 15 - 20) / 60,
    // of the six: 10, 25, 4, 0, 12 and 0 are left
    gross_revenue_retention: (10 + 10 + 4 + 10) / 60,
    net_revenue_retention: (10 + 25 + 4 + 12) / 60,
    quick_ratio: (40 + 35) / lost,
    ltv: 48.6,
  })
  assert.deepEqual(
    Object.keys(rates).filter(name => !policy.rates[name]),
    [],
  )
})

const MONTHS = { from: '2026-01-01', to: '2026-03-31', as_of: '2026-04-01' }

test('an account that comes and leaves within the interval does not lower the retention', async () => {
  const tenant = await server.anotherTenant('retention in the history')
  const march = { started_at: at('2026-03-05'), items: [item(500)] }
  const events = [
    created('stays', { started_at: at('2026-01-10') }),
    created('large', march),
    ended('large', at('2026-03-20'), march),
  ]
  await send(server, events, tenant)
  const overview = await reportOf(server, 'overview', { as_of: '2026-04-01' }, tenant)
  const { opening_mrr, new: added, churn } = overview.movements
  assert.deepEqual([opening_mrr, added, churn], [10, 500, 500])
  assert.deepEqual([overview.rates.gross_revenue_retention, overview.rates.net_revenue_retention], [1, 1])
  for (const filter of [{}, { billing_interval: 'month' }] as Record<string, string>[]) {
    const { results } = await reportOf(server, 'history', { ...MONTHS, ...filter }, tenant)
    assert.deepEqual(
      results.map((row: Body) => [row.new_accounts, row.churned_accounts, row.rates.gross_revenue_retention]),
      [
        [1, 0, null],
        [0, 0, 1],
        [1, 0, 1],
      ],
    )
    assert.deepEqual(results[2].rates, { ...overview.rates, ltv: null })
    assert.equal('retention' in results[0], false)
  }
})

test('history shows the retention of the accounts of 1, 3 and 12 months earlier', async () => {
  const tenant = await server.anotherTenant('retention over months')
  const year = { started_at: at('2025-04-01') }
  const events = [
    created('grows', year),
    updated('grows', { ...year, updated_at: at('2026-01-15'), items: [item(30)] }),
    created('leaves', { ...year, items: [item(20)] }),
    ended('leaves', at('2026-03-31'), { ...year, items: [item(20)] }),
    created('later', { started_at: at('2026-02-02'), items: [item(100)] }),
  ]
  await send(server, events, tenant)
  const retention = async (months: number, query: Record<string, string> = {}) => {
    const { results } = await reportOf(server, 'history', { ...MONTHS, retention_months: months, ...query }, tenant)
    const { retention: last } = results.findLast(({ date }: Body) => date < '2026-04')
    return [last.months, last.gross_revenue_retention, last.net_revenue_retention]
  }
  assert.deepEqual(await retention(1), [1, 130 / 150, 130 / 150])
  // at the end of December: 10 and 20; now 30 and 0
  assert.deepEqual(await retention(3), [3, 10 / 30, 30 / 30])
  assert.deepEqual(await retention(3, { interval: 'week', from: '2026-03-23', to: '2026-03-31' }), [3, 10 / 30, 1])
  // no account paid before April 2025
  assert.deepEqual(await retention(12), [12, null, null])
  const errors = async (query: Record<string, string | number>) => {
    const { status, body } = await ask(server, 'history', { currency: 'EUR', ...query }, { tenant })
    return [status, body.errors?.map((error: Body) => error.pointer)]
  }
  assert.deepEqual(await errors({ retention_months: 2 }), [400, ['/retention_months']])
  const days = { retention_months: 12, interval: 'day', to: '2026-03-31' }
  assert.deepEqual(await errors({ ...days, from: '2025-12-02' }), [200, undefined])
  assert.deepEqual(await errors({ ...days, from: '2025-12-01' }), [400, ['/from']])
})

test('breakdowns by item add up to MRR, as of any date', async () => {
  const tenant = await server.anotherTenant('breakdown')
  const contact = { entityType: 'contact', id: 'cus_a', sourceUpdatedAt: inDays(0), data: { country: 'de' } }
  const { status: accepted } = await server.request('/v1/contacts', {
    method: 'POST',
    key: tenant.privateKey,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(contact),
  })
  assert.equal(accepted, 202)
  const team = (amount: number) => item(amount, { name: 'Team' })
  await send(
    server,
    [
      created('a', {
        acquisition: { source: 'ads', medium: 'cpc' },
        metadata: { country: 'FR' },
        items: [team(10.01), item(120, { id: 'si_2', name: 'Seats', interval: 'year' })],
      }),
      created('b', {
        acquisition: { source: 'ads', medium: 'banner' },
        metadata: { country: 'FR' },
        items: [team(30)],
      }),
      created('b2', { customer: 'cus_b', items: [item(30, { name: null, interval_count: 3 })] }),
      created('c', { started_at: inDays(-10), metadata: { country: 'Fiji' }, items: [team(5)] }),
      created('t', { status: 'trialing', items: [team(70)] }),
      created('u', { currency: 'USD', items: [team(70)] }),
    ],
    tenant,
  )
  const by = async (dimension: string, query = {}) => {
    const { mrr, results, ...rest } = await reportOf(server, 'breakdown', { by: dimension, ...query }, tenant)
    assert.equal(rest.by, dimension)
    assert.equal(mrr, (await reportOf(server, 'overview', query, tenant)).mrr)
    assert.equal(
      results.reduce((sum: number, row: Body) => sum + cents(row.mrr), 0),
      cents(mrr),
    )
    return results.map((row: Body) => [row[dimension], row.mrr, row.accounts, row.subscriptions])
  }
  const now = {
    plan: [
      ['Team', 45.01, 3, 3],
      ['Seats', 10, 1, 1],
      ['price_1', 10, 1, 1],
    ],
    interval: [
      ['month', 45.01, 3, 3],
      ['3 months', 10, 1, 1],
      ['year', 10, 1, 1],
    ],
    source: [
      ['ads', 60.01, 2, 3],
      ['unattributed', 5, 1, 1],
    ],
    country: [
      ['FR', 30, 1, 1],
      ['DE', 20.01, 1, 1],
      ['unknown', 10, 1, 1],
      ['Fiji', 5, 1, 1],
    ],
  }
  for (const [dimension, rows] of Object.entries(now)) assert.deepEqual(await by(dimension), rows, dimension)
  assert.deepEqual((await by('plan', { as_of: inDays(-20) }))[0], ['Team', 40.01, 2, 2])
  assert.deepEqual(await by('country', { as_of: inDays(-200) }), [])
  const { status, body } = await ask(server, 'breakdown', { currency: 'EUR' }, { tenant })
  assert.deepEqual([status, body.errors[0].pointer], [400, '/by'])
})

const FIGURES = ['invoiced', 'collected', 'refunded', 'disputed', 'outstanding', 'one_off']

test('every cash total is the sum of its facts, in any time zone and as of any date', async () => {
  const tenant = await server.anotherTenant('cash')
  const bill = (id: string, at: string, changes: object) =>
    invoice('updated', id, { finalized_at: at, updated_at: at, status: 'open', ...changes })
  const paidAt = (id: string, at: string, total: number, changes: object = {}) =>
    bill(id, at, { status: 'paid', total, amount_paid: total, amount_remaining: 0, paid_at: at, ...changes })
  const refund = (id: string, of: string, amount: number, at: string) => ({
    type: 'refund.created',
    data: { id, invoice: of, amount, currency: 'EUR', created_at: at, updated_at: at },
  })
  const own = { subscription: 's', customer: 'cus_s' }
  const [yesterday, today] = [inDays(-1), inDays(0)]
  const events = [
    created('s', { started_at: at('2025-03-01') }),
    paidAt('in_1', '2025-03-01T02:00:00Z', 119, own),
    refund('re_1', 'in_1', 19, '2025-03-02T01:30:00Z'),
    bill('in_2', '2025-03-02T23:30:00Z', { ...own, total: 50, amount_due: 50, amount_remaining: 50 }),
    bill('in_2', '2025-03-05T12:00:00Z', {
      ...own,
      finalized_at: '2025-03-02T23:30:00Z',
      total: 50,
      amount_due: 50,
      amount_paid: 20,
      amount_remaining: 30,
    }),
    paidAt('one', '2025-03-02T12:00:00Z', 30, { customer: 'cus_x' }),
    refund('re_2', 'one', 10, '2025-03-04T12:00:00Z'),
    bill('draft', '2025-03-04T12:00:00Z', { ...own, status: 'draft', total: 77 }),
    invoice('paid', 'usd', {
      currency: 'USD',
      status: 'paid',
      total: 9,
      amount_paid: 9,
      paid_at: at('2025-03-02'),
      updated_at: at('2025-03-02'),
    }),
    paidAt('recent', yesterday, 11, own),
    bill('now', today, { ...own, total: 13, amount_due: 13, amount_remaining: 13 }),
  ]
  await send(server, events, tenant)
  const march = { from: '2025-02-28', to: '2025-03-06', interval: 'day' }
  const { results } = await reportOf(server, 'cash', march, tenant)
  const shownOn = (date: string) => FIGURES.map(figure => results.find((row: Body) => row.date === date)[figure])
  assert.deepEqual(shownOn('2025-03-01'), [119, 119, 0, 0, 0, 0])
  assert.deepEqual(shownOn('2025-03-02'), [80, -19, 19, 0, 30, 30])
  assert.deepEqual(shownOn('2025-03-04'), [0, 0, 0, 0, 0, -10])
  assert.deepEqual(shownOn('2025-03-05'), [0, 20, 0, 0, 0, 0])
  const windows = [march, { from: inDays(-9), interval: 'week' }, { from: '2025-01-01', interval: 'month' }]
  const compare = async (as_of: string) => {
    for (const window of windows) {
      const cash = await reportOf(server, 'cash', { ...window, as_of }, tenant)
      for (const row of cash.results) {
        const query = { date: row.date, interval: window.interval, as_of, page_size: 100 }
        const { results: facts, totals } = await reportOf(server, 'cash/facts', query, tenant)
        for (const figure of FIGURES) {
          const sum = facts.reduce((total: number, fact: Body) => total + cents(fact[figure]), 0)
          assert.equal(cents(row[figure]), sum, `${row.date} ${figure}`)
          assert.equal(totals[figure], row[figure])
        }
      }
    }
  }
  for (const as_of of [inDays(0.001), '2025-03-04T13:00:00Z']) await compare(as_of)
  // the overview has the same amounts for its 30 days
  const { collected, invoiced, as_of } = await reportOf(server, 'overview', {}, tenant)
  const recent = await reportOf(server, 'cash', { from: inDays(-25), interval: 'day', as_of }, tenant)
  const total = (figure: string) => recent.results.reduce((sum: number, row: Body) => sum + row[figure], 0)
  assert.deepEqual([total('collected'), total('invoiced')], [collected.amount, invoiced.amount])
  await server.admin.policies.set(tenant.id, { time_zone: 'America/New_York' })
  await compare(inDays(0.002))
  const west = await reportOf(server, 'cash', march, tenant)
  assert.equal(west.results.find((row: Body) => row.date === '2025-02-28').invoiced, 119)
})

test('retention by both bases: the first MRR of accounts, or their MRR at the end of the first month', async () => {
  const tenant = await server.anotherTenant('retention')
  const on = (day: string) => ({ started_at: at(day) })
  const events = [
    created('up', { ...on('2025-03-03'), items: [item(10)] }),
    updated('up', { ...on('2025-03-03'), updated_at: at('2025-03-20'), items: [item(40)] }),
    updated('up', { ...on('2025-03-03'), updated_at: at('2025-04-10'), items: [item(30)] }),
    created('tried', { ...on('2025-03-05'), items: [item(20)] }),
    ended('tried', at('2025-03-12'), { ...on('2025-03-05'), items: [item(20)] }),
    // the last evening of March in New York
    created('late', { started_at: '2025-04-01T02:00:00Z', items: [item(7)] }),
  ]
  await send(server, events, tenant)
  const march = async (query: object) => {
    const report = await reportOf(server, 'retention', { as_of: '2025-05-02', ...query }, tenant)
    const rows = report.cohorts.results.filter((row: Body) => row.cohort === '2025-03')
    return [
      report.retention_base,
      ...rows.map((row: Body) => [row.starting_accounts, row.starting_mrr, row.accounts, row.mrr, row.gross_mrr]),
    ]
  }
  const first = ['first_instant', [2, 30, 1, 40, 10], [2, 30, 1, 30, 10], [2, 30, 1, 30, 10]]
  const end = ['end_of_month', [1, 40, 1, 40, 40], [1, 40, 1, 30, 30], [1, 40, 1, 30, 30]]
  assert.deepEqual(await march({}), first)
  assert.deepEqual(await march({ retention_base: 'end_of_month' }), end)
  assert.deepEqual(await march({ retention_base: 'end_of_month', plan: 'Plan' }), end)
  assert.deepEqual(await march({ retention_base: 'first_instant', plan: 'Plan' }), first)
  await server.admin.policies.set(tenant.id, {
    retention_base: 'end_of_month',
    time_zone: 'America/New_York',
  })
  const west = ['end_of_month', [2, 47, 2, 47, 47], [2, 47, 2, 37, 37], [2, 47, 2, 37, 37]]
  assert.deepEqual(await march({}), west)
  assert.deepEqual(await march({ plan: 'Plan' }), west)
})
