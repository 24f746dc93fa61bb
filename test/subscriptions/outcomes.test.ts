import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { sharedServer, type TestServer } from '../server.ts'
import { type Body, created, ended, inDays, invoice, item, type ReportQuery, reportOf, send, updated } from './shop.ts'

let server: TestServer
before(async () => {
  server = await sharedServer()
})
after(() => server.close())

const cents = (amount: number) => Math.round(amount * 100) + 0

test('trials: started = converted + expired + running, as of any date and with any filter', async () => {
  const tenant = await server.anotherTenant('trials')
  const trial = (id: string, days: number, changes: object = {}) =>
    created(id, { started_at: inDays(-days), status: 'trialing', trial_end: inDays(14 - days), ...changes })
  const then = (id: string, days: number, at: number, changes: object) =>
    updated(id, { started_at: inDays(-days), updated_at: inDays(-at), ...changes })
  const events = [
    trial('won', 60),
    // still the same trial
    then('won', 60, 50, { status: 'trialing', trial_end: inDays(-46), items: [item(30)] }),
    then('won', 60, 46, { items: [item(30)] }),
    trial('left', 50, { items: [item(10, { name: 'Team' })] }),
    ended('left', inDays(-40), { started_at: inDays(-50) }),
    trial('paused', 45),
    then('paused', 45, 31, { status: 'paused' }),
    trial('late', 5),
    trial('dollar', 5, { currency: 'USD' }),
    trial('test', 5, { livemode: false }),
    created('paid'),
  ]
  await send(server, events, tenant)
  const { totals, results } = await reportOf(server, 'trials', {}, tenant)
  assert.deepEqual(totals, { started: 4, converted: 1, expired: 2, running: 1, conversion_rate: 1 / 3 })
  assert.deepEqual(
    results.map((row: Body) => [row.subscription_id, row.outcome, row.mrr]),
    [
      ['won', 'converted', 30],
      ['left', 'expired', 0],
      ['paused', 'expired', 0],
      ['late', 'running', 0],
    ],
  )
  const before = await reportOf(server, 'trials', { as_of: inDays(-42) }, tenant)
  assert.deepEqual([before.totals.started, before.totals.converted, before.totals.running], [3, 1, 2])
  const recent = await reportOf(server, 'trials', { since: inDays(-48), until: inDays(-44) }, tenant)
  assert.deepEqual([recent.totals.started, recent.results[0].subscription_id], [1, 'paused'])
  const team = await reportOf(server, 'trials', { plan: 'Team' }, tenant)
  assert.deepEqual([team.totals.started, team.totals.expired], [1, 1])
})

test('dunning: failed = recovered + lost + open, with the invoices', async () => {
  const tenant = await server.anotherTenant('dunning')
  const failing = (id: string, amount: number, days: number, changes: object = {}) =>
    invoice('payment_failed', id, {
      subscription: id,
      customer: `cus_${id}`,
      status: 'open',
      total: amount,
      amount_due: amount,
      amount_remaining: amount,
      attempt_count: 1,
      failure_code: 'card_declined',
      finalized_at: inDays(-days),
      updated_at: inDays(-days),
      ...changes,
    })
  const later = (id: string, amount: number, days: number, at: number, changes: object) =>
    failing(id, amount, days, { failure_code: null, updated_at: inDays(-at), ...changes })
  const paid = { status: 'paid', amount_remaining: 0 }
  const events = [
    ...['won', 'gone', 'off', 'open', 'fine'].map(id => created(id)),
    failing('won', 10, 40),
    { ...later('won', 10, 40, 30, { ...paid, amount_paid: 10, paid_at: inDays(-30) }), type: 'invoice.paid' },
    failing('gone', 20, 39),
    ended('gone', inDays(-20)),
    failing('off', 40, 38),
    { ...later('off', 40, 38, 10, { status: 'uncollectible' }), type: 'invoice.marked_uncollectible' },
    failing('open', 80, 3),
    {
      ...later('fine', 5, 3, 3, { ...paid, amount_paid: 5, attempt_count: 1, paid_at: inDays(-3) }),
      type: 'invoice.paid',
    },
  ]
  await send(server, events, tenant)
  const { totals, results } = await reportOf(server, 'dunning', {}, tenant)
  assert.deepEqual(totals, {
    failed: { count: 4, amount: 150 },
    recovered: { count: 1, amount: 10 },
    lost: { count: 2, amount: 60 },
    open: { count: 1, amount: 80 },
    recovery_rate: 10 / 70,
  })
  assert.deepEqual(
    results.map((row: Body) => [row.invoice_id, row.outcome, row.amount, row.failure_code]),
    [
      ['won', 'recovered', 10, 'card_declined'],
      ['gone', 'lost', 20, 'card_declined'],
      ['off', 'lost', 40, 'card_declined'],
      ['open', 'open', 80, 'card_declined'],
    ],
  )
  const before = await reportOf(server, 'dunning', { as_of: inDays(-25) }, tenant)
  assert.deepEqual([before.totals.recovered.count, before.totals.lost.count, before.totals.open.count], [1, 0, 2])
  const window = await reportOf(server, 'dunning', { since: inDays(-5) }, tenant)
  assert.deepEqual(window.totals.failed, { count: 1, amount: 80 })
})

test('exclusions by reason equal the sums of their rows', async () => {
  const tenant = await server.anotherTenant('reasons')
  const events = [
    created('t1', { status: 'trialing', items: [item(10), item(5, { id: 'si_2', name: 'Seats' })] }),
    created('t2', { status: 'trialing', items: [item(7)], started_at: inDays(-3) }),
    created('free', { items: [item(0)] }),
    created('usd', { currency: 'USD' }),
    created('none', { currency: null }),
    invoice('paid', 'in', {
      subscription: 'unseen',
      status: 'paid',
      total: 3,
      updated_at: inDays(-9),
      paid_at: inDays(-9),
    }),
    created('counts'),
  ]
  await send(server, events, tenant)
  const queries: ReportQuery[] = [{}, { as_of: inDays(-5) }, { plan: 'Plan' }, { plan: 'Seats' }, { currency: 'USD' }]
  for (const query of queries) {
    const { by_reason, results, count } = await reportOf(server, 'exclusions', { page_size: 100, ...query }, tenant)
    assert.equal(results.length, count)
    const sums = new Map<string, number[]>()
    for (const { reason_code, excluded_mrr } of results) {
      const [items = 0, mrr = 0, unpriced = 0] = sums.get(reason_code) ?? []
      sums.set(reason_code, [items + 1, mrr + cents(excluded_mrr ?? 0), unpriced + (excluded_mrr === null ? 1 : 0)])
    }
    const shown = by_reason.map((row: Body) => [row.reason_code, [row.items, cents(row.excluded_mrr), row.unpriced]])
    assert.deepEqual(Object.fromEntries(shown), Object.fromEntries(sums), JSON.stringify(query))
  }
  const { by_reason } = await reportOf(server, 'exclusions', {}, tenant)
  assert.deepEqual([by_reason[0].reason_code, by_reason[0].items, by_reason[0].excluded_mrr], ['trialing', 3, 22])
})

test('consolidated: rates of each day, the effect of rates as fx, and currencies without a rate listed', async () => {
  const tenant = await server.anotherTenant('consolidated')
  const day = (days: number) => inDays(days).slice(0, 10)
  const csv = [
    'Date,USD,JPY,CYP,',
    // no rate for the day of the report, nor for ten days before
    `${day(-10)},1.25,160,N/A,`,
    `${day(-20)},1.6,N/A,0.58,`,
    `${day(-40)},2,200,0.58,`,
  ].join('\n')
  await server.admin.rates.import(tenant.id, csv)
  const imported = await server.admin.rates.import(tenant.id, csv)
  assert.deepEqual([imported.days, imported.currencies, imported.rates], [3, 2, 5])
  const events = [
    created('eur', { items: [item(10)] }),
    created('usd', { currency: 'USD', items: [item(100)] }),
    updated('usd', { currency: 'USD', updated_at: inDays(-15), items: [item(140)] }),
    created('jpy', { currency: 'JPY', items: [item(1000)] }),
    ended('jpy', inDays(-5), { currency: 'JPY', items: [item(1000)] }),
    created('brl', { currency: 'BRL', items: [item(33)] }),
    created('gone', { currency: 'CHF' }),
    ended('gone', inDays(-50), { currency: 'CHF' }),
  ]
  await send(server, events, tenant)
  const euro = await reportOf(server, 'consolidated', {}, tenant)
  const row = (currency: string) => euro.results.find((own: Body) => own.currency === currency)
  assert.deepEqual(euro.missing_rates, ['BRL'])
  assert.deepEqual(euro.older_rates, ['JPY', 'USD'])
  assert.deepEqual(
    [row('USD').own_mrr, row('USD').rate, row('USD').rate_date, row('USD').mrr],
    [140, 0.8, day(-10), 112],
  )
  // 100 at 1 / 2, then 40 at 1 / 1.6, finally 140 at 1 / 1.25
  assert.deepEqual([row('USD').opening_mrr, row('USD').expansion, row('USD').fx], [50, 25, 37])
  // 1,000 at 1 / 200, churned at 1 / 160
  assert.deepEqual([row('JPY').opening_mrr, row('JPY').churn, row('JPY').fx, row('JPY').mrr], [5, 6.25, 1.25, 0])
  assert.deepEqual([row('BRL').own_mrr, row('BRL').rate, row('BRL').mrr, row('CHF')], [33, null, null, undefined])
  for (const currency of ['EUR', 'USD', 'JPY', 'BRL']) {
    for (const as_of of [inDays(0), inDays(-12), inDays(-99)]) {
      const { results, mrr, movements } = await reportOf(server, 'consolidated', { currency, as_of }, tenant)
      const total = (field: string) => results.reduce((sum: number, own: Body) => sum + cents(own[field] ?? 0), 0)
      assert.equal(cents(mrr), total('mrr'))
      const { window_days: _, ...parts } = movements
      for (const part of Object.keys(parts)) assert.equal(cents(parts[part]), total(part), part)
      const { new: added, expansion, reactivation, contraction, churn, fx } = parts
      const real = added + expansion + reactivation - contraction - churn
      assert.equal(cents(parts.opening_mrr + real + fx), cents(parts.closing_mrr))
    }
  }
  const dollars = await reportOf(server, 'consolidated', { currency: 'USD' }, tenant)
  assert.equal(dollars.mrr, 140 + 12.5)
  // another tenant has no rates
  const other = await server.anotherTenant('without rates')
  await send(server, [created('usd', { currency: 'USD' })], other)
  assert.deepEqual((await reportOf(server, 'consolidated', {}, other)).missing_rates, ['USD'])
})

test('rates that are not in the format of the ECB are rejected with a message, and nothing is imported', async () => {
  const refusal = async (csv: string) =>
    server.admin.rates.import(server.tenant.id, csv).then(
      () => 'taken',
      (error: Error) => error.message,
    )
  assert.match(await refusal(''), /first line must list Date/)
  assert.match(await refusal('Datum;USD\n2026-01-01;1'), /first line must list Date/)
  assert.match(await refusal('Date,USD\n2026-02-30,1.1'), /line 2 starts with "2026-02-30"/)
  assert.match(await refusal('Date,USD\n2026-02-02,1.1\n2026-02-03,-1'), /line 3 has "-1" for USD/)
  for (const rate of ['0', '1e-39', '1e40'])
    assert.match(await refusal(`Date,USD\n2026-02-02,${rate}`), new RegExp(`line 2 has "${rate}" for USD`))
  assert.match(await refusal('Date,USD\n2026-02-02,N/A'), /contains no rate/)
  const { rows } = await server.pool.query('select count(*)::int as n from exchange_rates where day = $1', [
    '2026-02-02',
  ])
  assert.equal(rows[0].n, 0)
})
