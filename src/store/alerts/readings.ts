import type { Rhythm } from '../../domain/alerts/rules.ts'
import type { Db } from '../../postgres/database.ts'

/** Dead letters that nobody has replayed. */
export async function openLetters(db: Db): Promise<{ tenantId: number; count: number }[]> {
  const { rows } = await db.query<{ tenantId: number; count: number }>(
    `select tenant_id as "tenantId", count(*) as count from dead_letters where replayed_at is null group by 1`,
  )
  return rows
}

/**
 * Of tenants of whose webhook requests some were refused in the last hour: how many, and how many events were taken. What comes
 * without a good credential may come from anybody who knows the address, and 429 is for too much, not for something wrong.
 */
export async function refusedInLastHour(
  db: Db,
): Promise<{ tenantId: number; refused: number; taken: number }[]> {
  const { rows } = await db.query<{ tenantId: number; refused: number; taken: number }>(
    `with refused as materialized (
       select s.tenant_id, sum(1 + r.suppressed) as count from sources s
       join rejections r on r.tenant_id = s.tenant_id and r.source_id = s.id
         and r.rejected_at > now() - interval '1 hour' and r.rejected_at <= now()
         and r.is_authenticated and r.status <> 429
       group by 1
     )
     select r.tenant_id as "tenantId", r.count::bigint as refused, (
       coalesce((select sum(count) from event_sums e where e.tenant_id = r.tenant_id and e.grain = 'minute' and e.all_types
         and e.at > now() - interval '1 hour' and e.source <> 'tracking'), 0)
       + coalesce((select sum(count) from event_sums_added e where e.tenant_id = r.tenant_id
         and e.minute > now() - interval '1 hour' and e.source <> 'tracking'), 0))::bigint as taken
     from refused r`,
  )
  return rows
}

type SourceRhythm = {
  sourceId: string
  tenantId: number
  name: string
  /** When it last heard something; null: never, as far as receipts go back. */
  lastAt: Date | null
  /** Whether that is news since the evaluation before. */
  isNews: boolean
  rhythm: Rhythm | null
}

/** Each source with the newest of its receipts, which an index has at its end. */
export async function sourceRhythms(db: Db): Promise<SourceRhythm[]> {
  const { rows } = await db.query<
    Omit<SourceRhythm, 'rhythm' | 'isNews'> & { known: Date | null; quietS: number; longest: string | null }
  >(
    `select s.id as "sourceId", s.tenant_id as "tenantId", s.name, r.received_at as "lastAt", h.last_at as known,
       h.quiet_s as "quietS", h.longest
     from sources s
     left join lateral (
       select received_at from receipts where tenant_id = s.tenant_id and source_id = s.id and received_at <= now()
       order by received_at desc limit 1) r on true
     left join source_silences h on h.source_id = s.id
     where s.enabled and s.deleted_at is null`,
  )
  return rows.map(({ known, quietS, longest, ...source }) => ({
    ...source,
    isNews: source.lastAt?.getTime() !== known?.getTime(),
    rhythm: longest === null ? null : { quietS, longest: JSON.parse(longest) },
  }))
}

export async function saveRhythms(
  db: Db,
  rhythms: { sourceId: string; lastAt: Date; rhythm: Rhythm }[],
): Promise<void> {
  if (rhythms.length === 0) return
  await db.query(
    `insert into source_silences (source_id, last_at, quiet_s, longest)
     select * from json_to_recordset($1) as r ("sourceId" text, "lastAt" timestamptz, "quietS" float8, longest jsonb)
     on conflict (source_id) do update
       set last_at = excluded.last_at, quiet_s = excluded.quiet_s, longest = excluded.longest`,
    [JSON.stringify(rhythms.map(({ rhythm, ...source }) => ({ ...source, ...rhythm })))],
  )
}

/** MRR of today and of seven days ago, in minor units, from the sums of months and days. */
export async function mrrOfWeek(
  db: Db,
): Promise<{ tenantId: number; currency: string; before: number; now: number }[]> {
  const { rows } = await db.query<{ tenantId: number; currency: string; before: number; now: number }>(
    `with bounds as materialized (
       select (now() at time zone 'UTC')::date as today, date_trunc('month', (now() at time zone 'UTC')::date - 7)::date as month
     ), parts as (
       select m.tenant_id, m.currency, m.mrr, m.mrr as before from billing_account_months m, bounds b where m.month < b.month
       union all
       select d.tenant_id, d.currency, d.mrr, case when d.day <= b.today - 7 then d.mrr else 0 end
       from billing_account_days d, bounds b where d.day >= b.month and d.day <= b.today
     )
     select tenant_id as "tenantId", currency, sum(before)::bigint as before, sum(mrr)::bigint as now
     from parts where currency <> '' group by 1, 2 having sum(before) > 0`,
  )
  return rows
}
