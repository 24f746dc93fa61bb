import { randomBytes } from 'node:crypto'
import type pg from 'pg'
import { Nullable, NullableText, NullableTimestamp, Timestamp } from '../domain/shapes.ts'
import { quote } from '../domain/tenants/credentials.ts'
import { hashOfSecret, newPublicId, ROLES, type Role } from '../domain/tenants/keys.ts'
import { MAX_PASSWORD_LENGTH, MIN_PASSWORD_LENGTH } from '../domain/tenants/passwords.ts'
import { publicTenantId } from '../domain/tenants/tenants.ts'
import { DAY_MS } from '../domain/time.ts'
import { type Static, Type } from '../domain/typebox.ts'
import { inTransaction } from '../postgres/database.ts'
import {
  type ConsoleSession,
  deleteSession,
  deleteSessionsOf,
  LOCAL,
  listSessions,
} from '../store/tenants/console-sessions.ts'
import { insertUser, listUsers, lockUser, resetUser, setUserDisabled, type User } from '../store/tenants/users.ts'
import { type Actor, canSee, requireAllTenants, requireRole, requireTenant } from './actor.ts'
import { recordChange } from './audit.ts'
import { AdminError, notFound, throwIfInvalid } from './error.ts'

const INVITATION_MS = 7 * DAY_MS
/** An e-mail address or another name without spaces. */
const NAME = /^[^\s\p{C}]{1,254}$/u

/** People who sign in with a name and a password of their own. */
export function userAdmin({ pool, actor }: { pool: pg.Pool; actor: Actor }) {
  /** Runs in a transaction with the user, whom the actor must be able to see. */
  const withUser = <Result>(idOrName: string, work: (tx: pg.PoolClient, user: User) => Promise<Result>) =>
    inTransaction(pool, async tx => {
      const user = await lockUser(tx, idOrName)
      if (user === null || !canSee(actor, user.tenantId)) throw notFound('user', idOrName)
      return work(tx, user)
    })

  return {
    /** The token is shown only here. With it, the person sets a password. */
    async invite({ name: given, role = 'viewer', tenant }: NewUser): Promise<InvitedUser> {
      const name = given.trim().toLowerCase()
      throwIfInvalid(
        NAME.test(name) ? [] : [{ pointer: '/name', message: 'must have 1 to 254 characters and no spaces' }],
      )
      if (!tenant) requireAllTenants(actor)
      const tenantId = tenant ? (await requireTenant(pool, actor, tenant)).id : null
      const token = newInvitation()
      return inTransaction(pool, async tx => {
        const user = { id: newPublicId('usr'), name, role, tenantId, createdBy: actor.name }
        const created = await insertUser(tx, user, { hash: hashOfSecret(token), lifetimeMs: INVITATION_MS })
        if (created === null) throw new AdminError('conflict', 'user_exists', `There is already a user ${quote(name)}.`)
        await recordChange(tx, actor, { action: 'user.invite', target: created.id, tenantId, after: userView(created) })
        return { ...userView(created), invitation: token }
      })
    },
    async list(): Promise<UserView[]> {
      return (await listUsers(pool)).filter(({ tenantId }) => canSee(actor, tenantId)).map(userView)
    },
    /** A disabled user cannot sign in, and has no sessions. */
    setDisabled: (idOrName: string, isDisabled: boolean): Promise<UserView> =>
      withUser(idOrName, async (tx, user) => {
        const changed = await setUserDisabled(tx, user.id, isDisabled)
        if (isDisabled) await deleteSessionsOf(tx, { issuer: LOCAL, subject: user.id }, null)
        const change = { action: isDisabled ? 'user.disable' : 'user.enable', target: user.id, tenantId: user.tenantId }
        await recordChange(tx, actor, { ...change, before: userView(user), after: userView(changed) })
        return userView(changed)
      }),
    /** Invalidates the password, ends the sessions and returns a new invitation. */
    reset: (idOrName: string): Promise<InvitedUser> =>
      withUser(idOrName, async (tx, user) => {
        const token = newInvitation()
        const changed = await resetUser(tx, user.id, { hash: hashOfSecret(token), lifetimeMs: INVITATION_MS })
        await deleteSessionsOf(tx, { issuer: LOCAL, subject: user.id }, null)
        const change = { action: 'user.reset', target: user.id, tenantId: user.tenantId }
        await recordChange(tx, actor, { ...change, after: { name: user.name } })
        return { ...userView(changed), invitation: token }
      }),
  }
}

/** The sessions of the console. `issuer`: the configured identity provider, whose sessions are valid. */
export function sessionAdmin({ pool, actor, issuer }: { pool: pg.Pool; actor: Actor; issuer: string | null }) {
  const visible = async () =>
    (await listSessions(pool, issuer)).filter(
      session => canSee(actor, session.tenantId) && (actor.role === 'admin' || session.actor === actor.name),
    )
  return {
    /** Admins see all sessions, others their own. The latest first. */
    list: async (): Promise<SessionView[]> => (await visible()).map(sessionView),
    async end(id: string): Promise<SessionView> {
      const session = (await visible()).find(known => known.id === id)
      if (!session) throw new AdminError('not_found', 'session_not_found', `No such session: ${quote(id)}.`)
      if (session.actor !== actor.name) requireRole(actor, 'admin')
      await inTransaction(pool, async tx => {
        await deleteSession(tx, id)
        const change = { action: 'session.end', target: id, tenantId: session.tenantId }
        await recordChange(tx, actor, { ...change, before: { actor: session.actor, role: session.role } })
      })
      return sessionView(session)
    },
  }
}

export function validatePassword(password: string): void {
  const { length } = [...password]
  const isGood = length >= MIN_PASSWORD_LENGTH && length <= MAX_PASSWORD_LENGTH
  const message = `must have ${MIN_PASSWORD_LENGTH} to ${MAX_PASSWORD_LENGTH} characters`
  throwIfInvalid(isGood ? [] : [{ pointer: '/password', message }])
}

const newInvitation = () => randomBytes(32).toString('base64url')

function userView(user: User): UserView {
  return {
    id: user.id,
    name: user.name,
    role: user.role,
    tenant: user.tenantId === null ? null : publicTenantId(user.tenantId),
    state: user.disabledAt
      ? 'disabled'
      : user.hasPassword
        ? 'active'
        : user.isInvited
          ? 'invited'
          : 'invitation_expired',
    invited_until: user.invitedUntil?.toISOString() ?? null,
    created_at: user.createdAt.toISOString(),
    created_by: user.createdBy,
    last_sign_in_at: user.lastSignInAt?.toISOString() ?? null,
  }
}

function sessionView(session: ConsoleSession): SessionView {
  return {
    id: session.id,
    actor: session.actor,
    role: session.role,
    tenant: session.tenantId === null ? null : publicTenantId(session.tenantId),
    ip: session.ip,
    user_agent: session.userAgent,
    created_at: session.createdAt.toISOString(),
    last_used_at: session.lastUsedAt.toISOString(),
    expires_at: session.expiresAt.toISOString(),
  }
}

export type NewUser = { name: string; role?: Role | undefined; tenant?: string | undefined }

const TenantOfUser = Nullable(Type.String({ description: 'The only visible tenant; null: all tenants' }))

export const UserView = Type.Object(
  {
    id: Type.String({ description: 'usr_…' }),
    name: Type.String({ description: 'Used to sign in; the audit log shows user: and this name' }),
    role: Type.Enum([...ROLES]),
    tenant: TenantOfUser,
    state: Type.Enum(['active', 'invited', 'invitation_expired', 'disabled']),
    invited_until: NullableTimestamp,
    created_at: Timestamp,
    created_by: Type.String(),
    last_sign_in_at: NullableTimestamp,
  },
  { title: 'User', description: 'A user of the console' },
)
export type UserView = Static<typeof UserView>

export const InvitedUser = Type.Object(
  {
    ...UserView.properties,
    invitation: Type.String({
      description:
        'Shown only in this response, valid once and for 7 days. Send the person the address of the console followed by #/invitation/ and this value',
    }),
  },
  { title: 'InvitedUser', description: 'A user with the invitation, which is shown only once' },
)
export type InvitedUser = Static<typeof InvitedUser>

export const SessionView = Type.Object(
  {
    id: Type.String({ description: 'ses_…' }),
    actor: Type.String({ description: 'user: or oidc: and the name, or the id of an admin key' }),
    role: Type.Enum([...ROLES]),
    tenant: TenantOfUser,
    ip: NullableText,
    user_agent: NullableText,
    created_at: Timestamp,
    last_used_at: Timestamp,
    expires_at: Timestamp,
  },
  { title: 'Session', description: 'A session of the console' },
)
export type SessionView = Static<typeof SessionView>
