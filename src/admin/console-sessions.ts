import { hash, randomBytes } from 'node:crypto'
import type pg from 'pg'
import { isAllowed } from '../domain/tenants/addresses.ts'
import { hashOfSecret, newPublicId, type Role, type RoleMapping } from '../domain/tenants/keys.ts'
import { hashPassword, MAX_PASSWORD_LENGTH, verifyPassword } from '../domain/tenants/passwords.ts'
import { publicTenantId } from '../domain/tenants/tenants.ts'
import { HOUR_MS } from '../domain/time.ts'
import { type Db, databaseNow, inTransaction } from '../postgres/database.ts'
import {
  BY_KEY,
  type ConsoleSession,
  deleteEndedSessions,
  deleteSession,
  deleteSessionsOf,
  findSession,
  insertSession,
  LOCAL,
  noteSessionUse,
} from '../store/tenants/console-sessions.ts'
import { findKeyByHash } from '../store/tenants/keys.ts'
import { findTenant } from '../store/tenants/tenants.ts'
import {
  type AttemptLimit,
  acceptInvitation,
  deleteOldAttempts,
  findInvited,
  findPassword,
  findWait,
  noteSignIn,
  startAttempt,
  takeBackAttempt,
  type User,
} from '../store/tenants/users.ts'
import type { Actor } from './actor.ts'
import { recordChange } from './audit.ts'
import { validatePassword } from './users.ts'

export type { ConsoleSession }

/** A person as described by the identity provider. */
export type Person = {
  subject: string
  /** An e-mail address, or the subject. */
  name: string
  /** The values of the role claim. */
  values: string[]
}

type From = Pick<Actor, 'ip' | 'requestId'> & { userAgent?: string | null }

/** What a session may do. */
type Grant = { role: Role; tenantId: number | null }

/** `waitS`: too many failed attempts with this name or from this address. */
export type PasswordSignIn = { token: string } | 'wrong' | { waitS: number }

export const SESSION_MS = 12 * HOUR_MS
const TOKEN = /^[\w-]{43}$/
const MAX_USER_AGENT = 300

const WINDOW_S = 15 * 60
const ADDRESS_WINDOW_S = 60

/**
 * A caller elsewhere must not be able to lock a person out with a few attempts. An office or a proxy may share an address: its limit
 * only slows guessing down, and others can sign in again after a minute.
 */
function attemptLimits(name: string, ip: string | null | undefined): AttemptLimit[] {
  const limit = (key: string, most: number, windowS: number) => ({ key: hash('sha256', key, 'buffer'), most, windowS })
  return [
    limit(`${ip} ${name}`, 10, WINDOW_S),
    limit(`name ${name}`, 100, WINDOW_S),
    limit(`address ${ip}`, 50, ADDRESS_WINDOW_S),
  ]
}

export type ConsoleSessions = ReturnType<typeof openConsoleSessions>

/** The console sessions of people, shared by all nodes. `provider`: where people sign in besides local accounts and admin keys. */
export function openConsoleSessions(options: {
  pool: pg.Pool
  provider: { issuer: string; roles: readonly RoleMapping[] } | null
}) {
  const { pool, provider } = options
  const issuer = provider?.issuer ?? null

  /** The first matching mapping counts. A mapping whose tenant does not exist grants nothing. */
  async function grantFor(values: string[]): Promise<Grant | null> {
    const mapping = provider?.roles.find(({ value }) => values.includes(value))
    if (!mapping) return null
    if (mapping.tenant === null) return { role: mapping.role, tenantId: null }
    const tenant = await findTenant(pool, mapping.tenant)
    return tenant && { role: mapping.role, tenantId: tenant.id }
  }

  return {
    /** For a person whom the provider has identified. Returns the token for the cookie; null: no mapping gives this person a role. */
    async begin({ subject, name, values }: Person, from: From): Promise<string | null> {
      const grant = await grantFor(values)
      return inTransaction(pool, async tx => {
        await deleteSessionsOf(tx, { issuer: issuer!, subject }, grant)
        return grant && insert(tx, { issuer: issuer!, subject, actor: `oidc:${name}`, grant, from })
      })
    },

    /** For a local account. */
    async beginWithPassword(given: { name: string; password: string }, from: From): Promise<PasswordSignIn> {
      const name = given.name.trim().toLowerCase()
      if (name === '' || given.password === '') return 'wrong'
      const limits = attemptLimits(name, from.ip)
      // Without this read, a throttled caller would cause writes.
      const waitS = (await findWait(pool, limits)) ?? (await inTransaction(pool, tx => startAttempt(tx, limits)))
      if (waitS !== null) return { waitS }
      const user = await findPassword(pool, name)
      const isRight = await verifyPassword(given.password.slice(0, MAX_PASSWORD_LENGTH), user?.password ?? null)
      if (!user || !isRight) {
        await deleteOldAttempts(pool, WINDOW_S)
        return 'wrong'
      }
      const token = await inTransaction(pool, async tx => {
        await takeBackAttempt(tx, limits)
        await noteSignIn(tx, user.id)
        return insertFor(tx, user, from)
      })
      return { token }
    },

    /** For an admin key. Null: it is none, or not valid, or not from this address. The session ends with the key. */
    async beginWithKey(secret: string, from: From): Promise<string | null> {
      const key = await findKeyByHash(pool, hashOfSecret(secret))
      const isValid =
        key?.kind === 'admin' && !key.revokedAt && (!key.expiresAt || key.expiresAt > (await databaseNow(pool)))
      if (!isValid || !isAllowed(key.allowedAddresses, from.ip ?? '')) return null
      const grant = { role: key.role ?? 'viewer', tenantId: key.tenantId }
      return inTransaction(pool, tx => insert(tx, { issuer: BY_KEY, subject: key.id, actor: key.id, grant, from }))
    },

    /** The user whom an invitation is for; null: it was used, or has expired. */
    async findInvited(token: string): Promise<User | null> {
      return TOKEN.test(token) ? findInvited(pool, hashOfSecret(token)) : null
    },

    /** Sets the password and signs in. Null: see `findInvited`. */
    async acceptInvitation(
      { token, password }: { token: string; password: string },
      from: From,
    ): Promise<string | null> {
      // First, because hashing a password is expensive and this caller is unauthenticated.
      if (!TOKEN.test(token) || !(await findInvited(pool, hashOfSecret(token)))) return null
      validatePassword(password)
      const hashed = await hashPassword(password)
      return inTransaction(pool, async tx => {
        const user = await acceptInvitation(tx, hashOfSecret(token), hashed)
        if (user === null) return null
        // A reset ends the sessions of the previous password.
        await deleteSessionsOf(tx, { issuer: LOCAL, subject: user.id }, null)
        const actor: Actor = { name: actorName(user), role: user.role, tenantId: user.tenantId, ...audited(from) }
        const change = { action: 'user.set_password', target: user.id, tenantId: user.tenantId }
        await recordChange(tx, actor, { ...change, after: { name: user.name } })
        return insertFor(tx, user, from)
      })
    },

    async find(token: string): Promise<ConsoleSession | null> {
      if (!TOKEN.test(token)) return null
      const session = await findSession(pool, issuer, hashOfSecret(token))
      // This node's clock may be wrong in either direction. The update checks PostgreSQL's clock.
      if (session && Math.abs(Date.now() - session.lastUsedAt.getTime()) > 60_000)
        await noteSessionUse(pool, session.id)
      return session
    },

    async end(session: ConsoleSession, from: From): Promise<void> {
      const { actor: name, role, tenantId } = session
      await inTransaction(pool, async tx => {
        if (!(await deleteSession(tx, session.id))) return
        const actor: Actor = { name, role, tenantId, ...audited(from) }
        const change = { action: 'session.end', target: session.id, tenantId }
        await recordChange(tx, actor, { ...change, before: grantView({ role, tenantId }) })
      })
    },
  }
}

const actorName = ({ name }: Pick<User, 'name'>) => `user:${name}`
const audited = ({ ip, requestId }: From) => ({ ip, requestId })

function insertFor(tx: Db, user: User, from: From): Promise<string> {
  const { id, role, tenantId } = user
  return insert(tx, { issuer: LOCAL, subject: id, actor: actorName(user), grant: { role, tenantId }, from })
}

/** Returns the token. Only its hash is stored. */
async function insert(
  tx: Db,
  {
    issuer,
    subject,
    actor: name,
    grant,
    from,
  }: { issuer: string; subject: string; actor: string; grant: Grant; from: From },
): Promise<string> {
  const token = randomBytes(32).toString('base64url')
  const id = newPublicId('ses')
  await deleteEndedSessions(tx)
  await insertSession(tx, {
    ...{ id, issuer, subject, actor: name, ...grant, hash: hashOfSecret(token), lifetimeMs: SESSION_MS },
    ...{ ip: from.ip, userAgent: from.userAgent?.slice(0, MAX_USER_AGENT) ?? null },
  })
  const actor: Actor = { name, ...grant, ...audited(from) }
  const change = { action: 'session.begin', target: id, tenantId: grant.tenantId }
  await recordChange(tx, actor, { ...change, after: grantView(grant) })
  return token
}

function grantView({ role, tenantId }: Grant) {
  return { role, tenant: tenantId === null ? null : publicTenantId(tenantId) }
}
