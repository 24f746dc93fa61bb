import type pg from 'pg'
import { Type } from 'typebox'
import { Nullable } from '../domain/shapes.ts'
import { hasRole, type Role } from '../domain/tenants/roles.ts'
import type { Tenant } from '../domain/tenants/tenants.ts'
import { findTenant } from '../store/tenants/tenants.ts'
import { AdminError, notFound } from './error.ts'
/** On whose behalf something is read or changed. */
export type Actor = {
  /** The id of a key, `oidc:` and the person in the console, or `cli:` and the user of the command line. */
  name: string
  role: Role
  /** The only tenant that this actor sees; null: all of them. */
  tenantId: number | null
  ip: string | null
  requestId: string | null
}

/** Kontor itself. */
export const SYSTEM: Actor = {
  name: 'system',
  role: 'admin',
  tenantId: null,
  ip: null,
  requestId: null,
}

export function commandLineActor(user: string): Actor {
  return { name: `cli:${user}`, role: 'admin', tenantId: null, ip: null, requestId: null }
}

/** Whether what belongs to this tenant is there, as far as the actor may know. */
export function sees(actor: Actor, tenantId: number | null): boolean {
  return actor.tenantId === null || actor.tenantId === tenantId
}

export function requireRole(actor: Actor, needed: Role): void {
  if (!hasRole(actor.role, needed))
    throw new AdminError('forbidden', 'insufficient_role', lacksRole(actor.role, needed))
}

export function lacksRole(role: Role, needed: Role): string {
  const those = needed === 'operator' ? 'operator or admin' : needed
  return `This needs the role ${those}; yours is ${role}.`
}

/** For what concerns more than one tenant. */
export function requireAllTenants(actor: Actor): void {
  if (actor.tenantId !== null)
    throw new AdminError(
      'forbidden',
      'tenant_bound',
      'This is for those who may see all tenants; you are bound to one.',
    )
}

/** A tenant that the actor may not see is not there. */
export async function requireTenant(pool: pg.Pool, actor: Actor, idOrName: string): Promise<Tenant> {
  const tenant = await findTenant(pool, idOrName)
  if (tenant === null || !sees(actor, tenant.id)) throw notFound('tenant', idOrName)
  return tenant
}

/** For a list: the tenant it is limited to; null where it is of all tenants. */
export async function resolveTenantFilter(
  pool: pg.Pool,
  actor: Actor,
  idOrName: string | undefined,
): Promise<number | null> {
  return idOrName === undefined ? actor.tenantId : (await requireTenant(pool, actor, idOrName)).id
}

export const CreatedBy = Nullable(
  Type.String({ description: 'Who made it: the id of a key, or cli: and the user of the command line' }),
)
