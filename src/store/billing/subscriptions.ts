import type { AgendaEntry } from '../../domain/billing/attention.ts'
import type { Checkpoint, ItemRange, Segment } from '../../domain/billing/timeline.ts'
import { type Db, queryPrepared, queryRows } from '../../postgres/database.ts'
import {
  type DerivedTable,
  endText,
  ensureRows,
  keyColumns,
  lockRows,
  type ObjectKey,
  type OwnerSince,
  replaceRows,
  replaceRowsSince,
  replacing,
  timeText,
  utcDay,
} from './rows.ts'

/**
 * Creates missing rows and locks those of `seen` in order, so that a derivation sees all that earlier transactions wrote.
 * `named`: subscriptions that are known only from an invoice.
 */
export async function lockSubscriptions(db: Db, seen: ObjectKey[], named: ObjectKey[]): Promise<void> {
  await ensureRows(db, 'billing_subscriptions', [...seen, ...named])
  if (seen.length > 0) await lockRows(db, 'billing_subscriptions', seen)
}

type StoredSegment = ObjectKey & { from: number; account: string; hash: string }

/** Segments that start at `since` or later. */
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

/** The segments that start at these times. */
export async function loadBodies(
  db: Db,
  keys: (ObjectKey & { from: number })[],
): Promise<(ObjectKey & { segment: Segment })[]> {
  const rows = await queryRows<ObjectKey & { body: string }>(
    db,
    `select k.tenant_id as "tenantId", k.id, s.body
     from unnest($1::int[], $2::text[], $3::timestamptz[]) as k (tenant_id, id, valid_from)
     join billing_segments s on s.tenant_id = k.tenant_id and s.subscription_id = k.id and s.valid_from = k.valid_from`,
    [...keyColumns(keys), keys.map(({ from }) => timeText(from))],
  )
  return rows.map(({ body, ...key }) => ({ ...key, segment: JSON.parse(body) }))
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
    // queries by status must not find test data
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

/** By place, the start of the item range that is valid at `since`. */
export async function itemStarts(
  db: Db,
  subscriptions: (ObjectKey & { since: number })[],
): Promise<(ObjectKey & { place: number; from: Date })[]> {
  return queryRows<ObjectKey & { place: number; from: Date }>(
    db,
    `select k.tenant_id as "tenantId", k.id, i.place, i.valid_from as "from"
     from unnest($1::int[], $2::text[], $3::timestamptz[]) as k (tenant_id, id, since)
     cross join lateral (
       select place, valid_from from billing_items
       where tenant_id = k.tenant_id and subscription_id = k.id and valid_from <= k.since and valid_to > k.since
       offset 0) i`,
    [...keyColumns(subscriptions), subscriptions.map(({ since }) => timeText(since))],
  )
}

/** Segments of these subscriptions that are valid at `from` or later, in order. */
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

/** `customers`: by source, the customers of all versions before the checkpoint. */
export type StoredCheckpoint = Checkpoint & { customers: Record<string, string[]>; isConflicting: boolean }

type StoredContinuation = ObjectKey & { checkpoint: StoredCheckpoint; before: Segment }

/** Checkpoints of these subscriptions, each with the last segment before it. */
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
    [...keyColumns(rows), rows.map(({ checkpoint }) => (checkpoint === null ? null : JSON.stringify(checkpoint)))],
  )
}

/** Subscriptions whose agenda ends before `until`, the earliest end first. */
export async function shortAgendas(db: Db, until: number, limit: number): Promise<ObjectKey[]> {
  return queryRows<ObjectKey>(
    db,
    `select tenant_id as "tenantId", id from billing_subscriptions where agenda_until < $1
     order by agenda_until limit $2`,
    [timeText(until), limit],
  )
}

/** Marks these subscriptions as seen, and records the end of their agenda; null: nothing recurs. */
export async function noteAgendaUntil(
  db: Db,
  subscriptions: (ObjectKey & { agendaUntil: number | null })[],
): Promise<void> {
  await queryPrepared(
    db,
    `update billing_subscriptions s set seen = true, agenda_until = k.agenda_until
     from unnest($1::int[], $2::text[], $3::timestamptz[]) as k (tenant_id, id, agenda_until)
     where s.tenant_id = k.tenant_id and s.id = k.id
       and (not s.seen or s.agenda_until is distinct from k.agenda_until)`,
    [
      ...keyColumns(subscriptions),
      subscriptions.map(({ agendaUntil }) => (agendaUntil === null ? null : timeText(agendaUntil))),
    ],
  )
}

/** Entries that are valid for every report as of now or later; reports count the others row by row. */
export const AGENDA_EFFECTS = `
insert into billing_agenda_days (tenant_id, day, currency, kind, entries)
select tenant_id, ${utcDay('due_at')}, currency, kind, sum(sign)
from (select 1 as sign, * from new union all select -1, * from old) entries
where known_from = '-infinity' and known_to >= due_at
group by 1, 2, 3, 4`

const AGENDA: DerivedTable = {
  name: 'billing_agenda',
  owner: 'subscription_id',
  key: ['kind', 'due_at', 'known_from'],
  values: ['currency', 'known_to', 'body'],
  compared: row => `(${row}.currency, ${row}.known_to, ${row}.body::text)`,
}
const REPLACE_AGENDA = replacing(AGENDA, AGENDA_EFFECTS)

/** Also updates the daily sums. */
export async function replaceAgenda(
  db: Db,
  subscriptions: ObjectKey[],
  entries: (ObjectKey & { entry: AgendaEntry })[],
): Promise<void> {
  const rows = entries.map(({ tenantId, id, entry }) => ({
    tenant_id: tenantId,
    currency: entry.currency,
    kind: entry.kind,
    due_at: timeText(entry.dueAt),
    subscription_id: id,
    known_from: entry.knownFrom === null ? '-infinity' : timeText(entry.knownFrom),
    known_to: timeText(entry.knownTo),
    body: entry.body,
  }))
  await replaceRows(db, REPLACE_AGENDA, subscriptions, rows)
}
