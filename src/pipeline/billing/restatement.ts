import type { Policy, PolicyVersion } from '../../domain/billing/policy.ts'
import type { Db } from '../../postgres/database.ts'
import { lockTenants, shareTenants, TENANT_LOCKS } from '../../postgres/locks.ts'
import {
  appliedPolicy,
  lockPending,
  markApplied,
  noteRestated,
  type PendingPolicy,
  type Restatement,
  takeRestated,
} from '../../store/billing/policies.ts'
import { sourceFigures } from '../../store/reports/totals.ts'
import type { Deriving } from '../unit.ts'
import { applySubscriptions } from './subscriptions.ts'

const LOOKED_THROUGH_AT_ONCE = 2_000
const DERIVED_AT_ONCE = 500

/** Scans some subscriptions for those that the policy changes. Returns whether there are more. */
export async function lookThrough({ client }: Deriving, pending: PendingPolicy): Promise<boolean> {
  const policy = await lockPending(client, pending)
  return policy !== null && lookFurther(client, pending, policy)
}

async function lookFurther(db: Db, pending: PendingPolicy, policy: Policy): Promise<boolean> {
  const applied = await appliedPolicy(db, pending.tenantId)
  return noteRestated(db, pending, comparePolicies(applied, policy), LOOKED_THROUGH_AT_ONCE)
}

function comparePolicies(a: Policy, b: Policy): Restatement {
  const days = [a.pastDueGraceDays, b.pastDueGraceDays].filter(grace => grace !== null)
  return {
    pause: a.pause !== b.pause,
    trialOnPaying: a.trialOnPaying !== b.trialOnPaying,
    graceDays: a.pastDueGraceDays === b.pastDueGraceDays ? null : Math.min(...days),
  }
}

/**
 * Derives the affected subscriptions and applies the policy in one transaction, so that every report uses either the old or
 * the new policy. Other derivations of this tenant wait meanwhile.
 */
export async function applyPolicy(transaction: Deriving, pending: PendingPolicy): Promise<void> {
  const { client, now } = transaction
  const { tenantId } = pending
  await shareTenants(client, TENANT_LOCKS.profiles, [tenantId])
  await lockTenants(client, TENANT_LOCKS.terms, [tenantId])
  const policy = await lockPending(client, pending)
  if (policy === null) return
  // most subscriptions are already scanned
  while (await lookFurther(client, pending, policy));
  const before = await mrrByCurrency(client, tenantId, now)
  await deriveBy(transaction, policy, tenantId)
  const after = await mrrByCurrency(client, tenantId, now)
  const currencies = [...new Set([...before.keys(), ...after.keys()])]
  await markApplied(
    client,
    pending,
    Object.fromEntries(currencies.map(code => [code, { before: before.get(code) ?? 0, after: after.get(code) ?? 0 }])),
  )
}

async function deriveBy(transaction: Deriving, policy: PolicyVersion, tenantId: number): Promise<void> {
  const keys = await takeRestated(transaction.client, tenantId)
  for (let i = 0; i < keys.length; i += DERIVED_AT_ONCE) {
    const portion = keys.slice(i, i + DERIVED_AT_ONCE)
    await applySubscriptions(transaction, portion, { named: [], nodes: new Map(), policy })
  }
}

async function mrrByCurrency(db: Db, tenantId: number, now: Date): Promise<Map<string, number>> {
  const mrr = new Map<string, number>()
  for (const source of await sourceFigures(db, tenantId, now, now))
    mrr.set(source.currency, (mrr.get(source.currency) ?? 0) + source.mrr)
  mrr.delete('')
  return mrr
}
