import type { MovementType } from '../../domain/billing/movements.ts'
import { type Db, queryPrepared } from '../../postgres/database.ts'

/** What the accounts of one currency and acquisition source come to. */
export type SourceFigures = {
  /** '' of subscriptions that name none */
  currency: string
  /** 0: unattributed */
  acquisitionId: number
  accounts: number
  activeAccounts: number
  subscriptions: number
  activeSubscriptions: number
  mrr: number
  committedMrr: number
  itemRows: number
  items: number
  itemsPriced: number
  itemsExcluded: number
  /** At `then`: accounts with MRR, and their MRR. */
  cohortAccounts: number
  cohortMrr: number
}

const FIGURES = [
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

const OF_STATE = FIGURES.map(figure =>
  figure === 'accounts'
    ? '1 as accounts'
    : figure === 'active_accounts'
      ? '(mrr > 0)::int as active_accounts'
      : figure,
).join(', ')

// Sums of whole months, and of the days from the month of `then` on; of days whose sums are not made, and of the days
// that are cut through, what began less what ended. With `offset 0` an index finds the rows of a day; otherwise every
// row might be compared with every day.
const SOURCE_FIGURES = `
with times as materialized (
  select ($2::timestamptz at time zone 'UTC')::date as today, ($3::timestamptz at time zone 'UTC')::date as then_day
), raw_days as materialized (
  select day, day::timestamp at time zone 'UTC' as starts, (day + 1)::timestamp at time zone 'UTC' as ends from (
    select day from billing_stale_days where tenant_id = $1 and sums = 'accounts'
    union select today from times union select then_day from times
  ) d, times where day <= today
), whole_days as materialized (
  select date_trunc('month', then_day)::date as month from times
  union select date_trunc('month', day)::date from raw_days
), changes as (
  select currency, acquisition_id, 1 as sign, true as before, ${FIGURES.join(', ')}
  from billing_account_months m, times
  where tenant_id = $1 and month < date_trunc('month', then_day) and month not in (select month from whole_days)
  union all
  select currency, acquisition_id, 1, day < then_day, ${FIGURES.join(', ')}
  from billing_account_days d, times
  where tenant_id = $1 and day < today and day >= date_trunc('month', then_day)
    and day not in (select day from raw_days)
  union all
  select d.* from whole_days w, times cross join lateral (
    select currency, acquisition_id, 1, true, ${FIGURES.join(', ')} from billing_account_days
    where tenant_id = $1 and day >= w.month and day < w.month + interval '1 month'
      and day not in (select day from raw_days) offset 0) d
  where w.month < date_trunc('month', then_day)
  union all
  select began.* from raw_days cross join lateral (
    select currency, acquisition_id, 1, valid_from <= $3, ${OF_STATE} from billing_account_states
    where tenant_id = $1 and valid_from >= starts and valid_from < ends and valid_from <= $2 offset 0) began
  union all
  select ended.* from raw_days cross join lateral (
    select currency, acquisition_id, -1, valid_to <= $3, ${OF_STATE} from billing_account_states
    where tenant_id = $1 and valid_to >= starts and valid_to < ends and valid_to <= $2 offset 0) ended
)
select currency, acquisition_id, ${FIGURES.map(figure => `sum(sign * ${figure}) as ${figure}`).join(', ')},
  sum(sign * active_accounts) filter (where before) as cohort_accounts,
  sum(sign * mrr) filter (where before) as cohort_mrr
from changes group by currency, acquisition_id`

/** The figures at `asOf`, of all currencies, with those at an earlier time beside them. */
export async function sourceFigures(
  db: Db,
  tenantId: number,
  asOf: Date,
  then: Date,
): Promise<SourceFigures[]> {
  const { rows } = await queryPrepared<Record<string, number | string | null>>(db, SOURCE_FIGURES, [
    tenantId,
    asOf,
    then,
  ])
  return rows.map(row => {
    const figure = (column: string) => Number(row[column] ?? 0)
    return {
      currency: row.currency as string,
      acquisitionId: row.acquisition_id as number,
      accounts: figure('accounts'),
      activeAccounts: figure('active_accounts'),
      subscriptions: figure('subscriptions'),
      activeSubscriptions: figure('active_subscriptions'),
      mrr: figure('mrr'),
      committedMrr: figure('committed_mrr'),
      itemRows: figure('item_rows'),
      items: figure('items'),
      itemsPriced: figure('items_priced'),
      itemsExcluded: figure('items_excluded'),
      cohortAccounts: figure('cohort_accounts'),
      cohortMrr: figure('cohort_mrr'),
    }
  })
}

/** Movements of one type within a window. */
export type MovementSums = { type: MovementType; amount: number; count: number }[]

export type Moved = {
  sums: MovementSums
  /** By source: how the MRR changed of accounts that had some at the beginning. */
  kept: Map<number, number>
}

/** What happened in (since, until]. */
export async function movedBetween(
  db: Db,
  tenantId: number,
  currency: string,
  since: Date,
  until: Date,
): Promise<Moved> {
  const values = [tenantId, currency, since, until]
  const { rows } = await queryPrepared<{
    acquisition_id: number
    type: MovementType
    kept: boolean
    delta: string
    count: number
  }>(
    db,
    `select acquisition_id, type, paying_since <= $3 as kept, sum(mrr_after - mrr_before) as delta, count(*) as count
     from billing_movements
     where tenant_id = $1 and currency = $2 and occurred_at > $3 and occurred_at <= $4 group by 1, 2, 3`,
    values,
  )
  const kept = new Map<number, number>()
  const add = (id: number, delta: number) => kept.set(id, (kept.get(id) ?? 0) + delta)
  for (const row of rows) if (row.kept) add(row.acquisition_id, Number(row.delta))
  for (const { acquisitionId, mrr } of await returned(db, values)) add(acquisitionId, mrr)
  const byType = Map.groupBy(rows, row => row.type)
  return {
    kept,
    sums: [...byType].map(([type, own]) => ({
      type,
      amount: Math.abs(own.reduce((sum, row) => sum + Number(row.delta), 0)),
      count: own.reduce((sum, row) => sum + row.count, 0),
    })),
  }
}

/** What accounts have that paid at the beginning, left and came back within the window. Few do. */
async function returned(db: Db, values: unknown[]): Promise<{ acquisitionId: number; mrr: number }[]> {
  const { rows } = await queryPrepared<{ acquisition_id: number; mrr: string }>(
    db,
    `select m.acquisition_id, sum(m.mrr_after - m.mrr_before) filter (where m.paying_since > $3) as mrr
     from (
       select distinct account from billing_movements
       where tenant_id = $1 and currency = $2 and type = 'reactivation' and occurred_at > $3 and occurred_at <= $4
         and previous_at > $3
     ) r
     join billing_movements m on m.tenant_id = $1 and m.account = r.account and m.currency = $2
       and m.occurred_at > $3 and m.occurred_at <= $4
     group by m.account, m.acquisition_id having bool_or(m.paying_since <= $3)`,
    values,
  )
  return rows.map(row => ({ acquisitionId: row.acquisition_id, mrr: Number(row.mrr ?? 0) }))
}

/** MRR of all accounts at an instant. */
export async function mrrAt(db: Db, tenantId: number, currency: string, at: Date): Promise<number> {
  const { rows } = await queryPrepared<{ mrr: string | null }>(
    db,
    `select sum(mrr) as mrr from billing_account_states
     where tenant_id = $1 and currency = $2 and valid_from <= $3 and valid_to > $3`,
    [tenantId, currency, at],
  )
  return Number(rows[0]!.mrr ?? 0)
}

export type Cash = { invoiced: number; invoices: number; collected: number; payments: number }

/**
 * What was invoiced and collected in (since, until], as it stood at `until`. Whole days are read from their sums, which
 * tell how things stand now: `fromSums` is for reports as of now.
 */
export async function cashBetween(
  db: Db,
  tenantId: number,
  currency: string,
  window: { since: Date; until: Date; fromSums: boolean },
): Promise<Cash> {
  const { rows } = await queryPrepared<Record<keyof Cash | 'refunded', string | number | null>>(
    db,
    window.fromSums ? CASH_FROM_SUMS : CASH_FROM_ROWS,
    [tenantId, currency, window.since, window.until],
  )
  const figure = (column: keyof Cash | 'refunded') => Number(rows[0]?.[column] ?? 0)
  return {
    invoiced: figure('invoiced'),
    invoices: figure('invoices'),
    collected: figure('collected') - figure('refunded'),
    payments: figure('payments'),
  }
}

const REFUNDED = `(select sum(amount) from billing_refunds where tenant_id = $1 and currency = $2 and counted
  and created_at > $3 and created_at <= $4) as refunded`

const CASH_FROM_ROWS = `
select i.invoiced, i.invoices, c.collected, c.payments, ${REFUNDED}
from (
  select sum(total) as invoiced, count(*) as invoices from billing_invoice_states
  where tenant_id = $1 and currency = $2 and invoiced_at > $3 and invoiced_at <= $4
    and valid_from <= $4 and valid_to > $4
) i, (
  select sum(amount_paid) as collected, count(*) as payments from billing_invoice_states
  where tenant_id = $1 and currency = $2 and collected_at > $3 and collected_at <= $4
    and valid_from <= $4 and valid_to > $4
) c`

const CASH_FROM_SUMS = `
with raw_days as materialized (
  select day, greatest(day::timestamp at time zone 'UTC', $3::timestamptz + interval '1 microsecond') as starts,
    (day + 1)::timestamp at time zone 'UTC' as ends from (
    select day from billing_stale_days where tenant_id = $1 and sums = 'cash'
    union select ($3::timestamptz at time zone 'UTC')::date union select ($4::timestamptz at time zone 'UTC')::date
  ) d
  where day between ($3::timestamptz at time zone 'UTC')::date and ($4::timestamptz at time zone 'UTC')::date
), parts as (
  select invoiced, invoices, collected, payments from billing_cash_days d
  where tenant_id = $1 and currency = $2 and day > ($3::timestamptz at time zone 'UTC')::date
    and day < ($4::timestamptz at time zone 'UTC')::date
    and not exists (select from raw_days r where r.day = d.day)
  union all
  select total, 1, 0, 0 from raw_days cross join lateral (
    select total from billing_invoice_states
    where tenant_id = $1 and currency = $2 and invoiced_at >= starts and invoiced_at < ends and invoiced_at <= $4
      and valid_from <= $4 and valid_to > $4 offset 0) i
  union all
  select 0, 0, amount_paid, 1 from raw_days cross join lateral (
    select amount_paid from billing_invoice_states
    where tenant_id = $1 and currency = $2 and collected_at >= starts and collected_at < ends and collected_at <= $4
      and valid_from <= $4 and valid_to > $4 offset 0) c
)
select sum(invoiced) as invoiced, sum(invoices) as invoices, sum(collected) as collected, sum(payments) as payments,
  ${REFUNDED}
from parts`

export type AcquisitionName = { source: string; medium: string | null; campaign: string | null }

export async function acquisitionNames(
  db: Db,
  tenantId: number,
  ids: number[],
): Promise<Map<number, AcquisitionName>> {
  const { rows } = await queryPrepared<{ id: number } & AcquisitionName>(
    db,
    'select id, source, medium, campaign from billing_acquisitions where tenant_id = $1 and id = any($2)',
    [tenantId, ids],
  )
  return new Map(rows.map(({ id, ...name }) => [id, name]))
}
