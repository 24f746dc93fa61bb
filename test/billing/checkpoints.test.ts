// A subscription with many versions is derived from its checkpoint. The result equals a derivation from all versions.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { deriveOutdated } from '../../src/pipeline/billing/subscriptions.ts'
import { inTransaction } from '../../src/postgres/database.ts'
import { queueSubscriptions } from '../../src/store/billing/versions.ts'
import { startServer, type TestServer } from '../server.ts'
import { type BillingEvent, created, inDays, item, reportOf, send, updated } from '../subscriptions/shop.ts'

let server: TestServer
before(async () => {
  server = await startServer()
})
after(() => server.close())

const TABLES = {
  billing_segments: 'subscription_id, valid_from',
  billing_items: 'subscription_id, place, valid_from',
  billing_account_states: 'account, currency, valid_from',
  billing_movements: 'account, currency, occurred_at',
  billing_agenda: 'subscription_id, kind, due_at, known_from',
}
const SUMS = `select day, currency, sum(accounts) as accounts, sum(mrr) as mrr, sum(items_excluded) as excluded
  from billing_account_days group by 1, 2 having sum(accounts) <> 0 or sum(mrr) <> 0 or sum(items_excluded) <> 0 order by 1, 2`

async function ledger(): Promise<Record<string, unknown[]>> {
  const found: Record<string, unknown[]> = {}
  for (const [table, order] of Object.entries(TABLES))
    found[table] = (await server.pool.query(`select * from ${table} order by ${order}`)).rows
  return { ...found, sums: (await server.pool.query(SUMS)).rows }
}

async function deriveWhole(): Promise<void> {
  const { rows } = await server.pool.query('select tenant_id as "tenantId", id from billing_subscriptions')
  const cause = { eventId: null, receivedAt: new Date() }
  await queueSubscriptions(
    server.pool,
    rows.map(key => ({ ...key, ...cause })),
  )
  await inTransaction(server.pool, client => deriveOutdated({ client, now: new Date() }, 1000))
}

const STATUSES = ['active', 'active', 'active', 'past_due', 'paused', 'active', 'trialing']

/** The given number of hours after its start, 100 days ago. */
function change(hour: number, changes: Record<string, unknown> = {}): BillingEvent {
  return updated('many', {
    customer: 'cus_1',
    status: STATUSES[hour % STATUSES.length],
    updated_at: inDays(-100 + hour / 24),
    items: [item(10, { quantity: 1 + (hour % 5) }), ...(hour % 3 === 0 ? [item(3, { id: 'si_2' })] : [])],
    ...(hour % 4 === 0 && { discounts: [{ percent_off: 20, ends_at: inDays(-100 + (hour + 2.5) / 24) }] }),
    ...changes,
  })
}

test('deriving from a checkpoint equals deriving from all versions, in any order of arrival', async () => {
  await send(server, [
    created('other', { customer: 'cus_1', started_at: inDays(-99.5) }),
    ...Array.from({ length: 230 }, (_, hour) => change(2 * hour)),
  ])
  // a derivation that continues from the checkpoint keeps this mark, a complete derivation removes it
  await server.pool.query(
    `update billing_subscriptions set checkpoint = (checkpoint::jsonb || '{"mark": 1}')::json where checkpoint is not null`,
  )
  await send(server, [change(459)])
  const { rows } = await server.pool.query(
    `select checkpoint ->> 'mark' as mark from billing_subscriptions where id like '%many'`,
  )
  assert.deepEqual(rows, [{ mark: '1' }])
  const batches: [string, BillingEvent[]][] = [
    ['one more', [change(460)]],
    ['many more', Array.from({ length: 120 }, (_, n) => change(462 + 2 * n))],
    ['late, after the checkpoint', [change(681), change(683)]],
    ['late, before the checkpoint', [change(31)]],
    ['at the time of another, and of another account', [change(680), change(702, { customer: 'cus_2' })]],
    ['an end that reaches back', [change(704, { status: 'canceled', ended_at: inDays(-100 + 699.5 / 24) })]],
    [
      'another subscription of the account',
      [updated('other', { customer: 'cus_1', updated_at: inDays(-71), items: [item(70)] })],
    ],
    ['named at last', [change(706, { customer_name: 'Ada', acquisition: { source: 'ads' } })]],
    [
      'a deletion, and something after it',
      [{ ...change(710, { items: [] }), type: 'subscription.deleted' }, change(712)],
    ],
  ]
  for (const [name, events] of batches) {
    await send(server, events)
    const continued = await ledger()
    await deriveWhole()
    assert.deepEqual(continued, await ledger(), name)
  }
  const { totals } = await reportOf(server, 'movements')
  assert.equal(totals.closing_mrr, (await reportOf(server, 'overview')).mrr)
})
