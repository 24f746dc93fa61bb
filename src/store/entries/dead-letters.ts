import { type DeadLetterReason, type Entry, type EntryKind, failureCause } from '../../domain/entries/entry.ts'
import { lastItemId } from '../../domain/ids.ts'
import type { Db } from '../../postgres/database.ts'
import { ENTRY_COLUMNS } from '../../postgres/entries.ts'

export type NewDeadLetter = {
  /** The id of the event or operation, so that another failure after a replay updates the same row. */
  id: string
  entry: Entry
  sourceId: string | null
  inboundEventId: string | null
  reason: DeadLetterReason
  error: string
  attempts: number
}

export type DeadLetter = {
  id: string
  tenantId: number
  kind: EntryKind
  sourceId: string | null
  inboundEventId: string | null
  reason: DeadLetterReason
  error: string
  attempts: number
  receivedAt: Date
  failedAt: Date
  /** When it was replayed or resolved. */
  replayedAt: Date | null
  /** The entry id of the replay. Null if it was resolved without one. */
  replayedAs: string | null
}

export async function insertDeadLetters(db: Db, letters: NewDeadLetter[]): Promise<void> {
  await db.query(
    `insert into dead_letters
       (tenant_id, id, kind, ordering_key, source_id, inbound_event_id, reason, error, cause, attempts, received_at, context, body)
     select * from json_to_recordset($1) as r (
       tenant_id int, id uuid, kind text, ordering_key text, source_id text, inbound_event_id text, reason text,
       error text, cause text, attempts int, received_at timestamptz, context text, body text)
     on conflict (tenant_id, id) do update set
       error = excluded.error, cause = excluded.cause, attempts = dead_letters.attempts + excluded.attempts, failed_at = now(),
       replayed_at = null, replayed_as = null`,
    [
      JSON.stringify(
        letters.map(({ entry, ...letter }) => ({
          tenant_id: entry.tenantId,
          id: letter.id,
          kind: entry.kind,
          ordering_key: entry.orderingKey,
          source_id: letter.sourceId,
          inbound_event_id: letter.inboundEventId,
          reason: letter.reason,
          error: letter.error,
          cause: failureCause(letter.error),
          attempts: letter.attempts,
          received_at: entry.receivedAt,
          context: entry.context,
          body: entry.body,
        })),
      ),
    ],
  )
}

export type DeadLetterFilter = {
  tenantId: number | null
  id?: string | undefined
  sourceId?: string | undefined
  reason?: string | undefined
  /** The cause of a group: see `failureCause`. */
  cause?: string | undefined
  /** Only failures before this time. */
  failedBefore?: Date | undefined
}

export const DEAD_LETTER_COLUMNS = `d.id, d.tenant_id as "tenantId", d.kind, d.source_id as "sourceId", d.inbound_event_id as "inboundEventId",
  d.reason, d.error, d.attempts, d.received_at as "receivedAt", d.failed_at as "failedAt", d.replayed_at as "replayedAt",
  d.replayed_as as "replayedAs"`

type ListedLetters = DeadLetterFilter & {
  /** List replayed and resolved letters instead of open ones. */
  isClosed?: boolean | undefined
  limit: number
  before?: { failedAt: Date; id: string } | undefined
}

/** Lists open letters, or replayed and resolved ones, newest first. The index is read tenant by tenant. */
export async function listDeadLetters(db: Db, filter: ListedLetters): Promise<DeadLetter[]> {
  const { rows } = await db.query<DeadLetter>(
    `select ${DEAD_LETTER_COLUMNS} from tenants t cross join lateral (
       select * from dead_letters d
       where d.tenant_id = t.id and ($2::text is null or d.source_id = $2) and ($3::text is null or d.reason = $3)
         and ($7::text is null or coalesce(d.cause, d.error) = $7) and (d.replayed_at is not null) = $8 and ($4::timestamptz is null or (d.failed_at, d.id) < ($4, $5::uuid))
       order by d.failed_at desc, d.id desc limit $6
     ) d
     where $1::int is null or t.id = $1
     order by d.failed_at desc, d.id desc limit $6`,
    [
      filter.tenantId,
      filter.sourceId ?? null,
      filter.reason ?? null,
      filter.before?.failedAt ?? null,
      filter.before?.id ?? null,
      filter.limit,
      filter.cause ?? null,
      filter.isClosed ?? false,
    ],
  )
  return rows
}

/** Finds a letter with its body and context, whether replayed or not. */
export async function findDeadLetter(
  db: Db,
  tenantId: number | null,
  id: string,
): Promise<(DeadLetter & { body: string; context: string }) | null> {
  const { rows } = await db.query<DeadLetter & { body: string; context: string }>(
    `select ${DEAD_LETTER_COLUMNS}, d.body, d.context from tenants t join dead_letters d on d.tenant_id = t.id and d.id = $2
     where $1::int is null or t.id = $1`,
    [tenantId, id],
  )
  return rows[0] ?? null
}

export async function countDeadLetters(db: Db, filter: DeadLetterFilter = { tenantId: null }): Promise<number> {
  const { rows } = await db.query<{ count: number }>(
    `select count(*) from dead_letters where ${CHOSEN}`,
    chosenValues(filter),
  )
  return rows[0]!.count
}

const CHOSEN = `($1::int is null or tenant_id = $1) and ($2::uuid is null or id = $2)
  and ($3::text is null or source_id = $3) and ($4::text is null or reason = $4)
  and ($5::timestamptz is null or failed_at < $5) and ($6::text is null or coalesce(cause, error) = $6) and replayed_at is null`

function chosenValues(filter: DeadLetterFilter): unknown[] {
  return [
    filter.tenantId,
    filter.id ?? null,
    filter.sourceId ?? null,
    filter.reason ?? null,
    filter.failedBefore ?? null,
    filter.cause ?? null,
  ]
}

/**
 * Marks letters as replayed and returns them to be appended again, oldest first, in the caller's transaction. A letter is
 * returned once, however many users replay it at the same time. Returns at least one, then up to `maxBytes`.
 */
export async function takeForReplay(
  db: Db,
  filter: DeadLetterFilter & { limit: number; maxBytes: number },
): Promise<Entry[]> {
  const { rows } = await db.query<Entry>(
    `update dead_letters d set replayed_at = now()
     from (
       select d.tenant_id as chosen_tenant, d.id as chosen_id from (
         select tenant_id, id, sum(bytes) over (order by received_at, id) - bytes as bytes_before from (
           select tenant_id, id, received_at, pg_column_size(body) as bytes from dead_letters
           where ${CHOSEN} order by received_at, id limit $7
         ) oldest
       ) sized join dead_letters d on d.tenant_id = sized.tenant_id and d.id = sized.id
       where sized.bytes_before < $8 and d.replayed_at is null
       for update of d skip locked
     ) chosen
     where d.tenant_id = chosen_tenant and d.id = chosen_id
     returning ${ENTRY_COLUMNS}`,
    [...chosenValues(filter), filter.limit, filter.maxBytes],
  )
  return rows.sort((a, b) => a.receivedAt.getTime() - b.receivedAt.getTime() || (a.id < b.id ? -1 : 1))
}

/** Stores the entry id of each replay. */
export async function markReplayed(db: Db, replays: { tenantId: number; id: string; as: string }[]): Promise<void> {
  await db.query(
    `update dead_letters d set replayed_as = r.replayed_as
     from unnest($1::int[], $2::uuid[], $3::uuid[]) as r (tenant_id, id, replayed_as)
     where d.tenant_id = r.tenant_id and d.id = r.id`,
    [replays.map(r => r.tenantId), replays.map(r => r.id), replays.map(r => r.as)],
  )
}

/** How many replayed entries failed again, and how many wait for a retry. */
export async function replayedOutcomes(
  db: Db,
  replays: { tenantId: number; as: string }[],
): Promise<{ failed: number; parked: number }> {
  const { rows } = await db.query<{ failed: number; parked: number }>(
    `select count(*) filter (where exists (
         select from dead_letters d where d.tenant_id = r.tenant_id and d.id between r.first and r.last and d.replayed_at is null
       )) as failed,
       count(*) filter (where exists (select from parked_entries p where p.tenant_id = r.tenant_id and p.id = r.first)) as parked
     from unnest($1::int[], $2::uuid[], $3::uuid[]) as r (tenant_id, first, last)`,
    [replays.map(r => r.tenantId), replays.map(r => r.as), replays.map(r => lastItemId(r.as))],
  )
  return rows[0]!
}

/** Closes letters without a replay. Returns their number. */
export async function resolveDeadLetters(db: Db, filter: DeadLetterFilter, limit: number): Promise<number> {
  const { rowCount } = await db.query(
    `update dead_letters d set replayed_at = now() from (
       select tenant_id as chosen_tenant, id as chosen_id from dead_letters
       where ${CHOSEN} order by received_at, id limit $7 for update skip locked
     ) chosen where d.tenant_id = chosen_tenant and d.id = chosen_id`,
    [...chosenValues(filter), limit],
  )
  return rowCount ?? 0
}

/** Deletes the oldest letters that failed before a time, replayed or not. Returns their number. */
export async function deleteDeadLettersBefore(db: Db, moment: Date, limit: number): Promise<number> {
  const { rowCount } = await db.query(
    `delete from dead_letters d using (
       select tenant_id, id from dead_letters where failed_at < $1 order by failed_at limit $2
     ) expired where d.tenant_id = expired.tenant_id and d.id = expired.id`,
    [moment, limit],
  )
  return rowCount ?? 0
}

/** Failures with one cause: their number, the first time, and an example. */
export type LetterGroup = {
  kind: 'record' | 'events'
  reason: string
  sourceId: string | null
  cause: string
  count: number
  firstAt: Date
  lastAt: Date
  exampleId: string
  exampleError: string
}

export type RefusalGroup = {
  sourceId: string
  code: string
  count: number
  firstAt: Date
  lastAt: Date
  detail: string
}

/** Open dead letters by cause, the largest groups first. */
export async function groupLetters(db: Db, tenantId: number, limit: number): Promise<LetterGroup[]> {
  const { rows } = await db.query<LetterGroup>(
    `select kind, reason, source_id as "sourceId", coalesce(cause, error) as cause, count(*) as count, min(failed_at) as "firstAt",
       max(failed_at) as "lastAt", (array_agg(id order by failed_at desc, id desc))[1] as "exampleId",
       (array_agg(error order by failed_at desc, id desc))[1] as "exampleError"
     from dead_letters where tenant_id = $1 and replayed_at is null
     group by 1, 2, 3, 4 order by 5 desc, 7 desc limit $2`,
    [tenantId, limit],
  )
  return rows
}

/** Rejected requests by source and code, including those that were only counted. */
export async function groupRefusals(db: Db, tenantId: number, limit: number): Promise<RefusalGroup[]> {
  const { rows } = await db.query<RefusalGroup>(
    `select r.source_id as "sourceId", r.code, sum(1 + r.suppressed)::bigint as count, min(r.rejected_at) as "firstAt",
       max(r.rejected_at) as "lastAt", (array_agg(r.detail order by r.id desc))[1] as detail
     from sources s join rejections r on r.tenant_id = s.tenant_id and r.source_id = s.id
     where s.tenant_id = $1 and s.deleted_at is null group by 1, 2 order by 3 desc, 5 desc limit $2`,
    [tenantId, limit],
  )
  return rows
}

export type FailingGroup = {
  destinationId: string
  name: string
  error: string
  pending: number
  firstAt: Date
  lastAt: Date
}

const MAX_PENDING = 100_000

/** Destinations that fail or were disabled because of failures, with their queued deliveries. */
export async function groupFailing(db: Db, tenantId: number): Promise<FailingGroup[]> {
  const { rows } = await db.query<FailingGroup>(
    `select d.id as "destinationId", d.name, coalesce(d.disabled_reason, s.last_error, 'it does not answer 2xx') as error,
       coalesce(s.failing_since, d.updated_at) as "firstAt", coalesce(s.last_attempt_at, d.updated_at) as "lastAt",
       (select count(*) from (select from delivery_queue where destination_id = d.id limit ${MAX_PENDING}) q) as pending
     from destinations d join destination_states s on s.destination_id = d.id
     where d.tenant_id = $1 and d.deleted_at is null
       and case when d.enabled then s.failing_since is not null else d.disabled_reason is not null end
     order by d.created_at, d.id`,
    [tenantId],
  )
  return rows
}
