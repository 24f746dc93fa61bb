import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { after, before, test } from 'node:test'
import pg from 'pg'
import {
  denyLargeObjects,
  denyLocks,
  denyTemporaryTables,
  dropRole,
  limitTemporaryFiles,
  roleExists,
} from '../../src/store/tenants/sql-access.ts'
import { kontor, useDatabase } from '../cli/kontor.ts'
import { eventually } from '../eventually.ts'
import { startServer, type TestServer, type TestTenant } from '../server.ts'

let server: TestServer
before(async () => {
  server = await startServer()
})
after(() => server.close())

const VIEWS = [
  ...['products', 'contacts', 'orders', 'order_lines', 'events', 'touches', 'conversions', 'conversion_touches'],
  ...['subscriptions', 'invoices', 'movements'],
]
const SUMS = ['mrr_by_day', 'cash_by_day']

async function post(path: string, key: string, body: object) {
  const answer = await server.request(path, { method: 'POST', key, body: JSON.stringify(body) })
  assert.ok(answer.status < 300, JSON.stringify(answer.body))
}

/** Creates one object of each kind. */
async function fill(tenant: TestTenant, mrr: number): Promise<void> {
  const source = await server.admin.sources.create({ tenant: tenant.id, type: 'webhook' })
  const at = '2026-01-05T00:00:00Z'
  const record = (entityType: string, id: string, data: object) =>
    post(`/v1/${entityType}s`, tenant.privateKey, { entityType, id, sourceUpdatedAt: at, data })
  await record('product', 'p', { sku: 'MUG', name: 'Mug', owner: tenant.name })
  await record('contact', 'cus', { email: 'Ada@example.com', company: tenant.name })
  const items = [{ sku: 'MUG' }]
  await record('order', 'o', {
    contactId: 'cus',
    total: 19.9,
    currency: 'EUR',
    status: 'paid',
    created_at: at,
    items,
  })
  await post('/v1/track', tenant.trackingKey, {
    event_type: 'page_view',
    visitor: 'v',
    data: { secret: tenant.name },
  })
  const hook = (event_type: string, payload: object) =>
    post(`/ingest/inbound/${source.id}`, source.token, { inbound_event_id: event_type, event_type, payload })
  const price = { id: 'i', quantity: 1, unit_amount: mrr, interval: 'month', interval_count: 1, name: 'Pro' }
  const dates = { currency: 'EUR', started_at: at, updated_at: at }
  await hook('subscription.created', {
    id: 'sub',
    customer: 'cus',
    status: 'active',
    ...dates,
    items: [price],
  })
  const invoice = {
    number: 'R1',
    subscription: 'sub',
    customer: 'cus',
    status: 'paid',
    currency: 'EUR',
    total: mrr,
  }
  const paid = { amount_paid: mrr, amount_due: mrr, created_at: at, paid_at: at, updated_at: at }
  await hook('invoice.paid', { id: 'inv', ...invoice, ...paid })
  await hook('invoice.updated', { id: 'inv-2', ...invoice, ...paid, customer: 'cus-2' })
  await hook('refund.created', { id: 're', invoice: 'inv', amount: 5, currency: 'EUR', created_at: at })
  await server.settled()
  await server.admin.accounts.merge(tenant.id, { account: 'cus-2', into: 'cus' })
}

async function connected(connectionString: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString })
  client.on('error', () => {})
  // Also after a failed test, so that the process ends.
  after(() => client.end().catch(() => undefined))
  await client.connect()
  return client
}

test('a role reads only its tenant through the views and writes nothing', async () => {
  useDatabase(server.databaseUrl)
  const acme = await server.anotherTenant('acme')
  const rival = await server.anotherTenant('rival')
  await fill(acme, 29.5)
  await fill(rival, 1000)
  const created = await kontor('sql-access', 'create', '--tenant', 'acme', '--name', 'metabase')
  assert.equal(created.code, 0, created.err)
  const { role, connection, tenant } = created.json() as { role: string; connection: string; tenant: string }
  assert.equal(tenant, acme.id)
  const client = await connected(connection)
  try {
    for (const view of [...VIEWS, ...SUMS]) {
      const { rows } = await client.query(`select * from ${view}`)
      assert.ok(rows.length >= 1, view)
      assert.ok(
        rows.every(row => row.tenant === acme.id),
        view,
      )
      assert.doesNotMatch(JSON.stringify(rows), /rival/)
    }
    const firstRow = async (sql: string) => (await client.query(sql)).rows[0]
    assert.deepEqual(await firstRow('select mrr::float8, status from subscriptions'), {
      mrr: 29.5,
      status: 'active',
    })
    assert.deepEqual(await firstRow('select total::float8, status, customer from invoices'), {
      ...{ total: 29.5, status: 'paid', customer: 'cus' },
    })
    assert.deepEqual(await firstRow('select count(*)::int as invoices from invoices where customer <> $$cus$$'), {
      invoices: 0,
    })
    const today = await firstRow('select mrr::float8, active_accounts::int from mrr_by_day order by day desc limit 1')
    assert.deepEqual(today, { mrr: 29.5, active_accounts: 1 })
    assert.deepEqual(await firstRow('select amount::float8, currency, contact_id from orders'), {
      ...{ amount: 19.9, currency: 'EUR', contact_id: 'cus' },
    })

    // A function that prints its arguments must not receive rows of other tenants.
    const notices: string[] = []
    client.on('notice', notice => notices.push(String(notice.message)))
    const guide = await readFile(new URL('../../docs/guides/bi.md', import.meta.url), 'utf8')
    const questions = [...guide.matchAll(/```sql\n([\s\S]*?)```/g)].map(match => match[1]!)
    assert.ok(questions.length >= 8)
    for (const question of questions) await client.query(question)
    const byMonth = questions.find(question => question.includes('cash_by_day'))!
    const { invoiced, collected } = await firstRow(byMonth)
    const { body } = await server.request(
      '/v1/subscriptions/cash?currency=EUR&from=2026-01-01&to=2026-01-31&interval=month',
      { key: acme.privateKey },
    )
    assert.deepEqual([Number(invoiced), Number(collected)], [body.results[0].invoiced, body.results[0].collected])
    assert.equal(body.results[0].collected, 29.5 + 29.5 - 5)

    const refused = async (sql: string, code = /^(42501|25006|0A000|2BP01|42P01|55000)$/) =>
      assert.rejects(client.query(sql), error => code.test((error as { code: string }).code), sql)
    await client.query('set default_transaction_read_only = off')
    for (const table of [
      'records',
      'events',
      'log',
      'api_keys',
      'tenants',
      'sources',
      'sql_access',
      'billing_segments',
    ])
      await refused(`select * from public.${table}`, /^42501$/)
    await refused(`update sql_access set tenant_id = 1`, /^42(501|P01)$/)
    await refused(`insert into public.sql_access (role, tenant_id) values ('x', 1)`, /^42501$/)
    await refused(`insert into products (id) values ('x')`)
    await refused(`update contacts set email = 'x'`)
    await refused(`delete from events`)
    await refused('create table public.mine (id int)', /^42501$/)
    await refused('create table kontor_bi.mine (id int)', /^42501$/)
    await refused(`create or replace function kontor_bi.tenant() returns int language sql as 'select 1'`, /^42501$/)
    for (const sql of [
      `select pg_read_file('/etc/passwd')`,
      `select pg_ls_dir('/')`,
      `copy products to '/tmp/x'`,
      `copy (select 1) to program 'id'`,
      `select lo_import('/etc/passwd')`,
      `select * from pg_authid`,
      `set role postgres`,
      `alter role ${role} superuser`,
      `alter role ${role} connection limit 100`,
      `create role other`,
      'alter system set work_mem = 1',
      'select pg_reload_conf()',
      'select lo_creat(-1)',
      'select lo_create(4711)',
      `select lo_from_bytea(0, 'fills the disk')`,
      'create temporary table fills_the_disk (id int)',
      'set temp_file_limit = -1',
      ...['pg_advisory_lock(4911500, 1)', 'pg_advisory_lock_shared(4911001)', 'pg_try_advisory_xact_lock(1)'].map(
        call => `select ${call}`,
      ),
      // All readers of the log wait for a transaction that has an id.
      ...['select pg_current_xact_id()', 'select txid_current()'],
    ])
      await refused(sql, /^(42501|22023|42704)$/)
    assert.deepEqual(await firstRow('show temp_file_limit'), { temp_file_limit: '2GB' })
    // An error raised by the caller's own condition must not reveal rows of other tenants.
    await client.query(`select count(*) from products where 1 / (length(data ->> 'owner') - length('rival')) < 1`)
    const { rows: others } = await client.query(
      `select query from pg_stat_activity where usename <> $1 and query is not null and query <> '<insufficient privilege>' and query <> ''`,
      [role],
    )
    assert.deepEqual(others, [])
    const { rows: stats } = await client.query(`select * from pg_stats where schemaname = 'public'`)
    assert.deepEqual(stats, [])
    assert.deepEqual(notices, [])

    // A role may own large objects if the database owner could not forbid it.
    const { rows: objects } = await server.pool.query(`select lo_from_bytea(0, 'left over') as oid`)
    await server.pool.query(`alter large object ${objects[0].oid} owner to ${role}`)
    const revoked = await kontor('sql-access', 'revoke', role)
    assert.equal(revoked.code, 0, revoked.err)
    assert.equal((revoked.json() as { role_dropped: boolean }).role_dropped, true)
    const { rows: left } = await server.pool.query('select from pg_largeobject_metadata where oid = $1', [
      objects[0].oid,
    ])
    assert.deepEqual(left, [])
    await assert.rejects(connected(connection))
    await assert.rejects(client.query('select * from products'))
  } finally {
    await client.end().catch(() => undefined)
  }
  assert.deepEqual((await kontor('sql-access', 'list')).json(), [])
  assert.equal((await kontor('sql-access', 'revoke', role)).code, 1)
  const actions = (await server.admin.audit.list({ tenant: acme.id, limit: 2 })).map(({ action }) => action)
  assert.deepEqual(actions, ['sql_access.revoke', 'sql_access.create'])
})

async function createAccess(options: { statementSeconds?: number } = {}) {
  const tenant = await server.anotherTenant(`sql ${Math.random()}`)
  const { role, password } = await server.admin.sqlAccess.create({ tenant: tenant.id, name: 'bi', ...options })
  const url = (secret: string) => {
    const address = new URL(server.databaseUrl)
    address.username = role
    address.password = secret
    return address.href
  }
  return { role, tenant, connection: url(password), url }
}

test('where locks cannot be denied, a session that holds a lock or a transaction id, or ignores its timeout, is ended', async () => {
  const { role, connection } = await createAccess({ statementSeconds: 1 })
  // As on a managed server, whose users may not change the privileges of built-in functions.
  const { rows } = await server.pool.query<{ list: string }>(
    `select string_agg(oid::regprocedure::text, ', ') as list from pg_proc where proname in ('pg_advisory_lock', 'pg_current_xact_id')`,
  )
  await server.pool.query(`grant execute on function ${rows[0]!.list} to ${role}`)
  for (const statements of [
    ['select pg_advisory_lock(4911500, 1)'],
    ['begin', 'select pg_current_xact_id()'],
    ['begin read write', `alter role ${role} set work_mem = '1MB'`],
    ['set statement_timeout = 0', 'select pg_sleep(3600)'],
  ]) {
    const client = await connected(connection)
    const ended = new Promise(resolve => client.once('end', resolve))
    for (const statement of statements) await client.query(statement).catch(() => undefined)
    await ended
  }
  await server.admin.sqlAccess.revoke(role)
})

test('a transaction of short statements is ended at the timeout of the role', async () => {
  const { role, connection } = await createAccess({ statementSeconds: 1 })
  const client = await connected(connection)
  let isEnded = false
  client.once('end', () => {
    isEnded = true
  })
  for (const setting of ['statement_timeout', 'idle_in_transaction_session_timeout'])
    await client.query(`set ${setting} = 0`)
  await client.query('begin isolation level repeatable read')
  await client.query('lock table kontor_bi.events, kontor_bi.conversions in access share mode')
  // Each statement is short, and the transaction is never idle for long.
  const next = async () => {
    await client.query('select 1').catch(() => undefined)
    return isEnded
  }
  await eventually('the end of the session', next, { withinMs: 30_000 })
  await server.admin.sqlAccess.revoke(role)
})

test('a changed password or default is restored, reported by doctor and audited', async () => {
  useDatabase(server.databaseUrl)
  const { role, tenant, connection, url } = await createAccess()
  const client = await connected(connection)
  await client.query('set default_transaction_read_only = off')
  const ended = new Promise(resolve => client.once('end', resolve))
  // The job that restores the role waits for this lock.
  const holder = await server.pool.connect()
  await holder.query('begin')
  await holder.query('select from sql_access where role = $1 for update', [role])
  // One transaction, so that the job sees both changes.
  await client.query(`alter role ${role} password 'mine'; alter role ${role} set statement_timeout = 0`)
  const own = await connected(url('mine'))
  await own.end()
  const doctor = await kontor('doctor', '--json')
  assert.match(doctor.out, new RegExp(`sql_access_changed[^}]*${role} has changed its password`))
  await holder.query('rollback')
  holder.release()
  await ended
  await assert.rejects(connected(url('mine')), /password authentication failed/)
  const again = await connected(connection)
  assert.equal((await again.query('show statement_timeout')).rows[0].statement_timeout, '1min')
  await again.end()
  const [row] = await server.admin.audit.list({ tenant: tenant.id, limit: 1 })
  assert.deepEqual(
    [row!.action, row!.target, row!.after],
    ['sql_access.restore', role, { password: 'restored', defaults: 'restored' }],
  )
  assert.doesNotMatch((await kontor('doctor', '--json')).out, /sql_access_changed/)
  await server.admin.sqlAccess.revoke(role)
})

test('doctor reports another database user that holds a lock of Kontor', async () => {
  useDatabase(server.databaseUrl)
  await server.pool.query(`create role kontor_test_other login superuser password 'x'`)
  const address = new URL(server.databaseUrl)
  address.username = 'kontor_test_other'
  address.password = 'x'
  const client = await connected(address.href)
  try {
    await client.query('select pg_advisory_lock(4711)')
    assert.doesNotMatch((await kontor('doctor', '--json')).out, /foreign_lock/)
    await client.query('select pg_advisory_lock_shared(4911500, 7)')
    const { out } = await kontor('doctor', '--json')
    assert.match(out, /foreign_lock[^}]*of the database user kontor_test_other/)
  } finally {
    await client.end()
    await server.pool.query('drop role kontor_test_other')
  }
})

test('an owner without superuser rights drops a role and the objects it owns', async () => {
  const client = await server.pool.connect()
  try {
    await client.query('begin')
    await client.query('create role kontor_test_owner createrole')
    await client.query('set local role kontor_test_owner')
    await client.query('create role kontor_bi_test_left')
    // These need more rights and must not fail.
    await denyLocks(client)
    await denyLargeObjects(client)
    await denyTemporaryTables(client)
    await limitTemporaryFiles(client, 'kontor_bi_test_left')
    await client.query('reset role')
    const { rows } = await client.query(`select lo_from_bytea(0, 'left over') as oid`)
    await client.query(`alter large object ${rows[0].oid} owner to kontor_bi_test_left`)
    await client.query('set local role kontor_test_owner')
    await dropRole(client, 'kontor_bi_test_left')
    assert.equal(await roleExists(client, 'kontor_bi_test_left'), false)
  } finally {
    await client.query('rollback')
    client.release()
  }
})

test('a role is not created if grants to PUBLIC would show it more', async () => {
  useDatabase(server.databaseUrl)
  const tenant = await server.anotherTenant('careful')
  await server.pool.query('create table shared_notes (id int); grant select on shared_notes to public')
  const before = await server.pool.query(`select count(*) from pg_roles where rolname like 'kontor_bi_%'`)
  const refused = await kontor('sql-access', 'create', '--tenant', tenant.name)
  assert.equal(refused.code, 1)
  assert.match(refused.err, /read or change public\.shared_notes.*PUBLIC has this privilege/)
  assert.deepEqual(await server.admin.sqlAccess.list(), [])
  const after = await server.pool.query(`select count(*) from pg_roles where rolname like 'kontor_bi_%'`)
  assert.deepEqual(after.rows, before.rows)
  await server.pool.query('drop table shared_notes')
})

test('a role without a row in sql_access sees nothing in the views, including the owner', async () => {
  for (const view of [...VIEWS, ...SUMS]) {
    const { rows } = await server.pool.query(`select count(*)::int as count from kontor_bi.${view}`)
    assert.equal(rows[0].count, 0, view)
  }
})

test('each sale has its first and last touch once, and the lines of every kind of order have one shape', async () => {
  useDatabase(server.databaseUrl)
  const shop = await server.anotherTenant('touched')
  const { key } = await server.admin.keys.create({ tenant: shop.id, kind: 'tracking', server: true })
  const track = (event_type: string, occurred_at: string, data: object) =>
    post('/v1/track', key, { event_type, occurred_at, visitor: 'v', data })
  const view = (occurred_at: string, page: string, referrer?: string) =>
    track('page_view', occurred_at, { page: `https://shop.example${page}`, ...(referrer && { referrer }) })
  await view('2026-01-01T00:00:00Z', '/')
  await view('2026-01-02T00:00:00Z', '/?utm_source=caf%C3%A9+news&utm_medium=email#top')
  await view('2026-01-03T00:00:00Z', '/mug', 'https://www.Search.example/?q=mug')
  await view('2026-01-04T00:00:00Z', '/broken?utm_source=%FF%00')
  await view('2026-01-05T00:00:00Z', '/mug')
  const order = (id: string, created_at: string, data: object) =>
    post('/v1/orders', shop.privateKey, {
      entityType: 'order',
      id,
      sourceUpdatedAt: created_at,
      data: { created_at, currency: 'EUR', ...data },
    })
  await order('early', '2025-12-31T00:00:00Z', { total: 1, lines: [{ sku: 'A', quantity: 3, total: 9 }, 'free'] })
  await order('first', '2026-01-03T12:00:00Z', { total: 2, line_items: [{ sku: 'A', quantity: 2, price: '4.50' }] })
  await order('later', '2026-01-06T00:00:00Z', { total: 4, items: [{ sku: 'B', unit_price: 4, qty: 'many' }] })
  for (const order_id of ['early', 'first', 'later']) await track('convert', '2026-01-06T00:00:00Z', { order_id })
  await post('/v1/batch', key, {
    batch: [
      {
        type: 'track',
        event: 'Order Completed',
        anonymousId: 'v',
        timestamp: '2026-01-07T00:00:00Z',
        properties: { order_id: 'web', revenue: 8, currency: 'EUR', products: [{ sku: 'A', price: 8, quantity: 1 }] },
      },
    ],
  })
  await server.settled()
  const created = await kontor('sql-access', 'create', '--tenant', 'touched', '--name', 'touches')
  const client = await connected((created.json() as { connection: string }).connection)
  const rowsOf = async (sql: string) => (await client.query({ text: sql, rowMode: 'array' })).rows
  assert.deepEqual(
    await rowsOf(
      'select source_object_id, first_source, first_medium, last_source from conversion_touches order by occurred_at, id',
    ),
    [
      ['early', null, null, null],
      ['first', 'café news', 'email', 'search.example'],
      ['later', 'café news', 'email', '%FF%00'],
      ['web', 'café news', 'email', '%FF%00'],
    ],
  )
  assert.deepEqual(await rowsOf('select sum(amount)::float8 from conversion_touches'), [[15]])
  assert.deepEqual(
    await rowsOf(
      'select order_id, line, sku, quantity::float8, unit_price::float8, amount::float8 from order_lines order by placed_at, line',
    ),
    [
      ['early', 1, 'A', 3, 3, 9],
      ['early', 2, null, 1, null, null],
      ['first', 1, 'A', 2, 4.5, 9],
      ['later', 1, 'B', 1, 4, 4],
      ['web', 1, 'A', 1, 8, 8],
    ],
  )
})
