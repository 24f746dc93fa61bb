import { isDeepStrictEqual } from 'node:util'
import type pg from 'pg'
import { type Static, Type } from 'typebox'
import { countsEqually, formatSettings, type Policy, parsePolicy } from '../domain/billing/policy.ts'
import { NullableText, NullableTimestamp } from '../domain/shapes.ts'
import { publicTenantId } from '../domain/tenants/tenants.ts'
import { type Db, inTransaction } from '../postgres/database.ts'
import { lockTenants, TENANT_LOCKS } from '../postgres/locks.ts'
import { appliedPolicy, insertPolicy, newestPolicy, timeZoneName } from '../store/billing/policies.ts'
import { lockTenant } from '../store/tenants/tenants.ts'
import { type Actor, requireTenant } from './actor.ts'
import { recordChange } from './audit.ts'
import { throwIfInvalid } from './error.ts'
export type PolicyAdmin = ReturnType<typeof policyAdmin>

export function policyAdmin({ pool, actor }: { pool: pg.Pool; actor: Actor }) {
  return {
    async show(idOrName: string): Promise<PolicyView> {
      const { id } = await requireTenant(pool, actor, idOrName)
      return policyView(pool, id)
    },
    /** By public names; what is absent stays. What changes nothing makes no version. */
    async set(idOrName: string, settings: Record<string, unknown>): Promise<PolicyView> {
      const { policy, errors } = parsePolicy(settings)
      throwIfInvalid(errors)
      const { id } = await requireTenant(pool, actor, idOrName)
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
  throwIfInvalid([{ pointer: '/time_zone', message: 'must be a time zone that PostgreSQL knows' }])
  return policy
}

async function changePolicy(db: Db, actor: Actor, tenantId: number, change: Partial<Policy>): Promise<void> {
  const { setAt, setBy, appliedAt, ...before } = await newestPolicy(db, tenantId)
  const after = { ...before, ...change }
  if (isDeepStrictEqual(before, after)) return
  const isApplied = countsEqually(await appliedPolicy(db, tenantId), after)
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
    before: { version: before.version, ...formatSettings(before) },
    after: { version: before.version + 1, ...formatSettings(after) },
  })
}

async function policyView(db: Db, tenantId: number): Promise<PolicyView> {
  const newest = await newestPolicy(db, tenantId)
  const applied = await appliedPolicy(db, tenantId)
  return {
    tenant: publicTenantId(tenantId),
    version: newest.version,
    ...formatSettings(newest),
    set_at: newest.setAt?.toISOString() ?? null,
    set_by: newest.setBy,
    applied: applied.version === newest.version,
    applied_version: applied.version,
  }
}

const either =
  (...values: string[]) =>
  (description: string) =>
    Type.Enum(values, { description })

const policySettings = {
  pause: either('churn', 'keep')('Whether a subscription that is paused leaves MRR or keeps what it had'),
  trial_on_paying: either('churn', 'keep')('The same of one that is put on trial after it counted'),
  past_due_grace_days: Type.Union([Type.Literal('none'), Type.Integer()], {
    description: 'For how many days a past-due subscription counts; none: as long as it is past due',
  }),
  time_zone: Type.String({
    description: 'Of days, weeks and months in reports: a name of the IANA database',
    examples: ['Europe/Berlin'],
  }),
  net_within_day: Type.Boolean({ description: 'Whether movements of one account on one day are one' }),
  retention_base: either(
    'first_instant',
    'end_of_month',
  )('What retention is measured by: what an account first paid, or paid at the end of its first month'),
}

export const PolicyView = Type.Object(
  {
    tenant: Type.String(),
    version: Type.Integer({ description: 'Every change makes another; 1 is what holds before any' }),
    ...policySettings,
    set_at: NullableTimestamp,
    set_by: NullableText,
    applied: Type.Boolean({
      description: 'Whether reports follow it; if not yet, the ledger is being restated by it',
    }),
    applied_version: Type.Integer({ description: 'The version that reports follow' }),
  },
  {
    examples: [
      {
        tenant: 'ten_1',
        version: 2,
        pause: 'keep',
        trial_on_paying: 'churn',
        past_due_grace_days: 'none',
        time_zone: 'Europe/Berlin',
        net_within_day: false,
        retention_base: 'first_instant',
        set_at: '2026-01-31T09:30:00.000Z',
        set_by: 'cli:ada',
        applied: true,
        applied_version: 2,
      },
    ],
  },
)

export type PolicyView = Static<typeof PolicyView>
