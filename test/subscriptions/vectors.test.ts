import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { sharedServer, type TestServer, type TestTenant } from '../server.ts'
import {
  type BillingEvent,
  created,
  ended,
  inDays,
  item,
  reportOf,
  send,
  sendersOf,
  shuffled,
  updated,
} from './shop.ts'

let server: TestServer
before(async () => {
  server = await sharedServer()
})
after(() => server.close())

const CURRENCIES = ['EUR', 'USD', 'GBP']

const yearly = { interval: 'year' }
const forever = { duration: 'forever' }

/** The subscriptions of one account, and its MRR. */
const PRICES: { what: string; items: object[]; discounts?: object[]; mrr: number; excluded?: string[] }[] = [
  { what: '100 a month', items: [item(100)], mrr: 100 },
  { what: '600 a year', items: [item(600, yearly)], mrr: 50 },
  { what: '1,200 a year', items: [item(1200, yearly)], mrr: 100 },
  { what: '4 × 500 a year', items: [item(500, { ...yearly, quantity: 4 })], mrr: 166.67 },
  { what: '90 per 3 months', items: [item(90, { interval_count: 3 })], mrr: 30 },
  {
    what: '120 a year, 10 % off for ever',
    items: [item(120, yearly)],
    discounts: [{ percent_off: 10, ...forever }],
    mrr: 9,
  },
  {
    what: '10 a month, 10 % off that still runs',
    items: [item(10)],
    discounts: [{ percent_off: 10, duration: 'repeating', ends_at: inDays(20) }],
    mrr: 9,
  },
  {
    what: '10 a month, 10 % off that has ended',
    items: [item(10)],
    discounts: [{ percent_off: 10, duration: 'repeating', ends_at: inDays(-20) }],
    mrr: 10,
  },
  {
    what: '1,200 a year, 20 % off once',
    items: [item(1200, yearly)],
    discounts: [{ percent_off: 20, duration: 'once' }],
    mrr: 100,
  },
  {
    what: '10 a month, 50 % off for ever',
    items: [item(10)],
    discounts: [{ percent_off: 50, ...forever }],
    mrr: 5,
  },
  {
    what: '50 + 20 + 3 × 10 a month',
    items: [item(50), item(20, { id: 'b' }), item(10, { id: 'c', quantity: 3 })],
    mrr: 100,
  },
  { what: '297 per 3 months', items: [item(297, { interval_count: 3 })], mrr: 99 },
  { what: '594 per 6 months', items: [item(594, { interval_count: 6 })], mrr: 99 },
  { what: '2,376 per 2 years', items: [item(2376, { ...yearly, interval_count: 2 })], mrr: 99 },
  { what: '100 a year', items: [item(100, yearly)], mrr: 8.33 },
  {
    what: 'a licensed 50 beside a metered 20',
    items: [item(50), item(20, { id: 'b', usage_type: 'metered' })],
    mrr: 50,
    excluded: ['metered_usage'],
  },
  {
    what: 'every 0 months',
    items: [item(10, { interval_count: 0 })],
    mrr: 0,
    excluded: ['unsupported_interval'],
  },
  {
    what: 'every null months',
    items: [item(10, { interval_count: null })],
    mrr: 0,
    excluded: ['unsupported_interval'],
  },
  {
    what: 'every fortnight',
    items: [item(10, { interval: 'fortnight' })],
    mrr: 0,
    excluded: ['unsupported_interval'],
  },
  { what: '25 a week', items: [item(25, { interval: 'week' })], mrr: 108.33 },
  {
    what: '50 off for ever on 49 a month',
    items: [item(49)],
    discounts: [{ amount_off: 50, ...forever }],
    mrr: 0,
    excluded: ['fully_discounted'],
  },
]

/** Changes of one account, and its movements. */
const STORIES: { what: string; events: (currency: string) => BillingEvent[]; moves: string[] }[] = [
  {
    what: '5 × 5 a month, then 2 × 30 a month beside it',
    events: currency => [
      of(currency, 'grows', created('g1', { items: [item(5, { quantity: 5 })] })),
      of(currency, 'grows', created('g2', { started_at: inDays(-50), items: [item(30, { quantity: 2 })] })),
    ],
    moves: ['new 25', 'expansion 60'],
  },
  {
    what: 'grows, shrinks, leaves and returns',
    events: currency => {
      const first = { items: [item(500, { interval: 'year', quantity: 4 })] }
      const second = { started_at: inDays(-80), items: [item(30, { quantity: 2 })] }
      return [
        of(currency, 'returns', created('r1', first)),
        of(currency, 'returns', created('r2', second)),
        of(currency, 'returns', ended('r2', inDays(-70), second)),
        of(currency, 'returns', ended('r1', inDays(-60), first)),
        of(currency, 'returns', created('r3', { started_at: inDays(-40), items: [item(50, { quantity: 3 })] })),
      ]
    },
    moves: ['new 166.67', 'expansion 60', 'contraction -60', 'churn -166.67', 'reactivation 150'],
  },
  {
    what: '20 a month changed to 50 in mid-cycle',
    events: currency => [
      of(currency, 'upgrades', created('u1', { items: [item(20)] })),
      of(currency, 'upgrades', updated('u1', { updated_at: inDays(-85), items: [item(50)] })),
      of(currency, 'upgrades', {
        type: 'invoice.paid',
        data: { id: 'u-in', subscription: 'u1', total: 15, status: 'paid', paid_at: inDays(-85) },
      }),
    ],
    moves: ['new 20', 'expansion 30'],
  },
]

/** The event in one currency: with separate ids, and the name of the story as the customer. */
function of(currency: string, customer: string, { type, data }: BillingEvent): BillingEvent {
  const named = (id: unknown) => (id === undefined ? {} : { subscription: `${currency}-${id}` })
  return {
    type,
    data: {
      ...data,
      id: `${currency}-${data.id}`,
      ...named(data.subscription),
      customer: `${currency} ${customer}`,
      currency,
    },
  }
}

const EVENTS = CURRENCIES.flatMap(currency => [
  ...PRICES.map(({ what, items, discounts = [] }, i) => of(currency, what, created(`p${i}`, { items, discounts }))),
  ...STORIES.flatMap(({ events }) => events(currency)),
])

async function assertVectors(tenant: TestTenant): Promise<void> {
  for (const currency of CURRENCIES) {
    const overview = await reportOf(server, 'overview', { currency, page_size: 100 }, tenant)
    const rows = new Map(overview.accounts.results.map((row: { customer: string }) => [row.customer, row]))
    for (const { what, mrr } of PRICES) {
      assert.equal((rows.get(`${currency} ${what}`) as { mrr: number }).mrr, mrr, `${currency}: ${what}`)
    }
    for (const { what, excluded = [] } of PRICES) {
      const reasons = overview.exclusions.results
        .filter((row: { customer: string }) => row.customer === `${currency} ${what}`)
        .map((row: { reason_code: string }) => row.reason_code)
      assert.deepEqual(reasons, excluded, what)
    }
    for (const [customer, { moves }] of ['grows', 'returns', 'upgrades'].map((c, i) => [c, STORIES[i]!] as const)) {
      const { timeline } = await reportOf(
        server,
        'account',
        { currency, customer: `${currency} ${customer}`, page_size: 100 },
        tenant,
      )
      const found = timeline.results
        .filter((row: { category: string }) => row.category === 'movement')
        .map((row: { movement_type: string; mrr_delta: number }) => `${row.movement_type} ${row.mrr_delta}`)
      assert.deepEqual(found.reverse(), moves)
    }
  }
}

test('every published example is correct, in three currencies at the same time', async () => {
  await send(server, EVENTS)
  await assertVectors(server.tenant)
})

test('100 × 100 a month and 50 × 600 a year are 12,500', async () => {
  const tenant = await server.anotherTenant('glossary')
  const many = (count: number, of: (i: number) => BillingEvent) => Array.from({ length: count }, (_, i) => of(i))
  await send(
    server,
    [
      ...many(100, i => created(`m${i}`, { items: [item(100)] })),
      ...many(50, i => created(`y${i}`, { items: [item(600, yearly)] })),
    ],
    tenant,
  )
  const overview = await reportOf(server, 'overview', {}, tenant)
  assert.equal(overview.mrr, 12_500)
  assert.equal(overview.arr, 150_000)
  assert.equal(overview.arpa, 83.33)
  assert.equal(overview.active_accounts, 150)
})

for (const seed of [1, 2]) {
  test(`examples are correct in any order of arrival, through every kind of source (order ${seed})`, async () => {
    const tenant = await server.anotherTenant(`order ${seed}`)
    const senders = Object.values(await sendersOf(server, tenant))
    const events = shuffled([...EVENTS, ...EVENTS.slice(0, 10)], seed)
    const share = Math.ceil(events.length / senders.length)
    await Promise.all(senders.map((sender, i) => sender(events.slice(i * share, (i + 1) * share))))
    await server.settled()
    await assertVectors(tenant)
  })
}

test('amounts have the digits of their currency', async () => {
  const tenant = await server.anotherTenant('digits')
  await send(
    server,
    [
      created('yen', { currency: 'jpy', items: [item(1000, yearly)] }),
      created('dinar', { currency: 'kwd', items: [item(10, yearly)] }),
    ],
    tenant,
  )
  assert.equal((await reportOf(server, 'overview', { currency: 'JPY' }, tenant)).mrr, 83)
  assert.equal((await reportOf(server, 'overview', { currency: 'kwd' }, tenant)).mrr, 0.833)
})
