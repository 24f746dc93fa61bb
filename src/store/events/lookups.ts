import type { Entry } from '../../domain/entries/entry.ts'
import { timeOfId } from '../../domain/ids.ts'
import type { Db } from '../../postgres/database.ts'
import { ENTRY_COLUMNS, entryOf } from '../../postgres/entries.ts'
import { DEAD_LETTER_COLUMNS, type DeadLetter } from '../entries/dead-letters.ts'

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
const OVERFLOW = `select ${ENTRY_COLUMNS}, 'deferred' as state, null as "lastError", 0 as attempts,
    null::timestamptz as "nextAttemptAt"
  from overflow where tenant_id = $1 and kind = 'events'`

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

/** Entries that wait there and have this text in their body. */
export async function findHeldUpWith(
  db: Db,
  held: 'parked' | 'deferred',
  tenantId: number,
  text: string,
): Promise<WaitingEntry[]> {
  const { rows } = await db.query<WaitingRow>(
    `${held === 'parked' ? PARKED : OVERFLOW} and strpos(body, $2) > 0 limit ${MAX_CANDIDATES}`,
    [tenantId, text],
  )
  return rows.map(toWaiting)
}

export async function findEventLetters(db: Db, tenantId: number, ids: string[]): Promise<DeadLetter[]> {
  const { rows } = await db.query<DeadLetter>(
    `select ${DEAD_LETTER_COLUMNS} from dead_letters d where tenant_id = $1 and kind = 'events' and id = any($2::uuid[])`,
    [tenantId, ids],
  )
  return rows
}

/** By the id that an event has at its sender: the newest dead letter of each source, which is null without one. */
export async function findLettersOfSent(db: Db, tenantId: number, sentId: string): Promise<DeadLetter[]> {
  const { rows } = await db.query<DeadLetter>(
    `select distinct on (source_id) ${DEAD_LETTER_COLUMNS} from dead_letters d
     where tenant_id = $1 and kind = 'events' and inbound_event_id = $2
     order by source_id, failed_at desc, id desc`,
    [tenantId, sentId],
  )
  return rows
}

export type InboundReceipt = {
  id: string
  outcome: 'duplicate' | 'dropped' | 'suppressed'
  detail: string | null
  firstId: string | null
  receivedAt: Date
}

/** What sources' receipts say of events that left no other trace: known or dropped when they came in, or not to be recorded. */
export async function findInboundReceipts(
  db: Db,
  tenantId: number,
  ids: string[],
): Promise<InboundReceipt[]> {
  const { rows } = await db.query<InboundReceipt>(
    `select id, outcome, detail, first_id as "firstId", received_at as "receivedAt" from receipts
     where tenant_id = $1 and received_at = any($2::timestamptz[]) and id = any($3::uuid[])
       and outcome in ('duplicate', 'dropped', 'suppressed')`,
    [tenantId, ids.map(timeOfId), ids],
  )
  return rows
}

type WaitingRow = Entry & Omit<WaitingEntry, 'entry'>

function toWaiting(row: WaitingRow): WaitingEntry {
  const { state, lastError, attempts, nextAttemptAt } = row
  return { state, lastError, attempts, nextAttemptAt, entry: entryOf(row) }
}
