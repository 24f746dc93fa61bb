import type pg from 'pg'
import { type Db, inTransaction, queryPrepared } from '../../postgres/database.ts'
import { LOCKS, lock, tryLock } from '../../postgres/locks.ts'
import { ACCOUNT_FIGURES, STATE_EFFECTS } from './accounts.ts'
import { CASH_EFFECTS, CASH_FIGURES, INVOICE_EFFECTS } from './cash.ts'
import { REVENUE_EFFECTS } from './revenue.ts'
import { AGENDA_EFFECTS } from './subscriptions.ts'

/*
 * Sums by UTC day: the cost of a report does not depend on the number of accounts. A statement that changes rows also
 * inserts the differences into the sum tables (the effects beside each table). A sum is the total of its rows, so writers do not
 * wait for each other and reports are always exact. A job compacts the rows.
 */

type SumTable = { name: string; key: string[]; sums: string[] }

const SUM_TABLES: SumTable[] = [
  { name: 'billing_account_days', key: ['tenant_id', 'day', 'currency', 'acquisition_id'], sums: [...ACCOUNT_FIGURES] },
  {
    name: 'billing_account_months',
    key: ['tenant_id', 'month', 'currency', 'acquisition_id'],
    sums: [...ACCOUNT_FIGURES],
  },
  { name: 'billing_cash_days', key: ['tenant_id', 'day', 'currency'], sums: ['invoiced', 'invoices', ...CASH_FIGURES] },
  {
    name: 'billing_revenue_months',
    key: ['tenant_id', 'zone', 'month', 'currency'],
    sums: ['invoiced', 'recognized', 'lines'],
  },
  { name: 'billing_agenda_days', key: ['tenant_id', 'day', 'currency', 'kind'], sums: ['entries'] },
]

// Few, because readers of the log wait for writing transactions.
const SUMS_AT_A_TIME = 2_000

/** Compacts the rows of some sums into one each. Returns whether there may be more. */
export async function compactSums(pool: pg.Pool): Promise<boolean> {
  if (!(await hasAddedRows(pool))) return false
  return inTransaction(pool, async client => {
    if (!(await tryLock(client, LOCKS.daySums))) return false
    let isFull = false
    for (const table of SUM_TABLES) isFull = (await compact(client, table)) === SUMS_AT_A_TIME || isFull
    return isFull
  })
}

async function hasAddedRows(db: Db): Promise<boolean> {
  const added = SUM_TABLES.map(({ name }) => `exists (select from ${name} where not compacted)`)
  const { rows } = await queryPrepared<{ has: boolean }>(db, `select ${added.join(' or ')} as has`)
  return rows[0]!.has
}

async function compact(db: Db, { name, key, sums }: SumTable): Promise<number> {
  const columns = key.join(', ')
  const { rows } = await db.query<{ taken: number }>(
    `with keys as materialized (
       select distinct ${columns} from ${name} where not compacted order by ${columns} limit ${SUMS_AT_A_TIME}
     ), taken as (
       delete from ${name} s using keys k where ${key.map(column => `s.${column} = k.${column}`).join(' and ')}
       returning s.*
     ), added as (
       insert into ${name} (${columns}, ${sums.join(', ')}, compacted)
       select ${columns}, ${sums.map(sum => `sum(${sum})`).join(', ')}, true from taken group by ${columns}
       having (${sums.map(sum => `sum(${sum})`).join(', ')}) <> (${sums.map(() => '0').join(', ')})
     )
     select count(*) as taken from keys`,
  )
  return rows[0]!.taken
}

/** Rebuilds all sums from their rows. Writers wait meanwhile. */
export async function rebuildSums(pool: pg.Pool): Promise<void> {
  await inTransaction(pool, async client => {
    // A row that is being compacted is deleted and inserted again. The new row would be overlooked here.
    await lock(client, LOCKS.daySums)
    await client.query(
      'lock table billing_account_states, billing_invoice_states, billing_cash, billing_revenue, billing_agenda in share mode',
    )
    for (const { name } of SUM_TABLES) await client.query(`delete from ${name}`)
    for (const statement of REBUILD) await client.query(statement)
  })
}

/** Treats all rows of a table as new. */
const asNew = (table: string) =>
  `with new as materialized (select * from ${table}), old as materialized (select * from ${table} where false)`

const REBUILD = [
  `${asNew('billing_account_states')} ${STATE_EFFECTS}`,
  `${asNew('billing_invoice_states')} ${INVOICE_EFFECTS}`,
  `${asNew('billing_cash')} ${CASH_EFFECTS}`,
  `${asNew('billing_revenue')} ${REVENUE_EFFECTS}`,
  `${asNew('billing_agenda')} ${AGENDA_EFFECTS}`,
]
