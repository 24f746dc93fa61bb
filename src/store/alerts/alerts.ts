import type { AlertState, Rule, Thresholds } from '../../domain/alerts/rules.ts'
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

/** Whose turn it is: the seconds since the evaluation before; null: another node has done it. */
export async function beginEvaluation(
  db: Db,
  everyS: number,
): Promise<{ now: Date; elapsedS: number } | null> {
  const { rows } = await db.query<{ now: Date; elapsedS: number | null }>(
    `select date_trunc('milliseconds', now()) as now,
       case when isfinite(evaluated_at) then extract(epoch from now() - evaluated_at)::float8 end as "elapsedS"
     from alert_clock`,
  )
  const { now, elapsedS } = rows[0]!
  // Half a second for timers that come early. A clock that went back is a turn like any other.
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

/** Newest first. `open`: those that are raised. */
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

export async function forgetAlertsBefore(db: Db, before: Date): Promise<void> {
  await db.query(`delete from alerts where state = 'resolved' and resolved_at < $1`, [before])
}

export async function ownThresholds(db: Db): Promise<{ tenantId: number; own: Partial<Thresholds> }[]> {
  const { rows } = await db.query<{ tenantId: number; own: string }>(
    'select id as "tenantId", alert_rules as own from tenants order by id',
  )
  return rows.map(({ tenantId, own }) => ({ tenantId, own: JSON.parse(own) }))
}

export async function thresholdsOfTenant(db: Db, tenantId: number): Promise<Partial<Thresholds>> {
  const { rows } = await db.query<{ own: string }>('select alert_rules as own from tenants where id = $1', [
    tenantId,
  ])
  return JSON.parse(rows[0]?.own ?? '{}')
}

export async function saveThresholds(db: Db, tenantId: number, own: Partial<Thresholds>): Promise<void> {
  await db.query('update tenants set alert_rules = $2 where id = $1', [tenantId, JSON.stringify(own)])
}
