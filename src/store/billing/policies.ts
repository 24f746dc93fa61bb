import { DEFAULT_POLICY, type Policy, type PolicyVersion } from '../../domain/billing/policy.ts'
import { type Db, queryPrepared, queryRows } from '../../postgres/database.ts'
import { keyColumns, type ObjectKey } from './rows.ts'

type Stored = { version: number; policy: string }

export function toVersion(row: Stored | undefined): PolicyVersion {
  return row ? { ...DEFAULT_POLICY, ...JSON.parse(row.policy), version: row.version } : DEFAULT_POLICY
}

/** The policy that reports use. */
export async function appliedPolicy(db: Db, tenantId: number): Promise<PolicyVersion> {
  const { rows } = await queryPrepared<Stored>(
    db,
    `select version, policy from tenant_policies
     where tenant_id = $1 and applied_at is not null order by version desc limit 1`,
    [tenantId],
  )
  return toVersion(rows[0])
}

type PolicyRow = PolicyVersion & { setAt: Date | null; setBy: string | null; appliedAt: Date | null }

/** The newest policy, applied or pending. */
export async function newestPolicy(db: Db, tenantId: number): Promise<PolicyRow> {
  const { rows } = await queryPrepared<Stored & Pick<PolicyRow, 'setAt' | 'setBy' | 'appliedAt'>>(
    db,
    `select version, policy, set_at as "setAt", set_by as "setBy", applied_at as "appliedAt" from tenant_policies
     where tenant_id = $1 order by version desc limit 1`,
    [tenantId],
  )
  const row = rows[0]
  const { setAt, setBy, appliedAt } = row ?? { setAt: null, setBy: null, appliedAt: null }
  return { ...toVersion(row), setAt, setBy, appliedAt }
}

/** `isApplied`: reports use it immediately. */
export async function insertPolicy(
  db: Db,
  tenantId: number,
  { version, ...policy }: PolicyVersion,
  { setBy, isApplied }: { setBy: string; isApplied: boolean },
): Promise<void> {
  const settings: Policy = policy
  await queryPrepared(
    db,
    `insert into tenant_policies (tenant_id, version, policy, set_by, applied_at)
     values ($1, $2, $3, $4, case when $5 then now() end)`,
    [tenantId, version, JSON.stringify(settings), setBy, isApplied],
  )
}

/** PostgreSQL's spelling; null: unknown zone. */
export async function timeZoneName(db: Db, name: string): Promise<string | null> {
  const { rows } = await db.query<{ name: string }>(
    'select name from pg_timezone_names where lower(name) = lower($1) limit 1',
    [name],
  )
  return rows[0]?.name ?? null
}

/** By tenant, the applied policy, and whether another one is pending. */
export async function readPolicies(
  db: Db,
  tenantIds: number[],
): Promise<Map<number, { policy: PolicyVersion; isPending: boolean }>> {
  const { rows } = await queryPrepared<Stored & { tenantId: number; isPending: boolean }>(
    db,
    `select t.tenant_id as "tenantId", a.version, a.policy, coalesce(n.applied_at is null, false) as "isPending"
     from unnest($1::int[]) as t (tenant_id)
     cross join lateral (
       select applied_at from tenant_policies where tenant_id = t.tenant_id order by version desc limit 1) n
     left join lateral (
       select version, policy from tenant_policies
       where tenant_id = t.tenant_id and applied_at is not null order by version desc limit 1) a on true`,
    [[...new Set(tenantIds)]],
  )
  return new Map(
    rows.map(({ tenantId, isPending, ...row }) => [
      tenantId,
      { policy: row.version === null ? DEFAULT_POLICY : toVersion(row), isPending },
    ]),
  )
}

export type PendingPolicy = { tenantId: number; version: number }

/** The pending policy of each tenant. */
export async function pendingPolicies(db: Db): Promise<PendingPolicy[]> {
  const { rows } = await db.query<PendingPolicy>(
    `select tenant_id as "tenantId", version from tenant_policies p
     where applied_at is null and not exists (
       select from tenant_policies n where n.tenant_id = p.tenant_id and n.version > p.version)
     order by tenant_id`,
  )
  return rows
}

/** Null: it is applied, replaced by a newer one, or locked by another transaction. */
export async function lockPending(db: Db, { tenantId, version }: PendingPolicy): Promise<PolicyVersion | null> {
  const { rows } = await queryPrepared<Stored>(
    db,
    `select version, policy from tenant_policies p
     where tenant_id = $1 and version = $2 and applied_at is null and not exists (
       select from tenant_policies n where n.tenant_id = p.tenant_id and n.version > p.version)
     for update skip locked`,
    [tenantId, version],
  )
  return rows[0] ? toVersion(rows[0]) : null
}

/** `mrr`: MRR before and after, by currency. */
export async function markApplied(
  db: Db,
  { tenantId, version }: PendingPolicy,
  mrr: Record<string, { before: number; after: number }>,
): Promise<void> {
  await queryPrepared(
    db,
    'update tenant_policies set applied_at = now(), mrr = $3 where tenant_id = $1 and version = $2',
    [tenantId, version, JSON.stringify(mrr)],
  )
}

type PolicyChange = {
  at: Date
  version: number
  policy: PolicyVersion
  /** In minor units. */
  mrr: { before: number; after: number } | null
}

/** Applied policies, the oldest first, with the MRR of one currency. */
export async function policyChanges(db: Db, tenantId: number, currency: string): Promise<PolicyChange[]> {
  const { rows } = await queryPrepared<Stored & { at: Date; mrr: string | null }>(
    db,
    `select version, policy, applied_at as at, mrr -> $2 as mrr from tenant_policies
     where tenant_id = $1 and applied_at is not null order by version`,
    [tenantId, currency],
  )
  return rows.map(({ at, mrr, ...row }) => ({
    at,
    version: row.version,
    policy: toVersion(row),
    mrr: mrr === null ? null : JSON.parse(mrr),
  }))
}

/** The settings in which two policies differ. */
export type Restatement = { pause: boolean; trialOnPaying: boolean; graceDays: number | null }

/**
 * Scans the next `limit` subscriptions and queues those whose segments the policy may change. Returns whether there are more.
 */
export async function noteRestated(
  db: Db,
  { tenantId, version }: PendingPolicy,
  { pause, trialOnPaying, graceDays }: Restatement,
  limit: number,
): Promise<boolean> {
  const { rows } = await queryPrepared<{ count: number }>(
    db,
    `with portion as materialized (
       select id from billing_subscriptions where tenant_id = $1 and id > (
         select scanned_until from tenant_policies where tenant_id = $1 and version = $2)
       order by id limit $3
     ), noted as (
       insert into billing_restated (tenant_id, subscription_id)
       select $1, p.id from portion p cross join lateral (
         select bool_or($4 and status = 'paused')
           or coalesce($5 and max(valid_from) filter (where status = 'trialing') > min(valid_from), false)
           or coalesce(max(valid_to) filter (where status = 'past_due') >=
             min(valid_from) filter (where status = 'past_due') + make_interval(days => $6), false) as may_differ
         from billing_segments where tenant_id = $1 and subscription_id = p.id offset 0) s
       where s.may_differ
       on conflict do nothing
     ), looked as (
       update tenant_policies set scanned_until = (select max(id) from portion)
       where tenant_id = $1 and version = $2 and exists (select from portion)
     )
     select count(*) as count from portion`,
    [tenantId, version, limit, pause, trialOnPaying, graceDays],
  )
  return rows[0]!.count === limit
}

/** Queues subscriptions that were derived while a policy is pending. */
export async function addRestated(db: Db, keys: ObjectKey[]): Promise<void> {
  await queryPrepared(
    db,
    `insert into billing_restated (tenant_id, subscription_id)
     select tenant_id, id from unnest($1::int[], $2::text[]) as k (tenant_id, id)
     order by tenant_id, id collate "C" on conflict do nothing`,
    keyColumns(keys),
  )
}

/** Removes and returns all queued subscriptions of a tenant. */
export async function takeRestated(db: Db, tenantId: number): Promise<ObjectKey[]> {
  return queryRows<ObjectKey>(
    db,
    `delete from billing_restated where tenant_id = $1 returning tenant_id as "tenantId", subscription_id as id`,
    [tenantId],
  )
}
