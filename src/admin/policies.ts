import { isDeepStrictEqual } from 'node:util'
import type pg from 'pg'
import { countsAlike, type Policy, readPolicy, shownSettings } from '../domain/billing/policy.ts'
import { publicTenantId } from '../domain/tenants/tenants.ts'
import { type Db, inTransaction } from '../postgres/database.ts'
import { lockTenants, TENANT_LOCKS } from '../postgres/locks.ts'
import { appliedPolicy, insertPolicy, newestPolicy, timeZoneName } from '../store/billing/policies.ts'
import { lockTenant } from '../store/tenants/tenants.ts'
import type { Actor } from './actor.ts'
import { recordChange } from './audit.ts'
import { refuse } from './error.ts'
import { tenantNamed } from './tenants.ts'
import type { PolicyView } from './views/tenants.ts'

export type PolicyAdmin = ReturnType<typeof policyAdmin>

export function policyAdmin({ pool, actor }: { pool: pg.Pool; actor: Actor }) {
  return {
    async show(idOrName: string): Promise<PolicyView> {
      const { id } = await tenantNamed(pool, actor, idOrName)
      return policyView(pool, id)
    },
    /** By public names; what is absent stays. What changes nothing makes no version. */
    async set(idOrName: string, settings: Record<string, unknown>): Promise<PolicyView> {
      const { policy, faults } = readPolicy(settings)
      refuse(faults)
      const { id } = await tenantNamed(pool, actor, idOrName)
      return inTransaction(pool, async tx => {
        // whoever derives subscriptions shares it: from here on they see that a policy is to come
        await lockTenants(tx, TENANT_LOCKS.terms, [id])
        await lockTenant(tx, id)
        await changePolicy(tx, actor, id, await withZoneName(tx, policy))
        return policyView(tx, id)
      })
    },
  }
}

/** What Node takes for a zone PostgreSQL must know too. */
async function withZoneName(db: Db, policy: Partial<Policy>): Promise<Partial<Policy>> {
  if (policy.timeZone === undefined) return policy
  const timeZone = await timeZoneName(db, policy.timeZone)
  if (timeZone !== null) return { ...policy, timeZone }
  refuse([{ pointer: '/time_zone', message: 'must be a time zone that PostgreSQL knows' }])
  return policy
}

async function changePolicy(db: Db, actor: Actor, tenantId: number, change: Partial<Policy>): Promise<void> {
  const { setAt, setBy, appliedAt, ...before } = await newestPolicy(db, tenantId)
  const after = { ...before, ...change }
  if (isDeepStrictEqual(before, after)) return
  const isApplied = countsAlike(await appliedPolicy(db, tenantId), after)
  await insertPolicy(
    db,
    tenantId,
    { ...after, version: before.version + 1 },
    { setBy: actor.name, isApplied },
  )
  await recordChange(db, actor, {
    action: 'policy.set',
    target: publicTenantId(tenantId),
    tenantId,
    before: { version: before.version, ...shownSettings(before) },
    after: { version: before.version + 1, ...shownSettings(after) },
  })
}

async function policyView(db: Db, tenantId: number): Promise<PolicyView> {
  const newest = await newestPolicy(db, tenantId)
  const applied = await appliedPolicy(db, tenantId)
  return {
    tenant: publicTenantId(tenantId),
    version: newest.version,
    ...shownSettings(newest),
    set_at: newest.setAt?.toISOString() ?? null,
    set_by: newest.setBy,
    applied: applied.version === newest.version,
    applied_version: applied.version,
  }
}
