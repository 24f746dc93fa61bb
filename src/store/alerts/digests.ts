import { DEFAULT_SCHEDULE, type DigestSchedule } from '../../domain/alerts/digest.ts'
import type { Db } from '../../postgres/database.ts'

export async function readSchedule(db: Db, tenantId: number): Promise<DigestSchedule> {
  const { rows } = await db.query<DigestSchedule>('select weekday, hour from digests where tenant_id = $1', [tenantId])
  return rows[0] ?? DEFAULT_SCHEDULE
}

/** `dueAt`: the last due time of the new schedule, so that the change itself sends nothing. */
export async function saveSchedule(
  db: Db,
  tenantId: number,
  { weekday, hour }: DigestSchedule,
  dueAt: Date,
): Promise<void> {
  await db.query(
    `insert into digests (tenant_id, weekday, hour, due_at) values ($1, $2, $3, $4)
     on conflict (tenant_id) do update set weekday = excluded.weekday, hour = excluded.hour, due_at = excluded.due_at`,
    [tenantId, weekday, hour, dueAt],
  )
}

export type DigestTenant = { tenantId: number; name: string; schedule: DigestSchedule; dueAt: Date | null }

/** Tenants with an enabled destination that receives digests. */
export async function listDigestTenants(db: Db): Promise<DigestTenant[]> {
  const { rows } = await db.query<DigestSchedule & Omit<DigestTenant, 'schedule'>>(
    `select t.id as "tenantId", t.name, coalesce(g.weekday, $1) as weekday, coalesce(g.hour, $2) as hour,
       g.due_at as "dueAt"
     from tenants t left join digests g on g.tenant_id = t.id
     where exists (select from destinations d
       where d.tenant_id = t.id and d.enabled and d.deleted_at is null and 'digests' = any(d.what))
     order by t.id`,
    [DEFAULT_SCHEDULE.weekday, DEFAULT_SCHEDULE.hour],
  )
  return rows.map(({ weekday, hour, ...tenant }) => ({ ...tenant, schedule: { weekday, hour } }))
}

/** The first due time of a tenant without one. It is in the past: a new recipient gets the next digest. */
export async function startDigests(db: Db, tenantId: number, dueAt: Date): Promise<void> {
  await db.query(
    `insert into digests (tenant_id, due_at) values ($1, $2)
     on conflict (tenant_id) do update set due_at = excluded.due_at where digests.due_at is null`,
    [tenantId, dueAt],
  )
}

/** Claims the digest that is due, until the transaction ends. False: another node has queued it. */
export async function claimDigest(db: Db, tenantId: number, dueAt: Date): Promise<boolean> {
  const { rowCount } = await db.query('update digests set due_at = $2 where tenant_id = $1 and due_at < $2', [
    tenantId,
    dueAt,
  ])
  return rowCount === 1
}

type QuietSource = { id: string; name: string; lastAt: Date | null }

/** Enabled sources, created before `since`, that have received nothing since then. */
export async function listQuietSources(db: Db, tenantId: number, since: Date): Promise<QuietSource[]> {
  const { rows } = await db.query<QuietSource>(
    `select s.id, s.name, r.received_at as "lastAt" from sources s
     left join lateral (
       select received_at from receipts where tenant_id = s.tenant_id and source_id = s.id
       order by received_at desc limit 1) r on true
     where s.tenant_id = $1 and s.enabled and s.deleted_at is null and s.created_at < $2
       and (r.received_at is null or r.received_at < $2)
     order by s.created_at, s.id`,
    [tenantId, since],
  )
  return rows
}
