import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { readBilling } from '../../src/domain/billing/read.ts'
import { DAY_MS } from '../../src/domain/time.ts'
import { applyBilling, type BillingFact } from '../../src/pipeline/billing/billing.ts'
import { extendAgenda } from '../../src/pipeline/billing/subscriptions.ts'
import { inTransaction } from '../../src/postgres/database.ts'
import { compactSums } from '../../src/store/billing/sums.ts'
import { eventually } from '../eventually.ts'
import { startServer, type TestServer, type TestTenant } from '../server.ts'
import {
  type BillingEvent,
  created,
  ended,
  inDays,
  invoice,
  item,
  reportOf,
  send,
  updated,
} from '../subscriptions/shop.ts'
import { assertSums, looseSums } from './sums.ts'

let server: TestServer
before(async () => {
  server = await startServer()
})
after(() => server.close())

let numbers = 0

function factOf(tenant: TestTenant, { type, data }: BillingEvent): BillingFact {
  const at = Date.now()
  return {
    tenantId: Number(tenant.id.slice(4)),
    eventId: `00000000-0000-7000-8000-${String(++numbers).padStart(12, '0')}`,
    eventType: type,
    sourceId: null,
    namespace: 'default',
    node: null,
    receivedAt: new Date(at),
    change: readBilling(type, data, at)!,
  }
}

/** Compacts all sums. If the running service is compacting too, this waits for it. */
async function compacted(tenant: TestTenant): Promise<void> {
  await eventually('the sums to be compacted', async () => {
    while (await compactSums(server.pool));
    return (await looseSums(server, tenant)) === 0
  })
}

test('concurrent transactions on one account see each other’s changes', async () => {
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
            { client, now: new Date(), configVersion: 1 },
            events.map(event => factOf(tenant, event)),
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
  assert.ok((await assertSums(server, tenant)) > 0)
})

test('sums equal the totals of their rows at any time, and compacting them changes no report', async () => {
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
        ['EUR', 'USD'].map(currency => reportOf(server, 'overview', { as_of, currency, page_size: 100 }, tenant)),
      ),
    )
  const sums = await assertSums(server, tenant)
  assert.ok(sums > 100, `${sums} sums`)
  const loose = await ask()
  assert.ok(loose[0].mrr > 0 && loose[1].mrr > 0 && loose[4].mrr !== loose[0].mrr)
  await compacted(tenant)
  assert.equal(await assertSums(server, tenant), sums)
  assert.deepEqual(await ask(), loose)
  // late events change old days of the ledger, of cash and of the agenda
  await send(
    server,
    [
      updated('s3', {
        customer: 'c3',
        started_at: inDays(-191),
        updated_at: inDays(-150),
        items: [item(77)],
      }),
      ended('s4', inDays(-120), { customer: 'c4', started_at: inDays(-188) }),
      updated('s6', {
        customer: 'other',
        started_at: inDays(-182),
        updated_at: inDays(-100),
        currency: 'USD',
      }),
      invoice('voided', 'in7', { subscription: 's7', status: 'void', updated_at: inDays(-1) }),
      invoice('paid', 'in8', { subscription: 's8', status: 'paid', total: 99, updated_at: inDays(-2) }),
    ],
    tenant,
  )
  await assertSums(server, tenant)
  const changed = await ask()
  await compacted(tenant)
  await assertSums(server, tenant)
  assert.deepEqual(await ask(), changed)
  assert.notDeepEqual(changed, loose)
})

test('the service compacts sums automatically', async () => {
  const tenant = await server.anotherTenant('by itself')
  await send(server, [created('s')], tenant)
  await send(server, [updated('s', { updated_at: inDays(-1), items: [item(20)] })], tenant)
  await eventually('the sums to be compacted', async () => (await looseSums(server, tenant)) === 0)
  assert.ok((await assertSums(server, tenant)) > 0)
  assert.equal((await reportOf(server, 'overview', {}, tenant)).mrr, 20)
})

test('the agenda is extended as time passes', async () => {
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
  await assertSums(server, tenant)
})
