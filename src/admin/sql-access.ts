import { randomBytes } from 'node:crypto'
import type pg from 'pg'
import { quote } from '../domain/tenants/credentials.ts'
import { publicTenantId } from '../domain/tenants/tenants.ts'
import { inTransaction } from '../postgres/database.ts'
import {
  type ChangedRole,
  createRole,
  databaseAddress,
  deleteSqlAccess,
  denyLargeObjects,
  denyLocks,
  denyTemporaryTables,
  disableRole,
  dropRole,
  endMisuses,
  endSessionsOf,
  excessOf,
  insertSqlAccess,
  limitTemporaryFiles,
  listChangedRoles,
  listSqlAccess,
  lockSqlAccess,
  restoreRole,
  roleExists,
  type SqlAccess,
  scramVerifier,
} from '../store/tenants/sql-access.ts'
import { type Actor, canSee, requireTenant, resolveTenantFilter, SYSTEM } from './actor.ts'
import { recordChange } from './audit.ts'
import { AdminError, throwIfInvalid } from './error.ts'

type SqlAccessView = {
  role: string
  tenant: string
  name: string
  created_by: string
  created_at: string
}
export type CreatedSqlAccess = SqlAccessView & { password: string; database: string }

const MAX_NAME = 100
const MAY_NOT = '42501'

/** Read-only database roles for one tenant. Only on the command line, whose users have access to the database anyway. */
export function sqlAccessAdmin({ pool, actor }: { pool: pg.Pool; actor: Actor }) {
  return {
    async create({
      tenant,
      name,
      connections = 5,
      statementSeconds = 60,
    }: {
      tenant: string
      name: string
      connections?: number
      statementSeconds?: number
    }): Promise<CreatedSqlAccess> {
      throwIfInvalid([
        ...(name.trim() === '' || name.length > MAX_NAME
          ? [{ pointer: '/name', message: `must have 1 to ${MAX_NAME} characters` }]
          : []),
        ...validateNumber('/connections', connections, 100),
        ...validateNumber('/statement_seconds', statementSeconds, 86_400),
      ])
      const { id: tenantId } = await requireTenant(pool, actor, tenant)
      // The name does not reveal the tenant, because every user of the cluster can list roles.
      const role = `kontor_bi_${randomBytes(8).toString('hex')}`
      const password = randomBytes(24).toString('base64url')
      const { database, user } = await databaseAddress(pool)
      const access = await inTransaction(pool, async client => {
        const verifier = scramVerifier(password, randomBytes(16))
        await createRole(client, { role, verifier, limits: { connections, statementSeconds } }).catch(error => {
          throw (error as { code?: string }).code === MAY_NOT ? cannotCreateRoles(user) : error
        })
        await denyLocks(client)
        await denyLargeObjects(client)
        await denyTemporaryTables(client)
        await limitTemporaryFiles(client, role)
        const excess = await excessOf(client, role)
        if (excess.length > 0) throw grantedToPublic(excess)
        const created = await insertSqlAccess(client, {
          role,
          tenantId,
          name: name.trim(),
          createdBy: actor.name,
          ...{ verifier, statementSeconds },
        })
        const after = toView(created)
        await recordChange(client, actor, { action: 'sql_access.create', target: role, tenantId, after })
        return created
      })
      return { ...toView(access), password, database }
    },
    async list(tenant?: string): Promise<SqlAccessView[]> {
      return (await listSqlAccess(pool, await resolveTenantFilter(pool, actor, tenant))).map(toView)
    },
    /** The role sees no data after the commit. */
    async revoke(role: string): Promise<SqlAccessView & { role_dropped: boolean }> {
      const known = (await listSqlAccess(pool, null)).find(access => access.role === role)
      if (!known || !canSee(actor, known.tenantId))
        throw new AdminError('not_found', 'sql_access_not_found', `No such SQL access: ${quote(role)}.`)
      await inTransaction(pool, async client => {
        await deleteSqlAccess(client, role)
        if (await roleExists(client, role)) await disableRole(client, role)
        const change = { action: 'sql_access.revoke', target: role, tenantId: known.tenantId }
        await recordChange(client, actor, { ...change, before: toView(known) })
      })
      await endSessionsOf(pool, role).catch(() => undefined)
      // Objects elsewhere in the cluster may prevent dropping the role. Without its row and login it is harmless.
      const isDropped = await inTransaction(pool, async client => {
        if (await roleExists(client, role)) await dropRole(client, role)
      }).then(
        () => true,
        () => false,
      )
      return { ...toView(known), role_dropped: isDropped }
    },
  }
}

/** Ends sessions of these roles that hold locks or exceed their timeouts, and reports why. */
export const endMisuse = endMisuses

/** PostgreSQL lets a role change its own password and defaults. Restores both, and ends the sessions of a role with another password. */
export async function restoreSqlAccess(pool: pg.Pool): Promise<ChangedRole[]> {
  const restored: ChangedRole[] = []
  for (const { role } of (await listChangedRoles(pool)).filter(isSeenToDiffer)) {
    const changed = await inTransaction(pool, async client => {
      await lockSqlAccess(client, role)
      const found = (await listChangedRoles(client)).filter(isSeenToDiffer).find(other => other.role === role)
      if (!found) return null
      await restoreRole(client, role)
      const after = {
        ...(found.hasOtherPassword && { password: 'restored' }),
        ...(found.hasOtherDefaults && { defaults: 'restored' }),
      }
      const change = { action: 'sql_access.restore', target: role, tenantId: found.tenantId }
      await recordChange(client, SYSTEM, { ...change, after })
      return found
    })
    if (changed?.hasOtherPassword) await endSessionsOf(pool, role).catch(() => undefined)
    if (changed) restored.push(changed)
  }
  return restored
}

const isSeenToDiffer = ({ hasOtherPassword, hasOtherDefaults }: ChangedRole) => hasOtherPassword || hasOtherDefaults

/** Where Kontor's user cannot see passwords, sets the known ones again without knowing whether they were changed. */
export async function setUnseenPasswords(pool: pg.Pool): Promise<void> {
  for (const { role, hasOtherPassword } of await listChangedRoles(pool))
    if (hasOtherPassword === null)
      await inTransaction(pool, async client => {
        await lockSqlAccess(client, role)
        await restoreRole(client, role)
      })
}

function validateNumber(pointer: string, value: number, most: number) {
  const isGood = Number.isInteger(value) && value >= 1 && value <= most
  return isGood ? [] : [{ pointer, message: `must be a whole number from 1 to ${most}` }]
}

function cannotCreateRoles(user: string): AdminError {
  return new AdminError(
    'conflict',
    'may_not_make_roles',
    `The database user ${user} is not allowed to create roles. Run as a superuser: alter role "${user}" createrole;`,
  )
}

function grantedToPublic(excess: string[]): AdminError {
  return new AdminError(
    'conflict',
    'granted_to_public',
    `A new role could ${excess.join(', ')}, because PUBLIC has this privilege in this database. Revoke it from PUBLIC first.`,
  )
}

function toView({ role, tenantId, name, createdBy, createdAt }: SqlAccess): SqlAccessView {
  return {
    role,
    tenant: publicTenantId(tenantId),
    name,
    created_by: createdBy,
    created_at: createdAt.toISOString(),
  }
}
