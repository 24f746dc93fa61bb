import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type pg from 'pg'
import { readBilling } from '../../src/domain/billing/read.ts'
import type { Identifier } from '../../src/domain/identity/identifiers.ts'
import { newEntryId } from '../../src/domain/ids.ts'
import { applyBilling } from '../../src/pipeline/billing/billing.ts'
import { anonymizeBilling } from '../../src/pipeline/billing/erasure.ts'
import { attributeAccounts } from '../../src/pipeline/billing/subscriptions.ts'
import type { FreshEvent } from '../../src/pipeline/events/events.ts'
import { resolveNodes } from '../../src/pipeline/identity/follow-profiles.ts'
import { openIdentities } from '../../src/pipeline/identity/linking.ts'
import { openTouches } from '../../src/pipeline/identity/touches.ts'
import type { Transaction } from '../../src/pipeline/unit.ts'
import { eventually } from '../eventually.ts'
import { sharedServer, startServer, type TestServer, type TestTenant } from '../server.ts'
import { type Body, created, inDays, reportOf, send } from '../subscriptions/shop.ts'
import { assertSums } from './sums.ts'

let server: TestServer
before(async () => {
  server = await sharedServer()
})
after(() => server.close())

async function sourcesOf(tenant: TestTenant): Promise<Record<string, number>> {
  const { sources } = await reportOf(server, 'acquisition', {}, tenant)
  return Object.fromEntries(sources.results.map((row: Body) => [row.source, row.mrr]))
}

const VISITOR: Identifier = { kind: 'visitor', value: 'v' }
const CUSTOMER: Identifier = { kind: 'contact', value: 'cus_s' }
const TRUSTED = { verified: true, receivedAt: new Date(), cause: { kind: 'event', id: 'r' } } as const

/** What three transactions may learn about one person, each in a worker without caches. */
function learning(tenantId: number) {
  const identities = openIdentities()
  const nodeOf = async (transaction: Transaction, identity: Identifier) =>
    (await resolveNodes(identities, transaction, [{ tenantId, identifiers: [identity], ...TRUSTED }]))[0]!
  return {
    async touch(transaction: Transaction) {
      const node = await nodeOf(transaction, VISITOR)
      const event = {
        id: newEntryId(Date.now()),
        ...{ occurredAt: new Date(), receivedAt: new Date(), trusted: true },
        eventType: 'page_view',
        subject: { page: 'https://shop.example/?utm_source=ad' },
        context: null,
      }
      const fresh = { tenantId, node, event } as unknown as FreshEvent
      await attributeAccounts(transaction, await openTouches().apply(transaction, [fresh]))
    },
    async merge(transaction: Transaction) {
      await resolveNodes(identities, transaction, [{ tenantId, identifiers: [VISITOR, CUSTOMER], ...TRUSTED }])
    },
    async account(transaction: Transaction) {
      const { type, data } = created('s')
      const node = await nodeOf(transaction, CUSTOMER)
      const eventId = newEntryId(Date.now())
      const change = readBilling(type, data, Date.now())!
      await applyBilling(transaction, [
        {
          tenantId,
          eventId,
          eventType: type,
          sourceId: null,
          namespace: 'default',
          node,
          receivedAt: new Date(),
          change,
        },
      ])
    },
    /** Both identifiers exist, but are not linked. */
    async names(transaction: Transaction) {
      await nodeOf(transaction, VISITOR)
      await nodeOf(transaction, CUSTOMER)
    },
  }
}

type Work = (transaction: Transaction) => Promise<void>

async function begun(): Promise<{ client: pg.PoolClient; pid: number; transaction: Transaction }> {
  const client = await server.pool.connect()
  await client.query('begin')
  const { rows } = await client.query('select pg_backend_pid() as pid')
  return {
    client,
    pid: rows[0].pid,
    transaction: { client, now: new Date(), configVersion: 1 },
  }
}

async function alone(work: Work): Promise<void> {
  const { client, transaction } = await begun()
  await work(transaction)
  await client.query('commit')
  client.release()
}

/** Runs both concurrently: the second proceeds as far as it can before the first commits. */
async function atOnce(first: Work, second: Work): Promise<void> {
  const earlier = await begun()
  const other = await begun()
  await first(earlier.transaction)
  let isDone = false
  const doing = second(other.transaction).then(() => {
    isDone = true
  })
  const isWaiting = async () =>
    (await server.pool.query('select cardinality(pg_blocking_pids($1)) > 0 as waits', [other.pid])).rows[0].waits
  await eventually('the second transaction to end or to wait', async () => isDone || (await isWaiting()))
  await earlier.client.query('commit')
  await doing
  await other.client.query('commit')
  for (const { client } of [earlier, other]) client.release()
}

test('of two concurrent transactions that each write half of a fact, the second sees both halves', async () => {
  const kinds = ['touch', 'merge', 'account'] as const
  for (const first of kinds) {
    for (const second of kinds) {
      if (first === second) continue
      const tenant = await server.anotherTenant(`${first} and ${second}`)
      const learn = learning(Number(tenant.id.slice(4)))
      const [before] = kinds.filter(kind => kind !== first && kind !== second)
      await alone(learn.names)
      await alone(learn[before!])
      await atOnce(learn[first], learn[second])
      assert.deepEqual(await sourcesOf(tenant), { ad: 10 }, `${first} and ${second} at once`)
      await assertSums(server, tenant)
    }
  }
})

test('one transaction gives the same result in any order of events', async () => {
  for (const order of ['touch merge account', 'account merge touch', 'merge account touch', 'account touch merge']) {
    const tenant = await server.anotherTenant(order)
    const learn = learning(Number(tenant.id.slice(4)))
    await alone(async transaction => {
      for (const kind of order.split(' ') as ('touch' | 'merge' | 'account')[]) await learn[kind](transaction)
    })
    assert.deepEqual(await sourcesOf(tenant), { ad: 10 }, order)
    await assertSums(server, tenant)
  }
})

test('the acquisition source of an account and its sums survive the erasure of the person', async () => {
  const tenant = await server.tenantWithServerKey('erased')
  const learn = learning(Number(tenant.id.slice(4)))
  for (const kind of ['touch', 'merge', 'account'] as const) await alone(learn[kind])
  await send(server, [created('own', { customer: 'someone', acquisition: { source: 'word' } })], tenant)
  const before = await reportOf(server, 'acquisition', {}, tenant)
  await anonymizeBilling(server.pool, Number(tenant.id.slice(4)), { customers: ['cus_s'], emails: [] })
  for (const table of ['touches', 'identities'])
    await server.pool.query(`delete from ${table} where tenant_id = $1`, [Number(tenant.id.slice(4))])
  const after = await reportOf(server, 'acquisition', { as_of: before.as_of }, tenant)
  assert.deepEqual(after, before)
  assert.deepEqual(await sourcesOf(tenant), { ad: 10, word: 10 })
  await assertSums(server, tenant)
})

test('reports only read: they respond while all their tables are locked against writes', async t => {
  const server = await startServer() // the locks would block the other files of the shared server
  t.after(() => server.close())
  const tenant = await server.anotherTenant('held')
  await send(server, [created('s', { started_at: inDays(-50), customer: 'c' })], tenant)
  const client = await server.pool.connect()
  try {
    const { rows } = await client.query(
      `select string_agg(quote_ident(relname), ', ') as tables from pg_class
       where relkind = 'r' and relnamespace = 'public'::regnamespace
         and (relname like 'billing%' or relname in ('identities', 'touches', 'records'))`,
    )
    // A job may hold one of the tables and wait for another one. Waiting for it would be a deadlock.
    const tryToLock = async () => {
      await client.query('begin')
      return client.query(`lock table ${rows[0].tables} in exclusive mode nowait`).catch(async error => {
        assert.equal(error.code, '55P03')
        await client.query('rollback')
      })
    }
    await eventually('no job to hold a table', tryToLock)
    for (const report of ['overview', 'attention', 'acquisition', 'movements', 'retention']) {
      assert.equal((await reportOf(server, report, {}, tenant)).currency, 'EUR', report)
    }
    const { summary } = await reportOf(server, 'account', { customer: 'c' }, tenant)
    assert.equal(summary.mrr, 10)
  } finally {
    await client.query('rollback')
    client.release()
  }
})
