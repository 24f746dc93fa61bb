import type { Day } from '../../domain/time.ts'
import { type Db, queryPrepared, queryRows } from '../../postgres/database.ts'

type SnapshotCoverage = { firstDay: Day | null; days: number; gaps: number; covers: boolean }

/** Records that the snapshots of the days in [from, until) are written. */
export async function coverDays(
  db: Db,
  tenants: { tenantId: number; from: Day }[],
  until: Day,
  now: Date,
): Promise<void> {
  await queryPrepared(
    db,
    `insert into billing_snapshots as s (tenant_id, days, written_at)
     select tenant_id, datemultirange(daterange(from_day, $3::date)), $4
     from unnest($1::int[], $2::date[]) as t (tenant_id, from_day)
     -- Most days are covered. Looking is cheap; a conflict would lock the row until the end of the transaction.
     where from_day < $3::date and not exists (
       select from billing_snapshots c where c.tenant_id = t.tenant_id and c.days @> daterange(t.from_day, $3::date))
     order by tenant_id
     on conflict (tenant_id) do update set days = s.days + excluded.days, written_at = excluded.written_at
     where not s.days @> excluded.days`,
    [tenants.map(tenant => tenant.tenantId), tenants.map(tenant => tenant.from), until, now],
  )
}

/**
 * Tenants with missing days before `until`, each with the first missing day. With `day`: all tenants whose data starts on
 * that day or earlier.
 */
export async function tenantsToSnapshot(
  db: Db,
  until: Day,
  day: Day | null,
): Promise<{ tenantId: number; from: Day }[]> {
  return queryRows<{ tenantId: number; from: Day }>(
    db,
    `select t.id as "tenantId", to_char(coalesce($2::date, upper(s.days), f.day), 'YYYY-MM-DD') as "from"
     from tenants t
     cross join lateral (
       select (valid_from at time zone 'UTC')::date as day from billing_account_states
       where tenant_id = t.id order by valid_from limit 1
     ) f
     left join billing_snapshots s on s.tenant_id = t.id
     where case when $2::date is null then coalesce(upper(s.days), f.day) < $1::date else f.day <= $2::date end
     order by t.id`,
    [until, day],
  )
}

/** Deletes the record of covered days. The next run starts at the first day of each tenant. */
export async function forgetSnapshots(db: Db): Promise<void> {
  await queryPrepared(db, 'delete from billing_snapshots')
}

/** The number of accounts and currencies in the snapshot of a day. */
export async function snapshotSize(db: Db, tenantId: number, day: Day): Promise<number> {
  const { rows } = await queryPrepared<{ size: number }>(
    db,
    `select count(*) as size from billing_account_states
     where tenant_id = $1 and valid_from < ($2::date + 1)::timestamp at time zone 'UTC'
       and valid_to >= ($2::date + 1)::timestamp at time zone 'UTC'`,
    [tenantId, day],
  )
  return rows[0]!.size
}

/** The days before `until` that have snapshots, and whether the day of `at` has one. */
export async function snapshotCoverage(db: Db, tenantId: number, until: Day, at: Date): Promise<SnapshotCoverage> {
  const { rows } = await queryPrepared<{
    firstDay: Day | null
    days: number | null
    expected: number | null
    covers: boolean
  }>(
    db,
    `with known as (
       select days * datemultirange(daterange(null, $2::date)) as before, days from billing_snapshots
       where tenant_id = $1
     )
     select to_char(lower(before), 'YYYY-MM-DD') as "firstDay", $2::date - lower(before) as expected,
       (select sum(upper(r) - lower(r))::int from unnest(before) as r) as days,
       days @> ($3::timestamptz at time zone 'UTC')::date as covers
     from known`,
    [tenantId, until, at],
  )
  const known = rows[0]
  if (!known) return { firstDay: null, days: 0, gaps: 0, covers: false }
  const days = known.days ?? 0
  return { firstDay: known.firstDay, days, gaps: (known.expected ?? 0) - days, covers: known.covers }
}
