import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type pg from 'pg'
import type { EntityType, RecordName } from '../../src/domain/records/records.ts'
import { openPool } from '../../src/postgres/database.ts'
import { readCustomerFacts } from '../../src/store/customers/refresh.ts'
import { searchContacts } from '../../src/store/identity/people.ts'
import { keepHandles, productsOfHandles } from '../../src/store/records/families.ts'
import {
  deleteByNames,
  deletesSurvived,
  findProduct,
  findRecord,
  keepTombstones,
  listRecords,
  loadTombstones,
  loadVersions,
} from '../../src/store/records/records.ts'
import { testDatabase } from '../database.ts'

const RECORDS = 20_000
const KEYS = 100

let database: Awaited<ReturnType<typeof testDatabase>>
let pool: pg.Pool
before(async () => {
  database = await testDatabase()
  pool = openPool({ connection: { url: database.url }, max: 1, name: 'look-ups', onError: () => undefined })
  // PostgreSQL caches plans: those made for an empty table must also be good for a full one.
  for (const [, ask] of questions) for (let i = 0; i < 10; i++) await pool.connect().then(rolledBack(ask))
  await pool.query(
    `insert into records (tenant_id, entity_type, id, external_id, source_updated_at, entry_id, deleted, data, created_at, updated_at)
     select 1, 'product', 'p-' || n, 'e-' || n, '2026-01-01', gen_random_uuid(), false,
            jsonb_build_object('sku', 's-' || n, 'code', 'c-' || n), now(), '2026-01-01'::timestamptz + n * interval '1 s'
     from generate_series(1, $1) n`,
    [RECORDS],
  )
  await pool.query(
    `insert into records (tenant_id, entity_type, id, source_updated_at, entry_id, deleted, data, created_at, updated_at)
     select 1 + n % 2, 'contact', 'c-' || n, '2026-01-01', gen_random_uuid(), false,
            jsonb_build_object('firstName', 'Ada' || n, 'lastName', 'Lovelace-' || n), now(), '2026-01-01'
     from generate_series(1, $1) n`,
    [RECORDS],
  )
})
after(async () => {
  await pool.end()
  await database.drop()
})

/** Runs `work` in a transaction that is rolled back. */
function rolledBack<T>(work: (client: pg.PoolClient) => Promise<T>) {
  return async (client: pg.PoolClient): Promise<T> => {
    try {
      await client.query('begin')
      return await work(client)
    } finally {
      await client.query('rollback')
      client.release()
    }
  }
}

type Effort = { rows: number; pages: number }

/** The number of rows of the table, and of pages of the table and its indexes, that PostgreSQL read. */
async function effortOf(table: string, work: (client: pg.PoolClient) => Promise<unknown>): Promise<Effort> {
  // The counters of this connection that are not yet in the shared statistics.
  const soFar = async (client: pg.PoolClient) => {
    const { rows } = await client.query<Effort>(
      `select coalesce(sum(seq_tup_read + coalesce(idx_tup_fetch, 0)), 0)::int as rows,
              (select sum(pg_stat_get_xact_blocks_fetched(oid))::int from pg_class
               where oid = $1::regclass or oid in (select indexrelid from pg_index where indrelid = $1::regclass)) as pages
       from pg_stat_xact_user_tables where relid = $1::regclass`,
      [table],
    )
    return rows[0]!
  }
  return pool.connect().then(
    rolledBack(async client => {
      const before = await soFar(client)
      await work(client)
      const after = await soFar(client)
      return { rows: after.rows - before.rows, pages: after.pages - before.pages }
    }),
  )
}

const numbers = Array.from({ length: KEYS }, (_, i) => 1 + i * 7)
const product = { tenantId: 1, entityType: 'product' as EntityType }
const keys = numbers.map(n => ({ ...product, id: `p-${n}` }))
const deletes = numbers.map((n, i) => {
  const name = (['external_id', 'sku', 'code'] as RecordName[])[i % 3]!
  return {
    ...product,
    name,
    value: `${name[0]}-${n}`,
    sourceUpdatedAt: '2026-02-01T00:00:00.000000Z',
    entryId: `019c1234-5678-7000-8abc-${String(n).padStart(12, '0')}`,
  }
})

type Question = [
  what: string,
  ask: (client: pg.PoolClient) => Promise<unknown[]>,
  results: number,
  /** The allowed number of pages, if more than one index look-up per result. */
  pages?: number,
]

const questions: Question[] = [
  ['versions by key', client => loadVersions(client, keys), KEYS],
  // a change is written to every index
  ['deletes by name', client => deleteByNames(client, deletes), KEYS, 40 * KEYS],
  ['newer records of a name', client => deletesSurvived(client, deletes).then(set => [...set]), 0, 6 * KEYS],
  ['a record by id', async client => [await findRecord(client, 1, 'product', 'p-77')], 1],
  ['a product by sku', async client => [await findProduct(client, 1, 's-77')], 1],
  ['contacts by the beginning of a name', client => searchContacts(client, 1, 'ADA7772', 20), 1, 40],
  ['contacts by the beginning of a last name', client => searchContacts(client, 1, 'lovelace-777', 20), 5, 60],
  [
    'products by handle',
    async client => {
      const handles = numbers.map(n => ({ tenantId: 1, handle: `h-${n}`, productId: `p-${n}` }))
      await keepHandles(
        client,
        handles.map(handle => ({ ...handle, sentAt: '2026-02-01T00:00:00Z' })),
      )
      return productsOfHandles(client, handles)
    },
    KEYS,
    12 * KEYS,
  ],
  [
    'the last page of a list',
    async client => {
      const { rows } = await listRecords(client, 1, 'product', {
        limit: 50,
        updatedSince: null,
        includeDeleted: false,
        after: { changedAt: '2026-01-01T05:00:00Z', id: '' },
      })
      return rows
    },
    50,
  ],
  [
    'records changed since a time',
    async client => {
      const { rows } = await listRecords(client, 1, 'product', {
        limit: 50,
        updatedSince: new Date('2026-01-01T05:30:00Z'),
        includeDeleted: true,
        after: null,
      })
      return rows
    },
    50,
  ],
]

for (const statistics of ['before PostgreSQL has statistics', 'with statistics'] as const) {
  describe(statistics, () => {
    before(async () => {
      if (statistics === 'with statistics') await pool.query('analyze records')
    })

    for (const [what, ask, results, maxPages = 10 + 6 * results] of questions) {
      test(`${what}: only the matching rows are read`, async () => {
        let found: unknown[] = []
        const { rows, pages } = await effortOf('records', async client => {
          found = await ask(client)
        })
        assert.equal(found.length, results)
        // Each result is read once, or twice if it is changed.
        assert.ok(rows <= 3 * KEYS, `${rows} rows of ${RECORDS} were read`)
        // An index is descended, not scanned.
        assert.ok(pages <= maxPages, `${pages} pages were read`)
      })
    }
  })
}

test('tombstones by name: only the matching ones are read', async () => {
  const many = Array.from({ length: 5_000 }, (_, i) => ({
    ...deletes[0]!,
    name: 'sku' as const,
    value: `t-${i}`,
  }))
  await keepTombstones(pool, many)
  const { rows } = await effortOf('record_tombstones', client => loadTombstones(client, many.slice(0, KEYS)))
  assert.ok(rows <= 2 * KEYS, `${rows} tombstones of 5000 were read`)
})

// So few that without statistics, a scan of the tenant looks cheaper than several look-ups.
const PEOPLE = 5_000

test('facts of customers: only the sales and touches of these people are read', async () => {
  await pool.query(
    `with people as (
       insert into identities (tenant_id, node, profile, kind, value)
       select 1, n, n, 'visitor', 'v-' || n from generate_series(1, $1::int) n returning node
     ), touched as (
       insert into touches (tenant_id, node, kind, direct, occurred_at, received_at, event_id, source)
       select 1, node, 'source', false, now(), now(), gen_random_uuid(), 'newsletter' from people
     )
     insert into conversions (tenant_id, sale_key, id, order_id, event_id, event_verified, event_occurred_at, event_type,
       event_conversion_type, event_source, claim_id, claim_visitor, claim_node, claims)
     select 1, 'order:' || node || chr(10) || id, id, 'o-' || node, id, false, now(), 'convert', 'convert', 'tracking', id,
       'v-' || node, node, 1
     from (select node, gen_random_uuid() as id from people) p`,
    [PEOPLE],
  )
  const people = numbers.map(profile => ({ tenantId: 1, profile }))
  for (const table of ['conversions', 'touches']) {
    let facts: Awaited<ReturnType<typeof readCustomerFacts>> = []
    const { rows } = await effortOf(table, async client => {
      facts = await readCustomerFacts(client, people, new Date())
    })
    assert.deepEqual(
      facts.map(each => [Number(each.profile), each.facts.sales?.orders, each.facts.touch?.source]),
      numbers.map(n => [n, 1, 'newsletter']),
    )
    assert.ok(rows <= 2 * KEYS, `${rows} rows of ${table} were read`)
  }
})
