import type { AlertState, Rhythm, Rule, Thresholds } from '../../domain/alerts/rules.ts'
import { TEST_RECEIPT } from '../../domain/inbound/receipts.ts'
import type { Db } from '../../postgres/database.ts'
export type Alert = {
  id: string
  tenantId: number
  rule: Rule
  subject: string
  state: AlertState
  streak: number
  value: number
  threshold: number
  summary: string
  beganAt: Date
  raisedAt: Date | null
  resolvedAt: Date | null
}

const COLUMNS = `id, tenant_id as "tenantId", rule, subject, state, streak, value, threshold, summary, began_at as "beganAt",
  raised_at as "raisedAt", resolved_at as "resolvedAt"`

/** Claims the next evaluation. Returns the seconds since the previous one; null: another node has done it. */
export async function beginEvaluation(db: Db, everyS: number): Promise<{ now: Date; elapsedS: number } | null> {
  const { rows } = await db.query<{ now: Date; elapsedS: number | null }>(
    `select date_trunc('milliseconds', now()) as now,
       case when isfinite(evaluated_at) then extract(epoch from now() - evaluated_at)::float8 end as "elapsedS"
     from alert_clock`,
  )
  const { now, elapsedS } = rows[0]!
  // Half a second of tolerance for early timers. A clock that went back does not delay the evaluation.
  if (elapsedS !== null && elapsedS >= 0 && elapsedS < everyS - 0.5) return null
  return { now, elapsedS: elapsedS === null ? 0 : Math.max(0, elapsedS) }
}

export async function endEvaluation(db: Db): Promise<void> {
  await db.query('update alert_clock set evaluated_at = now()')
}

export async function openAlerts(db: Db): Promise<Alert[]> {
  const { rows } = await db.query<Alert>(`select ${COLUMNS} from alerts where state <> 'resolved'`)
  return rows
}

/** Newest first. `open`: only raised alerts. */
export async function listAlerts(
  db: Db,
  { tenantId, open, limit }: { tenantId: number | null; open: boolean; limit: number },
): Promise<Alert[]> {
  const { rows } = await db.query<Alert>(
    `select ${COLUMNS} from alerts
     where ($1::int is null or tenant_id = $1) and (state = 'raised' or (state = 'resolved' and not $2))
     order by began_at desc, id desc limit $3`,
    [tenantId, open, limit],
  )
  return rows
}

export async function saveAlerts(db: Db, alerts: Alert[]): Promise<void> {
  if (alerts.length === 0) return
  await db.query(
    `insert into alerts (id, tenant_id, rule, subject, state, streak, value, threshold, summary, began_at, raised_at, resolved_at)
     select * from json_to_recordset($1) as a (id uuid, "tenantId" int, rule text, subject text, state text, streak int,
       value float8, threshold float8, summary text, "beganAt" timestamptz, "raisedAt" timestamptz, "resolvedAt" timestamptz)
     on conflict (id) do update set state = excluded.state, streak = excluded.streak, value = excluded.value,
       threshold = excluded.threshold, summary = excluded.summary, raised_at = excluded.raised_at, resolved_at = excluded.resolved_at`,
    [JSON.stringify(alerts)],
  )
}

export async function deleteAlerts(db: Db, ids: string[]): Promise<void> {
  if (ids.length > 0) await db.query('delete from alerts where id = any($1::uuid[])', [ids])
}

export async function deleteAlertsBefore(db: Db, before: Date): Promise<void> {
  await db.query(`delete from alerts where state = 'resolved' and resolved_at < $1`, [before])
}

export async function listTenantThresholds(
  db: Db,
): Promise<{ tenantId: number; name: string; own: Partial<Thresholds> }[]> {
  const { rows } = await db.query<{ tenantId: number; name: string; own: string }>(
    'select id as "tenantId", name, alert_rules as own from tenants order by id',
  )
  return rows.map(({ own, ...tenant }) => ({ ...tenant, own: JSON.parse(own) }))
}

export async function readTenantThresholds(db: Db, tenantId: number): Promise<Partial<Thresholds>> {
  const { rows } = await db.query<{ own: string }>('select alert_rules as own from tenants where id = $1', [tenantId])
  return JSON.parse(rows[0]?.own ?? '{}')
}

export async function saveThresholds(db: Db, tenantId: number, own: Partial<Thresholds>): Promise<void> {
  await db.query('update tenants set alert_rules = $2 where id = $1', [tenantId, JSON.stringify(own)])
}

// The values of rules, of one tenant or, with null, of all.

/** Dead letters that were not replayed. */
export async function countOpenDeadLetters(
  db: Db,
  tenantId: number | null,
): Promise<{ tenantId: number; count: number }[]> {
  const { rows } = await db.query<{ tenantId: number; count: number }>(
    `select tenant_id as "tenantId", count(*) as count from dead_letters
     where replayed_at is null and ($1::int is null or tenant_id = $1) group by 1`,
    [tenantId],
  )
  return rows
}

/**
 * The rejected webhook requests and accepted events of the last hour, for tenants with rejections. Requests without a valid
 * credential do not count, because any caller who knows the URL can send them. 429 does not count: it reports load, not an error.
 */
export async function countRejectedInLastHour(
  db: Db,
  tenantId: number | null,
): Promise<{ tenantId: number; refused: number; taken: number }[]> {
  const { rows } = await db.query<{ tenantId: number; refused: number; taken: number }>(
    `with refused as materialized (
       select s.tenant_id, sum(1 + r.suppressed) as count from sources s
       join rejections r on r.tenant_id = s.tenant_id and r.source_id = s.id
         and r.rejected_at > now() - interval '1 hour' and r.rejected_at <= now()
         and r.is_authenticated and r.status <> 429
       where $1::int is null or s.tenant_id = $1
       group by 1
     )
     select r.tenant_id as "tenantId", r.count::bigint as refused, (
       coalesce((select sum(count) from event_sums e where e.tenant_id = r.tenant_id and e.grain = 'minute' and e.all_types
         and e.at > now() - interval '1 hour' and e.source <> 'tracking'), 0)
       + coalesce((select sum(count) from event_sums_added e where e.tenant_id = r.tenant_id
         and e.minute > now() - interval '1 hour' and e.source <> 'tracking'), 0))::bigint as taken
     from refused r`,
    [tenantId],
  )
  return rows
}

type SourceRhythm = {
  sourceId: string
  tenantId: number
  name: string
  /** When the source last received something; null: never, as far as receipts go back. */
  lastAt: Date | null
  /** Whether that was after the previous evaluation. */
  isNews: boolean
  rhythm: Rhythm | null
}

/** Each source with its newest receipt, read from the end of an index. */
export async function listSourceRhythms(db: Db, tenantId: number | null): Promise<SourceRhythm[]> {
  const { rows } = await db.query<
    Omit<SourceRhythm, 'rhythm' | 'isNews'> & { known: Date | null; quietS: number; longest: string | null }
  >(
    `select s.id as "sourceId", s.tenant_id as "tenantId", s.name, r.received_at as "lastAt", h.last_at as known,
       h.quiet_s as "quietS", h.longest
     from sources s
     left join lateral (
       select received_at from receipts where tenant_id = s.tenant_id and source_id = s.id and received_at <= now()
         and detail is distinct from '${TEST_RECEIPT}'
       order by received_at desc limit 1) r on true
     left join source_silences h on h.source_id = s.id
     where s.enabled and s.deleted_at is null and ($1::int is null or s.tenant_id = $1)`,
    [tenantId],
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

/** MRR today and seven days ago, in minor units, from the monthly and daily sums. */
export async function readWeeklyMrr(
  db: Db,
  tenantId: number | null,
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
     from parts where currency <> '' and ($1::int is null or tenant_id = $1) group by 1, 2 having sum(before) > 0`,
    [tenantId],
  )
  return rows
}
