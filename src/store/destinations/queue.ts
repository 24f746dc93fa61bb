import { idToTime } from '../../domain/ids.ts'
import { type Db, queryPrepared } from '../../postgres/database.ts'

/** A message that is due for one destination. */
export type Due = {
  id: string
  at: Date
  attempts: number
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
  const { rows } = await queryPrepared<Due>(
    db,
    `select due.id, due.at, due.attempts, o.type, o.data
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
  return rows
}

/** The outcome of an attempt. */
export type Attempt = {
  tenantId: number
  destinationId: string
  id: string
  type: string
  attempt: number
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
  const { rows } = await queryPrepared<{ destinationId: string; failingSince: Date | null }>(
    db,
    `with a as materialized (
       select * from json_to_recordset($1) as a ("tenantId" int, "destinationId" text, id uuid, type text, attempt int,
         "attemptedAt" timestamptz, outcome text, status int, error text, response text, "durationMs" int,
         "nextAttemptAt" timestamptz)
     ), logged as (
       insert into delivery_attempts (attempted_at, tenant_id, destination_id, id, type, attempt, outcome, status, error,
         response, duration_ms, next_attempt_at)
       select "attemptedAt", "tenantId", "destinationId", id, type, attempt, outcome, status, error, response, "durationMs",
         "nextAttemptAt" from a
     ), done as (
       -- a message that was queued again meanwhile stays
       delete from delivery_queue q using a
       where q.destination_id = a."destinationId" and q.id = a.id and q.attempts = a.attempt - 1 and a.outcome <> 'retrying'
     ), later as (
       update delivery_queue q set attempts = a.attempt, next_attempt_at = a."nextAttemptAt" from a
       where q.destination_id = a."destinationId" and q.id = a.id and q.attempts = a.attempt - 1 and a.outcome = 'retrying'
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
  return rows
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
