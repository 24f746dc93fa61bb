import type { MovementType } from '../../domain/billing/account.ts'
import type { Acquisition } from '../../domain/billing/types.ts'
import { MAX_BUCKETS } from '../../domain/buckets.ts'
import { type Db, queryPrepared, queryRow, queryRows } from '../../postgres/database.ts'
import { ACCOUNT_FIGURES, FIGURES_OF_STATE } from '../billing/accounts.ts'
import { CASH_FIGURES, CASH_SUMS } from '../billing/cash.ts'
import { utcDay } from '../billing/rows.ts'
import type { Scope } from './scope.ts'

/** The figures of the accounts of one currency and acquisition source. */
export type SourceFigures = {
  /** '' for subscriptions without a currency. */
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
  pricedItems: number
  excludedItems: number
  /** At `then`: accounts with MRR, and their MRR. */
  cohortAccounts: number
  cohortMrr: number
  /** `cohortMrr` by the rates of the closing day, in the reporting currency. */
  retentionBaseMrr?: number
}

const figures = ACCOUNT_FIGURES.join(', ')
// sum(bigint) is numeric, which pg returns as a string
const total = (figure: string) => `coalesce(sum(${figure}), 0)::bigint`
const now = (figure: string) => `coalesce(sum(sign * ${figure}) filter (where is_now), 0)::bigint`
const before = (figure: string) => `coalesce(sum(sign * ${figure}) filter (where not is_now), 0)::bigint`

// For each of the two times: the sums of whole months, plus the days of the current month, minus changes later on the same
// day. `offset 0` makes each part use its index.
const SOURCE_FIGURES = `
with times as materialized (
  select at, is_now, day, date_trunc('month', day)::date as month, (day + 1)::timestamp at time zone 'UTC' as ends
  from (values ($2::timestamptz, true, ${utcDay('$2')}), ($3, false, ${utcDay('$3')})) as t (at, is_now, day)
), changes as (
  select t.is_now, c.* from times t cross join lateral (
    select currency, acquisition_id, 1 as sign, ${figures} from billing_account_months
    where tenant_id = $1 and month < t.month
    union all
    select currency, acquisition_id, 1, ${figures} from billing_account_days
    where tenant_id = $1 and day >= t.month and day <= t.day
    union all
    select currency, acquisition_id, -1, ${FIGURES_OF_STATE} from billing_account_states
    where tenant_id = $1 and valid_from > t.at and valid_from < t.ends
    union all
    select currency, acquisition_id, 1, ${FIGURES_OF_STATE} from billing_account_states
    where tenant_id = $1 and valid_to > t.at and valid_to < t.ends
    offset 0) c
)
select currency, acquisition_id as "acquisitionId", ${now('accounts')} as accounts,
  ${now('active_accounts')} as "activeAccounts", ${now('subscriptions')} as subscriptions,
  ${now('active_subscriptions')} as "activeSubscriptions", ${now('mrr')} as mrr,
  ${now('committed_mrr')} as "committedMrr", ${now('item_rows')} as "itemRows", ${now('items')} as items,
  ${now('items_priced')} as "pricedItems", ${now('items_excluded')} as "excludedItems",
  ${before('active_accounts')} as "cohortAccounts", ${before('mrr')} as "cohortMrr"
from changes group by currency, acquisition_id`

/** The figures at `asOf`, in all currencies, with those at `then` beside them. */
export async function sourceFigures(db: Db, tenantId: number, asOf: Date, then: Date): Promise<SourceFigures[]> {
  return queryRows<SourceFigures>(db, SOURCE_FIGURES, [tenantId, asOf, then])
}

/** The movements within a window: amounts by type, how many there are, and how many accounts are new. */
export type Moved = Partial<Record<MovementType, number>> & {
  count: number
  newAccounts: number
  /** The effect of exchange rates, in the reporting currency. */
  fx?: number
}

/** What became of the accounts with MRR right before a window, by acquisition source. */
export type Retained = {
  acquisitionId: number
  /** The change of their MRR. */
  change: number
  /** What they lost, account by account: gains of one do not offset losses of another. */
  lostMrr: number
  /** How many have no MRR at the end. */
  lostAccounts: number
}

/** From `from` (inclusive) to `to` (exclusive). */
export type Span = { from: Date; to: Date }

/** Of accounts that moved; the first movement within the window follows the MRR at its start. */
export async function retainedWithin(
  db: Db,
  { tenantId, currency }: Pick<Scope, 'tenantId' | 'currency'>,
  spans: Span[],
): Promise<Retained[][]> {
  const { rows } = await queryPrepared<Retained & { span: number }>(
    db,
    `select s.span::int, r.* from unnest($3::timestamptz[], $4::timestamptz[]) with ordinality as s (starts, ends, span)
     cross join lateral (
       select acquisition_id as "acquisitionId", sum(change)::bigint as change,
         sum(greatest(-change, 0))::bigint as "lostMrr", count(*) filter (where opening + change = 0) as "lostAccounts"
       from (
         select account, acquisition_id, sum(mrr_after - mrr_before) as change,
           sum(mrr_before) filter (where previous_at < s.starts) as opening
         from billing_movements
         where tenant_id = $1 and currency = $2 and occurred_at >= s.starts and occurred_at < s.ends
         group by account, acquisition_id offset 0) moved
       where opening > 0 group by acquisition_id) r`,
    [tenantId, currency, spans.map(({ from }) => from), spans.map(({ to }) => to)],
  )
  const retained: Retained[][] = spans.map(() => [])
  for (const { span, ...own } of rows) retained[span - 1]!.push(own)
  return retained
}

export type Cash = {
  invoiced: number
  invoices: number
  /** Payments of subscription invoices, before refunds and disputes. */
  collected: number
  payments: number
  refunded: number
  disputed: number
  /** All other payments, less their refunds and disputes. */
  oneOff: number
}

/**
 * Amounts invoiced and collected in (since, until], as of `until`. `fromSums`: read whole days from the daily sums, which
 * contain the current state; only for reports as of now.
 */
export async function cashBetween(
  db: Db,
  tenantId: number,
  currency: string,
  window: { since: Date; until: Date; fromSums: boolean },
): Promise<Cash> {
  return (await queryRow<Cash>(db, window.fromSums ? CASH_FROM_SUMS : CASH_FROM_ROWS, [
    tenantId,
    currency,
    window.since,
    window.until,
  ]))!
}

const CASH_FROM_ROWS = `
select i.invoiced, i.invoices, c.collected, c.payments, c.refunded, c.disputed, c.one_off as "oneOff"
from (
  select coalesce(sum(total), 0)::bigint as invoiced, count(*) as invoices from billing_invoice_states
  where tenant_id = $1 and currency = $2 and invoiced_at > $3 and invoiced_at <= $4
    and valid_from <= $4 and valid_to > $4
) i, (
  select ${CASH_SUMS} from billing_cash
  where tenant_id = $1 and currency = $2 and occurred_at > $3 and occurred_at <= $4 and valid_to > $4
) c`

// Whole days from the daily sums, the first and the last day from their rows. `offset 0` makes the rows of a day use the index.
const CASH_FROM_SUMS = `
with cut_days as materialized (
  select greatest(day::timestamp at time zone 'UTC', $3::timestamptz + interval '1 microsecond') as starts,
    (day + 1)::timestamp at time zone 'UTC' as ends
  from (select ${utcDay('$3')} as day union select ${utcDay('$4')}) d
), parts as (
  select invoiced, invoices, ${CASH_FIGURES.join(', ')} from billing_cash_days
  where tenant_id = $1 and currency = $2 and day > ${utcDay('$3')} and day < ${utcDay('$4')}
  union all
  select total, 1, 0, 0, 0, 0, 0 from cut_days cross join lateral (
    select total from billing_invoice_states
    where tenant_id = $1 and currency = $2 and invoiced_at >= starts and invoiced_at < ends and invoiced_at <= $4
      and valid_from <= $4 and valid_to > $4 offset 0) i
  union all
  select 0, 0, c.* from cut_days cross join lateral (
    select ${CASH_SUMS} from billing_cash
    where tenant_id = $1 and currency = $2 and occurred_at >= starts and occurred_at < ends and occurred_at <= $4
      and valid_to > $4 offset 0) c
)
select ${total('invoiced')} as invoiced, ${total('invoices')} as invoices, ${total('collected')} as collected,
  ${total('payments')} as payments, ${total('refunded')} as refunded, ${total('disputed')} as disputed,
  ${total('one_off')} as "oneOff"
from parts`

export async function acquisitionNames(db: Db, tenantId: number, ids: number[]): Promise<Map<number, Acquisition>> {
  const { rows } = await queryPrepared<{ id: number } & Acquisition>(
    db,
    'select id, source, medium, campaign from billing_acquisitions where tenant_id = $1 and id = any($2)',
    [tenantId, ids],
  )
  return new Map(rows.map(({ id, ...name }) => [id, name]))
}

/** The totals of all accounts of a currency. */
export type AccountTotals = { mrr: number; activeAccounts: number; activeSubscriptions: number }

type Change = AccountTotals & {
  /** The UTC day of the change; null: all earlier days. */
  day: string | null
  /** The number of the bound, if the change is in the part of the bound's day before it. */
  bound: number | null
}

const FIGURES = 'mrr, active_accounts, active_subscriptions'
const change = (day: string, bound: string) => `${day} as day, ${bound} as bound,
  coalesce(sum(sign * mrr), 0)::bigint as mrr, coalesce(sum(sign * active_accounts), 0)::bigint as "activeAccounts",
  coalesce(sum(sign * active_subscriptions), 0)::bigint as "activeSubscriptions"`

// The totals before the first day from the sums of months and days, then the changes of each day. For the day of a bound,
// the rows before the bound. `offset 0` makes each part use its index.
const TOTALS = `
with bounds as materialized (
  select at, day, day::timestamp at time zone 'UTC' as day_starts, place
  from (select at, ${utcDay('at')} as day, place from unnest($3::timestamptz[]) with ordinality as b (at, place)) b
), days as materialized (
  select min(day) as first, max(day) as last, date_trunc('month', min(day))::date as month from bounds
)
select ${change('null::text', 'null::int')} from days cross join lateral (
  select 1 as sign, ${FIGURES} from billing_account_months
  where tenant_id = $1 and currency = $2 and month < days.month
  union all
  select 1, ${FIGURES} from billing_account_days
  where tenant_id = $1 and currency = $2 and day >= days.month and day < days.first
  offset 0) c
union all
select ${change('c.day::text', 'null')} from days cross join lateral (
  select 1 as sign, day, ${FIGURES} from billing_account_days
  where tenant_id = $1 and currency = $2 and day >= days.first and day < days.last
  offset 0) c
group by c.day
union all
select ${change('null', 'b.place::int')} from bounds b cross join lateral (
  select 1 as sign, ${FIGURES} from (
    select ${FIGURES_OF_STATE} from billing_account_states
    where tenant_id = $1 and currency = $2 and valid_from >= b.day_starts and valid_from < b.at offset 0) began
  union all
  select -1, ${FIGURES} from (
    select ${FIGURES_OF_STATE} from billing_account_states
    where tenant_id = $1 and currency = $2 and valid_to >= b.day_starts and valid_to < b.at offset 0) ended
  offset 0) c
where b.at > b.day_starts
group by b.place`

/** The totals right before each of these times. `bounds`: in ascending order. */
export async function totalsBefore(db: Db, { tenantId, currency }: Scope, bounds: Date[]): Promise<AccountTotals[]> {
  const { rows } = await queryPrepared<Change>(db, TOTALS, [tenantId, currency, bounds])
  const days = rows.filter(row => row.bound === null).sort((a, b) => ((a.day ?? '') < (b.day ?? '') ? -1 : 1))
  const parts = new Map(rows.flatMap(row => (row.bound === null ? [] : [[row.bound, row]])))
  let sum: AccountTotals = { mrr: 0, activeAccounts: 0, activeSubscriptions: 0 }
  let next = 0
  return bounds.map((bound, i) => {
    const day = bound.toISOString().slice(0, 10)
    while (next < days.length && (days[next]!.day ?? '') < day) sum = plus(sum, days[next++]!)
    const part = parts.get(i + 1)
    return part ? plus(sum, part) : sum
  })
}

function plus(a: AccountTotals, b: AccountTotals): AccountTotals {
  return {
    mrr: a.mrr + b.mrr,
    activeAccounts: a.activeAccounts + b.activeAccounts,
    activeSubscriptions: a.activeSubscriptions + b.activeSubscriptions,
  }
}

/** The movements between each of these times (inclusive) and the next (exclusive). */
export async function movedWithin(
  db: Db,
  { tenantId, currency }: Pick<Scope, 'tenantId' | 'currency'>,
  bounds: Date[],
): Promise<Moved[]> {
  const { rows } = await queryPrepared<{ bucket: number; type: MovementType; amount: number; count: number }>(
    db,
    `select b.bucket::int, m.* from unnest($3::timestamptz[], $4::timestamptz[]) with ordinality as b (starts, ends, bucket)
     cross join lateral (
       select type, abs(sum(mrr_after - mrr_before))::bigint as amount, count(*) as count from billing_movements
       where tenant_id = $1 and currency = $2 and occurred_at >= b.starts and occurred_at < b.ends
       group by type offset 0) m`,
    [tenantId, currency, bounds.slice(0, -1), bounds.slice(1)],
  )
  const moved: Moved[] = bounds.slice(1).map(() => ({ count: 0, newAccounts: 0 }))
  for (const { bucket, type, amount, count } of rows) {
    moved[bucket - 1]![type] = amount
    moved[bucket - 1]!.count += count
    if (type === 'new') moved[bucket - 1]!.newAccounts = count
  }
  return moved
}

/** The first month with accounts. */
export async function firstMonth(db: Db, tenantId: number): Promise<Date> {
  const row = await queryRow<{ month: string | null }>(
    db,
    'select min(month)::text as month from billing_account_months where tenant_id = $1',
    [tenantId],
  )
  return new Date(row?.month ?? '9999-12-01')
}

export const BUCKET_INTERVALS = ['day', 'week', 'month'] as const
export type BucketInterval = (typeof BUCKET_INTERVALS)[number]

/** `date`: its first day; `ends` is exclusive. */
export type Bucket = { date: string; starts: Date; ends: Date }

type BucketQuestion = {
  interval: BucketInterval
  /** Default: the last twelve months, including the current one. */
  from: Date | null
  to: Date
  timeZone: string
}

// generate_series in the select list stops at `limit`. Intervals are added to local time, so that buckets stay correct
// across a change to daylight saving time.
const BUCKETS = `
select to_char(local, 'YYYY-MM-DD') as date, local at time zone $3 as starts, (local + step) at time zone $3 as ends
from (
  select step, generate_series(date_trunc($4, first), last, step) as local
  from (
    select ('1 ' || $4)::interval as step, $2::timestamptz at time zone $3 as last,
      coalesce($1::timestamptz at time zone $3,
        date_trunc('month', $2::timestamptz at time zone $3) - interval '11 months') as first
  ) bounds
  limit ${MAX_BUCKETS + 1}
) buckets
order by local`

/** These times, `months` earlier in the time zone. The 31st becomes the last day of a shorter month. */
export async function monthsBefore(db: Db, times: Date[], months: number, timeZone: string): Promise<Date[]> {
  const rows = await queryRows<{ at: Date }>(
    db,
    `select (at at time zone $3 - make_interval(months => $2)) at time zone $3 as at
     from unnest($1::timestamptz[]) with ordinality as t (at, n) order by n`,
    [times, months, timeZone],
  )
  return rows.map(({ at }) => at)
}

/** The buckets from the one with `from` to the one with `to`; null: too many. */
export async function findBuckets(db: Db, question: BucketQuestion): Promise<Bucket[] | null> {
  const { from, to, timeZone, interval } = question
  const { rows } = await queryPrepared<Bucket>(db, BUCKETS, [from, to, timeZone, interval])
  return rows.length > MAX_BUCKETS ? null : rows
}
