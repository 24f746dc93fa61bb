import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import pg from 'pg'
import { DEFAULT_POLICY } from '../../src/domain/billing/policy.ts'
import { readBilling } from '../../src/domain/billing/read.ts'
import { deriveSubscription } from '../../src/domain/billing/timeline.ts'
import { DAY_MS } from '../../src/domain/time.ts'
import { type Db, openPool } from '../../src/postgres/database.ts'
import { accountReport } from '../../src/reports/accounts.ts'
import { acquisitionReport } from '../../src/reports/acquisition.ts'
import { attentionReport } from '../../src/reports/attention.ts'
import { cashReport } from '../../src/reports/cash.ts'
import { consolidatedReport } from '../../src/reports/consolidated.ts'
import { historyReport, movementReport, retentionReport } from '../../src/reports/movements.ts'
import { dunningReport, trialReport } from '../../src/reports/outcomes.ts'
import { overviewReport } from '../../src/reports/overview.ts'
import type { ReportList, ReportQuestion } from '../../src/reports/question.ts'
import { readOneState } from '../../src/store/reports/scope.ts'
import { testDatabase } from '../database.ts'
import { inDays, subscription } from './shop.ts'

// A tenant that is in PostgreSQL's statistics, and a newer one, for which the planner expects no rows.
const LARGE = { tenantId: 7, accounts: 10_000 }
const FRESH = { tenantId: 8, accounts: 1_500 }
const NOW = new Date()
// so that the first page of a list has the maximum size
const PAGE = 100
// A dozen rows per row of a page, plus the rows that a statement sums. 100 accounts × 3,000 names would be 300,000.
const MOST_ROWS = 3_000

let pool: pg.Pool
let drop: () => Promise<void>

before(async () => {
  const database = await testDatabase()
  pool = openPool({ connection: { url: database.url }, max: 2, name: 'plans', onError: () => {} })
  drop = database.drop
  const { rows } = await pool.query(
    `select relname from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace
       and (relname like 'billing%' or relname in ('identities', 'touches', 'records'))`,
  )
  // autovacuum must not update the statistics during the test
  for (const { relname } of rows) await pool.query(`alter table ${relname} set (autovacuum_enabled = false)`)
  await fill(LARGE)
  await pool.query('vacuum analyze')
  await fill(FRESH)
})
after(async () => {
  await pool.end()
  await drop()
})

/** Per account one subscription, two invoices and two contacts. Every tenth item is excluded, every tenth account is new. */
async function fill({ tenantId, accounts }: { tenantId: number; accounts: number }): Promise<void> {
  const change = readBilling('subscription.created', subscription('template'), NOW.getTime())!
  assert.ok(change.kind === 'subscription')
  const [segment] = deriveSubscription([change.version]).segments
  await pool.query(`create table given as
    select n, 'cus_' || n as account, 'sub_' || n as subscription,
      now() - (n % 700 + 1) * interval '1 day' - interval '1 hour' as at, 3 * n as node
    from generate_series(1, ${accounts}) n`)
  const statements: [string, unknown[]][] = [
    [
      `insert into identities (tenant_id, node, kind, value, profile)
       select $1, node + k, case k when 2 then 'email' else 'contact' end,
         case k when 0 then account when 1 then 'crm_' || n else account || '@example.com' end, node
       from given, generate_series(0, 2) k`,
      [],
    ],
    [
      `insert into records (tenant_id, entity_type, id, source_updated_at, deleted, data, entry_id, created_at, updated_at)
       select $1, 'contact', 'crm_' || n, at, false, jsonb_build_object('name', 'Name ' || n), gen_random_uuid(), at, at from given`,
      [],
    ],
    [
      `insert into billing_acquisitions (tenant_id, key, source) select $1, gen_random_uuid(), 's' || n from given where n < 9`,
      [],
    ],
    [`insert into billing_accounts (tenant_id, account, node) select $1, account, node from given`, []],
    [
      `insert into billing_subscriptions select $1, subscription, n % 50 <> 0, now() + interval '130 days' from given`,
      [],
    ],
    [
      `insert into billing_segments
       select $1, subscription, at, 'infinity', account, 'EUR', case n % 40 when 0 then 'unpaid' else 'active' end, at,
         1000 + n, 1000 + n, 0, 1, 1, 1, 0, gen_random_uuid(),
         ($2::jsonb || jsonb_build_object('account', account, 'subscriptionId', subscription))::json
       from given`,
      [JSON.stringify(segment)],
    ],
    [
      `insert into billing_items
       select $1, subscription, 0, at, 'infinity', case n % 7 when 0 then 'USD' else 'EUR' end, 'si',
         case n % 10 when 0 then 'free' end, null, at, at from given`,
      [],
    ],
    [
      `insert into billing_account_states
       select $1, account, 'EUR', at, 'infinity', n % 9, 1000 + n, 1000 + n, 1, 1, 1, 1, 1, (n % 10 = 0)::int from given`,
      [],
    ],
    [
      `insert into billing_account_days
       select tenant_id, (valid_from at time zone 'UTC')::date, currency, acquisition_id, count(*), count(*), count(*),
         count(*), sum(mrr), sum(mrr), count(*), count(*), count(*), sum(items_excluded), true
       from billing_account_states where tenant_id = $1 group by 1, 2, 3, 4`,
      [],
    ],
    [
      `insert into billing_account_months
       select tenant_id, date_trunc('month', day)::date, currency, acquisition_id, sum(accounts), sum(accounts),
         sum(accounts), sum(accounts), sum(mrr), sum(mrr), sum(accounts), sum(accounts), sum(accounts),
         sum(items_excluded), true
       from billing_account_days where tenant_id = $1 group by 1, 2, 3, 4`,
      [],
    ],
    [
      `insert into billing_movements
       select $1, 'EUR', account, at, 'new', 0, 1000 + n, at, 1000 + n, '-infinity', n % 9, '[]' from given`,
      [],
    ],
    [
      `insert into billing_agenda (tenant_id, currency, kind, due_at, subscription_id, known_from, known_to, body)
       select $1, 'EUR', 'charge', due, subscription, '-infinity', due, '{"amount": 1}'
       from given, generate_series(0, 2) k,
         lateral (select date_trunc('day', now()) + (n % 30 + 30 * k + 1) * interval '1 day' as due) d`,
      [],
    ],
    [
      `insert into billing_agenda_days
       select tenant_id, (due_at at time zone 'UTC')::date, currency, kind, count(*), true from billing_agenda
       where tenant_id = $1 group by 1, 2, 3, 4`,
      [],
    ],
    [
      `insert into billing_invoices (tenant_id, id, subscription_id, customer, currency, first_at, last_at)
       select $1, 'in_' || n || '_' || k, subscription, account, 'EUR', at, at from given, generate_series(0, 1) k`,
      [],
    ],
    [
      `insert into billing_invoice_states
       select $1, 'in_' || n || '_' || k, at, 'infinity', 'EUR', subscription, account, at, 10,
         case when n % 20 = 0 and k = 1 then at end, gen_random_uuid(), '{"amountRemaining": 1, "status": "uncollectible"}'
       from given, generate_series(0, 1) k`,
      [],
    ],
    [
      `insert into billing_cash
       select $1, 'invoice in_' || n || '_' || k, 'payment', 'pi_' || n, at, 'infinity', 'EUR', 10, true
       from given, generate_series(0, 1) k`,
      [],
    ],
    [
      `insert into billing_cash_days
       select tenant_id, (invoiced_at at time zone 'UTC')::date, currency, sum(total), count(*), sum(total), count(*), true
       from billing_invoice_states where tenant_id = $1 group by 1, 2, 3`,
      [],
    ],
    [
      `insert into billing_versions
       select $1, 'subscription', subscription, gen_random_uuid(), at, gen_random_uuid(), 'subscription.created', $2
       from given, generate_series(0, 2) k`,
      [JSON.stringify(change.version)],
    ],
  ]
  for (const [text, values] of statements) await pool.query(text, [tenantId, ...values])
  await pool.query('drop table given')
}

type Node = {
  'Node Type': string
  'Relation Name'?: string
  'Actual Rows': number
  'Actual Loops': number
  'Rows Removed by Filter'?: number
  'Rows Removed by Index Recheck'?: number
  Plans?: Node[]
}

/** The number of rows that a plan reads from tables, including filtered ones. */
function rowsRead(node: Node): number {
  const lost = (node['Rows Removed by Filter'] ?? 0) + (node['Rows Removed by Index Recheck'] ?? 0)
  const own = node['Relation Name'] ? (node['Actual Rows'] + lost) * node['Actual Loops'] : 0
  return (node.Plans ?? []).reduce((sum, child) => sum + rowsRead(child), own)
}

type Asked = { text: string; read: number }

/** A connection that records how many rows each statement reads, with the plans that reports get. */
function counting(client: pg.PoolClient, asked: Asked[]): Db {
  const inArray = (value: unknown) => JSON.stringify(value instanceof Date ? value.toISOString() : String(value))
  const literal = (value: unknown): string => {
    if (value === null || value === undefined) return 'null'
    if (value instanceof Date) return pg.escapeLiteral(value.toISOString())
    if (Array.isArray(value)) return pg.escapeLiteral(`{${value.map(inArray).join()}}`)
    return pg.escapeLiteral(String(value))
  }
  const query = async ({ text, values }: { text: string; values: unknown[] }) => {
    await client.query(`prepare asked as ${text}`)
    const call = `execute asked (${values.map(literal).join(', ')})`
    const { rows } = await client.query(`explain (analyze, format json) ${call}`)
    await client.query('deallocate asked')
    asked.push({ text, read: rowsRead(JSON.parse(rows[0]['QUERY PLAN'])[0].Plan) })
    return client.query(text, values)
  }
  return { query: query as unknown as Db['query'] }
}

const days = (from: number) => new Date(NOW.getTime() + from * DAY_MS)

type Build = (db: Db, question: ReportQuestion) => Promise<object | null>

const REPORTS: Record<string, Build> = {
  overview: overviewReport,
  attention: (db, question) => attentionReport(db, question, 90),
  acquisition: (db, question) => acquisitionReport(db, question, 90),
  account: (db, question) => accountReport(db, question, { customer: 'cus_50', subscriptionId: null }),
  movements: (db, question) => movementReport(db, question, { since: days(-30), until: NOW }),
  retention: (db, question) => retentionReport(db, question, { months: 3, base: 'end_of_month' }),
  cash: (db, question) => cashReport(db, question, { interval: 'week', from: days(-80), to: null }),
  trials: (db, question) => trialReport(db, question, { since: days(-80), until: NOW }),
  dunning: (db, question) => dunningReport(db, question, { since: days(-80), until: NOW }),
  consolidated: consolidatedReport,
  history: (db, question) => historyReport(db, question, { interval: 'week', from: days(-80), to: null }),
}

/** Builds a report with the first and the last page of each of its lists. */
async function read(build: Build, question: ReportQuestion): Promise<Asked[]> {
  const client = await pool.connect()
  const asked: Asked[] = []
  try {
    await client.query('begin')
    await readOneState(client)
    const report = await build(counting(client, asked), question)
    for (const value of Object.values(report!)) {
      const list = value as Partial<ReportList<unknown>> | null
      if (!list?.rows) continue
      await list.rows({ offset: 0, limit: PAGE })
      await list.rows({ offset: Math.max(0, list.count! - PAGE), limit: PAGE })
    }
    return asked
  } finally {
    await client.query('rollback')
    client.release()
  }
}

for (const { tenantId } of [FRESH, LARGE]) {
  const name = tenantId === FRESH.tenantId ? 'a tenant without statistics' : 'a large tenant beside it'
  test(`no statement of a report reads more rows than it returns or sums: ${name}`, async () => {
    const question = {
      tenantId,
      currency: 'EUR',
      asOf: new Date(inDays(0)),
      now: NOW,
      policy: DEFAULT_POLICY,
      filter: {},
    }
    for (const [report, build] of Object.entries(REPORTS)) {
      const asked = await read(build, question)
      assert.ok(asked.length > 0, report)
      for (const { text, read } of asked) {
        assert.ok(read <= MOST_ROWS, `${report} reads ${read} rows: ${text}`)
      }
    }
  })
}
