import type pg from 'pg'
import { saleNote } from '../domain/conversions/sale-notes.ts'
import type { Entry } from '../domain/entries/entry.ts'
import { normalize } from '../domain/events/normalize/normalize.ts'
import { parseStoredEvent } from '../domain/events/stored.ts'
import type { EventContext, EventSource } from '../domain/events/types.ts'
import { idToTime, toEntryId } from '../domain/ids.ts'
import { quote } from '../domain/tenants/credentials.ts'
import type { EntryQuery, Log } from '../log/log.ts'
import type { DeadLetter } from '../store/entries/dead-letters.ts'
import {
  type EventRow,
  findEventLetters,
  findEvents,
  findHeldUp,
  findHeldUpWith,
  findInboundReceipts,
  findLettersOfSent,
  type InboundReceipt,
  type WaitingEntry,
} from '../store/events/events.ts'
import { eventText } from '../store/export/row-texts.ts'
import { hasErasedSince } from '../store/identity/erasures.ts'
import { findProcessed, processedKey, UNVERIFIED } from '../store/inbound/processed.ts'
import { listSources } from '../store/inbound/sources.ts'

type Deps = { pool: pg.Pool; log: Log }

/** The outcome of an event. */
export type EventOutcome = {
  id: string
  status: 'queued' | 'deferred' | 'stored' | 'duplicate' | 'dead_letter' | 'dropped' | 'suppressed'
  /** An explanation for people, if there is one. */
  reason: string | null
  receivedAt: Date
  duplicateOf?: string
  event?: EventRow
  letter?: DeadLetter
  waiting?: WaitingEntry
}

/** The outcome of the event with this Kontor id; null: unknown. */
export async function eventOutcome({ pool, log }: Deps, tenantId: number, id: string): Promise<EventOutcome | null> {
  // Almost always the event is stored.
  const [event] = await findEvents(pool, tenantId, [id])
  if (event) return storedOutcome(event)
  // First where it may wait, then where it may have ended, so that an event that is processed meanwhile is found.
  const entryId = toEntryId(id)
  const logged = await log.find(tenantId, entryId)
  const heldUp = await findHeldUp(pool, tenantId, entryId)
  const ended = (await findOutcomes(pool, tenantId, [id])).get(id)
  if (ended) return ended
  const waiting = heldUp.find(({ entry }) => findItem(entry, id)) ?? null
  const entry = waiting?.entry ?? logged
  const item = entry?.kind === 'events' ? (findItem(entry, id) ?? findItem(whole(entry), id)) : null
  if (!entry || !item) return null
  const [first] =
    item.inboundEventId === null ? [] : await findFirsts(pool, tenantId, item.inboundEventId, [item.sourceId])
  if (first === id) return null // it was stored, and has been erased or has expired
  if (first !== undefined) return duplicateOutcome(id, entry.receivedAt, first)
  return waiting ? waitingOutcome(id, waiting) : { id, status: 'queued', reason: null, receivedAt: entry.receivedAt }
}

/**
 * The outcome of the event with this sender's id. Without a source, tracking and CDP events are searched first, then the
 * sources in order. The number of statements does not depend on the number of sources.
 */
export async function outcomeOfSent(
  { pool, log }: Deps,
  tenantId: number,
  { sentId, sourceId }: { sentId: string; sourceId: string | undefined },
): Promise<EventOutcome | null> {
  const sourceIds = await sourcesAsked(pool, tenantId, sourceId)
  const { waiting, unavailable } = await waitingWith({ pool, log }, tenantId, entriesWithId(sentId))
  const firsts = await findFirsts(pool, tenantId, sentId, sourceIds)
  const ends = firsts.length > 0 ? await findOutcomes(pool, tenantId, firsts) : new Map<string, EventOutcome>()
  for (const first of firsts) {
    const outcome = ends.get(first)
    if (outcome) return outcome
  }
  const letters = await findLettersOfSent(pool, tenantId, sentId)
  const items = waiting.flatMap(held => listItems(held.entry).map(item => ({ ...item, held })))
  for (const source of sourceIds) {
    const letter = letters.find(({ sourceId: of }) => of === source)
    if (letter) return letterOutcome(letter)
    const item = items.find(({ inboundEventId, sourceId: of }) => inboundEventId === sentId && of === source)
    if (item) return waitingOutcome(item.id, item.held)
  }
  if (unavailable) throw unavailable
  return null
}

// Reading the items of an entry takes about a millisecond of this thread.
const MAX_ENTRIES_READ = 500

/**
 * The entries with an item of this id. They are searched for the longest part of the id that every sender writes the same way:
 * some escape other characters in JSON (`\/`, `\u00e4`), and the id of some providers is composed of headers and fields.
 */
function entriesWithId(sentId: string): EntryQuery {
  const runs = sentId.match(/[\w-]+/g) ?? [JSON.stringify(sentId).slice(1, -1)]
  const text = runs.reduce((longest, run) => (run.length > longest.length ? run : longest))
  const quoted = JSON.stringify(sentId)
  const isQuoted = text === sentId && /\D/.test(sentId)
  let read = 0
  const isWanted = (entry: Entry) => {
    if (isQuoted && !entry.body.includes(quoted) && !entry.context.includes(quoted)) return false
    return ++read <= MAX_ENTRIES_READ && listItems(entry).some(({ inboundEventId }) => inboundEventId === sentId)
  }
  return { text, isWanted }
}

/**
 * Searches the stages in the order in which entries pass them, so that an entry that moves meanwhile is found in its next
 * stage. If a part of the log is unreachable, the entries found in PostgreSQL are still returned.
 */
async function waitingWith({ pool, log }: Deps, tenantId: number, query: EntryQuery) {
  const deferred = await findHeldUpWith(pool, 'deferred', tenantId, query)
  const { entries, unavailable } = await log.unreadWith(tenantId, query)
  const unread = entries.map((entry): WaitingEntry => ({ entry, state: 'queued', ...UNTRIED }))
  const parked = await findHeldUpWith(pool, 'parked', tenantId, query)
  return { waiting: [...parked, ...unread, ...deferred], unavailable }
}

const UNTRIED = { lastError: null, attempts: 0, nextAttemptAt: null }

/** The sources to search. Null stands for tracking and CDP events, which have no source. */
async function sourcesAsked(pool: pg.Pool, tenantId: number, sourceId: string | undefined): Promise<(string | null)[]> {
  if (sourceId !== undefined) return [sourceId]
  return [null, ...(await listSources(pool, tenantId)).map(({ id }) => id)]
}

/** The Kontor ids of processed events with this sender's id, in the order of the sources. */
async function findFirsts(
  pool: pg.Pool,
  tenantId: number,
  sentId: string,
  sourceIds: (string | null)[],
): Promise<string[]> {
  const scopes = sourceIds.flatMap(sourceId => (sourceId === null ? [null, UNVERIFIED] : [sourceId]))
  const keys = scopes.map(scope => ({ tenantId, key: processedKey(scope, sentId) }))
  const known = new Map((await findProcessed(pool, keys)).map(({ key, eventId }) => [key, eventId]))
  return keys.flatMap(({ key }) => known.get(key) ?? [])
}

/** The final outcomes of these events: stored, dead letter, or a receipt without an event. */
async function findOutcomes(pool: pg.Pool, tenantId: number, ids: string[]): Promise<Map<string, EventOutcome>> {
  const events = await findEvents(pool, tenantId, ids)
  const letters = await findEventLetters(pool, tenantId, ids)
  const receipts = await findInboundReceipts(pool, tenantId, ids)
  const outcomes = [...receipts.map(receiptOutcome), ...letters.map(letterOutcome), ...events.map(storedOutcome)]
  return new Map(outcomes.map(outcome => [outcome.id, outcome]))
}

type Item = { id: string; sourceId: string | null; inboundEventId: string | null }

function listItems(entry: Entry): Item[] {
  const context = JSON.parse(entry.context) as EventContext
  const { events } = normalize({ entryId: entry.id, receivedAt: entry.receivedAt, body: entry.body, context })
  return events.map(event => ({ id: event.id, sourceId: event.sourceConfigId, inboundEventId: event.inboundEventId }))
}

function findItem(entry: Entry, id: string): Item | null {
  return listItems(entry).find(item => item.id === id) ?? null
}

/** The complete request, if the entry contains only a part of its items. */
function whole(entry: Entry): Entry {
  return { ...entry, context: JSON.stringify({ ...JSON.parse(entry.context), items: undefined }) }
}

function storedOutcome(event: EventRow): EventOutcome {
  return { id: event.id, status: 'stored', reason: describeSale(event), receivedAt: event.receivedAt, event }
}

function describeSale(row: EventRow): string | null {
  const source = row.source as EventSource
  const event = parseStoredEvent({ ...row, source, key: null, trusted: false, userId: null })
  if (event.meta.test) return 'it is a test event and does not count in any total'
  const warnings = Array.isArray(event.meta.warnings) ? event.meta.warnings : []
  const notes = [saleNote(event, row.conversion), ...warnings].filter(note => note !== null)
  return notes.length > 0 ? notes.join('; ') : null
}

// The internal error is visible only to operators, in the list of dead letters.
const FAILED = 'it is valid, but could not be applied'

function letterOutcome(letter: DeadLetter): EventOutcome {
  const { id, reason: kind, error, receivedAt } = letter
  const reason = kind === 'rejected' ? error : `${FAILED}; the last of ${letter.attempts} attempts failed`
  return { id, status: 'dead_letter', reason, receivedAt, letter }
}

function receiptOutcome({ id, outcome, detail, firstId, receivedAt }: InboundReceipt): EventOutcome {
  if (firstId !== null) return duplicateOutcome(id, receivedAt, firstId)
  return { id, status: outcome, reason: detail, receivedAt }
}

function duplicateOutcome(id: string, receivedAt: Date, duplicateOf: string): EventOutcome {
  const reason = 'an earlier event has the same id from its sender'
  return { id, status: 'duplicate', reason, receivedAt, duplicateOf }
}

function waitingOutcome(id: string, waiting: WaitingEntry): EventOutcome {
  const { state, lastError, entry } = waiting
  const retried = lastError === null ? null : `${FAILED} so far; it will be retried`
  const reason = state === 'deferred' ? 'above the rate limit of its source; processed when the limit allows' : retried
  return { id, status: state, reason, receivedAt: entry.receivedAt, waiting }
}

/** The outcome as JSON. */
export function outcomeText({ id, status, reason, receivedAt, ...more }: EventOutcome): string {
  const { letter, waiting, event } = more
  const facts = JSON.stringify({
    id,
    status,
    reason,
    received_at: receivedAt,
    duplicate_of: more.duplicateOf ?? null,
    attempts: letter?.attempts ?? waiting?.attempts ?? null,
    next_attempt_at: waiting?.nextAttemptAt ?? null,
    failed_at: letter?.failedAt ?? null,
    // Without the id of a replay, the dead letter was resolved, not replayed.
    replayed_at: letter?.replayedAs ? letter.replayedAt : null,
    replayed_as: letter?.replayedAs ?? null,
  })
  return `${facts.slice(0, -1)},"conversion":${event?.conversion ?? null},"event":${event ? eventText(event) : null}}`
}

const unknownEvent = (id: string) => `No such event: ${quote(id)}.`

/** Explains why no event has this id: its person may have been erased after its arrival. */
export async function whyUnknown(pool: pg.Pool, tenantId: number, id: string): Promise<string> {
  return (await hasErasedSince(pool, tenantId, idToTime(id)))
    ? `${unknownEvent(id)} People were erased after that time; the event may have been about one of them.`
    : unknownEvent(id)
}

/** The same for a sender's id. Kontor keeps a hash of the ids of processed events. */
export async function whyUnknownSent(
  pool: pg.Pool,
  tenantId: number,
  { sentId, sourceId }: { sentId: string; sourceId: string | undefined },
): Promise<string> {
  const [first] = await findFirsts(pool, tenantId, sentId, await sourcesAsked(pool, tenantId, sourceId))
  if (first === undefined) return unknownEvent(sentId)
  return (await hasErasedSince(pool, tenantId, idToTime(first)))
    ? 'An event with this id was processed, but is no longer stored: it was erased with its person, purged, or has expired.'
    : 'An event with this id was processed, but is no longer stored: it was purged or has expired.'
}
