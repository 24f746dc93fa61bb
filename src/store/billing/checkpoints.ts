import type { Checkpoint } from '../../domain/billing/checkpoint.ts'
import type { Segment } from '../../domain/billing/segments.ts'
import { type Db, queryPrepared } from '../../postgres/database.ts'
import { keyColumns, type ObjectKey } from './keys.ts'

/** With what else is told of a subscription by all of its versions: `customers`, by source, of those before it. */
export type StoredCheckpoint = Checkpoint & { customers: Record<string, string[]>; isOfTwo: boolean }

export type StoredContinuation = ObjectKey & { checkpoint: StoredCheckpoint; before: Segment }

/** Of these subscriptions those that have a checkpoint, each with the last segment before it. */
export async function loadCheckpoints(db: Db, keys: ObjectKey[]): Promise<StoredContinuation[]> {
  const { rows } = await queryPrepared<ObjectKey & { checkpoint: string; before: string }>(
    db,
    `select s.tenant_id as "tenantId", s.id, s.checkpoint, b.body as before
     from unnest($1::int[], $2::text[]) as k (tenant_id, id)
     join billing_subscriptions s using (tenant_id, id)
     cross join lateral (
       select body from billing_segments
       where tenant_id = s.tenant_id and subscription_id = s.id
         and valid_from < timestamptz 'epoch' + (s.checkpoint ->> 'at')::bigint * interval '1 millisecond'
       order by valid_from desc limit 1) b
     where s.checkpoint is not null`,
    keyColumns(keys),
  )
  return rows.map(({ checkpoint, before, ...key }) => ({
    ...key,
    checkpoint: JSON.parse(checkpoint),
    before: JSON.parse(before),
  }))
}

export async function saveCheckpoints(
  db: Db,
  rows: (ObjectKey & { checkpoint: StoredCheckpoint | null })[],
): Promise<void> {
  await queryPrepared(
    db,
    `update billing_subscriptions s set checkpoint = k.checkpoint
     from unnest($1::int[], $2::text[], $3::json[]) as k (tenant_id, id, checkpoint)
     where s.tenant_id = k.tenant_id and s.id = k.id`,
    [
      ...keyColumns(rows),
      rows.map(({ checkpoint }) => (checkpoint === null ? null : JSON.stringify(checkpoint))),
    ],
  )
}
