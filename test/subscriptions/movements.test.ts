import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { sharedServer, type TestServer } from '../server.ts'
import { ask, type Body, created, ended, item, reportOf, send, updated } from './shop.ts'

let server: TestServer
before(async () => {
  server = await sharedServer()
})
after(() => server.close())

const DAYS = ['2026-01-10', '2026-02-10', '2026-03-10', '2026-04-10', '2026-05-10'].map(day => `${day}T00:00:00.000Z`)

test('all movements, the oldest first, with totals that add up, for any window', async () => {
  const tenant = await server.anotherTenant('all')
  const [d1, d2, d3, d4, d5] = DAYS
  await send(
    server,
    [
      created('a', { customer: 'c', customer_name: 'Cee', started_at: d1 }),
      created('b', { customer: 'c', started_at: d2, items: [item(5)] }),
      updated('a', { customer: 'c', started_at: d1, updated_at: d3, items: [item(4)] }),
      ended('a', d4!, { customer: 'c', started_at: d1, items: [item(4)] }),
      ended('b', d4!, { customer: 'c', started_at: d2, items: [item(5)] }),
      updated('x', { customer: 'c', started_at: d5, items: [item(8)] }),
    ],
    tenant,
  )
  const all = await reportOf(server, 'movements', {}, tenant)
  // a date without a time includes that day, from its first moment on
  const day = await reportOf(server, 'movements', { since: '2026-02-10', until: '2026-02-10' }, tenant)
  assert.deepEqual(
    day.results.map((row: Body) => row.occurred_at),
    [d2],
  )
  const { event_id, ...first } = all.results[0]
  const { body } = await server.request(`/v1/events/${event_id}`, { key: tenant.privateKey })
  assert.equal(body.event.event_type, 'subscription.created')
  assert.deepEqual(first, {
    occurred_at: d1,
    customer: 'c',
    customer_name: 'Cee',
    movement_type: 'new',
    mrr_before: 0,
    mrr_after: 10,
    mrr_delta: 10,
    subscription_ids: ['a'],
    cause: 'new_subscription',
  })
  assert.deepEqual(
    all.results.map((row: Body) => [row.occurred_at, row.movement_type, row.mrr_delta, row.subscription_ids.join()]),
    [
      [d1, 'new', 10, 'a'],
      [d2, 'expansion', 5, 'b'],
      [d3, 'contraction', -6, 'a'],
      [d4, 'churn', -9, 'a,b'],
      [d5, 'reactivation', 8, 'x'],
    ],
  )
  for (const since of DAYS) {
    for (const until of DAYS.filter(day => day >= since)) {
      const { results, totals } = await reportOf(server, 'movements', { since, until }, tenant)
      // after `since`, up to and including `until`
      assert.deepEqual(
        results.map((row: Body) => row.occurred_at),
        DAYS.filter(day => day > since && day <= until),
      )
      const { opening_mrr, closing_mrr, net, ...t } = totals
      assert.equal(opening_mrr + t.new + t.expansion + t.reactivation - t.contraction - t.churn, closing_mrr)
      assert.equal(opening_mrr, (await reportOf(server, 'overview', { as_of: since }, tenant)).mrr)
      assert.equal(closing_mrr, (await reportOf(server, 'overview', { as_of: until }, tenant)).mrr)
      assert.equal(net, closing_mrr - opening_mrr)
    }
  }
})

test('movements are paged, and a reversed window is a validation error', async () => {
  const tenant = await server.anotherTenant('pages')
  await send(
    server,
    Array.from({ length: 12 }, (_, i) => created(`s${i}`, { started_at: `2026-01-${10 + (i % 5)}` })),
    tenant,
  )
  const whole = await reportOf(server, 'movements', {}, tenant)
  const found: Body[] = []
  for (const page of [1, 2, 3, 4]) {
    const part = await reportOf(server, 'movements', { page, page_size: 5 }, tenant)
    assert.deepEqual([part.page, part.page_size, part.count, part.pages], [page, 5, 12, 3])
    found.push(...part.results)
  }
  assert.deepEqual(found, whole.results)
  const { status, body } = await ask(server, 'movements', {
    currency: 'EUR',
    since: '2026-02-01',
    until: '2026-01-01',
  })
  assert.deepEqual([status, body.errors[0].pointer], [400, '/since'])
})

test('retention of the accounts that first paid in the same month', async () => {
  const tenant = await server.anotherTenant('retention')
  const january = { started_at: '2026-01-10' }
  await send(
    server,
    [
      created('grows', january),
      updated('grows', { ...january, updated_at: '2026-02-20', items: [item(30)] }),
      created('shrinks', { ...january, items: [item(20)] }),
      updated('shrinks', { ...january, updated_at: '2026-02-20', items: [item(15)] }),
      created('leaves', january),
      ended('leaves', '2026-02-15', january),
      created('february', { started_at: '2026-02-01' }),
    ],
    tenant,
  )
  const { cohorts, months } = await reportOf(server, 'retention', { months: 3, as_of: '2026-03-05' }, tenant)
  assert.equal(months, 3)
  assert.deepEqual(cohorts.results[1], {
    cohort: '2026-01',
    month: 1,
    at: '2026-03-01T00:00:00.000Z',
    accounts: 2,
    starting_accounts: 3,
    starting_mrr: 40,
    mrr: 45,
    gross_mrr: 25,
    logo_retention: 2 / 3,
    gross_revenue_retention: 25 / 40,
    net_revenue_retention: 45 / 40,
  })
  assert.deepEqual(
    cohorts.results.map((row: Body) => [row.cohort, row.month, row.accounts, row.mrr, row.at]),
    [
      ['2026-01', 0, 3, 40, '2026-02-01T00:00:00.000Z'],
      ['2026-01', 1, 2, 45, '2026-03-01T00:00:00.000Z'],
      ['2026-01', 2, 2, 45, '2026-03-05T00:00:00.000Z'],
      ['2026-02', 0, 1, 10, '2026-03-01T00:00:00.000Z'],
      ['2026-02', 1, 1, 10, '2026-03-05T00:00:00.000Z'],
    ],
  )
  const short = await reportOf(server, 'retention', { months: 2, as_of: '2026-03-05' }, tenant)
  assert.deepEqual([...new Set(short.cohorts.results.map((row: Body) => row.cohort))], ['2026-02'])
  for (const wrong of [0, 61, 'x']) {
    const { status, body } = await ask(server, 'retention', { currency: 'EUR', months: wrong })
    assert.deepEqual([status, body.errors[0].pointer], [400, '/months'])
  }
})
