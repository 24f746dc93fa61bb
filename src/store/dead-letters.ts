import type { Entry, EntryKind } from '../log/log.ts'
import type { Db } from './database.ts'

export type NewDeadLetter = {
  /** The id of the event or operation, so that a second failure after a replay meets the first. */
  id: string
  entry: Entry
  sourceId: string | null
  inboundEventId: string | null
  /** rejected: never valid; failed: could not be applied */
  reason: 'rejected' | 'failed'
  error: string
  attempts: number
}

export type DeadLetter = {
  id: string
  tenantId: number
  kind: EntryKind
  sourceId: string | null
  inboundEventId: string | null
  reason: 'rejected' | 'failed'
  error: string
  attempts: number
  receivedAt: Date
  failedAt: Date
  replayedAt: Date | null
  body: string
}

export async function insertDeadLetters(db: Db, letters: NewDeadLetter[]): Promise<void> {
  await db.query(
    `insert into dead_letters
       (tenant_id, id, kind, ordering_key, source_id, inbound_event_id, reason, error, attempts, received_at, context, body)
     select * from json_to_recordset($1) as r (
       tenant_id int, id uuid, kind text, ordering_key text, source_id text, inbound_event_id text, reason text,
       error text, attempts int, received_at timestamptz, context text, body text)
     on conflict (tenant_id, id) do update set
       error = excluded.error, attempts = dead_letters.attempts + excluded.attempts, failed_at = now(), replayed_at = null`,
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
          attempts: letter.attempts,
          received_at: entry.receivedAt,
          context: entry.context,
          body: entry.body,
        })),
      ),
    ],
  )
}

export type DeadLetterFilter = { tenantId: number | null; id?: string; sourceId?: string; reason?: string }

export async function listDeadLetters(
  db: Db,
  filter: DeadLetterFilter & { limit: number; before?: { failedAt: Date; id: string } },
): Promise<DeadLetter[]> {
  const { rows } = await db.query<{
    id: string
    tenant_id: number
    kind: EntryKind
    source_id: string | null
    inbound_event_id: string | null
    reason: 'rejected' | 'failed'
    error: string
    attempts: number
    received_at: Date
    failed_at: Date
    replayed_at: Date | null
    body: string
  }>(
    `select id, tenant_id, kind, source_id, inbound_event_id, reason, error, attempts, received_at, failed_at,
            replayed_at, body
     from dead_letters
     where ($1::int is null or tenant_id = $1) and ($2::uuid is null or id = $2) and ($3::text is null or source_id = $3)
       and ($4::text is null or reason = $4) and replayed_at is null
       and ($5::timestamptz is null or (failed_at, id) < ($5, $6))
     order by failed_at desc, id desc limit $7`,
    [
      filter.tenantId,
      filter.id ?? null,
      filter.sourceId ?? null,
      filter.reason ?? null,
      filter.before?.failedAt ?? null,
      filter.before?.id ?? null,
      filter.limit,
    ],
  )
  return rows.map(row => ({
    id: row.id,
    tenantId: row.tenant_id,
    kind: row.kind,
    sourceId: row.source_id,
    inboundEventId: row.inbound_event_id,
    reason: row.reason,
    error: row.error,
    attempts: row.attempts,
    receivedAt: row.received_at,
    failedAt: row.failed_at,
    replayedAt: row.replayed_at,
    body: row.body,
  }))
}

export async function countDeadLetters(db: Db): Promise<number> {
  const { rows } = await db.query<{ count: number }>(
    'select count(*) from dead_letters where replayed_at is null',
  )
  return rows[0]!.count
}

/**
 * Marks letters as replayed and hands them out to be appended again, in the caller's transaction. A letter is
 * handed out once, however many people press the button.
 */
export async function takeForReplay(
  db: Db,
  filter: DeadLetterFilter & { limit: number },
): Promise<{ entry: Entry; id: string }[]> {
  const { rows } = await db.query<{
    id: string
    tenant_id: number
    kind: EntryKind
    ordering_key: string
    received_at: Date
    context: string
    body: string
  }>(
    `update dead_letters d set replayed_at = now()
     from (
       select tenant_id, id from dead_letters
       where ($1::int is null or tenant_id = $1) and ($2::uuid is null or id = $2)
         and ($3::text is null or source_id = $3) and ($4::text is null or reason = $4) and replayed_at is null
       order by received_at, id limit $5 for update skip locked
     ) chosen
     where d.tenant_id = chosen.tenant_id and d.id = chosen.id
     returning d.id, d.tenant_id, d.kind, d.ordering_key, d.received_at, d.context, d.body`,
    [filter.tenantId, filter.id ?? null, filter.sourceId ?? null, filter.reason ?? null, filter.limit],
  )
  return rows.map(row => ({
    id: row.id,
    entry: {
      id: row.id,
      tenantId: row.tenant_id,
      kind: row.kind,
      orderingKey: row.ordering_key,
      receivedAt: row.received_at,
      context: row.context,
      body: row.body,
    },
  }))
}
