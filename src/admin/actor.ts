import type pg from 'pg'
import { Nullable } from '../domain/shapes.ts'
import { hasRole, type Role } from '../domain/tenants/keys.ts'
import type { Tenant } from '../domain/tenants/tenants.ts'
import { Type } from '../domain/typebox.ts'
import { findTenant } from '../store/tenants/tenants.ts'
import { AdminError, notFound } from './error.ts'
/** The caller that reads or changes something. */
export type Actor = {
  /** A key id, `user:` or `oidc:` + the console user, or `cli:` + the command line user. */
  name: string
  role: Role
  /** The only visible tenant; null: all tenants. */
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

/** Whether the actor may see data of this tenant. */
export function canSee(actor: Actor, tenantId: number | null): boolean {
  return actor.tenantId === null || actor.tenantId === tenantId
}

export function requireRole(actor: Actor, needed: Role): void {
  if (!hasRole(actor.role, needed))
    throw new AdminError('forbidden', 'insufficient_role', roleMessage(actor.role, needed))
}

export function roleMessage(role: Role, needed: Role): string {
  const roles = needed === 'operator' ? 'operator or admin' : needed
  return `This action requires the role ${roles}; your role is ${role}.`
}

/** For actions that affect more than one tenant. */
export function requireAllTenants(actor: Actor): void {
  if (actor.tenantId !== null)
    throw new AdminError(
      'forbidden',
      'tenant_bound',
      'This action requires access to all tenants; your access is limited to one tenant.',
    )
}

/** Throws "not found" also for a tenant that the actor may not see. */
export async function requireTenant(pool: pg.Pool, actor: Actor, idOrName: string): Promise<Tenant> {
  const tenant = await findTenant(pool, idOrName)
  if (tenant === null || !canSee(actor, tenant.id)) throw notFound('tenant', idOrName)
  return tenant
}

/** The tenant that a list is limited to; null: all tenants. */
export async function resolveTenantFilter(
  pool: pg.Pool,
  actor: Actor,
  idOrName: string | undefined,
): Promise<number | null> {
  return idOrName === undefined ? actor.tenantId : (await requireTenant(pool, actor, idOrName)).id
}

export const CreatedBy = Nullable(
  Type.String({
    description: 'The creator: a key id, user: or oidc: and the console user, or cli: and the command line user',
  }),
)
