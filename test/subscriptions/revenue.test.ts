import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { DAY_MS } from '../../src/domain/time.ts'
import { assertSums } from '../billing/sums.ts'
import { eventually } from '../eventually.ts'
import { makeSource } from '../inbound/source.ts'
import { sharedServer, type TestServer, type TestTenant } from '../server.ts'
import { ask, type BillingEvent, type Body, invoice, type ReportQuery, reportOf, send, shuffled } from './shop.ts'

let server: TestServer
before(async () => {
  server = await sharedServer()
})
after(() => server.close())

const cents = (amount: number) => Math.round(amount * 100) + 0
const credit = (id: string, data: object): BillingEvent => ({
  type: 'credit_note.created',
  data: { id, currency: 'EUR', ...data },
})
const paid = (id: string, at: string, total: number, changes = {}) =>
  invoice('paid', id, { status: 'paid', total, finalized_at: at, paid_at: at, updated_at: at, ...changes })

type Month = { date: string; invoiced: number; recognized: number; deferred: number }

async function months(tenant: TestTenant, from: string, to: string, query: ReportQuery = {}): Promise<Month[]> {
  return (await reportOf(server, 'revenue', { from, to, ...query }, tenant)).results
}

const byDate = (rows: Month[]) =>
  Object.fromEntries(rows.map(row => [row.date.slice(0, 7), [row.invoiced, row.recognized, row.deferred]]))

/** Asserts that the rows of every month add up to its figures. */
async function assertRows(tenant: TestTenant, rows: Month[], query: ReportQuery = {}): Promise<void> {
  for (const { date, ...figures } of rows) {
    const facts = await reportOf(server, 'revenue/invoices', { date, page_size: 100, ...query }, tenant)
    assert.deepEqual(facts.totals, figures, date)
    const sum = (name: string) => facts.results.reduce((total: number, row: Body) => total + cents(row[name]), 0)
    if (facts.pages > 1) continue
    for (const name of ['invoiced', 'recognized', 'deferred'] as const)
      assert.equal(sum(name), cents(figures[name]), `${date} ${name}`)
  }
}

test('an invoice is recognized by day over its service period, without tax', async () => {
  const tenant = await server.anotherTenant('revenue')
  const year = { period_start: '2025-01-01', period_end: '2026-01-01' }
  await send(
    server,
    [
      paid('year', '2025-01-01T00:00:00Z', 434.35, { tax: 69.35, ...year }),
      paid('once', '2025-02-10T12:00:00Z', 10),
      paid('lines', '2025-02-15T12:00:00Z', 59, {
        lines: [
          { amount: 28, period_start: '2025-02-15T10:00:00Z', period_end: '2025-03-15T10:00:00Z' },
          { amount: 31, period_start: '2025-03-01', period_end: '2025-03-31T23:59:59Z' },
        ],
      }),
      invoice('voided', 'void', { status: 'void', total: 7, finalized_at: '2025-02-01', updated_at: '2025-02-02' }),
      invoice('updated', 'lost', {
        ...{ status: 'uncollectible', total: 8, finalized_at: '2025-02-01', updated_at: '2025-02-02' },
      }),
      invoice('created', 'draft', { status: 'draft', total: 9, updated_at: '2025-02-02' }),
      paid('dollars', '2025-02-01T00:00:00Z', 11, { currency: 'USD' }),
    ],
    tenant,
  )
  const rows = await months(tenant, '2025-01-01', '2026-01-31')
  assert.deepEqual(byDate(rows.slice(0, 4)), {
    '2025-01': [365, 31, 334],
    // 28 days of the year, 10 once, 14 of 28 days
    '2025-02': [69, 28 + 10 + 14, 351],
    '2025-03': [0, 31 + 14 + 31, 275],
    '2025-04': [0, 30, 245],
  })
  assert.deepEqual(byDate(rows.slice(-2)), { '2025-12': [0, 31, 0], '2026-01': [0, 0, 0] })
  await assertRows(tenant, rows)
  const { results } = await reportOf(server, 'revenue/invoices', { date: '2025-03-20' }, tenant)
  assert.deepEqual(
    results.map((row: Body) => [row.invoice_id, row.service_start, row.service_end, row.amount, row.recognized]),
    [
      ['year', '2025-01-01', '2026-01-01', 365, 31],
      ['lines', '2025-02-15', '2025-03-15', 28, 14],
      ['lines', '2025-03-01', '2025-04-01', 31, 31],
    ],
  )
})

test('a credit note reduces deferred revenue first, then the revenue of its day; a refund changes nothing', async () => {
  const tenant = await server.anotherTenant('credit notes')
  const period = { period_start: '2025-01-01', period_end: '2025-03-02' }
  await send(
    server,
    [
      paid('i', '2025-01-01T00:00:00Z', 71.4, { ...period, tax: 11.4 }),
      {
        type: 'refund.created',
        data: { id: 're', invoice: 'i', currency: 'EUR', amount: 20, created_at: '2025-01-20' },
      },
    ],
    tenant,
  )
  const before = await months(tenant, '2025-01-01', '2025-03-31')
  assert.deepEqual(byDate(before), { '2025-01': [60, 31, 29], '2025-02': [0, 28, 1], '2025-03': [0, 1, 0] })
  // 29 are deferred on 1 February: all of them are canceled, and 11 of January are reversed
  await send(
    server,
    [
      credit('early', { invoice: 'i', amount: 47.6, tax: 7.6, created_at: '2025-02-01T09:00:00Z' }),
      credit('undone', { invoice: 'i', amount: 5, created_at: '2025-02-02T09:00:00Z' }),
      { type: 'credit_note.voided', data: { id: 'undone', invoice: 'i', currency: 'EUR', amount: 5, status: 'void' } },
    ],
    tenant,
  )
  const rows = await months(tenant, '2025-01-01', '2025-03-31')
  assert.deepEqual(byDate(rows), { '2025-01': [60, 31, 29], '2025-02': [-40, -11, 0], '2025-03': [0, 0, 0] })
  await assertRows(tenant, rows)
  // before the credit note was issued
  assert.deepEqual(byDate(await months(tenant, '2025-01-01', '2025-02-28', { as_of: '2025-02-01T08:00:00Z' })), {
    '2025-01': [60, 31, 29],
    '2025-02': [0, 1, 28],
  })
})

test('a credit note that arrives before its invoice counts', async () => {
  const tenant = await server.anotherTenant('early credit')
  await send(server, [credit('c', { invoice: 'i', amount: 4, created_at: '2025-01-03' })], tenant)
  await send(server, [paid('i', '2025-01-01T00:00:00Z', 10)], tenant)
  const rows = await months(tenant, '2025-01-01', '2025-01-31')
  assert.deepEqual(byDate(rows), { '2025-01': [6, 6, 0] })
  await assertRows(tenant, rows)
})

/** Cents by day of one amount: a list of days with their share. */
type Days = Map<number, number>

const dayOf = (zone: string, at: number) =>
  Date.parse(`${new Intl.DateTimeFormat('en-CA', { timeZone: zone }).format(at)}T00:00:00Z`) / DAY_MS
const halfUp = (value: number) => (value < 0 ? -Math.round(-value) : Math.round(value))

function spread(amount: number, first: number, end: number): Days {
  const days: Days = new Map()
  let given = 0
  for (let day = first; day < end; day++) {
    const upTo = halfUp((amount * (day - first + 1)) / (end - first))
    days.set(day, upTo - given)
    given = upTo
  }
  return days
}

type Period = { first: number; end: number; days: Days }
type Sale = { on: number; total: number; periods: Period[] }

const left = ({ days }: Period, day: number) =>
  [...days].reduce((sum, [on, amount]) => sum + (on >= day ? amount : 0), 0)

/** A credit note takes from what is open in each period, in proportion. */
function takeCredit(sale: Sale, amount: number, on: number): Sale {
  const open = new Map<string, { first: number; end: number; amount: number }>()
  for (const period of sale.periods) {
    if (period.end <= on) continue
    const first = Math.max(period.first, on)
    const key = `${first} ${period.end}`
    open.set(key, { first, end: period.end, amount: left(period, on) + (open.get(key)?.amount ?? 0) })
  }
  const found = [...open.values()].filter(period => period.amount > 0)
  const whole = found.reduce((sum, period) => sum + period.amount, 0)
  const canceled = Math.min(amount, whole)
  let [weight, given] = [0, 0]
  const added = found.map(({ first, end, amount: own }) => {
    weight += own
    const part = halfUp((canceled * weight) / whole) - given
    given += part
    return { first, end, days: spread(-part, first, end) }
  })
  added.push({ first: on, end: on + 1, days: new Map([[on, canceled - amount]]) })
  return { ...sale, periods: [...sale.periods, ...added] }
}

/** Deterministic random numbers. */
function randomNumbers(seed: number): (below: number) => number {
  let state = seed
  return below => {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff
    return Math.floor((state / 0x80000000) * below)
  }
}

for (const [seed, zone] of [
  [1, 'UTC'],
  [2, 'Europe/Berlin'],
  [3, 'America/New_York'],
] as const) {
  test(`revenue equals a model that adds up days (${zone})`, async () => {
    const tenant = await server.anotherTenant(`model ${zone}`)
    await server.admin.policies.set(tenant.id, { time_zone: zone })
    const random = randomNumbers(seed)
    const events: BillingEvent[] = []
    const invoicedOn = new Map<number, number>()
    const recognizedOn = new Map<number, number>()
    const add = (map: Map<number, number>, day: number, amount: number) => map.set(day, (map.get(day) ?? 0) + amount)
    const text = (at: number) => new Date(at).toISOString()
    for (let i = 0; i < 60; i++) {
      const at = Date.parse('2024-01-01') + random(400 * 24) * 3_600_000
      const lines = Array.from({ length: random(4) }, () => {
        const from = at + (random(60) - 20) * DAY_MS + random(24) * 3_600_000
        return { amount: random(30_000) - 3_000, from, to: from + (1 + random(random(3) === 0 ? 400 : 31)) * DAY_MS }
      })
      const sum = lines.reduce((total, line) => total + line.amount, 0)
      const total = lines.length === 0 ? random(10_000) : sum
      const tax = random(500)
      events.push(
        paid(`i${i}`, text(at), (total + tax) / 100, {
          tax: tax / 100,
          lines: lines.map(({ amount, from, to }) => ({
            ...{ amount: amount / 100, period_start: text(from), period_end: text(to) },
          })),
        }),
      )
      const on = dayOf(zone, at)
      const merged = new Map<string, { first: number; end: number; amount: number }>()
      for (const { amount, from, to } of lines) {
        const [first, end] = [dayOf(zone, from), Math.max(dayOf(zone, from) + 1, dayOf(zone, to))]
        const key = `${first} ${end}`
        merged.set(key, { first, end, amount: amount + (merged.get(key)?.amount ?? 0) })
      }
      if (lines.length === 0) merged.set('', { first: on, end: on + 1, amount: total })
      let sale: Sale = {
        ...{ on, total },
        periods: [...merged.values()].map(({ first, end, amount }) => ({
          ...{ first, end, days: spread(amount, first, end) },
        })),
      }
      add(invoicedOn, on, total)
      const notes = Array.from({ length: random(3) }, () => ({
        at: at + random(200 * 24) * 3_600_000,
        amount: 1 + random(Math.max(1, Math.abs(total))),
      })).sort((a, b) => a.at - b.at)
      for (const [n, note] of notes.entries()) {
        events.push(credit(`c${i}-${n}`, { invoice: `i${i}`, amount: note.amount / 100, created_at: text(note.at) }))
        const noted = dayOf(zone, note.at)
        sale = takeCredit(sale, note.amount, noted)
        add(invoicedOn, noted, -note.amount)
      }
      for (const { days } of sale.periods) for (const [day, amount] of days) add(recognizedOn, day, amount)
    }
    await send(server, shuffled(events, seed), tenant)
    const check = (rows: Month[], until = Number.POSITIVE_INFINITY) => {
      const within = (map: Map<number, number>, first: number, end: number) =>
        [...map].reduce((sum, [day, amount]) => sum + (day >= first && day < Math.min(end, until) ? amount : 0), 0)
      for (const [i, row] of rows.entries()) {
        const first = Date.parse(row.date) / DAY_MS
        const next = new Date(row.date)
        next.setUTCMonth(next.getUTCMonth() + 1)
        const end = Date.parse(next.toISOString()) / DAY_MS
        assert.deepEqual(
          [cents(row.invoiced), cents(row.recognized), cents(row.deferred)],
          [
            within(invoicedOn, first, end),
            within(recognizedOn, first, end),
            within(invoicedOn, Number.NEGATIVE_INFINITY, end) - within(recognizedOn, Number.NEGATIVE_INFINITY, end),
          ],
          `${i} ${row.date}`,
        )
      }
    }
    await assertSums(server, tenant)
    check(await months(tenant, '2023-11-01', '2026-09-30'))
    const late = await months(tenant, '2024-06-01', '2024-09-30')
    check(late)
    await assertRows(tenant, late)
    // after all credit notes, in the middle of a month: the same from the lines instead of the sums
    const asOf = '2026-01-15T12:00:00Z'
    const then = await months(tenant, '2023-11-01', '2026-01-31', { as_of: asOf })
    check(then, dayOf(zone, Date.parse(asOf)) + 1)
    await assertRows(tenant, then.slice(-2), { as_of: asOf })
  })
}

test('after a change of the time zone revenue is computed again', async () => {
  const tenant = await server.anotherTenant('moved zone')
  const period = { period_start: '2025-01-31T23:00:00Z', period_end: '2025-02-28T23:00:00Z' }
  await send(server, [paid('i', '2025-01-31T23:00:00Z', 28, period)], tenant)
  assert.deepEqual(byDate(await months(tenant, '2025-01-01', '2025-02-28')), {
    '2025-01': [28, 1, 27],
    '2025-02': [0, 27, 0],
  })
  await server.admin.policies.set(tenant.id, { time_zone: 'Europe/Berlin' })
  await eventually('revenue in the new time zone', async () => {
    const { warnings } = await reportOf(server, 'revenue', {}, tenant)
    return warnings.length === 0
  })
  assert.deepEqual(byDate(await months(tenant, '2025-01-01', '2025-02-28')), {
    '2025-01': [0, 0, 0],
    '2025-02': [28, 28, 0],
  })
})

test("a Stripe invoice is recognized over its lines' periods, after discounts and without tax", async () => {
  const tenant = await server.anotherTenant('stripe revenue')
  const stripe = await makeSource(server, { tenant: tenant.id })
  const at = (day: string) => Date.parse(day) / 1000
  const event = (type: string, object: object) => ({
    ...{ id: `evt_${type}`, object: 'event', created: at('2025-01-16'), livemode: true, type },
    data: { object: { created: at('2025-01-16'), currency: 'eur', ...object } },
  })
  const line = (amount: number, start: string, end: string, more = {}) => ({
    ...{ amount, period: { start: at(start), end: at(end) }, ...more },
  })
  await stripe.post(
    event('invoice.paid', {
      ...{
        id: 'in_1',
        object: 'invoice',
        status: 'paid',
        total: 5950,
        total_taxes: [{ amount: 950 }],
        customer: 'cus_1',
      },
      status_transitions: { finalized_at: at('2025-01-16'), paid_at: at('2025-01-16') },
      lines: {
        data: [
          line(-1500, '2025-01-16', '2025-01-31'),
          line(6200, '2025-01-16', '2025-02-16', { discount_amounts: [{ amount: 700 }] }),
          line(1000, '2025-01-16', '2025-01-16'),
        ],
      },
    }),
  )
  await stripe.post(
    event('credit_note.created', {
      ...{
        id: 'cn_1',
        object: 'credit_note',
        invoice: 'in_1',
        status: 'issued',
        total: 1190,
        total_excluding_tax: 1000,
      },
      effective_at: at('2025-03-01'),
    }),
  )
  await server.settled()
  const rows = await months(tenant, '2025-01-01', '2025-03-31')
  // 16 of 31 days of 55 are 28.39, less 15, and 10 at once
  assert.deepEqual(byDate(rows), { '2025-01': [50, 23.39, 26.61], '2025-02': [0, 26.61, 0], '2025-03': [-10, -10, 0] })
  await assertRows(tenant, rows)
})

test("a Paddle transaction is recognized over its billing period and its prorations' periods", async () => {
  const tenant = await server.anotherTenant('paddle revenue')
  const paddle = await makeSource(server, { tenant: tenant.id, preset: 'paddle' })
  const event = (type: string, occurred_at: string, data: object) => ({
    ...{ event_id: `evt_${type}_${occurred_at}`, event_type: type, occurred_at, notification_id: 'ntf_1' },
    data: { currency_code: 'EUR', customer_id: 'ctm_1', created_at: occurred_at, ...data },
  })
  const period = (starts_at: string, ends_at: string) => ({ starts_at, ends_at })
  const price = (id: string, cycle: object | null) => ({ price: { id, billing_cycle: cycle } })
  const line = (price_id: string, subtotal: number, discount: number, tax: number, more = {}) => {
    const total = subtotal - discount + tax
    const totals = { subtotal, discount, tax, total }
    return {
      price_id,
      quantity: 1,
      totals: Object.fromEntries(Object.entries(totals).map(([name, n]) => [name, String(n)])),
      ...more,
    }
  }
  const sum = (lines: ReturnType<typeof line>[], name: string) =>
    String(lines.reduce((all, { totals }) => all + Number(totals[name]), 0))
  // a plan for a month after a discount, an upgrade for the rest of the month, and a setup fee
  const lines = [
    line('pri_plan', 3600, 500, 589),
    line('pri_seat', 1600, 0, 304, {
      proration: { rate: '0.5', billing_period: period('2025-01-16T00:00:00Z', '2025-02-01T00:00:00Z') },
    }),
    line('pri_setup', 1000, 0, 190),
  ]
  const totals = { total: sum(lines, 'total'), tax: sum(lines, 'tax'), grand_total: sum(lines, 'total'), balance: '0' }
  const transaction = {
    ...{ id: 'txn_1', subscription_id: 'sub_1', status: 'completed', billed_at: '2025-01-10T00:00:00Z' },
    billing_period: period('2025-01-10T00:00:00Z', '2025-02-10T00:00:00Z'),
    items: [
      price('pri_plan', { interval: 'month', frequency: 1 }),
      price('pri_seat', { interval: 'month', frequency: 1 }),
      price('pri_setup', null),
    ],
    details: { totals, line_items: lines },
    payments: [],
  }
  const adjustment = {
    ...{ id: 'adj_1', action: 'credit', status: 'approved', transaction_id: 'txn_1', subscription_id: 'sub_1' },
    ...{ totals: { subtotal: '300', tax: '57', total: '357' }, created_at: '2025-03-01T00:00:00Z' },
  }
  const events = [
    event('transaction.completed', '2025-01-10T00:00:00Z', transaction),
    event('adjustment.created', '2025-03-01T00:00:00Z', adjustment),
    // not approved, so nothing is credited
    event('adjustment.created', '2025-03-02T00:00:00Z', { ...adjustment, id: 'adj_2', status: 'pending_approval' }),
    event('adjustment.updated', '2025-03-03T00:00:00Z', { ...adjustment, id: 'adj_3', status: 'rejected' }),
    // a draft is no revenue
    event('transaction.created', '2025-01-11T00:00:00Z', {
      ...transaction,
      id: 'txn_2',
      status: 'draft',
      billed_at: null,
    }),
  ]
  for (const one of events) assert.equal((await paddle.post(one)).status, 200)
  await server.settled()
  const rows = await months(tenant, '2025-01-01', '2025-03-31')
  // 22 of 31 days of 31, all 16 days of 16, and 10 at once
  assert.deepEqual(byDate(rows), { '2025-01': [57, 48, 9], '2025-02': [0, 9, 0], '2025-03': [-3, -3, 0] })
  await assertRows(tenant, rows)
  const { results } = await reportOf(server, 'revenue/invoices', { date: '2025-01-01' }, tenant)
  assert.deepEqual(
    results.map((row: Body) => [row.invoice_id, row.subscription_id, row.customer, row.service_start, row.service_end]),
    [
      ['txn_1', 'sub_1', 'ctm_1', '2025-01-10', '2025-02-10'],
      ['txn_1', 'sub_1', 'ctm_1', '2025-01-16', '2025-02-01'],
      ['txn_1', 'sub_1', 'ctm_1', '2025-01-10', '2025-01-11'],
    ],
  )
})

test("a Chargebee invoice is recognized over its lines' periods, after discounts and without tax", async () => {
  for (const price_type of ['tax_exclusive', 'tax_inclusive']) {
    const isInclusive = price_type === 'tax_inclusive'
    const tenant = await server.anotherTenant(`chargebee revenue ${price_type}`)
    const chargebee = await makeSource(server, { tenant: tenant.id, preset: 'chargebee' })
    const at = (day: string) => Date.parse(day) / 1000
    let version = 0
    const event = (event_type: string, day: string, content: object) => ({
      ...{ id: `ev_${++version}`, object: 'event', api_version: 'v2', event_type, occurred_at: at(day) },
      content: Object.fromEntries(
        Object.entries(content).map(([name, object]) => [
          name,
          {
            ...object,
            object: name,
            currency_code: 'EUR',
            customer_id: 'cb_1',
            updated_at: at(day),
            resource_version: version,
          },
        ]),
      ),
    })
    // one line with tax, one without: inclusive tax belongs to the first only
    const line = (
      id: string,
      net: number,
      tax: number,
      discount_amount: number,
      date_from: string,
      date_to: string,
    ) => ({
      ...{ id, entity_id: id, entity_type: 'plan_item_price', quantity: 1, discount_amount },
      ...{ amount: net + discount_amount + (isInclusive ? tax : 0), tax_amount: tax, is_taxed: tax > 0 },
      ...{ date_from: at(date_from), date_to: at(date_to) },
    })
    const invoice = {
      ...{
        id: 'inv_1',
        subscription_id: 'cbsub_1',
        status: 'paid',
        price_type,
        date: at('2025-01-16'),
        paid_at: at('2025-01-16'),
      },
      ...{ total: 10_190, tax: 1_190, amount_paid: 10_190, amount_due: 0 },
      line_items: [
        line('plan', 6_200, 1_190, 800, '2025-01-16', '2025-02-16'),
        line('support', 1_800, 0, 0, '2025-01-16', '2025-01-31'),
        line('setup', 1_000, 0, 0, '2025-01-16', '2025-01-16'),
      ],
    }
    const note = {
      ...{
        id: 'cn_1',
        reference_invoice_id: 'inv_1',
        type: 'refundable',
        status: 'refund_due',
        date: at('2025-02-09'),
      },
      ...{ total: 476, taxes: [{ name: 'VAT', amount: 76 }] },
    }
    const events = [
      event('payment_succeeded', '2025-01-16', { invoice }),
      event('credit_note_created', '2025-02-09', { credit_note: note }),
      event('credit_note_created', '2025-02-10', { credit_note: { ...note, id: 'cn_2' } }),
      event('credit_note_updated', '2025-02-11', { credit_note: { ...note, id: 'cn_2', status: 'voided' } }),
      event('invoice_generated', '2025-01-17', { invoice: { ...invoice, id: 'inv_2' } }),
      event('invoice_updated', '2025-01-18', { invoice: { ...invoice, id: 'inv_2', status: 'voided' } }),
    ]
    for (const one of shuffled(events, 4)) assert.equal((await chargebee.post(one)).status, 200)
    await server.settled()
    const rows = await months(tenant, '2025-01-01', '2025-03-31')
    // 2 a day for 31 days, 18 and 10 in January; on 9 February, 14 are left: 4 of them are canceled
    const expected = { '2025-01': [90, 60, 30], '2025-02': [-4, 26, 0], '2025-03': [0, 0, 0] }
    assert.deepEqual(byDate(rows), expected, price_type)
    await assertRows(tenant, rows)
  }
})

test('the report validates its parameters and returns CSV', async () => {
  const errors = async (report: string, query: ReportQuery) => {
    const { status, body } = await ask(server, report, query)
    return [status, body.errors?.map((error: Body) => error.pointer)]
  }
  assert.deepEqual(await errors('revenue', {}), [400, ['/currency']])
  assert.deepEqual(await errors('revenue', { currency: 'EUR', from: '2025-02-01', to: '2025-01-31' }), [400, ['/from']])
  assert.deepEqual(await errors('revenue', { currency: 'EUR', plan: 'Team' }), [400, ['/plan']])
  assert.deepEqual(await errors('revenue/invoices', { currency: 'EUR' }), [400, ['/date']])
  assert.deepEqual(await errors('revenue/invoices', { currency: 'EUR', date: '2099-01-01' }), [200, undefined])
  const { body } = await ask(
    server,
    'revenue',
    { currency: 'EUR', from: '2025-01-01', to: '2025-01-31' },
    { headers: { accept: 'text/csv' } },
  )
  assert.equal(body, 'date,invoiced,recognized,deferred\r\n2025-01-01,0.00,0.00,0.00\r\n')
})
