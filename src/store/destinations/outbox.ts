import type { Movement, MovementType } from '../../domain/billing/movements.ts'
import type { Wanted, What } from '../../domain/destinations/destinations.ts'
import { copyTable, int4, text, timestamp, uuid } from '../../postgres/copy.ts'
import { type Db, queryLong, queryPrepared } from '../../postgres/database.ts'
/** A message to destinations. */
export type Message = {
  tenantId: number
  id: string
  at: Date
  what: What
  /** event.<event type>, conversion.created, order.updated, movement.new, … */
  type: string
  /** The subject, for erasures: an event, contact/ID, a conversion, an account. */
  object: string
  /** JSON */
  data: string
}

export const insertMessages = copyTable<Message>('outbox', {
  at: timestamp(({ at }) => at),
  tenant_id: int4(({ tenantId }) => tenantId),
  id: uuid(({ id }) => id),
  what: text(({ what }) => what),
  type: text(({ type }) => type),
  object: text(({ object }) => object),
  bytes: int4(({ data }) => Buffer.byteLength(data)),
  data: text(({ data }) => data),
})

type Queued = { destinationId: string; tenantId: number; id: string; at: Date }

/** A message that is already queued stays unchanged. */
export async function insertQueued(db: Db, queued: Queued[]): Promise<void> {
  await queryPrepared(
    db,
    `insert into delivery_queue (destination_id, id, at, tenant_id, next_attempt_at)
     select destination_id, id, at, tenant_id, at
     from unnest($1::text[], $2::uuid[], $3::timestamptz[], $4::int[]) as q (destination_id, id, at, tenant_id)
     on conflict do nothing`,
    [
      queued.map(({ destinationId }) => destinationId),
      queued.map(({ id }) => id),
      queued.map(({ at }) => at),
      queued.map(({ tenantId }) => tenantId),
    ],
  )
}

/** Returns the ids whose messages are in the outbox already. */
export async function findSentMessages(db: Db, tenantId: number, ids: string[]): Promise<Set<string>> {
  const { rows } = await queryPrepared<{ id: string }>(
    db,
    'select id from outbox where tenant_id = $1 and id = any($2::uuid[])',
    [tenantId, ids],
  )
  return new Set(rows.map(({ id }) => id))
}

const REPLAYED_AT_A_TIME = 5_000

/**
 * Queues all messages since then again, delivered or not, one batch at a time. `after` is the end of the previous batch.
 * Null: there are no more.
 */
export async function requeueMessages(
  db: Db,
  destination: Wanted & { id: string; tenantId: number },
  { since, after }: { since: Date; after: { at: string; id: string } | null },
): Promise<{ queued: number; last: { at: string; id: string } } | null> {
  const { id, tenantId, what, eventTypes } = destination
  const names = eventTypes.filter(type => !type.endsWith('*')).map(type => `event.${type}`)
  const prefixes = eventTypes.filter(type => type.endsWith('*')).map(type => `event.${type.slice(0, -1)}`)
  const { rows } = await db.query<{ queued: number; at: string; id: string }>(
    `with read as materialized (
       select at, id, what, type from outbox
       where tenant_id = $2 and at >= $3 and ($4::timestamptz is null or (at, id) > ($4, $5::uuid))
       order by at, id limit ${REPLAYED_AT_A_TIME}
     ), queued as (
       insert into delivery_queue (destination_id, id, at, tenant_id, next_attempt_at)
       select $1, id, at, $2, now() from read
       where what = any($6) and (what <> 'events' or $7 or type = any($8)
         or exists (select from unnest($9::text[]) p where starts_with(type, p)))
       on conflict (destination_id, id) do update set attempts = 0, next_attempt_at = now()
       returning 1
     )
     select (select count(*) from queued) as queued, at::text, id from read order by read.at desc, read.id desc limit 1`,
    [
      ...[id, tenantId, since, after?.at ?? null, after?.id ?? null],
      ...[what, eventTypes.length === 0, names, prefixes],
    ],
  )
  const [last] = rows
  return last ? { queued: last.queued, last: { at: last.at, id: last.id } } : null
}

/** The oldest message that enabled destinations have not received yet. */
export async function oldestQueued(db: Db): Promise<Date | null> {
  const { rows } = await db.query<{ oldest: Date | null }>(
    `select min(q.at) as oldest from destinations d join delivery_queue q on q.destination_id = d.id where d.enabled`,
  )
  return rows[0]!.oldest
}

/** Deletes old messages of disabled destinations, which are not kept forever. */
export async function dropQueuedBefore(db: Db, before: Date): Promise<void> {
  await db.query(
    `delete from delivery_queue q using destinations d where d.id = q.destination_id and not d.enabled and q.at < $1`,
    [before],
  )
}

/** Erases personal data in the outbox. A message that is deleted here is not sent, even if it is queued. */

/** Deletes messages about these events and the stored responses of receivers. */
export async function deleteEventMessages(db: Db, tenantId: number, eventIds: string[]): Promise<void> {
  const { rowCount } = await db.query('delete from outbox where tenant_id = $1 and id = any($2::uuid[])', [
    tenantId,
    eventIds,
  ])
  if (rowCount === 0) return
  await queryLong(
    db,
    'update delivery_attempts set response = null where tenant_id = $1 and id = any($2::uuid[]) and response is not null',
    [tenantId, eventIds],
  )
}

/** Deletes messages about records, which have subjects like contact/ID. */
export async function deleteRecordMessages(db: Db, tenantId: number, objects: string[]): Promise<void> {
  if (objects.length === 0) return
  await queryLong(db, `delete from outbox where tenant_id = $1 and what = 'records' and object = any($2)`, [
    tenantId,
    objects,
  ])
}

/** Anonymizes a sale in messages and in the archive. */
export const ANONYMOUS_SALE = `{"visitor": null, "profile_id": null, "contact_id": null, "contact_name": null, "contact_email": null,
  "company_name": null}`

/** Sales are still sent, but anonymized. */
export async function anonymizeSaleMessages(db: Db, tenantId: number, saleKeys: string[]): Promise<void> {
  await queryLong(
    db,
    `update outbox set data = (data::jsonb || '${ANONYMOUS_SALE}')::text
     where tenant_id = $1 and what = 'conversions' and object = any(array(
       select id::text from conversions where tenant_id = $1 and sale_key = any($2)))`,
    [tenantId, saleKeys],
  )
}

/** Movements of accounts are still sent, anonymized. Those of an account that is identified by an e-mail address are deleted. */
export async function anonymizeMovementMessages(
  db: Db,
  tenantId: number,
  { accounts, emails }: { accounts: string[]; emails: string[] },
): Promise<void> {
  if (accounts.length === 0) return
  await queryLong(
    db,
    `delete from outbox where tenant_id = $1 and what = 'movements' and object = any($2) and lower(object) = any($3)`,
    [tenantId, accounts, emails],
  )
  await queryLong(
    db,
    `update outbox set data = (data::jsonb || '{"customer_name": null}')::text
     where tenant_id = $1 and what = 'movements' and object = any($2)`,
    [tenantId, accounts],
  )
}

// A transaction that wrote a future movement may commit after its time, so recent times are searched again for a while.
const OVERLAP_S = 600

/** Returns the time from which due movements are searched and moves it to now. Null: another node is doing it. */
export async function lockMovementClock(db: Db, now: Date): Promise<Date | null> {
  const { rows } = await db.query<{ since: Date }>(
    `select until - ${OVERLAP_S} * interval '1 second' as since from movement_notifications for update skip locked`,
  )
  const [clock] = rows
  if (clock) await db.query('update movement_notifications set until = $1', [now])
  return clock?.since ?? null
}

type DueMovement = { tenantId: number; id: string; currency: string; movement: Movement }
type Row = Omit<DueMovement, 'movement'> & {
  at: Date
  type: MovementType
  before: number
  after: number
  changes: string
}

/** Movements of these tenants in (since, until]. */
export async function movementsBetween(
  db: Db,
  tenantIds: number[],
  { since, until }: { since: Date; until: Date },
): Promise<DueMovement[]> {
  const { rows } = await queryPrepared<Row>(
    db,
    `select tenant_id as "tenantId", account as id, currency, occurred_at as at, type, mrr_before as before, mrr_after as after,
       changes
     from billing_movements where tenant_id = any($1) and occurred_at > $2 and occurred_at <= $3`,
    [tenantIds, since, until],
  )
  return rows.map(({ tenantId, id, currency, at, changes, ...movement }) => ({
    ...{ tenantId, id, currency },
    movement: { ...movement, at: at.getTime(), changes: JSON.parse(changes) },
  }))
}
