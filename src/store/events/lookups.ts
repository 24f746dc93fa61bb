import type { Entry } from '../../domain/entry.ts'
import { timeOfId } from '../../domain/ids.ts'
import type { Db } from '../../postgres/database.ts'
import { ENTRY_COLUMNS, entryOf } from '../../postgres/entries.ts'

/** An entry with events that has not taken effect yet, and what holds it up. */
export type WaitingEntry = {
  entry: Entry
  state: 'queued' | 'deferred'
  /** Why the last attempt failed, and when the next one is. */
  lastError: string | null
  attempts: number
  nextAttemptAt: Date | null
}

const PARKED = `select ${ENTRY_COLUMNS}, 'queued' as state, last_error as "lastError", attempts,
    next_attempt_at as "nextAttemptAt" from parked_entries
  where tenant_id = $1 and kind = 'events'`
const OVERFLOW = `select ${ENTRY_COLUMNS}, 'deferred' as state, null, 0, null
  from overflow where tenant_id = $1 and kind = 'events'`
const UNREAD = `select ${ENTRY_COLUMNS}, 'queued' as state, null, 0, null::timestamptz
  from log_cursors c join log l on l.partition = c.partition and (l.xid, l.ord) > (c.xid, c.ord)
  where l.tenant_id = $1 and l.kind = 'events'`

/** Entries outside the log that an item of this id may be part of: parts of a request may wait in different places. */
export async function findHeldUp(db: Db, tenantId: number, entryId: string): Promise<WaitingEntry[]> {
  const { rows } = await db.query<WaitingRow>(
    `${PARKED} and id = $2 union all ${OVERFLOW} and id = $2 and received_at = $3`,
    [tenantId, entryId, timeOfId(entryId)],
  )
  return rows.map(toWaiting)
}

// A sender's id is looked for in the raw text of what waits: rare, and bounded by what waits.
const MAX_CANDIDATES = 50

/** Entries that have not taken effect yet and have this text in their body. */
export async function findWaitingWith(db: Db, tenantId: number, text: string): Promise<WaitingEntry[]> {
  const { rows } = await db.query<WaitingRow>(
    `select * from (${PARKED} union all ${OVERFLOW} union all ${UNREAD}) w
     where strpos(w.body, $2) > 0 limit ${MAX_CANDIDATES}`,
    [tenantId, text],
  )
  return rows.map(toWaiting)
}

export type EventLetter = {
  id: string
  sourceId: string | null
  inboundEventId: string | null
  cause: 'rejected' | 'failed'
  error: string
  attempts: number
  receivedAt: Date
  failedAt: Date
  replayedAt: Date | null
  replayedAs: string | null
}

const LETTER = `select id, source_id, inbound_event_id, reason, error, attempts, received_at, failed_at, replayed_at,
  replayed_as from dead_letters where tenant_id = $1 and kind = 'events'`

export async function findEventLetter(db: Db, tenantId: number, id: string): Promise<EventLetter | null> {
  const { rows } = await db.query<LetterRow>(`${LETTER} and id = $2`, [tenantId, id])
  return rows[0] ? toLetter(rows[0]) : null
}

/** The newest dead letter of an event, by the id it has at its sender. */
export async function findLetterOf(
  db: Db,
  tenantId: number,
  sourceId: string | null,
  inboundEventId: string,
): Promise<EventLetter | null> {
  const { rows } = await db.query<LetterRow>(
    `${LETTER} and inbound_event_id = $2 and source_id is not distinct from $3
     order by failed_at desc, id desc limit 1`,
    [tenantId, inboundEventId, sourceId],
  )
  return rows[0] ? toLetter(rows[0]) : null
}

type InboundReceipt = {
  outcome: 'duplicate' | 'dropped'
  detail: string | null
  firstId: string | null
  receivedAt: Date
}

/** What a source's receipts say of an event that left no other trace: known or dropped when it came in. */
export async function findInboundReceipt(
  db: Db,
  tenantId: number,
  id: string,
): Promise<InboundReceipt | null> {
  const { rows } = await db.query<InboundReceipt>(
    `select outcome, detail, first_id as "firstId", received_at as "receivedAt" from receipts
     where tenant_id = $1 and received_at = $2 and id = $3 and outcome in ('duplicate', 'dropped') limit 1`,
    [tenantId, timeOfId(id), id],
  )
  return rows[0] ?? null
}

type WaitingRow = Entry & Omit<WaitingEntry, 'entry'>

function toWaiting(row: WaitingRow): WaitingEntry {
  const { state, lastError, attempts, nextAttemptAt } = row
  return { state, lastError, attempts, nextAttemptAt, entry: entryOf(row) }
}

type LetterRow = {
  id: string
  source_id: string | null
  inbound_event_id: string | null
  reason: 'rejected' | 'failed'
  error: string
  attempts: number
  received_at: Date
  failed_at: Date
  replayed_at: Date | null
  replayed_as: string | null
}

function toLetter(row: LetterRow): EventLetter {
  return {
    id: row.id,
    sourceId: row.source_id,
    inboundEventId: row.inbound_event_id,
    cause: row.reason,
    error: row.error,
    attempts: row.attempts,
    receivedAt: row.received_at,
    failedAt: row.failed_at,
    replayedAt: row.replayed_at,
    replayedAs: row.replayed_as,
  }
}
