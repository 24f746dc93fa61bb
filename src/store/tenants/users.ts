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
  isInvited: boolean
  disabledAt: Date | null
  createdAt: Date
  createdBy: string
  lastSignInAt: Date | null
}

const COLUMNS = `id, name, role, tenant_id as "tenantId", password is not null as "hasPassword", invited_until as "invitedUntil",
  password is null and coalesce(invited_until > now(), false) as "isInvited",
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

/** At most this many failed attempts with a key within the window. */
export type AttemptLimit = { key: Buffer; most: number; windowS: number }

const LIMITS = 'unnest($1::bytea[], $2::int[], $3::int[]) as l (key, most, window_s)'
const STARTED = `f.since > now() - make_interval(secs => l.window_s)`

/** Counts an attempt as failed until `takeBackAttempt`. Returns the seconds to wait if a limit is reached; the attempt then does not count. */
export async function startAttempt(tx: Db, limits: AttemptLimit[]): Promise<number | null> {
  // Every transaction locks the rows in the order of their keys.
  await tx.query(
    `insert into sign_in_failures as f (key, failures) select key, 0 from unnest($1::bytea[]) as k (key) order by key
     on conflict (key) do update set failures = f.failures`,
    [limits.map(({ key }) => key)],
  )
  const waitS = await findWait(tx, limits)
  if (waitS !== null) return waitS
  await tx.query(
    `update sign_in_failures f set failures = case when ${STARTED} then f.failures + 1 else 1 end,
       since = case when ${STARTED} then f.since else now() end
     from ${LIMITS} where f.key = l.key`,
    valuesOf(limits),
  )
  return null
}

/** The seconds to wait if a limit is reached. */
export async function findWait(db: Db, limits: AttemptLimit[]): Promise<number | null> {
  const { rows } = await db.query<{ wait: number | null }>(
    `select max(ceil(extract(epoch from f.since - now()) + l.window_s))::int as wait
     from ${LIMITS} join sign_in_failures f on f.key = l.key and ${STARTED} and f.failures >= l.most`,
    valuesOf(limits),
  )
  return rows[0]!.wait
}

const valuesOf = (limits: AttemptLimit[]) => [
  limits.map(({ key }) => key),
  limits.map(({ most }) => most),
  limits.map(({ windowS }) => windowS),
]

/** The attempt has succeeded. The first key starts again at zero. */
export async function takeBackAttempt(tx: Db, limits: AttemptLimit[]): Promise<void> {
  const keys = limits.map(({ key }) => key)
  await tx.query('select from sign_in_failures where key = any($1::bytea[]) order by key for update', [keys])
  await tx.query(
    `update sign_in_failures set failures = case when key = $2 then 0 else greatest(failures - 1, 0) end where key = any($1::bytea[])`,
    [keys, keys[0]],
  )
}

/** Skips rows that others have locked, so that it never waits. */
export async function deleteOldAttempts(db: Db, windowS: number): Promise<void> {
  await db.query(
    `delete from sign_in_failures where key in (
       select key from sign_in_failures where since <= now() - make_interval(secs => $1) for update skip locked)`,
    [windowS],
  )
}
