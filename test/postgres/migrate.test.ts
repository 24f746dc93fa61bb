import assert from 'node:assert/strict'
import { createHash, randomUUID } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { after, before, beforeEach, test } from 'node:test'
import type pg from 'pg'
import { inTransaction, openPool } from '../../src/postgres/database.ts'
import { applyMigrations, migrate } from '../../src/postgres/migrate.ts'
import { testDatabase } from '../database.ts'

const directory = new URL('../../migrations/', import.meta.url)
const files = readdirSync(directory)
  .filter(name => name.endsWith('.sql'))
  .sort()
  .map(name => ({ name, sql: readFileSync(new URL(name, directory), 'utf8') }))

let database: Awaited<ReturnType<typeof testDatabase>>
let pool: pg.Pool
before(async () => {
  database = await testDatabase()
  pool = openPool({ connection: { url: database.url }, max: 8, name: 'migrate', onError: () => undefined })
})
beforeEach(beginEmpty)
after(async () => {
  await pool.end()
  await database.drop()
})

const allNames = files.map(({ name }) => name)

async function beginEmpty(): Promise<void> {
  await pool.query('drop schema if exists kontor_bi cascade')
  await pool.query('drop schema public cascade')
  await pool.query('create schema public')
}

function migrateOnly(name: string): Promise<string[]> {
  return inTransaction(pool, client => applyMigrations(client, { only: [{ name, checksum: '' }] }))
}

/** Everything that a schema consists of, as text. */
async function schema(): Promise<string[]> {
  const { rows } = await pool.query<{ line: string }>(`
    select format('column %s.%s %s %s %s %s', table_name, column_name, data_type, is_nullable, column_default, generation_expression) as line
    from information_schema.columns where table_schema = 'public'
    union all select 'index ' || indexdef from pg_indexes where schemaname = 'public'
    union all select format('constraint %s %s', conrelid::regclass, pg_get_constraintdef(oid)) from pg_constraint
      where connamespace = 'public'::regnamespace
    union all select 'function ' || pg_get_functiondef(oid) from pg_proc where pronamespace = 'public'::regnamespace
    union all select format('view %s %s', viewname, definition) from pg_views where schemaname = 'kontor_bi'
    union all select 'trigger ' || pg_get_triggerdef(oid) from pg_trigger where not tgisinternal
    union all select format('relation %s %s %s', relname, relkind, reloptions) from pg_class
      where relnamespace = 'public'::regnamespace
    order by line`)
  return rows.map(row => row.line)
}

/** As an earlier version left the database: with the first `count` migrations. */
async function atVersion(count: number): Promise<void> {
  await pool.query(
    'create table schema_migrations (name text primary key, checksum text not null, applied_at timestamptz not null default now())',
  )
  for (const { name, sql } of files.slice(0, count)) {
    await pool.query(sql)
    const checksum = createHash('sha256').update(sql).digest('hex')
    await pool.query('insert into schema_migrations (name, checksum) values ($1, $2)', [name, checksum])
  }
}

test('an empty database and one of any earlier version end in the same schema', async () => {
  assert.deepEqual(await migrate(pool), allNames)
  const fromEmpty = await schema()
  // From the first version straight to the newest, from the last one, and from each to the one after it.
  for (const count of [1, files.length - 1]) {
    await beginEmpty()
    await atVersion(count)
    assert.deepEqual(await migrate(pool), allNames.slice(count))
    assert.deepEqual(await schema(), fromEmpty)
  }
  await beginEmpty()
  for (const { name } of files) assert.deepEqual(await migrateOnly(name), [name])
  assert.deepEqual(await schema(), fromEmpty)
})

test('a database that is up to date is left as it is', async () => {
  await migrate(pool)
  const before = await schema()
  assert.deepEqual(await migrate(pool), [])
  assert.deepEqual(await schema(), before)
})

test('several nodes at once: each migration is applied by one of them', async () => {
  const applied = await Promise.all(Array.from({ length: 6 }, () => migrate(pool)))
  assert.deepEqual(applied.flat().sort(), allNames)
  assert.equal(applied.filter(names => names.length > 0).length, 1)
})

test('a migration that was changed after it had been applied is refused, and nothing is done', async () => {
  await atVersion(2)
  await pool.query(`update schema_migrations set checksum = 'another' where name = $1`, [allNames[0]])
  const before = await schema()
  await assert.rejects(migrate(pool), new RegExp(`its migration ${allNames[0]} is not the one here`))
  assert.deepEqual(await schema(), before)
})

test('a database of a newer version is refused, and nothing is done', async () => {
  await atVersion(2)
  await pool.query(`insert into schema_migrations (name, checksum) values ('9999_later.sql', 'x')`)
  const before = await schema()
  await assert.rejects(
    migrate(pool),
    /made by a newer version of Kontor: it has the migration 9999_later.sql/,
  )
  assert.deepEqual(await schema(), before)
})

test('a migration that fails leaves the schema as it was', async () => {
  await atVersion(1)
  // In the way of a later migration.
  await pool.query('create table records (id int)')
  const before = await schema()
  await assert.rejects(migrate(pool), /already exists/)
  assert.deepEqual(await schema(), before)
})

test('entries of an earlier version are read as they came in: their context names the route', async () => {
  const migration = files.findIndex(({ name }) => name.endsWith('_event_route.sql'))
  await atVersion(migration)
  await pool.query('create table log_all partition of log for values from (minvalue) to (maxvalue)')
  const context = JSON.stringify({ ip: null, headers: { door: 'cdp' }, door: 'inbound', sourceId: 'src_1' })
  const entry = { id: randomUUID(), kind: 'events', tenant: 1, context }
  const values = [entry.id, entry.kind, entry.tenant, entry.context]
  const common = 'id, kind, tenant_id, context, ordering_key, received_at, body'
  const given = `$1, $2, $3, $4, 'k', now(), '{}'`
  await pool.query(
    `insert into log (${common}, partition, ord, body_bytes) values (${given}, 0, 0, 2)`,
    values,
  )
  await pool.query(
    `insert into parked_entries (${common}, lane, attempts, next_attempt_at) values (${given}, 'l', 0, now())`,
    values,
  )
  await pool.query(
    `insert into dead_letters (${common}, reason, error, attempts) values (${given}, 'failed', 'e', 1)`,
    values,
  )
  await pool.query(
    `insert into overflow (${common}, source_id, items, body_bytes) values (${given}, 'src_1', 1, 2)`,
    values,
  )
  const record = JSON.stringify({ op: 'write', entityType: 'product' })
  await pool.query(`insert into log (${common}, partition, ord, body_bytes) values (${given}, 0, 1, 2)`, [
    randomUUID(),
    'record',
    1,
    record,
  ])
  await migrate(pool)
  for (const table of ['log', 'parked_entries', 'dead_letters', 'overflow']) {
    const { rows } = await pool.query(`select context from ${table} where kind = 'events'`)
    assert.deepEqual(
      rows.map(row => JSON.parse(row.context)),
      [{ ip: null, headers: { door: 'cdp' }, route: 'inbound', sourceId: 'src_1' }],
      table,
    )
  }
  const { rows } = await pool.query("select context from log where kind = 'record'")
  assert.deepEqual(rows, [{ context: record }])
})

test('series of what an earlier version kept are there after it', async () => {
  await atVersion(files.findIndex(({ name }) => name.endsWith('_series.sql')))
  await pool.query(
    `insert into events (tenant_id, id, occurred_at, received_at, event_type, conversion, source, source_type, payload)
     select 1, gen_random_uuid(), timestamptz '1999-12-30 21:30:00Z' + n * interval '1 hour', now(), 'type ' || n % 2, n = 3,
       'tracking', 'tracking', '{}'
     from generate_series(1, 4) n`,
  )
  await pool.query(
    `insert into conversions (tenant_id, sale_key, id, order_state, order_placed_at, order_amount, order_currency)
     select 1, 'order:' || n, gen_random_uuid(), case n when 1 then 'deleted' else 'live' end, '1999-12-31 22:30:30Z', n, 'EUR'
     from generate_series(1, 3) n`,
  )
  await migrate(pool)
  const sums = (table: string, sum: string) =>
    pool.query(
      `select grain, to_char(at, 'MM-DD HH24:MI') as at, event_type, ${sum} as sum from ${table} order by grain, at, event_type`,
    )
  const { rows: events } = await sums('event_sums', 'count')
  assert.deepEqual(
    events.filter(({ grain }) => grain === 'day'),
    [
      { grain: 'day', at: '12-30 00:00', event_type: '', sum: 2 },
      { grain: 'day', at: '12-30 00:00', event_type: 'type 0', sum: 1 },
      { grain: 'day', at: '12-30 00:00', event_type: 'type 1', sum: 1 },
      { grain: 'day', at: '12-31 00:00', event_type: '', sum: 1 },
      { grain: 'day', at: '12-31 00:00', event_type: 'type 0', sum: 1 },
    ],
  )
  const { rows: conversions } = await sums('conversion_sums', `count || ' ' || amount || ' ' || currency`)
  assert.deepEqual(conversions, [
    { grain: 'day', at: '12-31 00:00', event_type: '', sum: '2 5 EUR' },
    { grain: 'hour', at: '12-31 22:00', event_type: '', sum: '2 5 EUR' },
    { grain: 'minute', at: '12-31 22:30', event_type: '', sum: '2 5 EUR' },
  ])
})

test('money that an earlier version knew is cash after it, once, and its sums are of these rows', async () => {
  await atVersion(files.findIndex(({ name }) => name.endsWith('_billing_cash.sql')))
  // by invoice: of a subscription or not, paid, told in two states, not paid, paid with nothing
  await pool.query(
    `insert into billing_invoices (tenant_id, id, subscription_id, currency)
     values (1, 'in_1', 'sub_1', 'EUR'), (1, 'in_2', null, 'EUR'), (1, 'in_3', 'sub_1', 'EUR'), (1, 'in_4', 'sub_1', 'EUR')`,
  )
  await pool.query(
    `insert into billing_invoice_states (tenant_id, invoice_id, valid_from, valid_to, currency, subscription_id, invoiced_at,
       total, collected_at, amount_paid, hash, body)
     select 1, i.id, i.starts::timestamptz, i.ends::timestamptz, 'EUR', b.subscription_id, '2026-01-01', 1000, i.paid::timestamptz,
       i.amount, gen_random_uuid(), '{}'
     from (values ('in_1', '2026-01-01', '2026-01-02', null, 0), ('in_1', '2026-01-02', 'infinity', '2026-01-02 23:59Z', 1000),
       ('in_2', '2026-01-01', 'infinity', '2026-01-03Z', 500), ('in_3', '2026-01-01', 'infinity', null, 0),
       ('in_4', '2026-01-01', 'infinity', '2026-01-01Z', 0)) as i (id, starts, ends, paid, amount)
     join billing_invoices b on b.tenant_id = 1 and b.id = i.id`,
  )
  await pool.query(
    `insert into billing_refunds (tenant_id, id, invoice_id, charge_id, currency, amount, created_at, counted, body)
     values (1, 're_1', 'in_1', 'ch_1', 'EUR', 300, '2026-01-03Z', true, '{}'), (1, 're_2', 'in_1', null, 'EUR', 300, '2026-01-03Z', false, '{}'),
       (1, 're_3', 'in_2', null, 'EUR', 100, '2026-01-03Z', true, '{}'), (1, 're_4', null, 'ch_9', 'EUR', 900, '2026-01-03Z', true, '{}')`,
  )
  await pool.query(
    `insert into billing_cash_days (tenant_id, day, currency, invoiced, invoices, collected, payments)
     values (1, '2026-01-01', 'EUR', 4000, 4, 0, 1), (1, '2026-01-02', 'EUR', 0, 0, 1000, 1), (1, '2026-01-03', 'EUR', 0, 0, 100, 1)`,
  )
  await migrate(pool)
  const { rows: cash } = await pool.query(
    'select owner, kind, id, amount, recurring from billing_cash order by owner, kind',
  )
  assert.deepEqual(cash, [
    { owner: 'invoice in_1', kind: 'payment', id: 'in_1', amount: 1000, recurring: true },
    { owner: 'invoice in_1', kind: 'refund', id: 're_1', amount: 300, recurring: true },
    { owner: 'invoice in_2', kind: 'payment', id: 'in_2', amount: 500, recurring: false },
    { owner: 'invoice in_2', kind: 'refund', id: 're_3', amount: 100, recurring: false },
  ])
  const { rows: days } = await pool.query(
    `select to_char(day, 'DD') as day, sum(invoiced)::int as invoiced, sum(collected)::int as collected, sum(payments)::int as payments,
       sum(refunded)::int as refunded, sum(one_off)::int as one_off from billing_cash_days group by day order by day`,
  )
  const nothing = { invoiced: 0, collected: 0, payments: 0, refunded: 0, one_off: 0 }
  assert.deepEqual(days, [
    { ...nothing, day: '01', invoiced: 4000 },
    { ...nothing, day: '02', collected: 1000, payments: 1 },
    { ...nothing, day: '03', refunded: 300, one_off: 400 },
  ])
  const { rows: refunds } = await pool.query(
    'select id, payment_id from billing_refunds where payment_id is not null order by id',
  )
  assert.deepEqual(refunds, [
    { id: 're_1', payment_id: 'ch_1' },
    { id: 're_4', payment_id: 'ch_9' },
  ])
})
