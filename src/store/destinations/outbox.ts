import type { Rule } from '../../domain/alerts/rules.ts'
import type { Movement, MovementType } from '../../domain/billing/account.ts'
import type { Wanted, What } from '../../domain/destinations/destinations.ts'
import { idToTime } from '../../domain/ids.ts'
import { copyTable, int4, text, timestamp, uuid } from '../../postgres/copy.ts'
import { type Db, queryLong, queryPrepared, queryRows } from '../../postgres/database.ts'
/** A message to destinations. */
export type Message = {
  tenantId: number
  id: string
  at: Date
  what: What
  /** event.<event type>, conversion.created, order.updated, movement.new, … */
  type: string
  /** Of an alert. */
  rule?: Rule
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
  const { id, tenantId, what, eventTypes, alertRules } = destination
  const names = eventTypes.filter(type => !type.endsWith('*')).map(type => `event.${type}`)
  const prefixes = eventTypes.filter(type => type.endsWith('*')).map(type => `event.${type.slice(0, -1)}`)
  const { rows } = await db.query<{ queued: number; at: string; id: string }>(
    `with read as materialized (
       select at, id, what, type, case when what = 'alerts' then data::jsonb ->> 'rule' end as rule from outbox
       where tenant_id = $2 and at >= $3 and ($4::timestamptz is null or (at, id) > ($4, $5::uuid))
       order by at, id limit ${REPLAYED_AT_A_TIME}
     ), queued as (
       insert into delivery_queue (destination_id, id, at, tenant_id, next_attempt_at)
       select $1, id, at, $2, now() from read
       where what = any($6) and (what <> 'events' or $7 or type = any($8)
         or exists (select from unnest($9::text[]) p where starts_with(type, p)))
         and (what <> 'alerts' or cardinality($10::text[]) = 0 or rule = any($10))
       on conflict (destination_id, id) do update set attempts = 0, next_attempt_at = now()
       returning 1
     )
     select (select count(*) from queued) as queued, at::text, id from read order by read.at desc, read.id desc limit 1`,
    [
      ...[id, tenantId, since, after?.at ?? null, after?.id ?? null],
      ...[what, eventTypes.length === 0, names, prefixes, alertRules],
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

/** Deletes messages about these events and the stored responses of receivers. A deleted message is not sent, even if it is queued. */
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
  await queryLong(
    db,
    `with deleted as (
       delete from outbox where tenant_id = $1 and what = 'records' and object = any($2) returning id)
     ${WITHOUT_RESPONSES} (select id from deleted)`,
    [tenantId, objects],
  )
}

/** A receiver may repeat in its response what it received. */
const WITHOUT_RESPONSES = `update delivery_attempts set response = null
  where tenant_id = $1 and response is not null and id in`

/** Anonymizes a sale in messages and in the archive. */
export const ANONYMOUS_SALE = `{"visitor": null, "profile_id": null, "contact_id": null, "contact_name": null, "contact_email": null,
  "company_name": null}`

/** Sales are still sent, but anonymized. */
export async function anonymizeSaleMessages(db: Db, tenantId: number, saleKeys: string[]): Promise<void> {
  await queryLong(
    db,
    `with sent as (
       update outbox set data = (data::jsonb || '${ANONYMOUS_SALE}')::text
       where tenant_id = $1 and what = 'conversions' and object = any(array(
         select id::text from conversions where tenant_id = $1 and sale_key = any($2)))
       returning id)
     ${WITHOUT_RESPONSES} (select id from sent)`,
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
    `with deleted as (
       delete from outbox where tenant_id = $1 and what = 'movements' and object = any($2) and lower(object) = any($3)
       returning id)
     ${WITHOUT_RESPONSES} (select id from deleted)`,
    [tenantId, accounts, emails],
  )
  await queryLong(
    db,
    `with sent as (
       update outbox set data = (data::jsonb || '{"customer_name": null}')::text
       where tenant_id = $1 and what = 'movements' and object = any($2) returning id)
     ${WITHOUT_RESPONSES} (select id from sent)`,
    [tenantId, accounts],
  )
}

/** A digest lists accounts of many people, so it is deleted as a whole. The next one is built from the remaining data. */
export async function deleteDigestMessages(db: Db, tenantId: number): Promise<void> {
  await queryLong(db, `delete from outbox where tenant_id = $1 and what = 'digests'`, [tenantId])
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

/** A message that is due for one destination. */
export type Due = {
  id: string
  at: Date
  attempts: number
  /** When it became due, with microseconds. A replay changes it. */
  dueAt: string
  /** Both are null if the message was deleted: nothing is sent. */
  type: string | null
  data: string | null
}

const LEASE_S = 15

/** Enabled destinations with due messages that no other node is sending to. */
export async function destinationsDue(db: Db, owner: string): Promise<string[]> {
  const { rows } = await queryPrepared<{ id: string }>(
    db,
    `select d.id from destinations d join destination_states s on s.destination_id = d.id
     where d.enabled and d.deleted_at is null and (s.owner = $1 or s.leased_until < now())
       and exists (select from delivery_queue q where q.destination_id = d.id and q.next_attempt_at <= now())`,
    [owner],
  )
  return rows.map(({ id }) => id)
}

/** Takes or renews the lease of a destination. False: another node has it. */
export async function leaseDestination(db: Db, id: string, owner: string): Promise<boolean> {
  const { rowCount } = await queryPrepared(
    db,
    `update destination_states set owner = $2, leased_until = now() + ${LEASE_S} * interval '1 second'
     where destination_id = $1 and (owner = $2 or leased_until < now())`,
    [id, owner],
  )
  return rowCount === 1
}

export async function releaseDestination(db: Db, id: string, owner: string): Promise<void> {
  await queryPrepared(
    db,
    `update destination_states set leased_until = '-infinity' where destination_id = $1 and owner = $2`,
    [id, owner],
  )
}

/** Due messages, oldest first, without those in memory already. Limited by size too, but always at least one. */
export async function readDue(
  db: Db,
  destinationId: string,
  { limit, maxBytes, held }: { limit: number; maxBytes: number; held: string[] },
): Promise<Due[]> {
  return queryRows<Due>(
    db,
    `select due.id, due.at, due.attempts, due.next_attempt_at::text as "dueAt", o.type, o.data
     from (
       select q.*, sum(coalesce(o.bytes, 0)) over (order by q.next_attempt_at, q.id rows unbounded preceding)
         - coalesce(o.bytes, 0) as bytes_before
       from (
         select * from delivery_queue
         where destination_id = $1 and next_attempt_at <= now() and not (id = any($4::uuid[]))
         order by next_attempt_at, id limit $2
       ) q
       left join outbox o on o.tenant_id = q.tenant_id and o.id = q.id and o.at = q.at
     ) due
     left join outbox o on o.tenant_id = due.tenant_id and o.id = due.id and o.at = due.at
     where due.bytes_before < $3
     order by due.next_attempt_at, due.id`,
    [destinationId, limit, maxBytes, held],
  )
}

/** The outcome of an attempt. */
export type Attempt = {
  tenantId: number
  destinationId: string
  id: string
  type: string
  attempt: number
  /** Of the message: see Due. */
  dueAt: string
  attemptedAt: Date
  outcome: 'delivered' | 'retrying' | 'failed'
  status: number | null
  error: string | null
  response: string | null
  durationMs: number
  nextAttemptAt: Date | null
}

/** The state of a destination after a list of attempts. */
export type Health = {
  destinationId: string
  lastAttemptAt: Date
  lastSuccessAt: Date | null
  /** The first failure after the last success. */
  failingSince: Date | null
  lastStatus: number | null
  lastError: string | null
}

/** Records attempts and removes finished messages from the queue. Returns since when destinations have been failing. */
export async function saveAttempts(
  db: Db,
  attempts: Attempt[],
  healths: Health[],
): Promise<{ destinationId: string; failingSince: Date | null }[]> {
  return queryRows<{ destinationId: string; failingSince: Date | null }>(
    db,
    `with a as materialized (
       select * from json_to_recordset($1) as a ("tenantId" int, "destinationId" text, id uuid, type text, attempt int,
         "dueAt" timestamptz, "attemptedAt" timestamptz, outcome text, status int, error text, response text, "durationMs" int,
         "nextAttemptAt" timestamptz)
     ), logged as (
       insert into delivery_attempts (attempted_at, tenant_id, destination_id, id, type, attempt, outcome, status, error,
         response, duration_ms, next_attempt_at)
       select "attemptedAt", "tenantId", "destinationId", id, type, attempt, outcome, status, error, response, "durationMs",
         "nextAttemptAt" from a
     ), done as (
       -- a message that was queued again meanwhile stays
       delete from delivery_queue q using a
       where q.destination_id = a."destinationId" and q.id = a.id and q.next_attempt_at = a."dueAt" and a.outcome <> 'retrying'
     ), later as (
       update delivery_queue q set attempts = a.attempt, next_attempt_at = a."nextAttemptAt" from a
       where q.destination_id = a."destinationId" and q.id = a.id and q.next_attempt_at = a."dueAt" and a.outcome = 'retrying'
     )
     update destination_states s set last_attempt_at = h."lastAttemptAt",
       last_success_at = coalesce(h."lastSuccessAt", s.last_success_at),
       failing_since = case when h."lastSuccessAt" is null then coalesce(s.failing_since, h."failingSince")
         else h."failingSince" end,
       last_status = h."lastStatus", last_error = h."lastError"
     from json_to_recordset($2) as h ("destinationId" text, "lastAttemptAt" timestamptz, "lastSuccessAt" timestamptz,
       "failingSince" timestamptz, "lastStatus" int, "lastError" text)
     where s.destination_id = h."destinationId"
     returning s.destination_id as "destinationId", s.failing_since as "failingSince"`,
    [JSON.stringify(attempts), JSON.stringify(healths)],
  )
}

/** Makes all waiting messages of a destination due. Returns how many waited for a retry. */
export async function retryQueued(db: Db, destinationId: string): Promise<number> {
  const { rowCount } = await queryPrepared(
    db,
    'update delivery_queue set next_attempt_at = now() where destination_id = $1 and next_attempt_at > now()',
    [destinationId],
  )
  return rowCount ?? 0
}

type StoredMessage = Pick<Message, 'id' | 'at' | 'type' | 'data'>

/** A message as stored; null: it has expired, or was deleted with a person. */
export async function findMessage(db: Db, tenantId: number, id: string): Promise<StoredMessage | null> {
  const [found] = await queryRows<StoredMessage>(
    db,
    'select id, at, type, data from outbox where tenant_id = $1 and id = $2::uuid limit 1',
    [tenantId, id],
  )
  return found ?? null
}

/** Removes messages from the queue that were deleted from the outbox. */
export async function removeQueued(db: Db, destinationId: string, ids: string[]): Promise<void> {
  await queryPrepared(db, 'delete from delivery_queue where destination_id = $1 and id = any($2::uuid[])', [
    destinationId,
    ids,
  ])
}

export type AttemptPage = {
  limit: number
  outcome: Attempt['outcome'] | null
  /** Filters by message id. */
  message?: string | null
  before: { attemptedAt: Date; id: string } | null
}

/** Newest first. */
export async function listAttempts(
  db: Db,
  tenantId: number,
  destinationId: string,
  { limit, outcome, message = null, before }: AttemptPage,
): Promise<Attempt[]> {
  const { rows } = await db.query<Attempt>(
    `select tenant_id as "tenantId", destination_id as "destinationId", id, type, attempt, attempted_at as "attemptedAt",
       outcome, status, error, response, duration_ms as "durationMs", next_attempt_at as "nextAttemptAt"
     from delivery_attempts
     where tenant_id = $1 and destination_id = $2 and ($3::text is null or outcome = $3)
       and ($4::timestamptz is null or (attempted_at, id) < ($4, $5::uuid))
       and ($7::uuid is null or (id = $7 and attempted_at >= $8))
     order by attempted_at desc, id desc limit $6`,
    [
      ...[tenantId, destinationId, outcome, before?.attemptedAt ?? null, before?.id ?? null, limit],
      // Nothing is sent before it exists, so older parts of the index are not read.
      ...[message, message && idToTime(message)],
    ],
  )
  return rows
}
