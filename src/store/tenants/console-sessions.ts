import type { Role } from '../../domain/tenants/keys.ts'
import type { Db } from '../../postgres/database.ts'

/** The session of a user in one browser. */
export type ConsoleSession = {
  id: string
  actor: string
  role: Role
  tenantId: number | null
  createdAt: Date
  lastUsedAt: Date
  expiresAt: Date
  ip: string | null
  userAgent: string | null
  /** Networks that may use it, if it was started with an admin key that has such a limit. Empty: all. */
  allowedAddresses: string[]
  /** Of the admin key that started it: its name or kind, and its last characters. */
  keyName: string | null
}

/** How a session was started: the URL of the identity provider, or one of these. */
export const LOCAL = 'local'
export const BY_KEY = 'key'

const COLUMNS = `s.id, s.actor, s.role, s.tenant_id as "tenantId", s.created_at as "createdAt", s.last_used_at as "lastUsedAt",
  s.expires_at as "expiresAt", s.ip, s.user_agent as "userAgent", coalesce(k.allowed_addresses, '{}') as "allowedAddresses",
  coalesce(k.name, k.kind) || ' ' || k.hint as "keyName"`

/**
 * A session is valid as long as what it was started with: the user's account, the admin key, or the configured provider ($1). The rows are
 * read for every request, so that a change is effective immediately in every process.
 */
const VALID = `console_sessions s
  left join console_users u on s.issuer = '${LOCAL}' and u.id = s.subject
  left join api_keys k on s.issuer = '${BY_KEY}' and k.id = s.subject
  where s.expires_at > now() and case s.issuer
    when '${LOCAL}' then u.disabled_at is null and u.password is not null and u.role = s.role and u.tenant_id is not distinct from s.tenant_id
    when '${BY_KEY}' then k.id is not null and k.revoked_at is null and (k.expires_at is null or k.expires_at > now())
    else s.issuer = $1 end`

/** Expires by the clock of PostgreSQL, which all nodes share. */
export async function insertSession(
  db: Db,
  session: Pick<ConsoleSession, 'id' | 'actor' | 'role' | 'tenantId' | 'ip' | 'userAgent'> & {
    hash: Buffer
    issuer: string
    subject: string
    lifetimeMs: number
  },
): Promise<void> {
  const { hash, id, issuer, subject, actor, role, tenantId, ip, userAgent, lifetimeMs } = session
  await db.query(
    `insert into console_sessions (hash, id, issuer, subject, actor, role, tenant_id, ip, user_agent, expires_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, date_trunc('milliseconds', now() + $10 * interval '1 millisecond'))`,
    [hash, id, issuer, subject, actor, role, tenantId, ip, userAgent, lifetimeMs],
  )
}

/** Null if it has ended or is not valid any more. */
export async function findSession(db: Db, issuer: string | null, hash: Buffer): Promise<ConsoleSession | null> {
  const { rows } = await db.query<ConsoleSession>(`select ${COLUMNS} from ${VALID} and s.hash = $2`, [issuer, hash])
  return rows[0] ?? null
}

/** Written at most once a minute per session. */
export async function noteSessionUse(db: Db, id: string): Promise<void> {
  await db.query(
    `update console_sessions set last_used_at = now() where id = $1 and last_used_at < now() - interval '1 minute'`,
    [id],
  )
}

/** The valid sessions, the latest first. */
export async function listSessions(db: Db, issuer: string | null): Promise<ConsoleSession[]> {
  const { rows } = await db.query<ConsoleSession>(`select ${COLUMNS} from ${VALID} order by s.created_at desc, s.id`, [
    issuer,
  ])
  return rows
}

/** Returns whether it existed. */
export async function deleteSession(db: Db, id: string): Promise<boolean> {
  const { rowCount } = await db.query('delete from console_sessions where id = $1', [id])
  return rowCount === 1
}

/** Deletes a user's sessions with another role or tenant, or without `grant` all of them. */
export async function deleteSessionsOf(
  db: Db,
  person: { issuer: string; subject: string },
  grant: { role: Role; tenantId: number | null } | null,
): Promise<void> {
  await db.query(
    `delete from console_sessions
     where issuer = $1 and subject = $2 and ($3::text is null or role <> $3 or tenant_id is distinct from $4)`,
    [person.issuer, person.subject, grant?.role ?? null, grant?.tenantId ?? null],
  )
}

export async function deleteEndedSessions(db: Db): Promise<void> {
  await db.query('delete from console_sessions where expires_at <= now()')
}
