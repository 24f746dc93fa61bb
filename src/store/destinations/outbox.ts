import type { Wanted, What } from '../../domain/destinations/destinations.ts'
import { copyTable, int4, text, timestamp, uuid } from '../../postgres/copy.ts'
import { type Db, queryPrepared } from '../../postgres/database.ts'

/** Something that destinations are told. */
export type Message = {
  tenantId: number
  id: string
  at: Date
  what: What
  /** event.<event type>, conversion.created, order.updated, movement.new, … */
  type: string
  /** What it is about, for whoever erases it: an event, contact/ID, a conversion, an account. */
  object: string
  /** JSON text */
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

/** What waits already stays as it is. */
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

/** Of these ids, those that were told before. */
export async function toldBefore(db: Db, tenantId: number, ids: string[]): Promise<Set<string>> {
  const { rows } = await queryPrepared<{ id: string }>(
    db,
    'select id from outbox where tenant_id = $1 and id = any($2::uuid[])',
    [tenantId, ids],
  )
  return new Set(rows.map(({ id }) => id))
}

const REPLAYED_AT_A_TIME = 5_000

/**
 * Queues what was told since then, delivered or not, a portion at a time: `after` is where the portion before ended. Null:
 * there is no more.
 */
export async function queueAgain(
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

/** What is still to be sent to enabled destinations came up no earlier than this. */
export async function oldestQueued(db: Db): Promise<Date | null> {
  const { rows } = await db.query<{ oldest: Date | null }>(
    `select min(q.at) as oldest from destinations d join delivery_queue q on q.destination_id = d.id where d.enabled`,
  )
  return rows[0]!.oldest
}

/** What waits for a destination that has been disabled for as long is not kept for ever. */
export async function dropQueuedBefore(db: Db, before: Date): Promise<void> {
  await db.query(
    `delete from delivery_queue q using destinations d where d.id = q.destination_id and not d.enabled and q.at < $1`,
    [before],
  )
}
