import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { readBilling } from '../../src/domain/billing/feed.ts'
import { applyBilling, type Said } from '../../src/pipeline/billing/billing.ts'
import { inTransaction } from '../../src/postgres/database.ts'
import { extendAgenda } from '../../src/store/billing/agenda.ts'
import { refreshDays } from '../../src/store/billing/days.ts'
import { eventually } from '../eventually.ts'
import { startServer, type TestServer, type TestTenant } from '../server.ts'
import {
  type BillingEvent,
  created,
  DAY_MS,
  inDays,
  invoice,
  item,
  reportOf,
  send,
  updated,
} from '../subscriptions/shop.ts'

let server: TestServer
before(async () => {
  server = await startServer()
})
after(() => server.close())

let numbers = 0

function saidBy(tenant: TestTenant, { type, data }: BillingEvent): Said {
  const at = Date.now()
  return {
    tenantId: Number(tenant.id.slice(4)),
    eventId: `00000000-0000-7000-8000-${String(++numbers).padStart(12, '0')}`,
    eventType: type,
    node: null,
    change: readBilling(type, data, at)!,
  }
}

/** Makes the sums; the running service may be at it too, and then this waits for it. */
async function refreshed(tenant: TestTenant): Promise<void> {
  await eventually('the sums to be made', async () => {
    for (const sums of ['accounts', 'cash', 'agenda'] as const) while (await refreshDays(server.pool, sums));
    return (await staleDays(tenant)) === 0
  })
}

async function staleDays(tenant: TestTenant): Promise<number> {
  const { rows } = await server.pool.query(
    'select count(*)::int as days from billing_stale_days where tenant_id = $1',
    [Number(tenant.id.slice(4))],
  )
  return rows[0].days
}

test('transactions that touch one account at once miss nothing of each other', async () => {
  const tenant = await server.anotherTenant('at once')
  const rounds = 12
  await Promise.all(
    Array.from({ length: 4 }, async (_, worker) => {
      for (let round = 0; round < rounds; round++) {
        const events = [
          created(`s${worker}-${round}`, { customer: `c${round % 3}` }),
          updated('shared', {
            customer: 'c0',
            updated_at: inDays(-90 + worker * rounds + round),
            items: [item(1 + round)],
          }),
          invoice('paid', `in${round % 5}`, {
            subscription: `s${worker}-${round}`,
            status: 'paid',
            total: worker + 1,
            updated_at: inDays(-50 + round),
          }),
        ]
        await inTransaction(server.pool, client =>
          applyBilling(
            { client, now: new Date(), configVersion: 1, afterCommit: action => action() },
            events.map(event => saidBy(tenant, event)),
          ),
        )
      }
    }),
  )
  const overview = await reportOf(server, 'overview', { page_size: 100 }, tenant)
  assert.equal(overview.active_subscriptions, 4 * rounds + 1)
  assert.equal(overview.mrr, 4 * rounds * 10 + rounds)
  assert.equal(
    overview.accounts.results.reduce((sum: number, row: { mrr: number }) => sum + row.mrr, 0),
    overview.mrr,
  )
  const { movements } = overview
  assert.equal(movements.opening_mrr + movements.net, movements.closing_mrr)
})

test('a report is the same from sums and from rows', async () => {
  const tenant = await server.anotherTenant('sums')
  const events = Array.from({ length: 60 }, (_, i) => [
    created(`s${i}`, {
      customer: `c${i % 40}`,
      started_at: inDays(-200 + 3 * i),
      currency: i % 5 === 0 ? 'USD' : 'EUR',
      items: [item(i)],
      current_period_end: inDays(i % 45),
      acquisition: i % 3 === 0 ? { source: `src${i % 4}` } : null,
      ...(i % 6 === 0 && { cancel_at: inDays(i % 40) }),
    }),
    invoice('paid', `in${i}`, {
      subscription: `s${i}`,
      status: 'paid',
      total: i,
      tax: 1,
      finalized_at: inDays(-i),
      paid_at: inDays(-i / 2),
    }),
  ]).flat()
  await send(server, events, tenant)
  const times = [inDays(0.0001), inDays(-10), inDays(-100)]
  const ask = async () =>
    Promise.all(
      times.flatMap(as_of =>
        ['EUR', 'USD'].map(currency =>
          reportOf(server, 'overview', { as_of, currency, page_size: 100 }, tenant),
        ),
      ),
    )
  await server.pool.query(
    `insert into billing_stale_days (tenant_id, sums, day)
     select $1, sums, d::date from unnest(array['accounts', 'cash', 'agenda']) sums,
       generate_series(now() - interval '230 days', now() + interval '140 days', interval '1 day') d`,
    [Number(tenant.id.slice(4))],
  )
  const fromRows = await ask()
  await refreshed(tenant)
  assert.deepEqual(await ask(), fromRows)
  // a late event makes a day of a whole month stale
  await send(
    server,
    [
      updated('s3', {
        customer: 'c3',
        started_at: inDays(-191),
        updated_at: inDays(-150),
        items: [item(77)],
      }),
    ],
    tenant,
  )
  const halfStale = await ask()
  await refreshed(tenant)
  assert.deepEqual(await ask(), halfStale)
  assert.notDeepEqual(halfStale, fromRows)
})

test('the service makes the sums by itself', async () => {
  const tenant = await server.anotherTenant('by itself')
  await send(server, [created('s')], tenant)
  await eventually('the sums to be made', async () => (await staleDays(tenant)) === 0)
  assert.equal((await reportOf(server, 'overview', {}, tenant)).mrr, 10)
})

test('the agenda moves along with time', async () => {
  const tenant = await server.anotherTenant('along')
  await send(server, [created('s', { current_period_end: inDays(5) })], tenant)
  const tenantId = Number(tenant.id.slice(4))
  const last = async () => {
    const { rows } = await server.pool.query(
      `select max(due_at) as last, (select agenda_until from billing_subscriptions where tenant_id = $1) as until
       from billing_agenda where tenant_id = $1`,
      [tenantId],
    )
    return rows[0]
  }
  const before = await last()
  const later = Date.now() + 40 * DAY_MS
  const extended = await inTransaction(server.pool, client => extendAgenda(client, later, 10_000))
  assert.ok(extended >= 1)
  const after = await last()
  assert.ok(after.last > before.last)
  assert.ok(after.until.getTime() >= before.until.getTime() + 39 * DAY_MS)
  assert.equal(await inTransaction(server.pool, client => extendAgenda(client, later, 10_000)), 0)
})
