import type { Role } from '../../domain/tenants/roles.ts'
import type { Db } from '../../postgres/database.ts'

/** One browser of a person. */
export type ConsoleSession = {
  actor: string
  role: Role
  tenantId: number | null
  expiresAt: Date
}

const COLUMNS = 'actor, role, tenant_id as "tenantId", expires_at as "expiresAt"'

/** Its end is by the clock of PostgreSQL, which all nodes share. */
export async function insertSession(
  db: Db,
  session: Omit<ConsoleSession, 'expiresAt'> & {
    hash: Buffer
    issuer: string
    subject: string
    lifetimeMs: number
  },
): Promise<void> {
  await db.query(
    `insert into console_sessions (hash, issuer, subject, actor, role, tenant_id, expires_at)
     values ($1, $2, $3, $4, $5, $6, date_trunc('milliseconds', now() + $7 * interval '1 millisecond'))`,
    [
      session.hash,
      session.issuer,
      session.subject,
      session.actor,
      session.role,
      session.tenantId,
      session.lifetimeMs,
    ],
  )
}

/** Null where it has ended, or was begun at another provider. */
export async function findSession(db: Db, issuer: string, hash: Buffer): Promise<ConsoleSession | null> {
  const { rows } = await db.query<ConsoleSession>(
    `select ${COLUMNS} from console_sessions
     where hash = $1 and issuer = $2 and expires_at > now()`,
    [hash, issuer],
  )
  return rows[0] ?? null
}

/** Whether it was there. */
export async function deleteSession(db: Db, hash: Buffer): Promise<boolean> {
  const { rowCount } = await db.query('delete from console_sessions where hash = $1', [hash])
  return rowCount === 1
}

/** A person's sessions with another role or tenant; without `grant`, all of them. Returns those that are gone. */
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
