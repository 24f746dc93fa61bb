// Half of a history arrives, the first months are closed, and the remainder arrives late. Figures as closed equal the books that the
// company had when it closed the month; restated figures equal its final books; restatements explain the difference.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { isLong } from '../long.ts'
import { sharedServer, type TestServer, type TestTenant } from '../server.ts'
import { business } from './business.ts'
import { iso, later } from './calendar.ts'
import { customerOf, sendHistory } from './comparison.ts'
import { type Books, keepBooks } from './ledger.ts'
import { major, sum } from './money.ts'
import { chance } from './random.ts'
import { SHAPES } from './shapes.ts'

// biome-ignore lint/suspicious/noExplicitAny: answers are looked into freely
type Body = any

let server: TestServer
before(async () => {
  server = await sharedServer()
})
after(() => server.close())

/** Disabled: what Kontor knows in advance. Half of a history would already contain what happens later. */
const UNANNOUNCED = {
  ...{ trials: false, suspendedTrials: false, coupons: false, customerCoupons: false, stackedCoupons: false },
  ...{ onceCoupons: false, resumesAt: false, scheduledCancellations: false, cancelDates: false },
}

/** The customer of an event, and its time in seconds. */
const OF_EVENT: Record<string, (event: Body) => [customer: string | null, at: number]> = {
  canonical: ({ payload, occurred_at }) => [payload.customer ?? null, Date.parse(occurred_at) / 1000],
  paddle: ({ event_type, data, occurred_at }) => [
    event_type.startsWith('customer.') ? data.id : (data.customer_id ?? null),
    Math.floor(Date.parse(occurred_at) / 1000),
  ],
  chargebee: ({ content, occurred_at }) => [content.customer?.id ?? null, occurred_at],
}

const HISTORIES = [
  [3, 'canonical', 24],
  [8, 'paddle', 14],
  [5, 'chargebee', 14],
] as const

for (const [seed, name, accounts] of HISTORIES.slice(0, isLong ? undefined : 1)) {
  test(`months are closed in the middle of the history of seed ${seed}, sent as ${name}`, async () => {
    const tenant = await server.anotherTenant(`books ${seed}`)
    const shape = SHAPES[name]!
    const history = business({
      ...{ seed, months: 4, accounts, currencies: ['EUR', 'JPY'] },
      features: { ...shape.features, ...UNANNOUNCED },
    })
    const random = chance(`late ${seed}`)
    const arrivesUntil = new Map<string, number>()
    const isEarly = (customer: string | null, at: number) => {
      if (customer === null) return true
      const until = arrivesUntil.get(customer) ?? random.between(history.from, history.until)
      arrivesUntil.set(customer, until)
      return at <= until
    }
    const ofEvent = (event: Body) => isEarly(...OF_EVENT[name]!(event))
    const known = keepBooks(history.facts.filter(fact => isEarly(customerOf(fact), fact.at)))
    const final = keepBooks(history.facts)

    await sendHistory(server, history, shape, { tenant, shuffled: seed, only: ofEvent })
    const months = [1, 2, 3].map(n => ({
      starts: later(history.from, 'month', n - 1),
      ends: later(history.from, 'month', n),
    }))
    for (const { starts } of months) await server.admin.books.close(tenant.id, iso(starts).slice(0, 7))
    const { hasPlanNames } = shape
    const asClosed = { tenant, basis: 'as_closed', currencies: history.currencies, months, hasPlanNames }
    await compare({ ...asClosed, books: known })
    await sendHistory(server, history, shape, { tenant, shuffled: seed, only: event => !ofEvent(event) })
    await compare({ ...asClosed, books: known })
    await compare({ ...asClosed, basis: 'restated', books: final })

    let restated = 0
    for (const { starts, ends } of months) {
      const month = iso(starts).slice(0, 7)
      const { results, pages } = await ask(tenant, 'books', { month, page_size: '100' })
      assert.ok(pages <= 1)
      restated += results.length
      for (const currency of history.currencies)
        for (const customer of new Set<string>([...final.inCurrency(currency).map(account => account.customer)])) {
          const mrr = (books: Books) => {
            const account = books.inCurrency(currency).find(own => own.customer === customer)
            return account ? books.mrrAt(account, ends - 1) : 0
          }
          const own = results.filter((row: Body) => row.customer === customer && row.currency === currency)
          const amount = sum(own.map((row: Body) => row.amount))
          const expected = major(mrr(final), currency) - major(mrr(known), currency)
          assert.ok(Math.abs(amount - expected) < 1e-6, `${month} ${customer}: ${amount}, not ${expected}`)
        }
    }
    assert.ok(restated > 4)
  })
}

async function ask(tenant: TestTenant, report: string, query: Record<string, string>): Promise<Body> {
  const path = `/v1/subscriptions/${report}?${new URLSearchParams(query)}`
  const { status, body } = await server.request(path, { key: tenant.privateKey })
  assert.equal(status, 200, JSON.stringify(body))
  return body
}

async function compare(of: {
  tenant: TestTenant
  basis: string
  currencies: string[]
  months: { starts: number; ends: number }[]
  books: Books
  hasPlanNames: boolean
}): Promise<void> {
  const { tenant, basis, currencies, months, books, hasPlanNames } = of
  const same = (theirs: unknown, ours: unknown, what: string) => {
    if (typeof theirs === 'number' && typeof ours === 'number') assert.ok(Math.abs(theirs - ours) < 1e-6, what)
    else assert.equal(theirs, ours, what)
  }
  for (const currency of currencies) {
    const money = (amount: number) => major(amount, currency)
    const [from, to] = [months[0]!.starts, months.at(-1)!.ends - 1]
    const range = { currency, basis, from: iso(from), to: iso(to), as_of: iso(to + 1) }
    const { results } = await ask(tenant, 'history', range)
    for (const [i, row] of books.historyRows(currency, from, to, 'month').entries()) {
      const { start, activeAccounts, activeSubscriptions, committed: _, opening: __, ...more } = row
      const { newAccounts, churnedAccounts, rates, retention: ___, ...amounts } = more
      const what = `${basis} ${currency} ${iso(start)}`
      for (const [name, amount] of Object.entries(amounts)) same(results[i][name], money(amount), `${what} ${name}`)
      const counts = { active_accounts: activeAccounts, active_subscriptions: activeSubscriptions }
      for (const [name, count] of Object.entries({
        ...counts,
        new_accounts: newAccounts,
        churned_accounts: churnedAccounts,
      }))
        same(results[i][name], count, `${what} ${name}`)
      const { ltv, ...fractions } = rates
      for (const [name, rate] of Object.entries(fractions)) same(results[i].rates[name], rate, `${what} ${name}`)
      same(results[i].rates.ltv, ltv && ltv * money(1), `${what} ltv`)
    }
    for (const { starts, ends } of months) {
      const query = { currency, basis, as_of: iso(ends - 1), page_size: '100' }
      const overview = await ask(tenant, 'overview', query)
      const what = `${basis} ${currency} ${query.as_of}`
      same(overview.mrr, money(books.totalsAt(currency, ends - 1).mrr), what)
      const accounts = new Map<string, number>(overview.accounts.results.map((row: Body) => [row.customer, row.mrr]))
      for (const account of books.inCurrency(currency))
        same(accounts.get(account.customer) ?? 0, money(books.mrrAt(account, ends - 1)), `${what} ${account.customer}`)
      const moved = await ask(tenant, 'movements', { ...query, since: iso(starts - 1), until: iso(ends - 1) })
      const { opening, closing, ...flow } = books.flow(currency, starts - 1, ends - 1)
      for (const [name, amount] of Object.entries({ ...flow, opening_mrr: opening, closing_mrr: closing }))
        same(moved.totals[name], money(amount), `${what} ${name}`)
      same(moved.count, books.movementsIn(currency, starts - 1, ends - 1).length, `${what} movements`)
      const { results: plans } = await ask(tenant, 'breakdown', { ...query, by: 'plan' })
      for (const part of hasPlanNames ? books.breakdown(currency, ends - 1, 'plan') : [])
        same(plans.find((row: Body) => row.plan === part.key)?.mrr, money(part.mrr), `${what} ${part.key}`)
      const { cohorts } = await ask(tenant, 'retention', query)
      for (const row of books.retention(currency, ends - 1)) {
        const cohort = iso(row.cohort).slice(0, 7)
        const other = cohorts.results.find((own: Body) => own.cohort === cohort && own.month === row.month)
        same(other?.mrr, money(row.mrr), `${what} ${cohort} ${row.month}`)
        same(other?.gross_mrr, money(row.grossMrr), `${what} ${cohort} ${row.month} gross`)
      }
    }
  }
}
