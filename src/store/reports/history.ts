import type { MovementType } from '../../domain/billing/movements.ts'
import { type Db, queryPrepared } from '../../postgres/database.ts'
import { FIGURES_OF_STATE, utcDay } from '../billing/sums.ts'
import type { Scope } from './scope.ts'

/** What the accounts of a currency come to. */
export type Standing = { mrr: number; activeAccounts: number; activeSubscriptions: number }

type Change = Standing & {
  /** The UTC day whose change it is; null: of all days before. */
  day: string | null
  /** Of the part of a day before this one of the bounds. */
  bound: number | null
}

const FIGURES = 'mrr, active_accounts, active_subscriptions'
const change = (day: string, bound: string) => `${day} as day, ${bound} as bound,
  coalesce(sum(sign * mrr), 0)::bigint as mrr, coalesce(sum(sign * active_accounts), 0)::bigint as "activeAccounts",
  coalesce(sum(sign * active_subscriptions), 0)::bigint as "activeSubscriptions"`

// What was before the first day from whole months and days, then day by day; of a day that a bound cuts through, its
// rows before the bound. With `offset 0` an index finds each of them.
const STANDINGS = `
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

/** How things stood right before each of these times, the earliest first. */
export async function standingsBefore(
  db: Db,
  { tenantId, currency }: Scope,
  bounds: Date[],
): Promise<Standing[]> {
  const { rows } = await queryPrepared<Change>(db, STANDINGS, [tenantId, currency, bounds])
  const days = rows.filter(row => row.bound === null).sort((a, b) => ((a.day ?? '') < (b.day ?? '') ? -1 : 1))
  const parts = new Map(rows.flatMap(row => (row.bound === null ? [] : [[row.bound, row]])))
  let sum: Standing = { mrr: 0, activeAccounts: 0, activeSubscriptions: 0 }
  let next = 0
  return bounds.map((bound, i) => {
    const day = bound.toISOString().slice(0, 10)
    while (next < days.length && (days[next]!.day ?? '') < day) sum = plus(sum, days[next++]!)
    const part = parts.get(i + 1)
    return part ? plus(sum, part) : sum
  })
}

function plus(a: Standing, b: Standing): Standing {
  return {
    mrr: a.mrr + b.mrr,
    activeAccounts: a.activeAccounts + b.activeAccounts,
    activeSubscriptions: a.activeSubscriptions + b.activeSubscriptions,
  }
}

/** Between each of these times and the next, its beginning included: how far MRR moved, by type. */
export async function movedWithin(
  db: Db,
  { tenantId, currency }: Scope,
  bounds: Date[],
): Promise<Partial<Record<MovementType, number>>[]> {
  const { rows } = await queryPrepared<{ bucket: number; type: MovementType; amount: number }>(
    db,
    `select b.bucket::int, m.type, m.amount
     from unnest($3::timestamptz[], $4::timestamptz[]) with ordinality as b (starts, ends, bucket)
     cross join lateral (
       select type, abs(sum(mrr_after - mrr_before))::bigint as amount from billing_movements
       where tenant_id = $1 and currency = $2 and occurred_at >= b.starts and occurred_at < b.ends
       group by type offset 0) m`,
    [tenantId, currency, bounds.slice(0, -1), bounds.slice(1)],
  )
  const moved: Partial<Record<MovementType, number>>[] = bounds.slice(1).map(() => ({}))
  for (const { bucket, type, amount } of rows) moved[bucket - 1]![type] = amount
  return moved
}
