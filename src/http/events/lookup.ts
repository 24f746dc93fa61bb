import type pg from 'pg'
import { Type } from 'typebox'
import type { Entry } from '../../domain/entry.ts'
import type { EventContext } from '../../domain/events/events.ts'
import { normalize } from '../../domain/events/normalize/normalize.ts'
import { entryIdOf, isUuid } from '../../domain/ids.ts'
import { storableText } from '../../domain/json/json.ts'
import type { Log } from '../../log/log.ts'
import { type EventRow, findEvent } from '../../store/events/events.ts'
import {
  type EventLetter,
  findEventLetter,
  findHeldUp,
  findInboundReceipt,
  findLetterOf,
  findWaitingWith,
  type WaitingEntry,
} from '../../store/events/lookups.ts'
import { findProcessed, processedKey } from '../../store/inbound/processed.ts'
import { listSources } from '../../store/inbound/sources.ts'
import type { App } from '../app.ts'
import { sendJson } from '../json.ts'
import { problems } from '../problems.ts'
import { eventText } from './list.ts'
import { EventOutcomeBody } from './schemas.ts'

type Deps = { pool: pg.Pool; log: Log }

type Status = 'queued' | 'deferred' | 'stored' | 'duplicate' | 'dead_letter' | 'dropped'

/** What became of an event. */
type Outcome = {
  id: string
  status: Status
  /** In words, where there is something to say. */
  reason: string | null
  receivedAt: Date
  duplicateOf?: string
  event?: EventRow
  letter?: EventLetter
  waiting?: WaitingEntry
}

const LookupQuery = Type.Object({
  event_id: Type.Optional(
    Type.String({ minLength: 1, description: 'event_id of a tracking event, or messageId of a CDP call' }),
  ),
  inbound_event_id: Type.Optional(
    Type.String({ minLength: 1, description: 'The same, under its other name' }),
  ),
  source_config_id: Type.Optional(
    Type.String({
      description: 'The source that received it; without it, tracking and CDP events come first',
    }),
  ),
})

export function lookupRoutes(app: App, deps: Deps): void {
  const notFound = () => problems.notFound('Nothing is known of such an event.')
  app.get(
    '/v1/events/:id',
    {
      config: { scope: 'events:read' },
      schema: {
        tags: ['Events'],
        summary: 'What happened to an event, by its id here',
        description:
          'Conversions too. queued: accepted, not yet applied. deferred: over the budget of its source. duplicate: another event with its id came first. dead_letter: it could not be taken, and reason says why.',
        params: Type.Object({ id: Type.String() }),
        response: { 200: EventOutcomeBody },
      },
    },
    async (request, reply) => {
      const id = request.params.id.toLowerCase()
      const outcome = isUuid(id) ? await outcomeOf(deps, request.caller.tenantId, id) : null
      if (!outcome) throw notFound()
      return sendJson(reply, outcomeText(outcome))
    },
  )
  app.get(
    '/v1/events/lookup',
    {
      config: { scope: 'events:read' },
      schema: {
        tags: ['Events'],
        summary: 'What happened to an event, by the id its sender gave it',
        querystring: LookupQuery,
        response: { 200: EventOutcomeBody },
      },
    },
    async (request, reply) => {
      const { event_id, inbound_event_id, source_config_id } = request.query
      const sentId = inbound_event_id ?? event_id
      if (sentId === undefined) {
        throw problems.invalid([{ pointer: '/event_id', message: 'or inbound_event_id is required' }])
      }
      const outcome = await outcomeOfSent(
        deps,
        request.caller.tenantId,
        storableText(sentId),
        source_config_id,
      )
      if (!outcome) throw notFound()
      return sendJson(reply, outcomeText(outcome))
    },
  )
}

async function outcomeOf({ pool, log }: Deps, tenantId: number, id: string): Promise<Outcome | null> {
  // First where it waits, then where it ends: what moves on meanwhile is found at its end.
  const entryId = entryIdOf(id)
  const logged = await log.find(tenantId, entryId)
  const heldUp = await findHeldUp(pool, tenantId, entryId)
  const event = await findEvent(pool, tenantId, id)
  if (event) return storedOutcome(event)
  const letter = await findEventLetter(pool, tenantId, id)
  if (letter) return letterOutcome(letter)
  const receipt = await findInboundReceipt(pool, tenantId, id)
  if (receipt) {
    const { outcome: status, detail: reason, firstId, receivedAt } = receipt
    return firstId ? duplicateOutcome(id, receivedAt, firstId) : { id, status, reason, receivedAt }
  }
  const waiting = heldUp.find(({ entry }) => itemOf(entry, id)) ?? null
  const entry = waiting?.entry ?? logged
  const item = entry?.kind === 'events' ? (itemOf(entry, id) ?? itemOf(whole(entry), id)) : null
  if (!entry || !item) return null
  const first = await firstWith(pool, tenantId, item.sourceId, item.inboundEventId)
  if (first === id) return null // it was stored, and has been erased or has expired
  if (first !== null) return duplicateOutcome(id, entry.receivedAt, first)
  return waiting
    ? waitingOutcome(id, waiting)
    : { id, status: 'queued', reason: null, receivedAt: entry.receivedAt }
}

async function outcomeOfSent(
  { pool, log }: Deps,
  tenantId: number,
  sentId: string,
  sourceId: string | undefined,
): Promise<Outcome | null> {
  const sourceIds =
    sourceId === undefined ? [null, ...(await listSources(pool, tenantId)).map(({ id }) => id)] : [sourceId]
  const waiting = await findWaitingWith(pool, tenantId, JSON.stringify(sentId).slice(1, -1))
  for (const source of sourceIds) {
    const first = await firstWith(pool, tenantId, source, sentId)
    const outcome = first && (await outcomeOf({ pool, log }, tenantId, first))
    if (outcome) return outcome
  }
  for (const source of sourceIds) {
    const letter = await findLetterOf(pool, tenantId, source, sentId)
    if (letter) return letterOutcome(letter)
    for (const one of waiting) {
      const item = itemsOf(one.entry).find(
        ({ inboundEventId, sourceId: from }) => inboundEventId === sentId && from === source,
      )
      if (item) return waitingOutcome(item.id, one)
    }
  }
  return null
}

async function firstWith(
  pool: pg.Pool,
  tenantId: number,
  sourceId: string | null,
  sentId: string | null,
): Promise<string | null> {
  if (sentId === null) return null
  const [known] = await findProcessed(pool, [{ tenantId, key: processedKey(sourceId, sentId) }])
  return known?.eventId ?? null
}

type Item = { id: string; sourceId: string | null; inboundEventId: string | null }

function itemsOf(entry: Entry): Item[] {
  const context = JSON.parse(entry.context) as EventContext
  const { events } = normalize({ entryId: entry.id, receivedAt: entry.receivedAt, body: entry.body, context })
  return events.map(event => ({
    id: event.id,
    sourceId: event.sourceConfigId,
    inboundEventId: event.inboundEventId,
  }))
}

function itemOf(entry: Entry, id: string): Item | null {
  return itemsOf(entry).find(item => item.id === id) ?? null
}

/** The request as it came in, where the entry holds a part of it. */
function whole(entry: Entry): Entry {
  return { ...entry, context: JSON.stringify({ ...JSON.parse(entry.context), items: undefined }) }
}

function storedOutcome(event: EventRow): Outcome {
  return { id: event.id, status: 'stored', reason: null, receivedAt: event.receivedAt, event }
}

// What failed inside is told to those who run the service: the dead letters' own list has the error.
const FAILED = 'it is valid, but could not be applied'

function letterOutcome(letter: EventLetter): Outcome {
  const { id, cause, error, receivedAt } = letter
  const reason = cause === 'rejected' ? error : `${FAILED}; given up after ${letter.attempts} attempts`
  return { id, status: 'dead_letter', reason, receivedAt, letter }
}

function duplicateOutcome(id: string, receivedAt: Date, duplicateOf: string): Outcome {
  const reason = 'an event with the same id of its sender was there before'
  return { id, status: 'duplicate', reason, receivedAt, duplicateOf }
}

function waitingOutcome(id: string, waiting: WaitingEntry): Outcome {
  const { state, lastError, entry } = waiting
  const retried = lastError === null ? null : `${FAILED} so far; it will be tried again`
  const reason = state === 'deferred' ? "over its source's volume limit: waits for budget" : retried
  return { id, status: state, reason, receivedAt: entry.receivedAt, waiting }
}

function outcomeText({ id, status, reason, receivedAt, ...more }: Outcome): string {
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
    replayed_at: letter?.replayedAt ?? null,
    replayed_as: letter?.replayedAs ?? null,
  })
  return `${facts.slice(0, -1)},"conversion":${event?.conversion ?? null},"event":${event ? eventText(event) : null}}`
}
