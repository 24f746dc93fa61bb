import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import pg from 'pg'
import { ensurePartitionsFor } from '../../src/postgres/partitions.ts'
import { conversionPage } from '../../src/store/conversions/conversions.ts'
import { eventPage, type TimePage } from '../../src/store/events/events.ts'
import { newestEvents, profileCounts } from '../../src/store/identity/people.ts'
import { tracedSales } from '../../src/store/identity/traces.ts'
import { testDatabase } from '../database.ts'

let pool: pg.Pool
let drop: () => Promise<void>
const TENANT = 7
const MONTHS = 12
const PER_MONTH = 5_000

before(async () => {
  const database = await testDatabase()
  pool = new pg.Pool({ connectionString: database.url, max: 2 })
  drop = database.drop
  const months = Array.from({ length: MONTHS }, (_, month) => new Date(Date.UTC(2025, month, 1)))
  await ensurePartitionsFor(pool, 'events', months, months.at(-1))
  // every tenth row belongs to another tenant, every hundredth is rare, every thousandth is of the person with node 42
  await pool.query(
    `insert into events (tenant_id, id, occurred_at, received_at, event_type, conversion, source, payload, node)
     select case when n % 10 = 0 then 8 else $1 end, gen_random_uuid(), at, at,
       case when n % 100 = 1 then 'rare' else 'page_view' end, false, 'tracking', '{}',
       case when n % 1000 = 7 then 42 else 1000 + n % 5000 end
     from generate_series(0, $2::int * $3::int - 1) n,
       lateral (select timestamptz '2025-01-01' + n * interval '1 year' / ($2 * $3) as at) t`,
    [TENANT, MONTHS, PER_MONTH],
  )
  await pool.query(
    `insert into conversions (tenant_id, sale_key, id, event_id, event_occurred_at, event_type, event_conversion_type,
       event_source, event_node, claim_node, order_node, order_contact_id)
     select $1, 'event:' || n, gen_random_uuid(), gen_random_uuid(),
       timestamptz '2025-01-01' + n * interval '1 minute', case when n % 100 = 1 then 'rare' when n % 2 = 0 then 'plain' else 'convert' end,
       case when n % 100 = 3 then 'rare' when n % 2 = 0 then 'plain' else 'convert' end, 'tracking',
       case when n % 10000 = 2 then 42 else n end, case when n % 10000 = 3 then 42 else n end,
       case when n % 10000 = 4 then 42 when n % 2 = 0 then n end, case when n % 10000 = 5 then 'c-42' end
     from generate_series(0, 49999) n`,
    [TENANT],
  )
  await pool.query('analyze')
})
after(async () => {
  await pool.end()
  await drop()
})

const page = (more: Partial<TimePage>): TimePage => ({
  limit: 51,
  offset: 0,
  since: null,
  until: null,
  eventType: null,
  after: null,
  ...more,
})

type Node = {
  'Node Type': string
  'Relation Name'?: string
  'Index Name'?: string
  'Actual Rows': number
  'Actual Loops': number
  'Rows Removed by Filter'?: number
  'Rows Removed by Index Recheck'?: number
  Plans?: Node[]
}

/** The scans that PostgreSQL ran for a page, each with the number of rows it read, including filtered ones. */
async function scansOf(statement: { text: string; values: unknown[] }) {
  const { rows } = await pool.query(`explain (analyze, format json) ${statement.text}`, statement.values)
  const scans: { kind: string; table: string; index: string; read: number }[] = []
  const walk = (node: Node) => {
    const table = node['Relation Name']
    if (table && node['Actual Loops'] > 0) {
      const lost = (node['Rows Removed by Filter'] ?? 0) + (node['Rows Removed by Index Recheck'] ?? 0)
      const read = (node['Actual Rows'] + lost) * node['Actual Loops']
      scans.push({ kind: node['Node Type'], table, index: node['Index Name'] ?? '', read })
    }
    for (const child of node.Plans ?? []) walk(child)
  }
  walk(rows[0]['QUERY PLAN'][0].Plan)
  return scans
}

const day = (text: string) => new Date(`${text}T00:00:00Z`)
const midOf = (month: number, at = 15) => new Date(Date.UTC(2025, month, at))
const MAX_UUID = 'ffffffff-ffff-ffff-ffff-ffffffffffff'

test('with since and until, partitions of other months are not read', async () => {
  const scans = await scansOf(eventPage(TENANT, page({ since: day('2025-03-02'), until: day('2025-03-28') })))
  const tables = scans.filter(({ table }) => table.startsWith('events'))
  assert.equal(tables.length, 1)
  assert.equal(tables[0]!.table, `events_p${2025 * 12 + 2}`)
  assert.ok(tables[0]!.read <= 60, `${tables[0]!.read} rows`)

  const { rows } = await pool.query(
    `explain (format json) ${eventPage(TENANT, page({ since: day('2025-03-02'), until: day('2025-04-28') })).text}`,
    eventPage(TENANT, page({ since: day('2025-03-02'), until: day('2025-04-28') })).values,
  )
  const named = new Set(JSON.stringify(rows[0]['QUERY PLAN']).match(/"events_p\d+"/g))
  assert.deepEqual([...named].sort(), [`"events_p${2025 * 12 + 2}"`, `"events_p${2025 * 12 + 3}"`])
})

test('a late page reads as few rows as the first one, from the index', async () => {
  for (const eventType of [null, 'rare']) {
    const depths: TimePage['after'][] = [
      null,
      { occurredAt: midOf(5), id: MAX_UUID },
      { occurredAt: midOf(1), id: MAX_UUID },
    ]
    for (const after of depths) {
      const scans = (await scansOf(eventPage(TENANT, page({ eventType, after })))).filter(({ table }) =>
        table.startsWith('events'),
      )
      const read = scans.reduce((sum, scan) => sum + scan.read, 0)
      // Of a type, PostgreSQL expects a third fewer events than there are, so it may read all of the last 76.
      assert.ok(
        read >= 40 && read <= (eventType === null ? 60 : 76),
        `${eventType} after ${after?.occurredAt.toISOString()}: ${read} rows`,
      )
      for (const { kind, table, index, read } of scans) {
        if (read === 0) continue
        assert.match(kind, /^Index Scan/, table)
        assert.match(index, eventType === null ? /tenant_id_occurred_at/ : /hashtext/, table)
      }
    }
  }
})

test('the timeline of a person reads only events of that person', async () => {
  const scans = await scansOf(newestEvents(TENANT, { nodes: [41, 42, 43], since: day('2025-09-01'), limit: 500 }))
  const read = scans.reduce((sum, scan) => sum + scan.read, 0)
  assert.ok(read > 15 && read <= 60, `${read} rows`)
})

test('the sales of a person are found through indexes, whatever connects them with the person', async () => {
  for (const [statement, least] of [
    [profileCounts(TENANT, [42]), 5],
    [tracedSales(TENANT, [42], ['c-42']), 20],
  ] as const) {
    const sales = (await scansOf(statement)).filter(({ table }) => table === 'conversions')
    const read = sales.reduce((sum, scan) => sum + scan.read, 0)
    assert.ok(read >= least && read <= 40, `${read} rows`)
  }
})

test('the same holds for conversions, also if the event type may be in one of two columns', async () => {
  for (const eventType of [null, 'rare', 'convert', 'plain']) {
    for (const after of [null, { occurredAt: midOf(0, 20), id: MAX_UUID }]) {
      const scans = (await scansOf(conversionPage(TENANT, page({ eventType, after })))).filter(
        ({ table }) => table === 'conversions',
      )
      const read = scans.reduce((sum, scan) => sum + scan.read, 0)
      assert.ok(read >= 51 && read <= 110, `${eventType} after ${after?.occurredAt}: ${read} rows`)
      for (const { kind } of scans) assert.match(kind, /^Index Scan/)
    }
  }
})
