// node test/books/compare.ts --seed 1 --shape canonical [--months 12] [--accounts 40] [--only customer]
// Tells a history to a server and prints where its reports and the company's own books differ, by month and account.
import { parseArgs } from 'node:util'
import { makeSource } from '../inbound/source.ts'
import { startServer, type TestServer } from '../server.ts'
import { type Business, business } from './business.ts'
import { DAY, iso, later } from './calendar.ts'
import { type Books, keepBooks } from './ledger.ts'
import { major } from './money.ts'
import { isShape, SHAPES, type Shape } from './shapes.ts'

// biome-ignore lint/suspicious/noExplicitAny: answers are looked into freely
type Body = any

type Difference = { as_of: string; currency: string; what: string; books: unknown; report: unknown }

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    shape: { type: 'string', default: 'canonical' },
    months: { type: 'string', default: '12' },
    accounts: { type: 'string', default: '40' },
    only: { type: 'string' },
    off: { type: 'string', default: '' },
    json: { type: 'boolean', default: false },
  },
})
if (!isShape(values.shape)) throw new Error(`--shape is one of ${Object.keys(SHAPES).join(', ')}`)
const shape: Shape = SHAPES[values.shape]

const off = Object.fromEntries(values.off.split(',').map(feature => [feature, false]))
const whole = business({
  seed: Number(values.seed),
  months: Number(values.months),
  accounts: Number(values.accounts),
  ...(shape.currencies && { currencies: shape.currencies }),
  features: { ...shape.features, ...off },
})
const told = values.only ? onlyCustomer(whole, values.only) : whole
const books = keepBooks(told.facts)

/** What the reports do not have at all. */
const absent = new Set<string>()
const server = await startServer()
try {
  await tell(server, told)
  const differences = await differencesOf(server, told, books)
  for (const difference of differences)
    if (values.json) console.log(JSON.stringify(difference))
    else
      console.log(
        `${difference.as_of.slice(0, 16)} ${difference.currency} ${difference.what}: books ${text(difference.books)}, report ${text(difference.report)}`,
      )
  for (const what of absent) console.log(`the reports have no ${what}`)
  console.log(`${told.facts.length} facts, ${differences.length} differences`)
  process.exitCode = differences.length > 0 ? 1 : 0
} finally {
  await server.close()
}

async function tell(to: TestServer, history: Business): Promise<void> {
  for (const { preset, bodies } of shape.deliveries(history)) {
    const source = await makeSource(to, {
      rate_limit: { events: 1_000_000, per_seconds: 1 },
      max_body_bytes: 8 * 1024 * 1024,
      ...(preset && { preset }),
    })
    for (const body of bodies) {
      const { status, body: answer } = await source.post(body)
      if (status !== 200) throw new Error(`answered ${status} ${JSON.stringify(answer)}`)
    }
  }
  await to.settled()
}

function onlyCustomer(history: Business, customer: string): Business {
  const isOurs = (fact: Body) =>
    fact.kind === 'coupon' ||
    [fact.after?.customer, fact.after?.id, fact.payment?.customer, fact.discount?.customer].includes(
      customer,
    ) ||
    [fact.after?.payment?.customer, fact.after?.invoice?.customer].includes(customer)
  return { ...history, facts: history.facts.filter(isOurs) }
}

async function differencesOf(from: TestServer, history: Business, kept: Books): Promise<Difference[]> {
  const found: Difference[] = []
  for (const currency of history.currencies)
    for (let at = later(history.from, 'month', 1); at <= history.until; at = later(at, 'month', 1)) {
      const asOf = Math.min(at, history.until) - 1
      const report = async (name: string, more = ''): Promise<Body> => {
        const path = `/v1/subscriptions/${name}?currency=${currency}&as_of=${iso(asOf)}&page_size=100${more}`
        const { status, body } = await from.request(path, { key: from.tenant.privateKey })
        if (status === 404) return null
        if (status !== 200) throw new Error(`${path} answered ${status} ${JSON.stringify(body)}`)
        return body
      }
      const compare = (what: string, ours: unknown, theirs: unknown) => {
        if (theirs === undefined) absent.add(what.replace(/ .*/, ''))
        else if (!isSame(ours, theirs))
          found.push({ as_of: iso(asOf), currency, what, books: ours, report: theirs })
      }
      await compareMonth({ kept, currency, asOf, report, compare })
    }
  return found
}

type Month = {
  kept: Books
  currency: string
  asOf: number
  report: (name: string, more?: string) => Promise<Body>
  compare: (what: string, ours: unknown, theirs: unknown) => void
}

async function compareMonth({ kept, currency, asOf, report, compare }: Month): Promise<void> {
  const money = (amount: number) => major(amount, currency)
  const opens = asOf - 30 * DAY
  const totals = kept.totalsAt(currency, asOf)
  const overview = await report('overview')
  compare('mrr', money(totals.mrr), overview.mrr)
  compare('arr', money(totals.arr), overview.arr)
  compare('committed_mrr', money(totals.committed), overview.committed_mrr)
  compare('active_accounts', totals.activeAccounts, overview.active_accounts)
  compare('active_subscriptions', totals.activeSubscriptions, overview.active_subscriptions)
  const { opening, closing, ...flow } = kept.flow(currency, opens, asOf)
  for (const [name, amount] of Object.entries({ opening_mrr: opening, closing_mrr: closing, ...flow }))
    compare(`movements.${name}`, money(amount), overview.movements[name])
  const invoiced = kept.invoiced(currency, opens, asOf)
  compare('invoiced.amount', money(invoiced.amount), overview.invoiced.amount)
  compare('invoiced.count', invoiced.count, overview.invoiced.count)
  const { count, oneOff, ...cash } = kept.collected(currency, opens, asOf)
  compare('collected.count', count, overview.collected.count)
  for (const [name, amount] of Object.entries({ ...cash, one_off: oneOff }))
    compare(`collected.${name}`, money(amount), overview.collected[name])
  await compareAccounts({ kept, currency, asOf, report, compare })
  await compareExclusions({ kept, currency, asOf, report, compare })
  await compareAttention({ kept, currency, asOf, report, compare })
  await compareMovements({ kept, currency, asOf, report, compare })
  for (const [name, rate] of Object.entries(kept.rates(currency, asOf)))
    compare(`rates.${name}`, name === 'ltv' && rate !== null ? money(1) * rate : rate, overview.rates?.[name])
}

async function compareAccounts({ kept, currency, asOf, report, compare }: Month): Promise<void> {
  const theirs = new Map<string, number>()
  for await (const row of rowsOf(report, 'overview', 'accounts', 'page')) theirs.set(row.customer, row.mrr)
  for (const account of kept.inCurrency(currency))
    if (account.steps[0]!.at <= asOf)
      compare(
        `account ${account.customer} mrr`,
        major(kept.mrrAt(account, asOf), currency),
        theirs.get(account.customer) ?? null,
      )
}

async function compareExclusions({ kept, currency, asOf, report, compare }: Month): Promise<void> {
  const theirs: string[] = []
  for await (const row of rowsOf(report, 'overview', 'exclusions', 'exclusion_page'))
    if (row.reason_code !== 'other_currency')
      theirs.push(`${row.subscription_id} ${row.item_id} ${row.reason_code}`)
  const ours = kept
    .exclusionsAt(currency, asOf)
    .map(({ subscription, item, reason }) => `${subscription.id} ${item.id} ${reason}`)
  compareLists('exclusion', ours, theirs, compare)
}

async function compareAttention({ kept, currency, asOf, report, compare }: Month): Promise<void> {
  const list = async (name: string, page: string) => {
    const rows: Body[] = []
    for await (const row of rowsOf(report, 'attention', name, page)) rows.push(row)
    return rows
  }
  const issues = (await list('payment_issues', 'issue_page')).map(
    row => `${row.invoice_id ?? row.subscription_id} ${row.issue_type} ${row.amount_remaining ?? 0}`,
  )
  const ours = kept
    .paymentIssues(currency, asOf)
    .map(row => `${row.invoice ?? row.subscription} ${row.type} ${major(row.amountRemaining, currency)}`)
  compareLists('payment_issue', ours, issues, compare)
  const dated = (rows: { subscription: string; at: number }[]) =>
    rows.map(row => `${row.subscription} ${iso(row.at)}`)
  const renewals = await list('renewals', 'renewal_page')
  compareLists(
    'renewal',
    dated(kept.renewals(currency, asOf, 30)),
    renewals.map(row => `${row.subscription_id} ${row.renews_at}`),
    compare,
  )
  const cancellations = await list('cancellations', 'cancel_page')
  compareLists(
    'cancellation',
    dated(kept.cancellations(currency, asOf, 30)),
    cancellations.map(row => `${row.subscription_id} ${row.cancels_at}`),
    compare,
  )
  const { rows, unsure } = kept.upcoming(currency, asOf, 30)
  const upcoming = await list('upcoming_billing', 'billing_page')
  compareLists(
    'upcoming',
    dated(rows),
    upcoming
      .filter(row => !unsure.has(row.subscription_id))
      .map(row => `${row.subscription_id} ${row.bills_at}`),
    compare,
  )
}

async function compareMovements({ kept, currency, asOf, report, compare }: Month): Promise<void> {
  const since = asOf - 30 * DAY
  const theirs = new Map<string, Body>()
  const window = `&since=${iso(since)}&until=${iso(asOf)}`
  for await (const row of rowsOf(report, 'movements', 'movements', 'page', window))
    theirs.set(`${row.customer} ${row.occurred_at} ${row.movement_type} ${row.mrr_delta}`, row)
  const ours = kept.movementsIn(currency, since, asOf)
  const keyOf = (row: (typeof ours)[number]) =>
    `${row.customer} ${iso(row.at)} ${row.type} ${major(row.after - row.before, currency)}`
  compareLists('movement', ours.map(keyOf), [...theirs.keys()], compare)
  for (const row of ours) {
    const cause = theirs.get(keyOf(row))?.cause
    if (cause !== undefined && !row.causes.has(cause))
      compare(`cause of ${keyOf(row)}`, [...row.causes], cause)
  }
}

async function* rowsOf(report: Month['report'], name: string, list: string, page: string, more = '') {
  for (let n = 1; ; n++) {
    const body = await report(name, `&${page}=${n}${more}`)
    const found = body[list] ?? body
    yield* found.results as Body[]
    if (n >= found.pages) return
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

function text(value: unknown): string {
  return value === undefined ? 'nothing' : JSON.stringify(value)
}
