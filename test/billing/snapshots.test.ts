import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { writeSnapshots } from '../../src/jobs/ledger.ts'
import { LOCKS, lock } from '../../src/postgres/locks.ts'
import { kontor, useDatabase } from '../cli/kontor.ts'
import { eventually } from '../eventually.ts'
import { startServer, TEST_SECRET_KEY, type TestTenant } from '../server.ts'
import { created, inDays, reportOf, send, updated } from '../subscriptions/shop.ts'
import { assertSums } from './sums.ts'

const server = await startServer()
after(() => server.close())
// at the top level: a mock in a hook is reset at the end of the hook
useDatabase(server.databaseUrl, { KONTOR_SECRET_KEY: TEST_SECRET_KEY })

// The server's own job runs every minute and would fill in what the tests leave out.
await server.pool.query(
  `create function ignore_the_job() returns trigger language plpgsql as $$ begin
     return case when current_setting('application_name') = 'kontor' then null else new end;
   end $$;
   create trigger ignore_the_job before insert on billing_snapshots for each row execute function ignore_the_job()`,
)

const dayOf = (days: number) => inDays(days).slice(0, 10)

async function coverageOf(tenant: TestTenant, query = {}) {
  const { coverage } = await reportOf(server, 'overview', query, tenant)
  return [coverage.snapshot_first_at?.slice(0, 10) ?? null, coverage.snapshot_days_available, coverage.snapshot_gaps]
}

async function forget(tenant: TestTenant, from: number, to: number): Promise<void> {
  await server.pool.query(
    `update billing_snapshots set days = days - datemultirange(daterange($2::date, $3::date)) where tenant_id = $1`,
    [Number(tenant.id.slice(4)), dayOf(from), dayOf(to)],
  )
}

test('backdated events have snapshots back to their effective date; today has none yet', async () => {
  const tenant = await server.anotherTenant('backdated')
  await send(server, [created('today', { started_at: inDays(0) })], tenant)
  assert.deepEqual(await coverageOf(tenant), [null, 0, 0])
  await send(server, [created('s', { started_at: inDays(-40) })], tenant)
  assert.deepEqual(await coverageOf(tenant), [dayOf(-40), 40, 0])
  await send(server, [created('older', { started_at: inDays(-400) })], tenant)
  assert.deepEqual(await coverageOf(tenant), [dayOf(-400), 400, 0])
  assert.deepEqual(await coverageOf(tenant, { as_of: inDays(-390) }), [dayOf(-400), 10, 0])
})

test('gaps are counted and reported, and the daily job fills in missed days', async () => {
  const tenant = await server.anotherTenant('gaps')
  await send(server, [created('s', { started_at: inDays(-50) })], tenant)
  await forget(tenant, -5, 0)
  assert.deepEqual(await coverageOf(tenant), [dayOf(-50), 45, 5])
  const { coverage } = await reportOf(server, 'overview', {}, tenant)
  assert.deepEqual(coverage.warnings, ['5 days have no snapshot: run `kontor snapshot`.'])
  const written = await writeSnapshots(server.pool, new Date())
  assert.deepEqual(
    written.filter(({ tenantId }) => tenantId === Number(tenant.id.slice(4))),
    [{ tenantId: Number(tenant.id.slice(4)), from: dayOf(-5), to: dayOf(-1), accounts: 1 }],
  )
  assert.deepEqual(await coverageOf(tenant), [dayOf(-50), 50, 0])
})

test('late events change snapshots', async () => {
  const tenant = await server.anotherTenant('late')
  await send(server, [created('s', { acquisition: { source: 'x' } })], tenant)
  const startingMrr = async () => {
    const { sources } = await reportOf(server, 'acquisition', {}, tenant)
    return sources.results[0].cohort_starting_mrr
  }
  assert.equal(await startingMrr(), 10)
  await send(
    server,
    [updated('s', { updated_at: inDays(-60), items: [{ id: 'i', unit_amount: 44, interval: 'month' }] })],
    tenant,
  )
  assert.equal(await startingMrr(), 44)
})

test('kontor snapshot writes one day, all missing days, or all days again, and prints JSON', async () => {
  const tenant = await server.anotherTenant('command')
  await send(server, [created('s', { started_at: inDays(-20) })], tenant)
  await forget(tenant, -20, 0)
  assert.deepEqual(await coverageOf(tenant), [null, 0, 0])
  const result = await kontor('snapshot', '--date', dayOf(-10))
  assert.deepEqual([result.code, result.err], [0, ''])
  const { snapshots } = result.json() as {
    snapshots: { tenant: string; from: string; to: string; accounts: number }[]
  }
  assert.deepEqual(
    snapshots.filter(snapshot => snapshot.tenant === tenant.id),
    [{ tenant: tenant.id, from: dayOf(-10), to: dayOf(-10), accounts: 1 }],
  )
  assert.deepEqual(await coverageOf(tenant), [dayOf(-10), 1, 9])
  await server.pool.query('update billing_account_days set mrr = mrr + 1')
  await kontor('snapshot', '--rebuild')
  assert.deepEqual(await coverageOf(tenant), [dayOf(-20), 20, 0])
  assert.ok((await assertSums(server, tenant)) > 0)
  for (const date of ['tomorrow', '2026-02-30', dayOf(0), dayOf(3)]) {
    const wrong = await kontor('snapshot', '--date', date)
    assert.deepEqual([wrong.code, wrong.out], [2, ''])
  }
})

test('sums that are compacted while they are rebuilt are not counted twice', async () => {
  const tenant = await server.anotherTenant('compacted')
  await send(server, [created('s', { started_at: inDays(-20) })], tenant)
  const client = await server.pool.connect()
  try {
    // What the compaction does.
    await client.query('begin')
    await lock(client, LOCKS.daySums)
    await client.query(`with taken as (delete from billing_account_days returning *)
      insert into billing_account_days select * from taken`)
    const rebuilding = kontor('snapshot', '--rebuild')
    await eventually('the command to wait', async () => {
      const { rows } = await server.pool.query(
        `select from pg_stat_activity
         where datname = current_database() and application_name = 'kontor command' and wait_event_type = 'Lock'`,
      )
      return rows.length > 0
    })
    await client.query('commit')
    assert.equal((await rebuilding).code, 0)
  } finally {
    await client.query('rollback')
    client.release()
  }
  assert.ok((await assertSums(server, tenant)) > 0)
})
