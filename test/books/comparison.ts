// Sends a history to a server, and finds where its reports and the company's own books differ.
import { makeSource } from '../inbound/source.ts'
import type { TestServer, TestTenant } from '../server.ts'
import type { Business } from './business.ts'
import { DAY, iso, later } from './calendar.ts'
import type { Books } from './ledger.ts'
import type { Fact } from './model.ts'
import { major } from './money.ts'
import { shuffle } from './random.ts'
import type { Shape } from './shapes.ts'

// biome-ignore lint/suspicious/noExplicitAny: answers are looked into freely
type Body = any

type Difference = { as_of: string; currency: string; what: string; books: unknown; report: unknown }

type Comparison = {
  differences: Difference[]
  /** Features that the reports do not support. */
  absent: Set<string>
}

/** Sends every body to the endpoint of its type, shuffled if there is a seed. */
export async function sendHistory(
  server: TestServer,
  history: Business,
  shape: Shape,
  {
    shuffled,
    tenant = server.tenant,
    only = () => true,
  }: { shuffled?: number; tenant?: TestTenant; only?: (event: unknown) => boolean } = {},
): Promise<void> {
  for (const { preset, bodies } of shape.deliveries(history, events =>
    (shuffled === undefined ? events : shuffle(events, shuffled)).filter(only),
  )) {
    const source = await makeSource(server, {
      tenant: tenant.id,
      rate_limit: { events: 1_000_000, per_seconds: 1 },
      max_body_bytes: 8 * 1024 * 1024,
      ...(preset && { preset }),
    })
    for (const body of bodies) {
      const { status, body: answer } = await source.post(body)
      if (status !== 200) throw new Error(`answered ${status} ${JSON.stringify(answer)}`)
    }
  }
  await server.settled()
}

/** Null: of no customer. */
export function customerOf(fact: Fact): string | null {
  if (fact.kind === 'coupon') return null
  if (fact.kind === 'customer') return fact.after.id
  if (fact.kind === 'discount') return fact.discount.customer
  if (fact.kind === 'payment') return fact.payment.customer
  if (fact.kind === 'refund' || fact.kind === 'dispute') return fact.after.payment.customer
  if (fact.kind === 'credit_note') return fact.after.invoice.customer
  return fact.after.customer
}

type Month = {
  books: Books
  shape: Shape
  currency: string
  asOf: number
  report: (name: string, more?: string) => Promise<Body>
  compare: (what: string, ours: unknown, theirs: unknown) => void
}

/** At the last second of every month, in every currency. */
export async function compareAll(
  server: TestServer,
  history: Business,
  { books, shape }: { books: Books; shape: Shape },
): Promise<Comparison> {
  const differences: Difference[] = []
  const absent = new Set<string>()
  for (const currency of history.currencies)
    for (let at = later(history.from, 'month', 1); at <= history.until; at = later(at, 'month', 1)) {
      const asOf = at - 1
      const report = async (name: string, more = ''): Promise<Body> => {
        const path = `/v1/subscriptions/${name}?currency=${currency}&as_of=${iso(asOf)}&page_size=100${more}`
        const { status, body } = await server.request(path, { key: server.tenant.privateKey })
        if (status === 404) return undefined
        if (status !== 200) throw new Error(`${path} answered ${status} ${JSON.stringify(body)}`)
        return body
      }
      const compare = (what: string, ours: unknown, theirs: unknown) => {
        if (theirs === undefined) absent.add(what.replace(/ .*/, ''))
        else if (!isSame(ours, theirs))
          differences.push({ as_of: iso(asOf), currency, what, books: ours, report: theirs })
      }
      const month: Month = { books, shape, currency, asOf, report, compare }
      await compareOverview(month)
      await compareAccounts(month)
      await compareExclusions(month)
      await compareAttention(month)
      await compareMovements(month)
      await compareAcquisition(month)
      await compareBreakdowns(month)
      if (at === history.until) await compareHistory(month, history)
    }
  return { differences, absent }
}

async function compareOverview({ books, currency, asOf, report, compare }: Month): Promise<void> {
  const money = (amount: number) => major(amount, currency)
  const opens = asOf - 30 * DAY
  const totals = books.totalsAt(currency, asOf)
  const overview = await report('overview')
  compare('mrr', money(totals.mrr), overview.mrr)
  compare('arr', money(totals.arr), overview.arr)
  compare('committed_mrr', money(totals.committed), overview.committed_mrr)
  compare('active_accounts', totals.activeAccounts, overview.active_accounts)
  compare('active_subscriptions', totals.activeSubscriptions, overview.active_subscriptions)
  const { opening, closing, ...flow } = books.flow(currency, opens, asOf)
  for (const [name, amount] of Object.entries({ opening_mrr: opening, closing_mrr: closing, ...flow }))
    compare(`movements.${name}`, money(amount), overview.movements[name])
  const invoiced = books.invoiced(currency, opens, asOf)
  compare('invoiced.amount', money(invoiced.amount), overview.invoiced.amount)
  compare('invoiced.count', invoiced.count, overview.invoiced.count)
  const { count, oneOff, ...cash } = books.collected(currency, opens, asOf)
  compare('collected.count', count, overview.collected.count)
  for (const [name, amount] of Object.entries({ ...cash, one_off: oneOff }))
    compare(`collected.${name}`, money(amount), overview.collected[name])
  const { ltv, ...rates } = books.rates(currency, asOf)
  for (const [name, rate] of Object.entries(rates)) compare(`rates.${name}`, rate, overview.rates?.[name])
  compare('rates.ltv', ltv && ltv * major(1, currency), overview.rates?.ltv)
}

async function compareAccounts({ books, currency, asOf, report, compare }: Month): Promise<void> {
  const theirs = new Map<string, number>()
  for (const row of await rowsOf(report, 'overview', 'accounts', 'page')) theirs.set(row.customer, row.mrr)
  // a discount of the customer may be older than the first subscription
  for (const account of books.inCurrency(currency))
    if (account.steps.some(({ at, values }) => at <= asOf && values.size > 0))
      compare(
        `account ${account.customer} mrr`,
        major(books.mrrAt(account, asOf), currency),
        theirs.get(account.customer) ?? null,
      )
}

async function compareExclusions({ books, shape, currency, asOf, report, compare }: Month): Promise<void> {
  const name = (subscription: string, item: string, reason: string) =>
    shape.hasItemIds ? `${subscription} ${item} ${reason}` : `${subscription} ${reason}`
  const rows = await rowsOf(report, 'overview', 'exclusions', 'exclusion_page')
  const theirs = rows
    // also of other currencies, with only the reason
    .filter(
      row => row.reason_code !== 'other_currency' && !(row.reason_code === 'test_mode' && row.excluded_mrr === null),
    )
    .map(row => name(row.subscription_id, row.item_id, row.reason_code))
  const ours = books
    .exclusionsAt(currency, asOf)
    .map(({ subscription, item, reason }) => name(subscription.id, item.id, reason!))
  compareLists('exclusion', ours, theirs, compare)
}

async function compareAttention({ books, shape, currency, asOf, report, compare }: Month): Promise<void> {
  const list = (name: string, page: string) => rowsOf(report, 'attention', name, page)
  const issues = (await list('payment_issues', 'issue_page')).map(
    row => `${row.invoice_id ?? row.subscription_id} ${row.issue_type} ${row.amount_remaining ?? 0}`,
  )
  const ours = books.paymentIssues(currency, asOf).map(row => {
    const name = row.invoice ? shape.invoiceName(row.invoice) : row.subscription
    return `${name} ${row.type} ${major(row.amountRemaining, currency)}`
  })
  compareLists('payment_issue', ours, issues, compare)
  const dated = (rows: { subscription: string; at: number }[]) => rows.map(row => `${row.subscription} ${iso(row.at)}`)
  const renewals = await list('renewals', 'renewal_page')
  compareLists(
    'renewal',
    dated(books.renewals(currency, asOf, 30)),
    renewals.map(row => `${row.subscription_id} ${row.renews_at}`),
    compare,
  )
  const cancellations = await list('cancellations', 'cancel_page')
  compareLists(
    'cancellation',
    dated(books.cancellations(currency, asOf, 30)),
    cancellations.map(row => `${row.subscription_id} ${row.cancels_at}`),
    compare,
  )
  const { rows, unsure } = books.upcoming(currency, asOf, 30)
  const upcoming = await list('upcoming_billing', 'billing_page')
  compareLists(
    'upcoming',
    dated(rows),
    upcoming.filter(row => !unsure.has(row.subscription_id)).map(row => `${row.subscription_id} ${row.bills_at}`),
    compare,
  )
}

async function compareMovements({ books, currency, asOf, report, compare }: Month): Promise<void> {
  const since = asOf - 30 * DAY
  const window = `&since=${iso(since)}&until=${iso(asOf)}`
  const theirs = new Map<string, Body>()
  for (const row of await rowsOf(report, 'movements', 'movements', 'page', window))
    theirs.set(`${row.customer} ${row.occurred_at} ${row.movement_type} ${row.mrr_delta}`, row)
  const ours = books.movementsIn(currency, since, asOf)
  const keyOf = (row: (typeof ours)[number]) =>
    `${row.customer} ${iso(row.at)} ${row.type} ${major(row.after - row.before, currency)}`
  compareLists('movement', ours.map(keyOf), [...theirs.keys()], compare)
  for (const row of ours) {
    const match = theirs.get(keyOf(row))
    if (match && !row.causes.has(match.cause)) compare(`cause of ${keyOf(row)}`, [...row.causes], match.cause)
  }
}

async function compareAcquisition({ books, currency, asOf, report, compare }: Month): Promise<void> {
  const rows = await rowsOf(report, 'acquisition', 'sources', 'page', '&horizon=60')
  const keyOf = (row: Body) => `${row.source} ${row.medium || '-'} ${row.campaign || '-'}`
  const theirs = new Map(rows.map(row => [keyOf(row), row]))
  for (const row of books.acquisition(currency, asOf, 60)) {
    const other = theirs.get(keyOf(row))
    const name = `acquisition ${keyOf(row)}`
    compare(`${name} mrr`, major(row.mrr, currency), other?.mrr ?? 0)
    compare(`${name} cohort_accounts`, row.cohortAccounts, other?.cohort_accounts ?? 0)
    if (row.retainedMrr !== null)
      compare(`${name} retained_mrr`, major(row.retainedMrr, currency), other?.retained_mrr ?? null)
  }
}

/** Intervals of several units have other names, so only single units are compared. */
async function compareBreakdowns({ books, shape, currency, asOf, report, compare }: Month): Promise<void> {
  for (const by of ['plan', 'interval', 'source', 'country'] as const) {
    if (by === 'plan' && !shape.hasPlanNames) continue
    const answer = await report('breakdown', `&by=${by}`)
    const theirs = new Map<string, Body>((answer?.results ?? []).map((row: Body) => [row[by], row]))
    for (const { key, mrr, accounts, subscriptions } of books.breakdown(currency, asOf, by)) {
      const name = by === 'interval' ? key.replace(/^1 /, '') : key
      if (by === 'interval' && name.includes(' ')) continue
      const other = answer && (theirs.get(name) ?? { mrr: 0, accounts: 0, subscriptions: 0 })
      compare(`breakdown.${by} ${name} mrr`, major(mrr, currency), other?.mrr)
      compare(`breakdown.${by} ${name} accounts`, accounts, other?.accounts)
      compare(`breakdown.${by} ${name} subscriptions`, subscriptions, other?.subscriptions)
    }
  }
}

async function compareHistory({ books, currency, asOf, report, compare }: Month, { from }: Business): Promise<void> {
  const money = (amount: number) => major(amount, currency)
  for (const interval of ['day', 'week', 'month'] as const) {
    const months = interval === 'month' ? 3 : null
    const query = `&from=${iso(from)}&to=${iso(asOf)}&interval=${interval}${months ? `&retention_months=${months}` : ''}`
    const answer = await report('history', query)
    const theirs = new Map<string, Body>(
      (answer?.results ?? []).map((row: Body) => [iso(Date.parse(row.date) / 1000), row]),
    )
    const rows = books.historyRows(currency, from, asOf, interval, asOf)
    for (const row of rows) {
      const { start, activeAccounts, activeSubscriptions, committed: _, opening: __, ...more } = row
      const { newAccounts, churnedAccounts, rates, retention, ...amounts } = more
      const other = answer && (theirs.get(iso(start)) ?? {})
      const name = `history.${interval} ${iso(start).slice(0, 10)}`
      compare(`${name} active_accounts`, activeAccounts, other?.active_accounts)
      compare(`${name} active_subscriptions`, activeSubscriptions, other?.active_subscriptions)
      compare(`${name} new_accounts`, newAccounts, other?.new_accounts)
      compare(`${name} churned_accounts`, churnedAccounts, other?.churned_accounts)
      const { ltv, ...fractions } = rates
      for (const [field, rate] of Object.entries(fractions)) compare(`${name} ${field}`, rate, other?.rates?.[field])
      compare(`${name} ltv`, ltv && ltv * major(1, currency), other?.rates?.ltv)
      // the last bucket is still open, so its months are counted back from the second before midnight
      if (months && row !== rows.at(-1))
        for (const [field, rate] of Object.entries(retention(months)))
          compare(`${name} retention ${field}`, rate, other?.retention?.[field])
      for (const [field, amount] of Object.entries(amounts)) compare(`${name} ${field}`, money(amount), other?.[field])
    }
  }
  const cohorts = await rowsOf(report, 'retention', 'cohorts', 'page', '&months=60')
  const theirs = new Map(cohorts.map(row => [`${row.cohort} ${row.month}`, row]))
  for (const row of books.retention(currency, asOf)) {
    const other = theirs.get(`${iso(row.cohort).slice(0, 7)} ${row.month}`)
    const name = `retention ${iso(row.cohort).slice(0, 7)} ${row.month}`
    compare(`${name} starting_accounts`, row.startingAccounts, other?.starting_accounts ?? 0)
    compare(`${name} starting_mrr`, money(row.startingMrr), other?.starting_mrr ?? 0)
    compare(`${name} accounts`, row.accounts, other?.accounts ?? 0)
    compare(`${name} mrr`, money(row.mrr), other?.mrr ?? 0)
    compare(`${name} gross_mrr`, money(row.grossMrr), other?.gross_mrr ?? 0)
  }
}

async function rowsOf(report: Month['report'], name: string, list: string, page: string, more = '') {
  const rows: Body[] = []
  for (let n = 1; ; n++) {
    const body = await report(name, `&${page}=${n}${more}`)
    const found = body[list] ?? body
    rows.push(...found.results)
    if (n >= found.pages) return rows
  }
}

function compareLists(what: string, ours: string[], theirs: string[], compare: Month['compare']): void {
  const [known, given] = [counted(ours), counted(theirs)]
  for (const key of new Set([...known.keys(), ...given.keys()]))
    if (known.get(key) !== given.get(key)) compare(`${what} ${key}`, known.get(key) ?? 0, given.get(key) ?? 0)
}

function counted(keys: string[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const key of keys) counts.set(key, (counts.get(key) ?? 0) + 1)
  return counts
}

function isSame(ours: unknown, theirs: unknown): boolean {
  if (typeof ours === 'number' && typeof theirs === 'number') return Math.abs(ours - theirs) < 1e-6
  return ours === theirs
}
