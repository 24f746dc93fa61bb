import { randomBytes } from 'node:crypto'
import type pg from 'pg'
import { hashOfSecret, type Role, type RoleMapping } from '../domain/tenants/keys.ts'
import { publicTenantId } from '../domain/tenants/tenants.ts'
import { HOUR_MS } from '../domain/time.ts'
import { type Db, inTransaction } from '../postgres/database.ts'
import {
  type ConsoleSession,
  deleteEndedSessions,
  deleteSession,
  deleteSessionsOf,
  findSession,
  insertSession,
} from '../store/tenants/console-sessions.ts'
import { listKeysMadeUntil } from '../store/tenants/keys.ts'
import { findTenant } from '../store/tenants/tenants.ts'
import type { Actor } from './actor.ts'
import { recordChange } from './audit.ts'
import { revokeKeyRecorded } from './keys.ts'

export type { ConsoleSession }

/** A person as described by the identity provider. */
export type Person = {
  subject: string
  /** An e-mail address, or the subject. */
  name: string
  /** The values of the role claim. */
  values: string[]
}

type From = Pick<Actor, 'ip' | 'requestId'>

export type ConsoleSessions = {
  /** Returns the token for the cookie; null: no mapping gives this person a role. */
  begin(person: Person, from: From): Promise<string | null>
  find(token: string): Promise<ConsoleSession | null>
  end(token: string, session: ConsoleSession, from: From): Promise<void>
}

export const SESSION_MS = 12 * HOUR_MS
const TOKEN = /^[\w-]{43}$/

/** The console sessions of people who signed in at this provider, shared by all nodes. */
export function openConsoleSessions(options: {
  pool: pg.Pool
  issuer: string
  roles: readonly RoleMapping[]
}): ConsoleSessions {
  const { pool, issuer, roles } = options

  /** The first matching mapping counts. A mapping whose tenant does not exist grants nothing. */
  async function grantFor(values: string[]): Promise<{ role: Role; tenantId: number | null } | null> {
    const mapping = roles.find(({ value }) => values.includes(value))
    if (!mapping) return null
    if (mapping.tenant === null) return { role: mapping.role, tenantId: null }
    const tenant = await findTenant(pool, mapping.tenant)
    return tenant && { role: mapping.role, tenantId: tenant.id }
  }

  return {
    async begin({ subject, name, values }, from) {
      const grant = await grantFor(values)
      const token = randomBytes(32).toString('base64url')
      const actor: Actor = { name: `oidc:${name}`, role: 'viewer', tenantId: null, ...from, ...grant }
      await inTransaction(pool, async tx => {
        await deleteEndedSessions(tx)
        for (const old of await deleteSessionsOf(tx, { issuer, subject }, grant))
          await revokeSessionKeys(tx, actor, old)
        if (grant === null) return
        const person = { issuer, subject, actor: actor.name }
        await insertSession(tx, { ...person, ...grant, hash: hashOfSecret(token), lifetimeMs: SESSION_MS })
        await recordChange(tx, actor, { ...sessionChange('session.begin', grant.tenantId), after: grantView(grant) })
      })
      return grant && token
    },
    async find(token) {
      return TOKEN.test(token) ? findSession(pool, issuer, hashOfSecret(token)) : null
    },
    async end(token, session, from) {
      const { actor: name, role, tenantId } = session
      await inTransaction(pool, async tx => {
        if (!(await deleteSession(tx, hashOfSecret(token)))) return
        const actor: Actor = { name, role, tenantId, ...from }
        await revokeSessionKeys(tx, actor, session)
        const before = grantView({ role, tenantId })
        await recordChange(tx, actor, { ...sessionChange('session.end', tenantId), before })
      })
    },
  }
}

/** The read keys that the console created for a session expire together with it. */
async function revokeSessionKeys(tx: Db, actor: Actor, session: ConsoleSession): Promise<void> {
  for (const key of await listKeysMadeUntil(tx, session.actor, session.expiresAt))
    await revokeKeyRecorded(tx, actor, key)
}

const sessionChange = (action: string, tenantId: number | null) => ({ action, target: null, tenantId })

function grantView({ role, tenantId }: { role: Role; tenantId: number | null }) {
  return { role, tenant: tenantId === null ? null : publicTenantId(tenantId) }
}
