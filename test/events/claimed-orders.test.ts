import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type pg from 'pg'
import { applyConversions, foldNextPortion } from '../../src/pipeline/conversions/conversions.ts'
import type { ConversionEvent } from '../../src/pipeline/conversions/profile-sales.ts'
import { openIdentities } from '../../src/pipeline/identity/linking.ts'
import { inTransaction } from '../../src/postgres/database.ts'
import { findProfiles } from '../../src/store/identity/identities.ts'
import { type OwnServer, startServer, type TestTenant } from '../server.ts'
import { json, rowsOf } from './rows.ts'

// Any visitor can send any order id. The cost of an event must not depend on how many did.

const CLAIMS = 40_000

let server: OwnServer
let tenant: TestTenant
before(async () => {
  server = await startServer({ KONTOR_OPS_PORT: '0' })
  tenant = await server.anotherTenant('claims')
  await claimOrder()
})
after(() => server.close())

async function post(path: string, key: string, body: object): Promise<void> {
  const { status } = await server.request(path, { method: 'POST', key, body: json(body) })
  assert.equal(status, 200)
}

const idOf = (tenant: TestTenant) => Number(tenant.id.slice(4))

/** The rows that this many events of different visitors leave, all with the same order id. */
async function claimOrder(): Promise<void> {
  await inTransaction(server.pool, async client => {
    await client.query(
      `with visitors as (
         insert into identities (tenant_id, node, profile, kind, value)
         select $1, node, node, 'visitor', 'claimant ' || n
         from (select n, nextval('identity_nodes') as node from generate_series(1, $2::int) n) v
         returning node, value
       )
       insert into conversions (tenant_id, sale_key, id, order_id, event_id, event_verified, event_occurred_at, event_type,
         event_conversion_type, event_source, claim_id, claim_visitor, claim_node, claims)
       select $1, 'order:o' || chr(10) || id, id, 'o', id, false, now(), 'convert', 'convert', 'tracking', id, value, node, 1
       from (select *, gen_random_uuid() as id from visitors) v`,
      [idOf(tenant), CLAIMS],
    )
    // No test reads the customers of these visitors, and computing them takes seconds.
    await client.query('delete from customer_changes where tenant_id = $1', [idOf(tenant)])
  })
}

/** Rows of the table that the transaction has read, written or deleted so far. */
async function touched(client: pg.PoolClient): Promise<number> {
  const { rows } = await client.query<{ rows: number }>(
    `select (seq_tup_read + coalesce(idx_tup_fetch, 0) + n_tup_ins + n_tup_upd + n_tup_del)::int as rows
     from pg_stat_xact_user_tables where relname = 'conversions'`,
  )
  return rows[0]!.rows
}

function conversionOf(tenantId: number, n: number, trusted: boolean, node: number | null): ConversionEvent {
  const event = {
    ...{ id: `ffffffff-0000-7000-8000-${String(n).padStart(12, '0')}`, occurredAt: new Date(), eventType: 'convert' },
    ...{ trusted, visitor: node === null ? null : 'a visitor', sourceConfigId: null },
  } as ConversionEvent['event']
  const none = { saleKey: null, sourceObjectId: 'o', contactId: null, email: null }
  const conversion = {
    ...none,
    orderId: 'o',
    conversionType: 'convert',
    source: 'tracking',
    amount: '5',
    currency: 'EUR',
  }
  return { tenantId, event, node, conversion: conversion as ConversionEvent['conversion'] }
}

test('an event, verified input and a portion of a fold touch few rows of an order with 40,000 claims', async () => {
  const tenantId = idOf(tenant)
  const undone = new Error('undone')
  await inTransaction(server.pool, async client => {
    const { rows } = await client.query<{ node: number }>(
      'select node from identities where tenant_id = $1 order by node desc limit 1',
      [tenantId],
    )
    const { node } = rows[0]!
    assert.equal((await findProfiles(client, [{ tenantId, node }])).length, 1)
    const transaction = { client, now: new Date(), configVersion: 1 }
    const apply = (event: ConversionEvent) => applyConversions(openIdentities(), transaction, [event])
    let before = await touched(client)
    const step = async () => {
      const now = await touched(client)
      const rows = now - before
      before = now
      return rows
    }
    await apply(conversionOf(tenantId, 1, false, node))
    assert.ok((await step()) < 20, 'a known visitor')
    await apply(conversionOf(tenantId, 2, false, null))
    assert.ok((await step()) < 20, 'an event without a visitor')
    await apply(conversionOf(tenantId, 3, true, null))
    assert.ok((await step()) < 100, 'verified input')
    await apply(conversionOf(tenantId, 4, false, node))
    assert.ok((await step()) < 20, 'a claim of a verified sale')
    assert.equal(await foldNextPortion(transaction), true)
    assert.ok((await step()) < 3_000, 'a portion of 500 rows')
    throw undone
  }).catch(error => assert.equal(error, undone))
})

test('when a webhook reports an order with 40,000 claims, they become one sale', async () => {
  const source = await server.admin.sources.create({ tenant: tenant.id, type: 'webhook' })
  const convert = (visitor: string) =>
    post('/v1/track/', tenant.trackingKey, {
      ...{ event_type: 'convert', visitor },
      data: { order_id: 'o', amount: -1, currency: 'USD' },
    })
  await convert('one more')
  await server.settled()
  await post(`/ingest/inbound/${source.id}`, source.token, {
    ...{ inbound_event_id: 'w', event_type: 'order.paid' },
    payload: { id: 'o', total: 99.5, currency: 'EUR' },
  })
  await convert('afterwards')
  await server.settled()
  const rows = await rowsOf(server, 'conversions', { key: tenant.privateKey })
  assert.deepEqual(
    rows.map(row => [row.amount, row.currency, row.source, row.verified, row.claims]),
    [[99.5, 'EUR', 'webhook', true, CLAIMS + 2]],
  )
  assert.match(rows[0].visitor, /^claimant/)
  const metrics = await (await fetch(`${server.opsUrl}/metrics`)).text()
  assert.match(metrics, new RegExp(`^kontor_excess_sale_claims ${CLAIMS + 2 - 20}$`, 'm'))
  const { rows: sums } = await server.pool.query(
    `select sum(count)::int as count, sum(amount)::float as amount from (
       select count, amount from conversion_sums where tenant_id = $1 and grain = 'minute'
       union all select count, amount from conversion_sums_added where tenant_id = $1) s`,
    [idOf(tenant)],
  )
  assert.deepEqual(sums, [{ count: 1, amount: 99.5 }])
})

test('the lag metrics include parked entries and requested folds', async () => {
  const lags = async () => (await fetch(`${server.opsUrl}/metrics`)).text()
  await server.pool.query(
    `insert into parked_entries (partition, id, tenant_id, kind, ordering_key, received_at, context, body, attempts,
       next_attempt_at)
     values ('elsewhere/1', gen_random_uuid(), 1, 'events', 'x', now() - interval '1 hour', '{}', '{}', 0, now())`,
  )
  const text = await lags()
  assert.match(text, /^kontor_pipeline_lag_entries\{partition="elsewhere\/1"\} 1$/m)
  assert.match(text, /^kontor_pipeline_lag_seconds\{partition="elsewhere\/1"\} 36\d\d/m)
  await server.pool.query(`delete from parked_entries where partition = 'elsewhere/1'`)
})
