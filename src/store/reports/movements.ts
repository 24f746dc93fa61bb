import type { CohortChange, Movement, MovementType } from '../../domain/billing/account.ts'
import type { Policy } from '../../domain/billing/policy.ts'
import { nearerEnd, type Slice } from '../../domain/list-slices.ts'
import { type Db, queryPrepared, queryRows } from '../../postgres/database.ts'

export type RetentionBase = Policy['retentionBase']

export type MovementEntry = {
  account: string
  occurredAt: Date
  type: MovementType
  before: number
  after: number
  changes: Movement['changes']
}

const ENTRY = `account, occurred_at as "occurredAt", type, mrr_before as before, mrr_after as after, changes`

type EntryRow = Omit<MovementEntry, 'changes'> & { changes: string }

function toEntry(row: EntryRow): MovementEntry {
  return { ...row, changes: JSON.parse(row.changes) }
}

/** The oldest first, or the largest, gained or lost. */
export type MovementOrder = 'time' | 'size'

type SliceOfMovements = { slice: Slice; count: number; order: MovementOrder }

/** By size: all movements of the window are read from the index, which contains the amounts, and sorted. */
const FORWARDS = { time: 'occurred_at, account', size: 'size desc, occurred_at, account' }
const BACKWARDS = { time: 'occurred_at desc, account desc', size: 'size, occurred_at desc, account desc' }

/** Movements in (since, until]. `count`: the total number. */
export async function movementSlice(
  db: Db,
  tenantId: number,
  currency: string,
  window: { since: Date; until: Date },
  { slice, count, order: by }: SliceOfMovements,
): Promise<MovementEntry[]> {
  const { offset, limit, backwards } = nearerEnd(slice, count)
  if (limit === 0) return []
  const order = (backwards ? BACKWARDS : FORWARDS)[by]
  const { rows } = await queryPrepared<EntryRow>(
    db,
    `select m.* from (
       select account, occurred_at, abs(mrr_after - mrr_before) as size from billing_movements
       where tenant_id = $1 and currency = $2 and occurred_at > $3 and occurred_at <= $4
       order by ${order} offset $5 limit $6
     ) k
     cross join lateral (
       select ${ENTRY} from billing_movements
       where tenant_id = $1 and account = k.account and currency = $2 and occurred_at = k.occurred_at offset 0) m
     order by ${order}`,
    [tenantId, currency, window.since, window.until, offset, limit],
  )
  const found = rows.map(toEntry)
  return backwards ? found.reverse() : found
}

export async function movementsOfAccount(
  db: Db,
  tenantId: number,
  currency: string,
  account: string,
  until: Date,
): Promise<MovementEntry[]> {
  const { rows } = await queryPrepared<EntryRow>(
    db,
    `select ${ENTRY} from billing_movements
     where tenant_id = $1 and account = $2 and currency = $3 and occurred_at <= $4`,
    [tenantId, account, currency, until],
  )
  return rows.map(toEntry)
}

/**
 * By cohort and month in the time zone, for cohorts from `since` on, as of `asOf`. The starting MRR of an account is its
 * first MRR, or its MRR at the end of its first month. Accounts without MRR at that time are in no cohort.
 */
export async function cohortChanges(
  db: Db,
  tenantId: number,
  currency: string,
  { since, asOf, zone, base }: { since: Date; asOf: Date; zone: string; base: RetentionBase },
): Promise<CohortChange[]> {
  const month = (column: string) => `to_char(date_trunc('month', ${column} at time zone $5), 'YYYY-MM-DD')`
  const first = base === 'first_instant' ? 'first_mrr' : MRR_AT_END_OF_FIRST_MONTH
  return queryRows<CohortChange>(
    db,
    `select cohort, month, count(*) filter (where type = 'new') as "newAccounts",
       coalesce(sum(base) filter (where type = 'new'), 0)::bigint as "newMrr",
       sum(mrr_after - mrr_before)::bigint as mrr,
       sum(least(base, mrr_after) - least(base, mrr_before))::bigint as "cappedMrr",
       sum((mrr_after > 0)::int - (mrr_before > 0)::int)::bigint as accounts
     from (
       select *, ${first} as base from (
         select account, occurred_at, type, mrr_before, mrr_after, first_mrr, ${month('first_at')} as cohort,
           ${month('occurred_at')} as month
         from billing_movements
         where tenant_id = $1 and currency = $2 and occurred_at >= $3 and occurred_at <= $4 and first_at >= $3
       ) moved
     ) based
     where base > 0 group by 1, 2 order by 1, 2`,
    [tenantId, currency, since, asOf, zone],
  )
}

const MRR_AT_END_OF_FIRST_MONTH =
  'first_value(mrr_after) over (partition by account order by month = cohort desc, occurred_at desc)'
