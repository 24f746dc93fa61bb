import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { DAY_MS, toDay } from '../../src/domain/time.ts'
import { sharedServer, type TestServer, type TestTenant } from '../server.ts'
import {
  ask,
  type BillingEvent,
  type Body,
  created,
  ended,
  inDays,
  invoice,
  item,
  type ReportQuery,
  reportOf,
  send,
  updated,
} from './shop.ts'

let server: TestServer
before(async () => {
  server = await sharedServer()
})
after(() => server.close())

const cents = (amount: number) => Math.round(amount * 100) + 0
const reporting = (tenant: TestTenant, report: string, query: ReportQuery = {}) =>
  reportOf(server, report, { currency: 'reporting', ...query }, tenant)

/** Lines of a rates file: units for one euro. */
function ratesFile(rows: [day: string, usd: number, jpy: number][]): string {
  return ['Date,USD,JPY', ...rows.map(row => row.join(','))].join('\n')
}

function randomNumbers(seed: number): (below: number) => number {
  let state = seed
  return below => {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff
    return Math.floor((state / 0x80000000) * below)
  }
}

const FIRST = Date.parse('2025-01-01')
const DAYS = 100
const day = (n: number) => toDay(FIRST + n * DAY_MS)

/** Random subscriptions in three currencies, with changes at midnight, within days and after an end. */
function randomBooks(seed: number): BillingEvent[] {
  const random = randomNumbers(seed)
  const amount = (currency: string) => (currency === 'JPY' ? 1 + random(9000) : 1 + random(9999) / 100)
  return Array.from({ length: 25 }, (_, i) => {
    const currency = ['EUR', 'USD', 'JPY'][random(3)]!
    const id = `s${i}`
    const customer = `cus_${random(18)}`
    let at = FIRST + random(60) * DAY_MS + (random(3) === 0 ? 0 : random(DAY_MS))
    const started_at = new Date(at).toISOString()
    const events = [created(id, { customer, currency, started_at, items: [item(amount(currency))] })]
    for (let n = random(5); n > 0; n--) {
      at += random(20) * DAY_MS + 1 + random(DAY_MS)
      const items = [item(random(4) === 0 ? 0 : amount(currency))]
      const change = { customer, currency, started_at, updated_at: new Date(at).toISOString(), items }
      events.push(random(6) === 0 ? ended(id, change.updated_at, change) : updated(id, change))
      if (events.at(-1)!.type === 'subscription.deleted') break
    }
    return events
  }).flat()
}

const TYPES = { new: 1, expansion: 1, reactivation: 1, contraction: -1, churn: -1, fx: 1 }
const change = (row: Body) => Object.entries(TYPES).reduce((sum, [type, sign]) => sum + sign * cents(row[type]), 0)

async function randomTenant(seed: number, rate: (n: number) => [usd: number, jpy: number]): Promise<TestTenant> {
  const tenant = await server.anotherTenant(`reporting ${seed}`)
  await server.admin.policies.set(tenant.id, { reporting_currency: 'eur' })
  const rows = Array.from({ length: DAYS + 1 }, (_, n) => [day(n - 1), ...rate(n - 1)] as [string, number, number])
  await server.admin.rates.import(tenant.id, ratesFile(rows))
  await send(server, randomBooks(seed), tenant)
  return tenant
}

for (const seed of [1, 2, 3]) {
  test(`opening + movements + fx = closing in every interval, and fx is what rates alone change (${seed})`, async () => {
    const random = randomNumbers(seed * 77)
    const rates = Array.from({ length: DAYS + 2 }, () => [10_000 + random(4000), 1_500_000 + random(300_000)] as const)
    const rateOf = (n: number) => rates[n + 1]!
    const tenant = await randomTenant(seed, n => [rateOf(n)[0] / 10_000, rateOf(n)[1] / 10_000])
    const window = { from: day(0), to: day(DAYS - 1), as_of: `${day(DAYS - 1)}T23:59:59.999Z` }
    const own: Record<string, number[]> = {}
    for (const currency of ['EUR', 'USD', 'JPY']) {
      const { results } = await reportOf(server, 'history', { ...window, currency, interval: 'day' }, tenant)
      own[currency] = results.map((row: Body) => (currency === 'JPY' ? row.mrr : cents(row.mrr)))
    }
    // minor units of the currency × 10,000 ÷ units per euro
    const convert = (n: number, currency: string, on: number) => {
      if (currency === 'EUR') return n
      return currency === 'USD' ? Math.round((n * 10_000) / rateOf(on)[0]) : Math.round((n * 1_000_000) / rateOf(on)[1])
    }
    const total = (n: number, on: number) =>
      Object.keys(own).reduce((sum, currency) => sum + convert(own[currency]![n] ?? 0, currency, on), 0)
    const days = (await reporting(tenant, 'history', { ...window, interval: 'day' })).results
    assert.equal(days.length, DAYS)
    let moves = 0
    for (const [n, row] of days.entries()) {
      const opening = n === 0 ? 0 : cents(days[n - 1].mrr)
      assert.equal(cents(row.mrr), total(n, n), row.date)
      assert.equal(opening + change(row), cents(row.mrr), row.date)
      assert.equal(cents(row.net), cents(row.mrr) - opening, row.date)
      assert.equal(cents(row.fx), n === 0 ? 0 : total(n - 1, n) - total(n - 1, n - 1), row.date)
      if (row.fx !== 0) moves += 1
    }
    assert.ok(moves > 50)
    for (const interval of ['week', 'month']) {
      const { results } = await reporting(tenant, 'history', { ...window, interval })
      for (const [i, row] of results.entries()) {
        assert.equal((i === 0 ? 0 : cents(results[i - 1].mrr)) + change(row), cents(row.mrr), row.date)
        const inside = days.filter((one: Body) => one.date >= row.date && one.date < (results[i + 1]?.date ?? '9999'))
        for (const type of Object.keys(TYPES)) {
          const sum = inside.reduce((all: number, one: Body) => all + cents(one[type]), 0)
          assert.equal(cents(row[type]), sum, `${row.date} ${type}`)
        }
      }
    }
    for (const [since, until] of [
      [10, 40],
      [0, 99],
      [33, 34],
    ] as const) {
      const span = { since: `${day(since)}T07:00:00Z`, until: `${day(until)}T19:30:00Z` }
      const { totals, results, count } = await reporting(tenant, 'movements', { ...span, page_size: 100 })
      assert.equal(cents(totals.opening_mrr) + change(totals), cents(totals.closing_mrr))
      const then = await reporting(tenant, 'overview', { as_of: span.until })
      assert.deepEqual([then.mrr, then.movements.closing_mrr], [totals.closing_mrr, totals.closing_mrr])
      assert.equal(then.mrr, (await reportOf(server, 'consolidated', { as_of: span.until }, tenant)).mrr)
      assert.equal(cents(then.movements.opening_mrr) + change(then.movements), cents(then.movements.closing_mrr))
      const parts = (await reporting(tenant, 'breakdown', { by: 'interval', as_of: span.until })).results
      assert.equal(
        parts.reduce((sum: number, part: Body) => sum + cents(part.mrr), 0),
        cents(then.mrr),
      )
      assert.equal(count, results.length)
      for (const [type, sign] of Object.entries(TYPES)) {
        if (type === 'fx') continue
        const rows = results.filter((row: Body) => row.movement_type === type)
        const sum = rows.reduce((all: number, row: Body) => all + sign * cents(row.mrr_delta), 0)
        // rows are rounded one by one, totals by day
        assert.ok(Math.abs(sum - cents(totals[type])) <= rows.length + DAYS, `${type} ${sum} ${totals[type]}`)
      }
      const bySize = (await reporting(tenant, 'movements', { ...span, order: 'size', page_size: 100 })).results
      const size = (row: Body) => Math.abs(cents(row.mrr_delta))
      assert.deepEqual(
        bySize.map(size),
        results.map(size).sort((a: number, b: number) => b - a),
      )
    }
  })
}

test('with constant rates fx is 0', async () => {
  const tenant = await randomTenant(9, () => [1.2345, 157.31])
  const window = { from: day(0), to: day(DAYS - 1), as_of: `${day(DAYS - 1)}T12:00:00Z`, interval: 'week' }
  const { results } = await reporting(tenant, 'history', window)
  assert.ok(results.some((row: Body) => row.churn > 0))
  assert.deepEqual(new Set(results.map((row: Body) => row.fx)), new Set([0]))
})

test('retention converts both sides with the rates of the closing day', async () => {
  const tenant = await server.anotherTenant('reporting retention')
  await server.admin.policies.set(tenant.id, { reporting_currency: 'EUR' })
  await server.admin.rates.import(
    tenant.id,
    ratesFile([
      ['2025-01-01', 2, 100],
      ['2025-03-01', 1, 100],
    ]),
  )
  const started_at = '2025-01-10T00:00:00Z'
  await send(
    server,
    [
      created('kept', { currency: 'USD', started_at, items: [item(100)] }),
      created('fell', { currency: 'USD', started_at, items: [item(100)] }),
      updated('fell', { currency: 'USD', started_at, updated_at: '2025-03-10T00:00:00Z', items: [item(40)] }),
      created('other', { started_at, items: [item(100)] }),
      invoice('paid', 'i', {
        ...{ customer: 'cus_kept', subscription: 'kept', currency: 'USD', status: 'paid', total: 30 },
        ...{
          finalized_at: '2025-02-27T10:00:00Z',
          paid_at: '2025-03-02T10:00:00Z',
          updated_at: '2025-03-02T10:00:00Z',
        },
      }),
    ],
    tenant,
  )
  const as_of = '2025-03-20T00:00:00Z'
  const { results } = await reporting(tenant, 'history', { from: '2025-03-01', as_of })
  // opening 100 + 100 ÷ 2 + 100 ÷ 2; at the rate of 1, 100 + 100 + 100, of which 60 were lost
  const { mrr, fx, contraction, rates } = results[0]
  assert.deepEqual([mrr, fx, contraction], [240, 100, 60])
  assert.deepEqual([rates.gross_revenue_retention, rates.net_revenue_retention], [0.8, 0.8])
  const cohorts = (await reporting(tenant, 'retention', { as_of })).cohorts.results
  const rows = cohorts.map((row: Body) => [row.month, row.starting_mrr, row.mrr, row.net_revenue_retention])
  assert.deepEqual(rows, [
    [0, 200, 200, 1],
    [1, 200, 200, 1],
    [2, 300, 240, 0.8],
  ])
  const overview = await reporting(tenant, 'overview', { as_of })
  assert.deepEqual(
    [overview.currency, overview.mrr, overview.active_accounts, overview.movements.fx, overview.older_rates],
    ['EUR', 240, 3, 100, ['USD']],
  )
  assert.equal(overview.rates.net_revenue_retention, 0.8)
  // invoiced at a rate of 2, collected at 1
  assert.deepEqual([overview.invoiced, overview.collected.amount], [{ amount: 15, count: 1 }, 30])
  assert.deepEqual(
    overview.accounts.results.map((row: Body) => [row.customer, row.mrr]),
    [
      ['cus_other', 100],
      ['cus_kept', 100],
      ['cus_fell', 40],
    ],
  )
  assert.deepEqual([overview.exclusions.count, overview.coverage.subscriptions_excluded], [0, 0])
  const [source] = overview.acquisition_sources.results
  assert.deepEqual([source.cohort_starting_mrr, source.retained_mrr, source.mrr], [300, 240, 240])
  const filtered = await reporting(tenant, 'history', { from: '2025-03-01', as_of, status: 'active' })
  assert.equal(filtered.results[0].fx, 100)
  const { body } = await ask(
    server,
    'history',
    { currency: 'reporting', from: '2025-03-01', as_of },
    { tenant, headers: { accept: 'text/csv' } },
  )
  assert.match(body, /^date,mrr,arr,active_accounts,active_subscriptions,fx,new,/)
})

test('a closed month is converted by the rates of its closing', async () => {
  const tenant = await server.anotherTenant('reporting closed')
  await server.admin.policies.set(tenant.id, { reporting_currency: 'EUR' })
  await server.admin.rates.import(tenant.id, 'Date,USD\n2025-01-01,2\n2025-03-10,4')
  const started_at = '2025-01-10T00:00:00Z'
  await send(
    server,
    [
      created('dollars', { currency: 'USD', started_at, items: [item(100)] }),
      created('euros', { started_at, items: [item(7)] }),
      updated('dollars', { currency: 'USD', started_at, updated_at: '2025-03-20T00:00:00Z', items: [item(120)] }),
    ],
    tenant,
  )
  const march = { as_of: '2025-04-01', basis: 'as_closed' }
  const months = { from: '2025-02-01', to: '2025-04-30', as_of: '2025-05-01', basis: 'as_closed' }
  const figures = async () => {
    const { mrr, arr, movements, rates, accounts } = await reporting(tenant, 'overview', march)
    return {
      ...{ mrr, arr, movements, rates, accounts },
      listed: (await reporting(tenant, 'movements', { ...march, since: '2025-03-01', until: '2025-03-31' })).results,
      plans: (await reporting(tenant, 'breakdown', { ...march, by: 'plan' })).results,
      cohorts: (await reporting(tenant, 'retention', march)).cohorts,
      month: (await reporting(tenant, 'history', months)).results[1],
    }
  }
  const then = await figures()
  assert.deepEqual([then.mrr, then.movements.fx, then.movements.expansion], [37, -25, 5])
  await server.admin.books.close(tenant.id, '2025-03')
  // a correction, a rate for a day that had none, and the first rates of a currency
  await server.admin.rates.import(tenant.id, 'Date,USD,JPY\n2025-01-01,1,\n2025-03-25,8,\n2025-03-31,8,100')
  const late = { currency: 'USD', started_at: '2025-03-05T00:00:00Z', items: [item(80)] }
  await send(server, [created('late', late)], tenant)
  assert.deepEqual(await figures(), then)
  const { basis: _, ...restated } = march
  assert.equal((await reporting(tenant, 'overview', restated)).mrr, 32)
  const rows = (await reporting(tenant, 'history', months)).results
  assert.deepEqual(
    rows.map((row: Body) => row.mrr),
    // February by the corrected rate, March as closed, April by the last rate
    [107, 37, 32],
  )
  await server.admin.rates.import(tenant.id, 'Date,USD,JPY\n2025-01-01,3,\n2025-03-25,9,\n2025-03-31,9,100')
  assert.deepEqual(await figures(), then)
  await server.admin.books.reopen(tenant.id, '2025-03')
  const now = await figures()
  assert.equal(now.mrr, (await reporting(tenant, 'overview', restated)).mrr)
  await server.admin.books.close(tenant.id, '2025-03')
  await server.admin.rates.import(tenant.id, 'Date,USD\n2025-01-01,5\n2025-03-10,5\n2025-03-25,5\n2025-03-31,5')
  assert.deepEqual(await figures(), now)
  await server.admin.books.reopen(tenant.id, '2025-03')
  const { rows: kept } = await server.pool.query('select from billing_closed_rates where tenant_id = $1', [
    Number(tenant.id.slice(4)),
  ])
  assert.equal(kept.length, 0)
})

test('lists contain the rows of all currencies, converted, and add up to the overview', async () => {
  const tenant = await server.anotherTenant('reporting lists')
  await server.admin.policies.set(tenant.id, { reporting_currency: 'EUR' })
  await server.admin.rates.import(tenant.id, 'Date,USD\n2020-01-01,2\n')
  const soon = inDays(5)
  await send(
    server,
    [
      created('euros', { items: [item(30)] }),
      created('dollars', { currency: 'USD', items: [item(20)], cancel_at: soon, current_period_end: soon }),
      created('trial', { currency: 'USD', status: 'trialing', trial_end: inDays(7), items: [item(8)] }),
      created('gone', { currency: 'USD', items: [item(50)] }),
      ended('gone', inDays(-20), { currency: 'USD', items: [item(50)], cancellation_reason: 'too_expensive' }),
    ],
    tenant,
  )
  const sale = { order_id: 'o-1', amount: 7, currency: 'USD' }
  const track = { key: tenant.trackingKey, method: 'POST', body: JSON.stringify({ event_type: 'convert', data: sale }) }
  await server.request('/v1/track/', track)
  await server.settled()
  const { mrr } = await reporting(tenant, 'overview')
  assert.equal(mrr, 40)

  const { cancellations } = await reporting(tenant, 'attention')
  assert.deepEqual(
    cancellations.results.map((row: Body) => [row.subscription_id, row.mrr_at_risk]),
    [['dollars', 10]],
  )
  const acquisition = await reporting(tenant, 'acquisition')
  assert.equal(acquisition.mrr, mrr)
  assert.equal(sumOf(acquisition.sources.results, 'mrr'), mrr)
  const exclusions = await reporting(tenant, 'exclusions')
  const trials = exclusions.by_reason.find((row: Body) => row.reason_code === 'trialing')
  assert.deepEqual([trials.items, trials.excluded_mrr], [1, 4])
  assert.equal(sumOf(exclusions.by_reason, 'items'), exclusions.count)
  assert.equal(sumOf(exclusions.results, 'excluded_mrr'), sumOf(exclusions.by_reason, 'excluded_mrr'))
  const forecast = await reporting(tenant, 'forecast')
  assert.equal(forecast.opening_mrr, mrr)
  assert.equal(forecast.months.at(-1).mrr, 40 - 10 + 4)
  assert.deepEqual(forecast.results.map((row: Body) => row.mrr_delta).toSorted(), [-10, 4])
  const { totals } = await reporting(tenant, 'churn-reasons')
  const { results } = await reporting(tenant, 'history', { interval: 'month' })
  assert.deepEqual([sumOf(totals, 'mrr'), sumOf(totals, 'accounts')], [sumOf(results, 'churn'), 1])
  assert.equal(sumOf(totals, 'mrr'), 25)

  const path = '/v1/conversions/series?interval=day&currency=reporting'
  const { body } = await server.request(path, { key: tenant.privateKey })
  assert.deepEqual(body.results.at(-1).amounts, { EUR: 3.5 })
  const amountsIn = async (currency: string) => {
    const asked = `/v1/conversions/series?interval=day&currency=${currency}`
    const { status, body } = await server.request(asked, { key: tenant.privateKey })
    return status === 200 ? body.results.at(-1).amounts : status
  }
  assert.deepEqual([await amountsIn('usd'), await amountsIn('EUR'), await amountsIn('EURO')], [{ USD: 7 }, {}, 400])
  const facts = await server.request('/v1/tenant', { key: tenant.privateKey })
  assert.equal(facts.body.reporting_currency, 'EUR')
})

test('converted rows add up to the converted sums, whatever is rounded', async () => {
  const tenant = await server.anotherTenant('reporting parts')
  await server.admin.policies.set(tenant.id, { reporting_currency: 'EUR' })
  await server.admin.rates.import(tenant.id, 'Date,USD,KWD,JPY\n2020-01-01,1.0837,0.33391,163.17\n')
  const currencies = ['USD', 'KWD', 'JPY', 'USD', 'USD', 'EUR']
  const sources = ['news', 'fair', 'blog', 'radio']
  const events = Array.from({ length: 60 }, (_, i) => {
    const fields = {
      ...{ currency: currencies[i % 6], items: [item(3 + (i % 7)), item(1.11, { id: 'si_2' })] },
      acquisition: { source: sources[i % 4] },
      ...(i % 5 === 0 && { cancel_at: inDays(3 + i), current_period_end: inDays(3 + i) }),
      ...(i % 11 === 0 && { status: 'trialing', trial_end: inDays(40) }),
    }
    return created(`s${i}`, fields)
  })
  await send(server, events, tenant)
  const cents = (amount: number) => Math.round(amount * 100)
  const overview = await reporting(tenant, 'overview', { page_size: 100 })
  const accounts: Body[] = overview.accounts.results
  for (const name of ['mrr', 'committed_mrr']) assert.equal(cents(sumOf(accounts, name)), cents(overview[name]), name)
  assert.equal(cents(sumOf(overview.acquisition_sources.results, 'mrr')), cents(overview.mrr))
  const paged: Body[] = []
  for (let page = 1; page <= 9; page++)
    paged.push(...(await reporting(tenant, 'overview', { page_size: 7, page })).accounts.results)
  assert.deepEqual(paged, accounts)
  for (const order of ['time', 'size']) {
    const all: Body[] = (await reporting(tenant, 'movements', { page_size: 100, order })).results
    const [first, second] = [1, 2].map(page => reporting(tenant, 'movements', { page_size: 20, page, order }))
    assert.deepEqual([...(await first).results, ...(await second).results], all.slice(0, 40))
  }

  const { opening_mrr, months } = await reporting(tenant, 'forecast')
  assert.equal(opening_mrr, overview.mrr)
  let before = cents(opening_mrr)
  for (const { date, mrr, ...month } of months) {
    const added = [month.new, month.expansion, month.reactivation, month.trial_ends, -month.contraction, -month.churn]
    before += added.reduce((total, amount) => total + cents(amount), 0)
    assert.equal(cents(mrr), before, date)
  }
})

test('a source that lost every account retains 0, and cents do not depend on the order of arrival', async () => {
  const rates = 'Date,USD\n2020-01-01,1.0837\n'
  const events = Array.from({ length: 16 }, (_, i) => {
    const fields = { currency: 'USD', acquisition: { source: `source ${i}` }, items: [item(3.33 + i * 1.01)] }
    return i % 2 === 0 ? ended(`s${i}`, inDays(-9), fields) : created(`s${i}`, fields)
  })
  const answers: Body[] = []
  for (const own of [events, events.toReversed()]) {
    const tenant = await server.anotherTenant('reporting order')
    await server.admin.policies.set(tenant.id, { reporting_currency: 'EUR' })
    await server.admin.rates.import(tenant.id, rates)
    await send(server, own, tenant)
    answers.push((await reporting(tenant, 'acquisition')).sources.results)
  }
  assert.deepEqual(answers[0], answers[1])
  const lost = answers[0].filter((row: Body) => row.mrr === 0)
  assert.equal(lost.length, 8)
  for (const row of lost) assert.deepEqual([row.cohort_accounts, row.retained_mrr, row.retention_rate], [1, 0, 0])
})

const sumOf = (rows: Body[], name: string): number => rows.reduce((sum, row) => sum + (row[name] ?? 0), 0)

test('a missing rate and a missing setting are errors that say what to do', async () => {
  const tenant = await server.anotherTenant('without rates')
  const reports = [...['overview', 'history', 'movements', 'breakdown', 'retention'], ...['acquisition', 'forecast']]
  const asked = async (report: string) => {
    const { status, body } = await ask(server, report, { currency: 'Reporting', by: 'plan' }, { tenant })
    return [status, body.errors?.[0]?.pointer, body.errors?.[0]?.message]
  }
  for (const report of reports) {
    const [status, pointer, message] = await asked(report)
    assert.deepEqual([status, pointer], [400, '/currency'], report)
    assert.match(message, /kontor policy set --tenant T reporting_currency=EUR/)
  }
  await server.admin.policies.set(tenant.id, { reporting_currency: 'EUR' })
  await send(server, [created('dollars', { currency: 'USD' })], tenant)
  for (const report of reports) {
    const [status, pointer, message] = await asked(report)
    assert.deepEqual([status, pointer], [400, '/currency'], report)
    assert.match(message, /no exchange rate between USD and EUR for \d{4}-\d\d-\d\d .* `kontor rates import`/)
  }
  for (const report of ['cash', 'revenue', 'consolidated']) {
    assert.deepEqual((await asked(report)).slice(0, 2), [400, '/currency'], report)
  }
  await assert.rejects(server.admin.policies.set(tenant.id, { reporting_currency: 'EURO' }))
})
