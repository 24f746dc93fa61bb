import type { ItemRange } from '../../domain/billing/item-states.ts'
import type { Segment } from '../../domain/billing/timeline.ts'
import { type Db, queryPrepared } from '../../postgres/database.ts'
import { endText, instantOf, keyColumns, type ObjectKey, sortedKeys, timeText } from './versions.ts'

/**
 * Makes the rows that are missing, and locks those of `seen` in order: whoever derives a subscription sees all that
 * others learnt about it before. `named`: subscriptions that only an invoice speaks of so far.
 */
export async function lockSubscriptions(db: Db, seen: ObjectKey[], named: ObjectKey[]): Promise<void> {
  await queryPrepared(
    db,
    `insert into billing_subscriptions (tenant_id, id, seen)
     select tenant_id, id, false from unnest($1::int[], $2::text[]) as k (tenant_id, id)
     order by tenant_id, id collate "C" on conflict do nothing`,
    keyColumns(sortedKeys([...seen, ...named])),
  )
  if (seen.length === 0) return
  await queryPrepared(
    db,
    `select from billing_subscriptions s
     join unnest($1::int[], $2::text[]) as k (tenant_id, id) using (tenant_id, id)
     order by s.tenant_id, s.id for update of s`,
    keyColumns(sortedKeys(seen)),
  )
}

export type StoredSegment = ObjectKey & { from: number; account: string; hash: string }

export async function loadSegments(db: Db, keys: ObjectKey[]): Promise<StoredSegment[]> {
  const { rows } = await queryPrepared<{
    tenant_id: number
    subscription_id: string
    valid_from: Date
    account: string
    hash: string
  }>(
    db,
    `select s.tenant_id, s.subscription_id, s.valid_from, s.account, s.hash from billing_segments s
     join unnest($1::int[], $2::text[]) as k (tenant_id, id) on s.tenant_id = k.tenant_id and s.subscription_id = k.id`,
    keyColumns(keys),
  )
  return rows.map(row => ({
    tenantId: row.tenant_id,
    id: row.subscription_id,
    from: row.valid_from.getTime(),
    account: row.account,
    hash: row.hash,
  }))
}

export type SegmentRow = ObjectKey & {
  segment: Segment
  figures: { itemRows: number; items: number; pricedItems: number; excludedItems: number }
  acquisitionId: number
  hash: string
}

export async function replaceSegments(
  db: Db,
  gone: (ObjectKey & { from: number })[],
  added: SegmentRow[],
): Promise<void> {
  if (gone.length > 0) {
    await queryPrepared(
      db,
      `delete from billing_segments s
       using unnest($1::int[], $2::text[], $3::timestamptz[]) as k (tenant_id, id, valid_from)
       where s.tenant_id = k.tenant_id and s.subscription_id = k.id and s.valid_from = k.valid_from`,
      [...keyColumns(gone), gone.map(one => timeText(one.from))],
    )
  }
  if (added.length === 0) return
  await queryPrepared(
    db,
    `insert into billing_segments select * from json_populate_recordset(null::billing_segments, $1)`,
    [JSON.stringify(added.map(segmentColumns))],
  )
}

function segmentColumns({ tenantId, id, segment, figures, acquisitionId, hash }: SegmentRow) {
  return {
    tenant_id: tenantId,
    subscription_id: id,
    valid_from: timeText(segment.from),
    valid_to: endText(segment.to),
    account: segment.account,
    currency: segment.currency ?? '',
    status: segment.status,
    started_at: timeText(segment.startedAt),
    mrr: segment.mrr,
    committed_mrr: segment.committedMrr,
    acquisition_id: acquisitionId,
    item_rows: figures.itemRows,
    items: figures.items,
    items_priced: figures.pricedItems,
    items_excluded: figures.excludedItems,
    hash,
    body: segment,
  }
}

/** Rows that are as before stay untouched. */
export async function replaceItems(
  db: Db,
  subscriptions: ObjectKey[],
  ranges: (ObjectKey & ItemRange)[],
): Promise<void> {
  await queryPrepared(
    db,
    `with wanted as materialized (
       select * from json_populate_recordset(null::billing_items, $3)
     ), gone as (
       delete from billing_items i using unnest($1::int[], $2::text[]) as k (tenant_id, id)
       where i.tenant_id = k.tenant_id and i.subscription_id = k.id and not exists (
         select from wanted w where w.tenant_id = i.tenant_id and w.subscription_id = i.subscription_id
           and w.place = i.place and w.valid_from = i.valid_from)
     )
     insert into billing_items as i select * from wanted
     on conflict (tenant_id, subscription_id, place, valid_from) do update set
       valid_to = excluded.valid_to, currency = excluded.currency, item_id = excluded.item_id,
       reason = excluded.reason, excluded_mrr = excluded.excluded_mrr, since = excluded.since,
       started_at = excluded.started_at
     where (i.valid_to, i.currency, i.item_id, i.reason, i.excluded_mrr, i.since, i.started_at) is distinct from
       (excluded.valid_to, excluded.currency, excluded.item_id, excluded.reason, excluded.excluded_mrr,
        excluded.since, excluded.started_at)`,
    [
      ...keyColumns(subscriptions),
      JSON.stringify(
        ranges.map(range => ({
          tenant_id: range.tenantId,
          subscription_id: range.id,
          place: range.place,
          valid_from: timeText(range.from),
          valid_to: endText(range.to),
          currency: range.currency ?? '',
          item_id: range.itemId,
          reason: range.reason,
          excluded_mrr: range.excludedMrr,
          since: timeText(range.since),
          started_at: timeText(range.startedAt),
        })),
      ),
    ],
  )
}

export function periodOf(row: { valid_from: Date; valid_to: Date | number }): {
  from: number
  to: number | null
} {
  return { from: row.valid_from.getTime(), to: instantOf(row.valid_to) }
}
