import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { anonymizeBilling } from '../../src/pipeline/billing/erasure.ts'
import { assertSums } from '../billing/sums.ts'
import { eventually } from '../eventually.ts'
import { makeSource } from '../inbound/source.ts'
import { sharedServer, type TestServer, type TestTenant } from '../server.ts'
import {
  ask,
  type BillingEvent,
  type Body,
  created,
  ended,
  invoice,
  item,
  type ReportQuery,
  reportOf,
  send,
  shuffled,
  updated,
} from './shop.ts'

let server: TestServer
let adminKey: string
before(async () => {
  server = await sharedServer()
  adminKey = (await server.admin.keys.create({ kind: 'admin' })).key
})
after(() => server.close())

const at = (day: string) => `${day}T00:00:00.000Z`

/** One company with two customers, and another one. */
const one = { customer: 'cus_one', customer_name: 'Acme', started_at: at('2025-01-10') }
const two = { customer: 'cus_two', customer_name: 'ACME Inc.', started_at: at('2025-02-10'), items: [item(20)] }
const SHOP: BillingEvent[] = [
  created('s1', one),
  created('s2', two),
  updated('s2', { ...two, updated_at: at('2025-03-12'), items: [item(30)] }),
  created('dollars', { customer: 'cus_two', currency: 'USD', started_at: at('2025-02-01'), items: [item(40)] }),
  created('other', { customer: 'cus_other', started_at: at('2025-01-20'), items: [item(5)] }),
  ended('s1', at('2025-04-10'), one),
  invoice('paid', 'in_1', {
    subscription: 's1',
    customer: 'cus_one',
    status: 'paid',
    total: 10,
    amount_paid: 10,
    finalized_at: at('2025-03-10'),
    paid_at: at('2025-03-10'),
    updated_at: at('2025-03-10'),
  }),
  invoice('paid', 'in_2', {
    customer: 'cus_two',
    status: 'paid',
    total: 99,
    amount_paid: 99,
    finalized_at: at('2025-03-11'),
    paid_at: at('2025-03-11'),
    updated_at: at('2025-03-11'),
  }),
]

const YEAR = { from: '2025-01-01', to: '2025-05-31', as_of: '2025-06-01' }
const FULL = { as_of: '2025-06-01' }

const merge = (tenant: TestTenant, account = 'cus_two', into = 'cus_one') =>
  server.admin.accounts.merge(tenant.id, { account, into })

async function everything(tenant: TestTenant, query: ReportQuery = FULL): Promise<Body> {
  const report = (name: string, more: ReportQuery = {}) => reportOf(server, name, { ...query, ...more }, tenant)
  const { policy: _, coverage: __, ...overview } = await report('overview')
  const { policy: _p, ...account } = await report('account', { customer: 'cus_one' })
  return {
    overview,
    account,
    dollars: (await report('overview', { currency: 'USD' })).accounts,
    days: (await report('history', { ...YEAR, interval: 'day' })).results,
    movements: (await report('movements', { since: '2025-01-01', until: '2025-05-31' })).results,
    retention: (await report('retention')).cohorts,
    sources: (await report('breakdown', { by: 'source' })).results,
    cash: (await report('cash/facts', { date: '2025-03-01', interval: 'month' })).results,
  }
}

const mrrByDay = ({ days }: Body) => days.map((row: Body) => [row.date, row.mrr])
const netByDay = ({ days }: Body) => days.map((row: Body) => [row.date, row.net])

test('a merge shows one account, with the same MRR on every day and no churn', async () => {
  const tenant = await server.anotherTenant('merged')
  await send(server, SHOP, tenant)
  const apart = await everything(tenant)
  assert.deepEqual(
    apart.overview.accounts.results.map((row: Body) => [row.customer, row.mrr]),
    [
      ['cus_two', 30],
      ['cus_other', 5],
      ['cus_one', 0],
    ],
  )
  const merged = await merge(tenant)
  assert.deepEqual([merged.account, merged.into], ['cus_two', 'cus_one'])
  const together = await everything(tenant)
  assert.deepEqual(mrrByDay(together), mrrByDay(apart))
  assert.deepEqual(netByDay(together), netByDay(apart))
  assert.deepEqual(
    together.overview.accounts.results.map((row: Body) => [
      row.customer,
      row.customer_name,
      row.mrr,
      row.subscriptions,
    ]),
    [
      ['cus_one', 'Acme', 30, 2],
      ['cus_other', null, 5, 1],
    ],
  )
  assert.equal(apart.days.at(-1).active_accounts - together.days.at(-1).active_accounts, 0)
  const march = ({ days }: Body) => days.find((row: Body) => row.date === '2025-03-20').active_accounts
  assert.deepEqual([march(apart), march(together)], [3, 2])
  assert.deepEqual(
    together.movements.map((row: Body) => [row.customer, row.movement_type, row.mrr_before, row.mrr_after]),
    [
      ['cus_one', 'new', 0, 10],
      ['cus_other', 'new', 0, 5],
      ['cus_one', 'expansion', 10, 30],
      ['cus_one', 'expansion', 30, 40],
      ['cus_one', 'contraction', 40, 30],
    ],
  )
  const names = together.movements.map((row: Body) => [row.customer, row.customer_name].join())
  assert.deepEqual(new Set(names), new Set(['cus_one,Acme', 'cus_other,']))
  assert.deepEqual(new Set(together.retention.results.map((row: Body) => row.cohort)), new Set(['2025-01']))
  assert.deepEqual(
    together.dollars.results.filter((row: Body) => row.mrr > 0).map((row: Body) => [row.customer, row.mrr]),
    [['cus_one', 40]],
  )
  assert.deepEqual(
    together.cash.map((row: Body) => [row.id, row.customer]),
    apart.cash.map((row: Body) => [row.id, 'cus_one']),
  )
  const { timeline } = together.account
  const invoices = timeline.results.flatMap((row: Body) => row.invoice_id ?? [])
  assert.deepEqual(new Set(invoices), new Set(['in_1', 'in_2']))
  // the old id leads to the same account
  const old = await reportOf(server, 'account', { ...FULL, customer: 'cus_two' }, tenant)
  assert.deepEqual([old.summary, old.timeline], [together.account.summary, timeline])
  await assertSums(server, tenant)
})

test('an unmerge restores every figure, also of events that arrived while the accounts were merged', async () => {
  const [tenant, plain] = [await server.anotherTenant('unmerged'), await server.anotherTenant('never merged')]
  const later = [
    updated('s2', { ...two, updated_at: at('2025-04-15'), items: [item(50)] }),
    created('s3', { ...two, started_at: at('2025-04-20') }),
  ]
  await send(server, SHOP, tenant)
  await merge(tenant)
  await send(server, later, tenant)
  assert.deepEqual(
    (await reportOf(server, 'overview', FULL, tenant)).accounts.results.map((row: Body) => [row.customer, row.mrr]),
    [
      ['cus_one', 70],
      ['cus_other', 5],
    ],
  )
  await server.admin.accounts.unmerge(tenant.id, 'cus_two')
  await send(server, [...SHOP, ...later], plain)
  const ids = ({ account: { timeline, ...account }, movements, ...rest }: Body) => ({
    ...rest,
    account,
    timeline: timeline.results.map(({ event_id: _, ...row }: Body) => row),
    movements: movements.map(({ event_id: _, ...row }: Body) => row),
  })
  assert.deepEqual(ids(await everything(tenant)), ids(await everything(plain)))
  assert.deepEqual(await server.admin.accounts.list(tenant.id), [])
  await assertSums(server, tenant)
})

test('the result does not depend on when the accounts are merged', async () => {
  const known = [created('s1', one), created('s2', two)]
  const rest = SHOP.filter(
    ({ data }) => !known.some(event => event.data.updated_at === data.updated_at && event.data.id === data.id),
  )
  const results: Body[] = []
  for (const seed of [0, 3]) {
    const tenant = await server.anotherTenant(`order ${seed}`)
    await send(server, known, tenant)
    const events = seed === 0 ? rest : shuffled(rest, seed)
    const first = events.slice(0, seed)
    if (first.length > 0) await send(server, first, tenant)
    await merge(tenant)
    await send(server, events.slice(first.length), tenant)
    const { account, movements, ...figures } = await everything(tenant)
    results.push({
      ...figures,
      movements: movements.map(({ event_id: _, ...row }: Body) => row),
      summary: account.summary,
    })
  }
  for (const result of results.slice(1)) assert.deepEqual(result, results[0])
})

test('a merge after closing changes no figure as closed, and its restatements add up to 0', async () => {
  const tenant = await server.anotherTenant('closed')
  await send(server, SHOP, tenant)
  const march = { as_of: '2025-04-01', basis: 'as_closed' }
  const figures = async () => {
    const { mrr, accounts, movements, active_accounts, rates } = await reportOf(server, 'overview', march, tenant)
    const { summary } = await reportOf(server, 'account', { ...march, customer: 'cus_two' }, tenant)
    return { mrr, accounts, movements, active_accounts, rates, summary }
  }
  const then = await figures()
  await server.admin.books.close(tenant.id, '2025-03')
  await merge(tenant)
  assert.deepEqual(await figures(), then)
  const restated = await reportOf(server, 'overview', { as_of: '2025-04-01' }, tenant)
  assert.deepEqual([restated.mrr, restated.active_accounts], [then.mrr, then.active_accounts - 1])
  const { results } = (await ask(server, 'books', {}, { tenant })).body
  assert.deepEqual(results.map((row: Body) => [row.customer, row.currency, row.amount, row.event_id]).sort(), [
    ['cus_one', 'EUR', 30, null],
    ['cus_one', 'USD', 40, null],
    ['cus_two', 'EUR', -30, null],
    ['cus_two', 'USD', -40, null],
  ])
  await server.admin.accounts.unmerge(tenant.id, 'cus_two')
  assert.deepEqual(await figures(), then)
  const all = (await ask(server, 'books', {}, { tenant })).body.results
  assert.equal(
    all.reduce((sum: number, row: Body) => sum + row.amount, 0),
    0,
  )
  const { rows } = await server.pool.query(
    'select account, sum(amount) as sum from billing_restatements where tenant_id = $1 group by account',
    [Number(tenant.id.slice(4))],
  )
  assert.deepEqual(
    rows.map(row => Number(row.sum)),
    [0, 0],
  )
})

test('a new discount of a merged customer changes its subscriptions', async () => {
  const tenant = await server.anotherTenant('discounts')
  const source = await makeSource(server, { tenant: tenant.id, preset: 'stripe', signing_secret: null })
  let events = 0
  const stripe = (type: string, object: object, created: string) =>
    source.post({
      id: `evt_${++events}`,
      object: 'event',
      type,
      created: Date.parse(created) / 1000,
      livemode: true,
      data: { object },
    })
  const subscription = (id: string, customer: string) => ({
    ...{
      id,
      object: 'subscription',
      customer,
      status: 'active',
      currency: 'eur',
      start_date: Date.parse(at('2025-01-10')) / 1000,
      livemode: true,
    },
    items: {
      data: [
        {
          id: `si_${id}`,
          quantity: 1,
          price: { id: 'p', unit_amount: 1000, currency: 'eur', recurring: { interval: 'month', interval_count: 1 } },
        },
      ],
    },
  })
  for (const [id, customer] of [
    ['sub_a', 'cus_a'],
    ['sub_b', 'cus_b'],
  ] as const)
    assert.equal(
      (await stripe('customer.subscription.created', subscription(id, customer), at('2025-01-10'))).status,
      200,
    )
  await server.settled()
  await merge(tenant, 'cus_b', 'cus_a')
  const discount = {
    id: 'di_1',
    object: 'discount',
    customer: 'cus_b',
    start: Date.parse(at('2025-02-01')) / 1000,
    coupon: { id: 'half', percent_off: 50, duration: 'forever' },
  }
  assert.equal((await stripe('customer.discount.created', discount, at('2025-02-01'))).status, 200)
  await server.settled()
  const { accounts } = await reportOf(server, 'overview', {}, tenant)
  assert.deepEqual(
    accounts.results.map((row: Body) => [row.customer, row.mrr]),
    [['cus_a', 15]],
  )
})

test('a long subscription of a merged account continues from its checkpoint', async () => {
  const tenant = await server.anotherTenant('checkpoint')
  const version = (n: number) =>
    updated('s2', {
      ...two,
      updated_at: new Date(Date.parse(at('2025-02-11')) + n * 3_600_000).toISOString(),
      items: [item(n)],
    })
  await send(server, [created('s1', one), created('s2', two)], tenant)
  await merge(tenant)
  await send(
    server,
    Array.from({ length: 260 }, (_, n) => version(n)),
    tenant,
  )
  await send(server, [version(261), version(262)], tenant)
  const id = Number(tenant.id.slice(4))
  const state = async () =>
    (
      await server.pool.query(
        `select s.valid_from, s.valid_to, s.account, s.hash, b.checkpoint is not null as has_checkpoint
         from billing_segments s join billing_subscriptions b on b.tenant_id = s.tenant_id and b.id = s.subscription_id
         where s.tenant_id = $1 and s.subscription_id = 's2' order by s.valid_from`,
        [id],
      )
    ).rows
  const continued = await state()
  assert.deepEqual(
    [continued.length > 250, continued[0].has_checkpoint, continued.at(-1).account],
    [true, true, 'cus_one'],
  )
  await server.admin.accounts.unmerge(tenant.id, 'cus_two')
  assert.equal((await state()).at(-1).account, 'cus_two')
  await merge(tenant)
  assert.deepEqual(await state(), continued)
})

test('customers: the person of the remaining account has the MRR of both', async () => {
  const tenant = await server.anotherTenant('people')
  const ada = { ...one, customer_email: 'ada@example.com' }
  const bob = { ...two, customer_email: 'bob@example.com' }
  await send(server, [created('s1', ada), created('s2', bob)], tenant)
  const list = async () => {
    const { body } = await server.request('/v1/customers', { key: tenant.privateKey, headers: { prefer: 'wait=10' } })
    return body.results.map((row: Body) => [row.email, row.name, row.mrr])
  }
  const apart = await list()
  assert.equal(apart.length, 2)
  await merge(tenant)
  await eventually('the rows', async () => {
    const rows = await list()
    return JSON.stringify(rows).includes('30') && !JSON.stringify(rows).includes('20')
  })
  assert.ok((await list()).some(([email, name]: string[]) => email === 'ada@example.com' && name === 'Acme'))
  // an event of the merged account does not change the person of the other one
  await send(server, [updated('s2', { ...bob, updated_at: at('2025-04-01'), items: [item(25)] })], tenant)
  await eventually('the new amount', async () => JSON.stringify(await list()).includes('35'))
  await server.admin.accounts.unmerge(tenant.id, 'cus_two')
  await eventually('both people', async () => {
    const text = JSON.stringify(await list())
    return text.includes('25') && text.includes('10') && !text.includes('35')
  })
})

test('an erasure removes the person of a merged account, and no other', async () => {
  for (const [name, from, into] of [
    ['erased from', 'Grace@Example.com', 'cus_one'],
    ['erased into', 'cus_one', 'Grace@Example.com'],
  ] as const) {
    const tenant = await server.anotherTenant(name)
    const grace = { ...two, customer: null, customer_name: 'Grace Hopper', customer_email: 'Grace@Example.com' }
    await send(server, [created('s1', one), created('s2', grace)], tenant)
    await server.admin.books.close(tenant.id, '2025-03')
    await merge(tenant, from, into)
    await send(server, [updated('s2', { ...grace, updated_at: at('2025-03-02'), items: [item(21)] })], tenant)
    await server.admin.books.close(tenant.id, '2025-04')
    await send(server, [updated('s2', { ...grace, updated_at: at('2025-03-03'), items: [item(22)] })], tenant)
    const id = Number(tenant.id.slice(4))
    await anonymizeBilling(server.pool, id, { customers: [], emails: ['grace@example.com'] })
    const tables = [
      'versions',
      'segments',
      'accounts',
      'account_merges',
      'account_states',
      'movements',
      'closed_accounts',
      'restatements',
    ]
    for (const table of tables) {
      const { rows } = await server.pool.query(`select t::text from billing_${table} t where tenant_id = $1`, [id])
      assert.ok(rows.length > 0, table)
      assert.doesNotMatch(JSON.stringify(rows), /grace|hopper/i, `${name}: ${table}`)
    }
    const audit = (await server.request(`/admin/v1/audit?tenant=${tenant.id}`, { key: adminKey })).body.results
    assert.doesNotMatch(JSON.stringify(audit), /grace/i)
    const { accounts } = await reportOf(server, 'overview', FULL, tenant)
    const [account] = accounts.results
    assert.deepEqual([accounts.count, account.mrr, account.customer_name], [1, 32, 'Acme'])
    // the merge can still be undone
    const [merged] = await server.admin.accounts.list(tenant.id)
    await server.admin.accounts.unmerge(tenant.id, merged!.account)
    const apart = await reportOf(server, 'overview', FULL, tenant)
    assert.deepEqual(
      apart.accounts.results.map((row: Body) => [row.mrr, row.customer_name]),
      [
        [22, null],
        [10, 'Acme'],
      ],
    )
  }
})

test('merges that are not possible are rejected', async () => {
  const [tenant, other] = [await server.anotherTenant('rejected'), await server.anotherTenant('theirs')]
  await send(server, [...SHOP, created('t1', { customer: 'cus_test', livemode: false })], tenant)
  await send(server, [created('theirs', { customer: 'cus_theirs' })], other)
  const post = async (verb: string, body: object, key = adminKey) => {
    const answer = await server.request(`/admin/v1/tenants/${tenant.id}/accounts/${verb}`, {
      method: 'POST',
      key,
      body: JSON.stringify(body),
    })
    return [answer.status, answer.body.code ?? answer.body.into]
  }
  const attempt = (account: string, into: string) => post('merge', { account, into })
  assert.deepEqual(await attempt('cus_none', 'cus_one'), [404, 'account_not_found'])
  assert.deepEqual(await attempt('cus_one', 'cus_theirs'), [404, 'account_not_found'])
  assert.deepEqual(await attempt('cus_test', 'cus_one'), [409, 'account_in_test_mode'])
  assert.deepEqual(await attempt('cus_one', 'cus_test'), [409, 'account_in_test_mode'])
  assert.deepEqual(await attempt('cus_one', 'cus_one'), [409, 'same_account'])
  assert.deepEqual(await attempt('', 'cus_one'), [400, 'invalid_request'])
  assert.deepEqual(await post('merge', { account: 'cus_two', into: 'cus_one' }, tenant.privateKey), [
    401,
    'wrong_key_kind',
  ])
  assert.deepEqual(await attempt('cus_two', 'cus_one'), [200, 'cus_one'])
  assert.deepEqual(await attempt('cus_two', 'cus_one'), [200, 'cus_one'])
  assert.deepEqual(await attempt('cus_one', 'cus_two'), [409, 'account_merged'])
  assert.deepEqual(await attempt('cus_two', 'cus_other'), [409, 'account_merged'])
  assert.deepEqual(await attempt('cus_other', 'cus_two'), [409, 'account_merged'])
  assert.deepEqual(await attempt('cus_one', 'cus_other'), [409, 'account_merged'])
  assert.deepEqual(await post('unmerge', { account: 'cus_one' }), [404, 'account_not_merged'])
  const merged = await server.request(`/admin/v1/tenants/${tenant.id}/accounts/merged`, { key: adminKey })
  assert.deepEqual(
    merged.body.results.map((row: Body) => [row.account, row.into]),
    [['cus_two', 'cus_one']],
  )
  assert.deepEqual(await post('unmerge', { account: 'cus_two' }), [200, 'cus_one'])
  const { results } = (await server.request(`/admin/v1/audit?tenant=${tenant.id}`, { key: adminKey })).body
  assert.deepEqual(
    results
      .filter(({ action }: Body) => action.startsWith('account.'))
      .map(({ action, before: was, after: is }: Body) => [action, was?.into, is?.into]),
    [
      ['account.unmerge', 'cus_one', undefined],
      ['account.merge', undefined, 'cus_one'],
    ],
  )
})
