import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { DAY_MS } from '../../src/domain/time.ts'
import { sharedServer, type TestServer, type TestTenant } from '../server.ts'
import { type BillingEvent, type Body, created, ended, invoice, item, reportOf, send, updated } from './shop.ts'

let server: TestServer
before(async () => {
  server = await sharedServer()
  await send(server, eventsOf())
})
after(() => server.close())

const NOW = Date.now()
/** The same time in both shops. */
const inDays = (days: number) => new Date(NOW + days * DAY_MS).toISOString()

const TEAM = { id: 'si_team', name: 'Team' }
const SEATS = { id: 'si_seats', name: 'Seats', interval: 'year' }

type Wanted = { item?: (item: Body) => boolean; account?: (account: string) => boolean }

/** The events of a shop, or of a part of it: only these accounts and these items. */
function eventsOf({ item: isItem = () => true, account: isAccount = () => true }: Wanted = {}): BillingEvent[] {
  const from = (source: string, country: string) => ({ acquisition: { source }, metadata: { country } })
  const ads = {
    ...from('ads', 'DE'),
    customer: 'ada',
    started_at: inDays(-100),
    current_period_end: inDays(12),
  }
  const mail = {
    ...from('mail', 'FR'),
    customer: 'bob',
    started_at: inDays(-100),
    current_period_end: inDays(12),
  }
  const events = [
    created('a', { ...ads, items: [item(10, TEAM), item(120, SEATS)] }),
    updated('a', { ...ads, updated_at: inDays(-40), items: [item(15, TEAM), item(120, SEATS)] }),
    updated('a', { ...ads, updated_at: inDays(-20), items: [item(15, TEAM), item(60, SEATS)] }),
    updated('a', { ...ads, updated_at: inDays(-5), items: [item(15, TEAM), item(240, SEATS)] }),
    created('a2', {
      ...ads,
      started_at: inDays(-35),
      status: 'trialing',
      trial_end: inDays(9),
      items: [item(8, TEAM)],
    }),
    created('b', { ...mail, started_at: inDays(-70), items: [item(360, SEATS)] }),
    ended('b', inDays(-15), { ...mail, started_at: inDays(-70), items: [item(360, SEATS)] }),
    created('b2', { ...mail, started_at: inDays(-60), items: [item(20, TEAM)], cancel_at: inDays(20) }),
    created('c', {
      customer: 'cyd',
      started_at: inDays(-100),
      status: 'past_due',
      items: [item(7, TEAM), item(0, { ...SEATS, id: 'si_free' })],
    }),
    created('d', { customer: 'dan', started_at: inDays(-100), currency: 'USD', items: [item(40, TEAM)] }),
    invoice('paid', 'in_a', paid('a', 'ada', 25, -10)),
    invoice('paid', 'in_b', paid('b', 'bob', 360, -25)),
    invoice('payment_failed', 'in_c', {
      ...paid('c', 'cyd', 7, -3),
      status: 'open',
      amount_remaining: 7,
      paid_at: null,
      attempt_count: 1,
    }),
  ]
  const left = events
    .map(event => ({ ...event, data: partOf(event.data as Body, isItem) }))
    .filter(({ data }) => isAccount(data.customer) && data.items?.length !== 0)
  const subscriptions = new Set(left.flatMap(({ data }) => (data.items ? data.id : [])))
  return left.filter(({ data }) => data.items || subscriptions.has(data.subscription))
}

const paid = (subscription: string, customer: string, total: number, days: number) => ({
  subscription,
  customer,
  status: 'paid',
  total,
  amount_due: total,
  amount_paid: total,
  finalized_at: inDays(days),
  paid_at: inDays(days),
  updated_at: inDays(days),
})

function partOf(data: Body, isItem: (item: Body) => boolean): Body {
  return data.items ? { ...data, items: data.items.filter(isItem) } : data
}

const REPORTS: Record<string, Body> = {
  overview: {},
  acquisition: {},
  movements: {},
  retention: {},
  attention: {},
  history: { interval: 'week', from: inDays(-110) },
  breakdown: { by: 'plan' },
}

/** Without figures of all events, ids that differ by tenant, and figures of complete subscriptions. */
function comparable({ coverage: _, policy: __, ...report }: Body, wanted: Wanted): Body {
  const others = ['event_id', 'cause', ...(wanted.item ? ['attention', 'next_billing_at'] : [])]
  return JSON.parse(JSON.stringify(report, (name, value) => (others.includes(name) ? undefined : value)))
}

const FILTERS: [string, Record<string, string>, Wanted][] = [
  ['plan', { plan: 'Team' }, { item: ({ name }) => name === 'Team' }],
  ['interval', { interval: 'year' }, { item: ({ interval }) => interval === 'year' }],
  ['source', { source: 'mail' }, { account: account => account === 'bob' }],
  ['no source', { source: 'unattributed' }, { account: account => account === 'cyd' || account === 'dan' }],
  ['country', { country: 'de' }, { account: account => account === 'ada' }],
  [
    'plan and country',
    { plan: 'Seats', country: 'FR' },
    { account: account => account === 'bob', item: ({ name }) => name === 'Seats' },
  ],
  ['unknown values', { plan: 'unused plan' }, { account: () => false }],
]

for (const [name, filter, wanted] of FILTERS) {
  test(`filtered by ${name}, every report equals the report of a tenant with only that data`, async () => {
    const part: TestTenant = await server.anotherTenant(name)
    const events = eventsOf(wanted)
    if (events.length > 0) await send(server, events, part)
    for (const as_of of [inDays(0), inDays(-18), inDays(-38)]) {
      for (const [report, query] of Object.entries(REPORTS)) {
        const named = query.interval && filter.interval ? { billing_interval: filter.interval } : filter
        const filtered = await reportOf(server, report, { ...query, ...named, ...query, as_of })
        const expected = await reportOf(server, report, { ...query, as_of }, part)
        // charges and debts belong to complete subscriptions
        if (report === 'attention' && wanted.item) continue
        assert.deepEqual(comparable(filtered, wanted), comparable(expected, wanted), `${report} ${as_of}`)
      }
    }
  })
}

test('filtered by status: the remaining rows add up', async () => {
  const { mrr, accounts, exclusions } = await reportOf(server, 'overview', { status: 'past_due' })
  assert.deepEqual([mrr, accounts.results.map((row: Body) => row.customer)], [7, ['cyd']])
  assert.deepEqual(
    exclusions.results.map((row: Body) => row.reason_code),
    ['free'],
  )
  const trials = await reportOf(server, 'overview', { status: 'trialing' })
  assert.deepEqual([trials.mrr, trials.exclusions.count, trials.accounts.count], [0, 1, 1])
  const { summary, items } = await reportOf(server, 'account', { customer: 'ada', plan: 'Seats' })
  assert.deepEqual([summary.mrr, items.results.map((row: Body) => row.plan_name)], [20, ['Seats']])
})

test('a plan change is churn in the old plan and new in the other', async () => {
  const tenant = await server.anotherTenant('moves')
  await send(
    server,
    [
      created('s', { started_at: inDays(-90), items: [item(10, TEAM)] }),
      updated('s', { started_at: inDays(-90), updated_at: inDays(-9), items: [item(240, SEATS)] }),
    ],
    tenant,
  )
  const moved = async (plan: string) => {
    const { totals, results } = await reportOf(server, 'movements', { plan }, tenant)
    return [totals.closing_mrr, results.map((row: Body) => [row.movement_type, row.mrr_delta])]
  }
  assert.deepEqual(await moved('Team'), [
    0,
    [
      ['new', 10],
      ['churn', -10],
    ],
  ])
  assert.deepEqual(await moved('Seats'), [20, [['new', 20]]])
})
