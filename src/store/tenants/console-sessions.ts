import type { Role } from '../../domain/tenants/keys.ts'
import type { Db } from '../../postgres/database.ts'

/** The session of a user in one browser. */
export type ConsoleSession = { actor: string; role: Role; tenantId: number | null; expiresAt: Date }

const COLUMNS = 'actor, role, tenant_id as "tenantId", expires_at as "expiresAt"'

/** Expires by the clock of PostgreSQL, which all nodes share. */
export async function insertSession(
  db: Db,
  session: Omit<ConsoleSession, 'expiresAt'> & { hash: Buffer; issuer: string; subject: string; lifetimeMs: number },
): Promise<void> {
  await db.query(
    `insert into console_sessions (hash, issuer, subject, actor, role, tenant_id, expires_at)
     values ($1, $2, $3, $4, $5, $6, date_trunc('milliseconds', now() + $7 * interval '1 millisecond'))`,
    [session.hash, session.issuer, session.subject, session.actor, session.role, session.tenantId, session.lifetimeMs],
  )
}

/** Null if it has expired, or if another provider created it. */
export async function findSession(db: Db, issuer: string, hash: Buffer): Promise<ConsoleSession | null> {
  const { rows } = await db.query<ConsoleSession>(
    `select ${COLUMNS} from console_sessions
     where hash = $1 and issuer = $2 and expires_at > now()`,
    [hash, issuer],
  )
  return rows[0] ?? null
}

/** Returns whether it existed. */
export async function deleteSession(db: Db, hash: Buffer): Promise<boolean> {
  const { rowCount } = await db.query('delete from console_sessions where hash = $1', [hash])
  return rowCount === 1
}

/** Deletes a user's sessions with another role or tenant, or without `grant` all of them. Returns the deleted sessions. */
export async function deleteSessionsOf(
  db: Db,
  person: { issuer: string; subject: string },
  grant: { role: Role; tenantId: number | null } | null,
): Promise<ConsoleSession[]> {
  const { rows } = await db.query<ConsoleSession>(
    `delete from console_sessions
     where issuer = $1 and subject = $2 and ($3::text is null or role <> $3 or tenant_id is distinct from $4)
     returning ${COLUMNS}`,
    [person.issuer, person.subject, grant?.role ?? null, grant?.tenantId ?? null],
  )
  return rows
}

export async function deleteEndedSessions(db: Db): Promise<void> {
  await db.query('delete from console_sessions where expires_at <= now()')
}
