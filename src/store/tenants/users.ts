import type { Role } from '../../domain/tenants/keys.ts'
import type { Db } from '../../postgres/database.ts'

/** A person with a local account. */
export type User = {
  id: string
  name: string
  role: Role
  tenantId: number | null
  hasPassword: boolean
  invitedUntil: Date | null
  disabledAt: Date | null
  createdAt: Date
  createdBy: string
  lastSignInAt: Date | null
}

const COLUMNS = `id, name, role, tenant_id as "tenantId", password is not null as "hasPassword", invited_until as "invitedUntil",
  disabled_at as "disabledAt", created_at as "createdAt", created_by as "createdBy", last_sign_in_at as "lastSignInAt"`

type Invitation = { hash: Buffer; lifetimeMs: number }

/** Null if the name is taken. */
export async function insertUser(
  db: Db,
  user: Pick<User, 'id' | 'name' | 'role' | 'tenantId' | 'createdBy'>,
  { hash, lifetimeMs }: Invitation,
): Promise<User | null> {
  const { rows } = await db.query<User>(
    `insert into console_users (id, name, role, tenant_id, created_by, invitation, invited_until)
     values ($1, $2, $3, $4, $5, $6, now() + $7 * interval '1 millisecond')
     on conflict (name) do nothing returning ${COLUMNS}`,
    [user.id, user.name, user.role, user.tenantId, user.createdBy, hash, lifetimeMs],
  )
  return rows[0] ?? null
}

export async function listUsers(db: Db): Promise<User[]> {
  const { rows } = await db.query<User>(`select ${COLUMNS} from console_users order by name`)
  return rows
}

/** By id or name. Locks the row. */
export async function lockUser(db: Db, idOrName: string): Promise<User | null> {
  const { rows } = await db.query<User>(
    `select ${COLUMNS} from console_users where id = $1 or name = lower($1) order by id = $1 desc limit 1 for update`,
    [idOrName],
  )
  return rows[0] ?? null
}

export async function setUserDisabled(db: Db, id: string, isDisabled: boolean): Promise<User> {
  const { rows } = await db.query<User>(
    `update console_users set disabled_at = case when $2 then coalesce(disabled_at, now()) end where id = $1 returning ${COLUMNS}`,
    [id, isDisabled],
  )
  return rows[0]!
}

/** The password is no longer valid; the invitation is. */
export async function resetUser(db: Db, id: string, { hash, lifetimeMs }: Invitation): Promise<User> {
  const { rows } = await db.query<User>(
    `update console_users set password = null, invitation = $2, invited_until = now() + $3 * interval '1 millisecond'
     where id = $1 returning ${COLUMNS}`,
    [id, hash, lifetimeMs],
  )
  return rows[0]!
}

/** Null: unknown, used, expired, or its user is disabled. */
export async function findInvited(db: Db, hash: Buffer): Promise<User | null> {
  const { rows } = await db.query<User>(
    `select ${COLUMNS} from console_users where invitation = $1 and invited_until > now() and disabled_at is null`,
    [hash],
  )
  return rows[0] ?? null
}

/** Uses the invitation up. Null: see `findInvited`. */
export async function acceptInvitation(db: Db, hash: Buffer, password: string): Promise<User | null> {
  const { rows } = await db.query<User>(
    `update console_users set password = $2, invitation = null, invited_until = null, last_sign_in_at = now()
     where invitation = $1 and invited_until > now() and disabled_at is null returning ${COLUMNS}`,
    [hash, password],
  )
  return rows[0] ?? null
}

/** The user with this name who may sign in, with the hash of the password. */
export async function findPassword(db: Db, name: string): Promise<(User & { password: string }) | null> {
  const { rows } = await db.query<User & { password: string }>(
    `select ${COLUMNS}, password from console_users where name = $1 and password is not null and disabled_at is null`,
    [name],
  )
  return rows[0] ?? null
}

export async function noteSignIn(db: Db, id: string): Promise<void> {
  await db.query('update console_users set last_sign_in_at = now() where id = $1', [id])
}

const FAILURES_KEPT = `interval '15 minutes'`

/** The most failed attempts of these keys within 15 minutes. */
export async function countFailures(db: Db, keys: Buffer[]): Promise<number[]> {
  const { rows } = await db.query<{ failures: number }>(
    `select coalesce(f.failures, 0) as failures from unnest($1::bytea[]) with ordinality as k (key, n)
     left join sign_in_failures f on f.key = k.key and f.since > now() - ${FAILURES_KEPT} order by n`,
    [keys],
  )
  return rows.map(({ failures }) => failures)
}

/** Counts one failed attempt for each key, and deletes old counts. */
export async function addFailures(db: Db, keys: Buffer[]): Promise<void> {
  await db.query(`delete from sign_in_failures where since <= now() - ${FAILURES_KEPT}`)
  await db.query(
    `insert into sign_in_failures as f (key, failures) select key, 1 from unnest($1::bytea[]) as k (key) order by key
     on conflict (key) do update set failures = f.failures + 1`,
    [keys],
  )
}

export async function clearFailures(db: Db, keys: Buffer[]): Promise<void> {
  await db.query('delete from sign_in_failures where key = any($1::bytea[])', [keys])
}
