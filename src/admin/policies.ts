import { isDeepStrictEqual } from 'node:util'
import type pg from 'pg'
import { countsEqually, formatSettings, type Policy, parsePolicy } from '../domain/billing/policy.ts'
import { NullableText, NullableTimestamp } from '../domain/shapes.ts'
import { publicTenantId } from '../domain/tenants/tenants.ts'
import { type Static, Type } from '../domain/typebox.ts'
import { type Db, inTransaction } from '../postgres/database.ts'
import { lockTenants, TENANT_LOCKS } from '../postgres/locks.ts'
import { appliedPolicy, insertPolicy, newestPolicy, timeZoneName } from '../store/billing/policies.ts'
import { noteAllCustomers } from '../store/customers/refresh.ts'
import { lockTenant } from '../store/tenants/tenants.ts'
import { type Actor, requireTenant } from './actor.ts'
import { recordChange } from './audit.ts'
import { throwIfInvalid } from './error.ts'
export function policyAdmin({ pool, actor }: { pool: pg.Pool; actor: Actor }) {
  return {
    async show(idOrName: string): Promise<PolicyView> {
      const { id } = await requireTenant(pool, actor, idOrName)
      return policyView(pool, id)
    },
    /** Settings by public names; absent settings stay unchanged. A change without effect creates no version. */
    async set(idOrName: string, settings: Record<string, unknown>): Promise<PolicyView> {
      const { policy, errors } = parsePolicy(settings)
      throwIfInvalid(errors)
      const { id } = await requireTenant(pool, actor, idOrName)
      return inTransaction(pool, async tx => {
        // Workers that derive subscriptions share this lock. After it they see the new policy.
        await lockTenants(tx, TENANT_LOCKS.terms, [id])
        await lockTenant(tx, id)
        await changePolicy(tx, actor, id, await withZoneName(tx, policy))
        return policyView(tx, id)
      })
    },
  }
}

/** PostgreSQL must support a time zone that Node accepts. */
async function withZoneName(db: Db, policy: Partial<Policy>): Promise<Partial<Policy>> {
  if (policy.timeZone === undefined) return policy
  const timeZone = await timeZoneName(db, policy.timeZone)
  if (timeZone !== null) return { ...policy, timeZone }
  throwIfInvalid([{ pointer: '/time_zone', message: 'must be a time zone that PostgreSQL supports' }])
  return policy
}

async function changePolicy(db: Db, actor: Actor, tenantId: number, change: Partial<Policy>): Promise<void> {
  const { setAt, setBy, appliedAt, ...before } = await newestPolicy(db, tenantId)
  const after = { ...before, ...change }
  if (isDeepStrictEqual(before, after)) return
  const isApplied = countsEqually(await appliedPolicy(db, tenantId), after)
  await insertPolicy(db, tenantId, { ...after, version: before.version + 1 }, { setBy: actor.name, isApplied })
  if (!isDeepStrictEqual(before.channels, after.channels)) await noteAllCustomers(db, tenantId)
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
  pause: either('churn', 'keep')('Whether a paused subscription leaves MRR or keeps its amount'),
  trial_on_paying: either(
    'churn',
    'keep',
  )('Whether a paying subscription that returns to a trial leaves MRR or keeps its amount'),
  past_due_grace_days: Type.Union([Type.Literal('none'), Type.Integer()], {
    description: 'Number of days for which a past-due subscription counts; none: no limit',
  }),
  time_zone: Type.String({
    description: 'IANA time zone of days, weeks and months in reports',
    examples: ['Europe/Berlin'],
  }),
  net_within_day: Type.Boolean({ description: 'Whether the movements of an account on one day are combined' }),
  retention_base: either(
    'first_instant',
    'end_of_month',
  )('The base of revenue retention: the first MRR of an account, or its MRR at the end of its first month'),
  reporting_currency: Type.String({
    description: 'The currency of reports with `currency=reporting`; none: not set',
    examples: ['EUR'],
  }),
  channels: Type.Array(
    Type.Object({
      channel: Type.String(),
      source: Type.Optional(Type.Array(Type.String())),
      medium: Type.Optional(Type.Array(Type.String())),
      campaign: Type.Optional(Type.Array(Type.String())),
    }),
    { description: 'Rules for marketing channels. Kontor checks them before its default rules' },
  ),
  plan_groups: Type.Record(Type.String(), Type.Array(Type.String()), {
    description: 'By group, the names of its plans, or the ids of their prices or products',
  }),
}

export const PolicyView = Type.Object(
  {
    tenant: Type.String(),
    version: Type.Integer({ description: 'Every change creates a version; 1 is the initial policy' }),
    ...policySettings,
    set_at: NullableTimestamp,
    set_by: NullableText,
    applied: Type.Boolean({ description: 'Whether reports use this version; false: the ledger is being recomputed' }),
    applied_version: Type.Integer({ description: 'The version that reports use' }),
  },
  {
    title: 'Policy',
    description: 'How the reports of a tenant compute MRR',
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
        reporting_currency: 'EUR',
        channels: [{ channel: 'partners', source: ['*.partner.com'] }],
        plan_groups: { Business: ['Team', 'Scale'] },
        set_at: '2026-01-31T09:30:00.000Z',
        set_by: 'cli:ada',
        applied: true,
        applied_version: 2,
      },
    ],
  },
)

export type PolicyView = Static<typeof PolicyView>
