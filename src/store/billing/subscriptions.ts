import type { ItemRange } from '../../domain/billing/item-states.ts'
import type { Segment } from '../../domain/billing/timeline.ts'
import { type Db, queryPrepared } from '../../postgres/database.ts'
import { type DerivedTable, type OwnerSince, replaceRowsSince, replacing } from './derived.ts'
import { endText, keyColumns, type ObjectKey, timeText } from './keys.ts'
import { ensureRows, lockRows } from './locking.ts'

/**
 * Makes the rows that are missing, and locks those of `seen` in order: whoever derives a subscription sees all that
 * others learnt about it before. `named`: subscriptions that only an invoice speaks of so far.
 */
export async function lockSubscriptions(db: Db, seen: ObjectKey[], named: ObjectKey[]): Promise<void> {
  await ensureRows(db, 'billing_subscriptions', [...seen, ...named])
  if (seen.length > 0) await lockRows(db, 'billing_subscriptions', seen)
}

export type StoredSegment = ObjectKey & { from: number; account: string; hash: string }

/** Those that begin at `since` or later. */
export async function loadSegments(db: Db, keys: OwnerSince[]): Promise<StoredSegment[]> {
  const { rows } = await queryPrepared<Omit<StoredSegment, 'from'> & { from: Date }>(
    db,
    `select k.tenant_id as "tenantId", k.id, s.*
     from unnest($1::int[], $2::text[], $3::timestamptz[]) as k (tenant_id, id, since)
     cross join lateral (
       select valid_from as "from", account, replace(hash::text, '-', '') as hash from billing_segments
       where tenant_id = k.tenant_id and subscription_id = k.id and valid_from >= k.since offset 0) s`,
    [...keyColumns(keys), keys.map(({ since }) => (since === null ? '-infinity' : timeText(since)))],
  )
  return rows.map(row => ({ ...row, from: row.from.getTime() }))
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
      [...keyColumns(gone), gone.map(segment => timeText(segment.from))],
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
    // whoever looks for a status does not look for test data
    status: segment.testMode ? 'test_mode' : segment.status,
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
    cautions: segment.cautions ?? null,
    cause: segment.cause ?? null,
    event_id: segment.eventId ?? null,
  }
}

const ITEMS: DerivedTable = {
  name: 'billing_items',
  owner: 'subscription_id',
  key: ['place', 'valid_from'],
  until: 'valid_to',
  values: ['valid_to', 'currency', 'item_id', 'reason', 'excluded_mrr', 'since', 'started_at'],
}
const REPLACE_ITEMS = replacing(ITEMS)

export async function replaceItems(
  db: Db,
  subscriptions: OwnerSince[],
  ranges: (ObjectKey & ItemRange)[],
): Promise<void> {
  const rows = ranges.map(range => ({
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
  }))
  await replaceRowsSince(db, REPLACE_ITEMS, subscriptions, rows)
}

/** By place, since when an item is what it is at `since`. */
export async function itemStarts(
  db: Db,
  subscriptions: (ObjectKey & { since: number })[],
): Promise<(ObjectKey & { place: number; from: Date })[]> {
  const { rows } = await queryPrepared<ObjectKey & { place: number; from: Date }>(
    db,
    `select k.tenant_id as "tenantId", k.id, i.place, i.valid_from as "from"
     from unnest($1::int[], $2::text[], $3::timestamptz[]) as k (tenant_id, id, since)
     cross join lateral (
       select place, valid_from from billing_items
       where tenant_id = k.tenant_id and subscription_id = k.id and valid_from <= k.since and valid_to > k.since
       offset 0) i`,
    [...keyColumns(subscriptions), subscriptions.map(({ since }) => timeText(since))],
  )
  return rows
}

/** Segments of these subscriptions that hold at `from` or later, in their order. */
export async function segmentsFrom(
  db: Db,
  keys: ObjectKey[],
  from: number,
): Promise<(ObjectKey & { segment: Segment })[]> {
  const { rows } = await queryPrepared<ObjectKey & { body: string }>(
    db,
    `select k.tenant_id as "tenantId", k.id, s.body from unnest($1::int[], $2::text[]) as k (tenant_id, id)
     cross join lateral (
       select valid_from, body from billing_segments
       where tenant_id = k.tenant_id and subscription_id = k.id and valid_to > $3 offset 0) s
     order by s.valid_from`,
    [...keyColumns(keys), timeText(from)],
  )
  return rows.map(({ body, ...key }) => ({ ...key, segment: JSON.parse(body) }))
}
