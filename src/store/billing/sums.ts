import type pg from 'pg'
import { type Db, inTransaction } from '../../postgres/database.ts'
import { LOCKS, tryLock } from '../../postgres/locks.ts'

/*
 * Sums by UTC day: the cost of a report does not depend on the number of accounts. A statement that changes rows also
 * inserts the differences into the sum tables (the effects below). A sum is the total of its rows, so writers do not
 * wait for each other and reports are always exact. A job compacts the rows.
 */

/** The daily change of the account figures. */
export const ACCOUNT_FIGURES = [
  'accounts',
  'active_accounts',
  'subscriptions',
  'active_subscriptions',
  'mrr',
  'committed_mrr',
  'item_rows',
  'items',
  'items_priced',
  'items_excluded',
] as const

/** The figures of one row of billing_account_states. */
export const FIGURES_OF_STATE = `1 as accounts, (mrr > 0)::int as active_accounts, subscriptions, active_subscriptions,
  mrr, committed_mrr, item_rows, items, items_priced, items_excluded`

/** Daily payments of subscription invoices, what was returned, and one-off payments. */
export const CASH_FIGURES = ['collected', 'payments', 'refunded', 'disputed', 'one_off'] as const

const figures = ACCOUNT_FIGURES.join(', ')
const signedFigures = ACCOUNT_FIGURES.map(figure => `sum(sign * ${figure}) as ${figure}`).join(', ')
const summedFigures = ACCOUNT_FIGURES.map(figure => `sum(${figure})`).join(', ')

export const utcDay = (at: string) => `(${at}::timestamptz at time zone 'UTC')::date`

/** A state counts from the day it starts to the day it ends. */
export const STATE_EFFECTS = `
, days as materialized (
  select tenant_id, day, currency, acquisition_id, ${signedFigures} from (
    select tenant_id, ${utcDay('valid_from')} as day, currency, acquisition_id, 1 as sign, ${FIGURES_OF_STATE} from new
    union all
    select tenant_id, ${utcDay('valid_to')}, currency, acquisition_id, -1, ${FIGURES_OF_STATE} from new
    where valid_to < 'infinity'
    union all
    select tenant_id, ${utcDay('valid_from')}, currency, acquisition_id, -1, ${FIGURES_OF_STATE} from old
    union all
    select tenant_id, ${utcDay('valid_to')}, currency, acquisition_id, 1, ${FIGURES_OF_STATE} from old
    where valid_to < 'infinity'
  ) changes
  group by tenant_id, day, currency, acquisition_id
), added_to_days as (
  insert into billing_account_days (tenant_id, day, currency, acquisition_id, ${figures})
  select tenant_id, day, currency, acquisition_id, ${figures} from days
)
insert into billing_account_months (tenant_id, month, currency, acquisition_id, ${figures})
select tenant_id, date_trunc('month', day)::date, currency, acquisition_id, ${summedFigures} from days
group by 1, 2, 3, 4`

/** Cash sums contain the current state: rows with an open end. */
export const INVOICE_EFFECTS = `
insert into billing_cash_days (tenant_id, day, currency, invoiced, invoices)
select tenant_id, ${utcDay('invoiced_at')}, currency, sum(sign * total), sum(sign)
from (
  select 1 as sign, * from new where valid_to = 'infinity'
  union all
  select -1, * from old where valid_to = 'infinity'
) states
where invoiced_at is not null
group by 1, 2, 3`

/** The sums of rows of billing_cash. */
export const CASH_SUMS = `
  coalesce(sum(amount) filter (where recurring and kind = 'payment'), 0)::bigint as collected,
  count(*) filter (where recurring and kind = 'payment') as payments,
  coalesce(sum(amount) filter (where recurring and kind = 'refund'), 0)::bigint as refunded,
  coalesce(sum(amount) filter (where recurring and kind = 'dispute'), 0)::bigint as disputed,
  coalesce(sum(case kind when 'payment' then amount else -amount end) filter (where not recurring), 0)::bigint
    as one_off`

export const CASH_EFFECTS = `
insert into billing_cash_days (tenant_id, day, currency, ${CASH_FIGURES.join(', ')})
select tenant_id, day, currency, ${CASH_FIGURES.map(figure => `sum(sign * ${figure})`).join(', ')}
from (
  select 1 as sign, tenant_id, ${utcDay('occurred_at')} as day, currency, ${CASH_SUMS} from new
  where valid_to = 'infinity' group by 2, 3, 4
  union all
  select -1, tenant_id, ${utcDay('occurred_at')}, currency, ${CASH_SUMS} from old
  where valid_to = 'infinity' group by 2, 3, 4
) sums
group by 1, 2, 3`

/** Entries that are valid for every report as of now or later; reports count the others row by row. */
export const AGENDA_EFFECTS = `
insert into billing_agenda_days (tenant_id, day, currency, kind, entries)
select tenant_id, ${utcDay('due_at')}, currency, kind, sum(sign)
from (select 1 as sign, * from new union all select -1, * from old) entries
where known_from = '-infinity' and known_to >= due_at
group by 1, 2, 3, 4`

type SumTable = { name: string; key: string[]; sums: string[] }

const SUM_TABLES: SumTable[] = [
  {
    name: 'billing_account_days',
    key: ['tenant_id', 'day', 'currency', 'acquisition_id'],
    sums: [...ACCOUNT_FIGURES],
  },
  {
    name: 'billing_account_months',
    key: ['tenant_id', 'month', 'currency', 'acquisition_id'],
    sums: [...ACCOUNT_FIGURES],
  },
  {
    name: 'billing_cash_days',
    key: ['tenant_id', 'day', 'currency'],
    sums: ['invoiced', 'invoices', ...CASH_FIGURES],
  },
  { name: 'billing_agenda_days', key: ['tenant_id', 'day', 'currency', 'kind'], sums: ['entries'] },
]

// Few, because readers of the log wait for writing transactions.
const SUMS_AT_A_TIME = 2_000

/** Compacts the rows of some sums into one each. Returns whether there may be more. */
export async function compactSums(pool: pg.Pool): Promise<boolean> {
  return inTransaction(pool, async client => {
    if (!(await tryLock(client, LOCKS.daySums))) return false
    let isFull = false
    for (const table of SUM_TABLES) isFull = (await compact(client, table)) === SUMS_AT_A_TIME || isFull
    return isFull
  })
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
    await client.query(
      'lock table billing_account_states, billing_invoice_states, billing_cash, billing_agenda in share mode',
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
  `${asNew('billing_agenda')} ${AGENDA_EFFECTS}`,
]
