import { type Db, queryPrepared } from '../../postgres/database.ts'
import type { ObjectKey } from './keys.ts'
import { noteSubscriptions } from './noted.ts'
import type { PendingPolicy } from './policies.ts'

/** What another policy may change. */
export type Restatement = { pause: boolean; trialOnPaying: boolean; graceDays: number | null }

/**
 * Looks through the next `limit` subscriptions and notes those that may read otherwise: by what they were, not by what
 * it comes to. Returns whether there are more.
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

/** They have been derived while another policy is to come. */
export function addRestated(db: Db, keys: ObjectKey[]): Promise<void> {
  return noteSubscriptions(db, 'billing_restated', keys)
}

/** Takes all of a tenant. */
export async function takeRestated(db: Db, tenantId: number): Promise<ObjectKey[]> {
  const { rows } = await queryPrepared<ObjectKey>(
    db,
    `delete from billing_restated where tenant_id = $1 returning tenant_id as "tenantId", subscription_id as id`,
    [tenantId],
  )
  return rows
}
