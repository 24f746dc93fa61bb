import type pg from 'pg'
import { inTransaction } from '../../postgres/database.ts'
import { LOCKS, tryLock } from '../../postgres/locks.ts'

const MARKS_AT_A_TIME = 20_000
// Few, because whoever reads the log waits for transactions that write.
const DAYS_AT_A_TIME = 50

type Sums = 'accounts' | 'cash' | 'agenda'

/** Makes the sums of stale days anew, some at a time. Returns whether there may be more. */
export async function refreshDays(pool: pg.Pool, sums: Sums): Promise<boolean> {
  return inTransaction(pool, async client => {
    if (!(await tryLock(client, LOCKS.daySums))) return false
    const days = await takeStaleDays(client, sums)
    if (days.length === 0) return false
    const columns = [days.map(day => day.tenant_id), days.map(day => day.day)]
    await client.query(REMOVE[sums], columns)
    await client.query(MAKE[sums], columns)
    if (sums === 'accounts') {
      await client.query(REMOVE_MONTHS, columns)
      await client.query(MAKE_MONTHS, columns)
    }
    return true
  })
}

/** Whoever marks one of these days again while we work leaves a mark that outlives our transaction. */
async function takeStaleDays(
  client: pg.PoolClient,
  sums: Sums,
): Promise<{ tenant_id: number; day: string }[]> {
  const { rows } = await client.query<{ tenant_id: number; day: string }>(
    `with days as (
       select distinct tenant_id, day from (
         select tenant_id, day from billing_stale_days where sums = $1 order by id limit $2) s limit $3
     ), taken as (
       delete from billing_stale_days s using days d
       where s.tenant_id = d.tenant_id and s.sums = $1 and s.day = d.day
     )
     select tenant_id, day::text as day from days`,
    [sums, MARKS_AT_A_TIME, DAYS_AT_A_TIME],
  )
  return rows
}

const DAYS = `(select tenant_id, day, day::timestamp at time zone 'UTC' as starts,
  (day + 1)::timestamp at time zone 'UTC' as ends from unnest($1::int[], $2::date[]) as d (tenant_id, day))`

function removal(table: string): string {
  return `delete from ${table} s using ${DAYS} d where s.tenant_id = d.tenant_id and s.day = d.day`
}

const REMOVE: Record<Sums, string> = {
  accounts: removal('billing_account_days'),
  cash: removal('billing_cash_days'),
  agenda: removal('billing_agenda_days'),
}

const FIGURES = [
  'subscriptions',
  'active_subscriptions',
  'mrr',
  'committed_mrr',
  'item_rows',
  'items',
].concat(['items_priced', 'items_excluded'])

const MONTHS = `(select distinct tenant_id, date_trunc('month', day)::date as month
  from unnest($1::int[], $2::date[]) as d (tenant_id, day))`

const REMOVE_MONTHS = `
  delete from billing_account_months s using ${MONTHS} m where s.tenant_id = m.tenant_id and s.month = m.month`

const MAKE_MONTHS = `
  insert into billing_account_months (tenant_id, month, currency, acquisition_id, accounts, active_accounts,
    ${FIGURES.join(', ')})
  select m.tenant_id, m.month, d.currency, d.acquisition_id, sum(d.accounts), sum(d.active_accounts),
    ${FIGURES.map(figure => `sum(d.${figure})`).join(', ')}
  from ${MONTHS} m join billing_account_days d
    on d.tenant_id = m.tenant_id and d.day >= m.month and d.day < m.month + interval '1 month'
  group by 1, 2, 3, 4`

/** Rows of a day, found by an index: with `offset 0` PostgreSQL does not compare every row with every day instead. */
function within(columns: string, table: string, at: string, condition = 'true'): string {
  return `${DAYS} d cross join lateral (
    select ${columns} from ${table} r
    where r.tenant_id = d.tenant_id and r.${at} >= d.starts and r.${at} < d.ends and ${condition} offset 0) r`
}

const MAKE: Record<Sums, string> = {
  accounts: `
    insert into billing_account_days (tenant_id, day, currency, acquisition_id, accounts, active_accounts,
      ${FIGURES.join(', ')})
    select tenant_id, day, currency, acquisition_id, sum(sign), sum(sign * (mrr > 0)::int),
      ${FIGURES.map(figure => `sum(sign * ${figure})`).join(', ')}
    from (
      select d.tenant_id, d.day, 1 as sign, r.*
      from ${within(`currency, acquisition_id, ${FIGURES.join(', ')}`, 'billing_account_states', 'valid_from')}
      union all
      select d.tenant_id, d.day, -1 as sign, r.*
      from ${within(`currency, acquisition_id, ${FIGURES.join(', ')}`, 'billing_account_states', 'valid_to')}
    ) changes group by tenant_id, day, currency, acquisition_id`,
  cash: `
    insert into billing_cash_days (tenant_id, day, currency, invoiced, invoices, collected, payments)
    select tenant_id, day, currency, sum(invoiced), sum(invoices), sum(collected), sum(payments) from (
      select d.tenant_id, d.day, r.currency, r.total as invoiced, 1 as invoices, 0 as collected, 0 as payments
      from ${within('currency, total', 'billing_invoice_states', 'invoiced_at', `valid_to = 'infinity'`)}
      union all
      select d.tenant_id, d.day, r.currency, 0, 0, r.amount_paid, 1
      from ${within('currency, amount_paid', 'billing_invoice_states', 'collected_at', `valid_to = 'infinity'`)}
    ) cash group by tenant_id, day, currency`,
  agenda: `
    insert into billing_agenda_days (tenant_id, day, currency, kind, entries)
    select tenant_id, day, currency, kind, count(*) from (
      ${['charge', 'renewal', 'cancellation']
        .map(
          kind =>
            `select d.tenant_id, d.day, r.currency, '${kind}' as kind from ${within(
              'currency',
              'billing_agenda',
              'due_at',
              `kind = '${kind}' and not conditional`,
            )}`,
        )
        .join(' union all ')}
    ) expected group by tenant_id, day, currency, kind`,
}
