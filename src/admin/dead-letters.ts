import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import { DEAD_LETTER_REASONS, type Entry } from '../domain/entries/entry.ts'
import type { Edit, EventContext } from '../domain/events/types.ts'
import { isUuid, newEntryId } from '../domain/ids.ts'
import { changedFields, isObject } from '../domain/json/json.ts'
import { Nullable, NullableText, NullableTimestamp, Timestamp } from '../domain/shapes.ts'
import { quote } from '../domain/tenants/credentials.ts'
import { publicTenantId } from '../domain/tenants/tenants.ts'
import { type Static, Type } from '../domain/typebox.ts'
import { effectSettings, requiresEventId } from '../intake/inbound.ts'
import type { Log } from '../log/log.ts'
import { databaseNow, inTransaction } from '../postgres/database.ts'
import {
  countDeadLetters,
  type DeadLetter,
  type DeadLetterFilter,
  findDeadLetter,
  listDeadLetters,
  markReplayed,
  replayedOutcomes,
  resolveDeadLetters,
  takeForReplay,
} from '../store/entries/dead-letters.ts'
import { findSource } from '../store/inbound/sources.ts'
import { type Actor, requireRole, resolveTenantFilter } from './actor.ts'
import { recordChange } from './audit.ts'
import { AdminError, throwIfInvalid } from './error.ts'

type DeadLetterQuery = {
  tenant?: string | undefined
  source?: string | undefined
  reason?: string | undefined
  cause?: string | undefined
  closed?: boolean | undefined
  limit: number
  before?: { failedAt: Date; id: string } | undefined
}

/** Selects dead letters: one, those of a source or a reason, or all. */
type ReplayQuery = {
  tenant?: string | undefined
  id?: string | undefined
  source?: string | undefined
  reason?: string | undefined
  cause?: string | undefined
  all?: boolean | undefined
}

/** `body`: replaces the body of a single dead letter. */
export type ReplayOrder = ReplayQuery & { body?: string | undefined }

/** `remaining`: dead letters that existed when the replay started and were not replayed. */
export type Replayed = { replayed: number; remaining: number } & ReplayOutcome

type ReplayOptions = {
  atMost?: number
  /** How long to wait for the outcome. */
  waitMs?: number
  progress?: (replayed: number) => void
}

// Short transactions, so that readers of the log do not wait; fast enough for 100,000 dead letters in seconds.
const LETTERS_AT_A_TIME = 500
const BYTES_AT_A_TIME = 4_000_000
const RESOLVED_AT_A_TIME = 10_000
// The size limit of a single event at the endpoints.
const MAX_EDITED_BYTES = 65_536

export function deadLetterAdmin({ pool, log, actor }: { pool: pg.Pool; log: Log; actor: Actor }) {
  const tenantIdOf = (tenant: string | undefined) => resolveTenantFilter(pool, actor, tenant)

  async function filterOf({ tenant, id, source, reason, cause }: ReplayQuery): Promise<DeadLetterFilter> {
    const failedBefore = await databaseNow(pool)
    return { tenantId: await tenantIdOf(tenant), id, sourceId: source, reason, cause, failedBefore }
  }

  /** Finds the selected dead letter; null if the filter selects several. */
  async function ofOne({ tenantId, id }: DeadLetterFilter): Promise<DeadLetter | null> {
    if (id === undefined) return null
    const letter = await findDeadLetter(pool, tenantId, id)
    if (!letter) throw deadLetterNotFound(id)
    return letter
  }

  /** `first`: this batch also records the replay in the audit log. */
  async function replaySome(filter: DeadLetterFilter, first: boolean, body?: string): Promise<Replay[]> {
    return inTransaction(pool, async client => {
      const letters = await takeForReplay(client, { ...filter, limit: LETTERS_AT_A_TIME, maxBytes: BYTES_AT_A_TIME })
      if (letters.length === 0) return []
      if (first) await recordReplay(client, actor, filter, letters, body)
      const now = await databaseNow(client)
      const entries: Entry[] = []
      for (const letter of letters)
        entries.push(
          await toReplayEntry(client, body === undefined ? letter : withEditedBody(letter, body, actor, now), now),
        )
      await log.append(
        entries.map(entry => ({ entry, claim: null })),
        { client },
      )
      const replays = letters.map(({ tenantId, id }, i) => ({ tenantId, id, as: entries[i]!.id }))
      await markReplayed(client, replays)
      return replays
    })
  }

  return {
    async list(query: DeadLetterQuery): Promise<DeadLetterView[]> {
      const letters = await listDeadLetters(pool, {
        tenantId: await tenantIdOf(query.tenant),
        sourceId: query.source,
        reason: query.reason,
        cause: query.cause,
        isClosed: query.closed,
        limit: query.limit,
        before: query.before,
      })
      return letters.map(deadLetterView)
    },
    /** With the body as received. */
    async show(id: string, tenant?: string): Promise<DeadLetterView & { body: string }> {
      const letter = isUuid(id) ? await findDeadLetter(pool, await tenantIdOf(tenant), id) : null
      if (!letter) throw deadLetterNotFound(id)
      return { ...deadLetterView(letter), body: letter.body }
    },
    /**
     * Appends dead letters to the log again, oldest first, each exactly once. Entries that fail again meanwhile are not replayed
     * again. Stops after `atMost`; `remaining` then counts the rest. Waits at most `waitMs` for the outcome.
     */
    async replay(
      { body, ...query }: ReplayOrder,
      { atMost, waitMs = 0, progress }: ReplayOptions = {},
    ): Promise<Replayed> {
      // Editing the body means writing any event, which needs more permissions than repeating one.
      if (body !== undefined) requireRole(actor, 'admin')
      throwIfInvalid([...validateQuery(query), ...validateBody(body, query)])
      const filter = await filterOf(query)
      const letter = await ofOne(filter)
      if (body !== undefined && letter?.kind !== 'events')
        throwIfInvalid([{ pointer: '/body', message: 'is not allowed: only events can be edited' }])
      const replays: Replay[] = []
      while (atMost === undefined || replays.length < atMost) {
        const more = await replaySome(filter, replays.length === 0, body)
        if (more.length === 0) break
        replays.push(...more)
        progress?.(replays.length)
      }
      const outcome = await awaitReplayOutcome({ pool, log }, replays, waitMs)
      return { replayed: replays.length, remaining: await countDeadLetters(pool, filter), ...outcome }
    },
    /** Closes dead letters without a replay. They are kept until they expire. */
    async resolve(query: ReplayQuery): Promise<{ resolved: number; remaining: number }> {
      throwIfInvalid(validateQuery(query))
      const filter = await filterOf(query)
      const letter = await ofOne(filter)
      const ofSource = filter.sourceId === undefined ? null : await findSource(pool, filter.sourceId)
      return inTransaction(pool, async tx => {
        const resolved = await resolveDeadLetters(tx, filter, RESOLVED_AT_A_TIME)
        const remaining = await countDeadLetters(tx, filter)
        const { id, sourceId, reason, cause } = filter
        const tenantId = filter.tenantId ?? letter?.tenantId ?? ofSource?.tenantId ?? null
        if (resolved > 0)
          await recordChange(tx, actor, {
            ...{ action: 'dead_letter.resolve', target: id ?? sourceId ?? null, tenantId },
            after: { reason: reason ?? null, ...(cause !== undefined && { cause }), dead_letters: resolved },
          })
        return { resolved, remaining }
      })
    },
  }
}

async function recordReplay(
  tx: pg.PoolClient,
  actor: Actor,
  filter: DeadLetterFilter,
  taken: Entry[],
  body: string | undefined,
): Promise<void> {
  const { id, sourceId, reason, cause } = filter
  const isOfOneTenant = id !== undefined || sourceId !== undefined
  await recordChange(tx, actor, {
    action: 'dead_letter.replay',
    target: id ?? sourceId ?? null,
    tenantId: filter.tenantId ?? (isOfOneTenant ? taken[0]!.tenantId : null),
    after: {
      reason: reason ?? null,
      ...(cause !== undefined && { cause }),
      dead_letters: taken.length + (await countDeadLetters(tx, filter)),
      // Only the names of fields: their values may be personal data.
      ...(body !== undefined && { edited: true, changed: changedFields(taken[0]!.body, body) }),
    },
  })
}

/** Marks the event as edited, so that readers see that this is not the received body. */
function withEditedBody(letter: Entry, body: string, { name }: Actor, now: Date): Entry {
  // `plain` was computed from the original body.
  const { plain: _, ...context } = JSON.parse(letter.context) as EventContext
  const edit: Edit = { by: name, at: now.toISOString(), deadLetter: letter.id }
  return { ...letter, body, context: JSON.stringify({ ...context, edited: edit }) }
}

function validateQuery({ id, source, reason, cause, all }: ReplayQuery) {
  const errors = []
  if (id !== undefined && !isUuid(id)) errors.push({ pointer: '/id', message: 'must be the id of a dead letter' })
  if (reason !== undefined && !DEAD_LETTER_REASONS.includes(reason as never))
    errors.push({ pointer: '/reason', message: `must be one of ${DEAD_LETTER_REASONS.join(', ')}` })
  if ([id, source, reason, cause].every(given => given === undefined) && all !== true)
    errors.push({ pointer: '', message: 'must contain id, source, reason, cause, or all: true' })
  return errors
}

/**
 * Converts the dead letter to a new entry. A record keeps its id, which is its operation id. Events get new ids, because an
 * id contains the time of receipt; `firstReceivedAt` keeps the original time. Events use the source's current settings, so
 * an event that was rejected because of a setting succeeds once the setting is fixed.
 */
async function toReplayEntry(client: pg.PoolClient, letter: Entry, now: Date): Promise<Entry> {
  if (letter.kind === 'record') return { ...letter, receivedAt: now }
  const context = JSON.parse(letter.context) as EventContext
  const firstReceivedAt = context.firstReceivedAt ?? letter.receivedAt.toISOString()
  const source = context.route === 'inbound' ? await findSource(client, context.sourceId) : null
  const settings = source && {
    preset: source.preset,
    eventTypeOverride: source.config.event_type_override,
    eventIdPath: source.config.event_id_path,
    requireEventId: requiresEventId(source),
    ...effectSettings(source),
  }
  return {
    ...letter,
    id: newEntryId(now.getTime()),
    receivedAt: now,
    context: JSON.stringify({ ...context, ...settings, firstReceivedAt }),
  }
}

function validateBody(body: string | undefined, { id }: ReplayQuery) {
  if (body === undefined) return []
  const pointer = '/body'
  if (id === undefined) return [{ pointer, message: 'is not allowed, unless the id of one dead letter is given' }]
  if (Buffer.byteLength(body) > MAX_EDITED_BYTES)
    return [{ pointer, message: `must have at most ${MAX_EDITED_BYTES} bytes` }]
  try {
    return isObject(JSON.parse(body)) ? [] : [{ pointer, message: 'must be a JSON object' }]
  } catch (error) {
    return [{ pointer, message: `must be JSON: ${(error as Error).message}` }]
  }
}

function deadLetterNotFound(id: string): AdminError {
  return new AdminError('not_found', 'dead_letter_not_found', `No such dead letter: ${quote(id)}.`)
}

export function deadLetterView(letter: DeadLetter): DeadLetterView {
  return {
    id: letter.id,
    tenant: publicTenantId(letter.tenantId),
    kind: letter.kind,
    source_config_id: letter.sourceId,
    inbound_event_id: letter.inboundEventId,
    reason: letter.reason,
    error: letter.error,
    attempts: letter.attempts,
    received_at: letter.receivedAt.toISOString(),
    failed_at: letter.failedAt.toISOString(),
    replayed_at: letter.replayedAs === null ? null : (letter.replayedAt?.toISOString() ?? null),
    replayed_as: letter.replayedAs,
    resolved_at: letter.replayedAs === null ? (letter.replayedAt?.toISOString() ?? null) : null,
  }
}

/** A replayed entry. */
type Replay = { tenantId: number; as: string }

/** `waiting`: not processed yet, or failed and waiting for a retry. */
type ReplayOutcome = { applied: number; failed_again: number; waiting: number }

const LOOK_EVERY_MS = 50
// The log is queried once per tenant. With more tenants than this, the replay does not wait.
const MOST_TENANTS = 10
// As in erasures: the clocks of nodes may be ahead of PostgreSQL's clock.
const NODES_AHEAD_MS = 1_000

/** Waits until all replayed entries are processed, at most `waitMs`, and returns the outcome. */
async function awaitReplayOutcome(
  { pool, log }: { pool: pg.Pool; log: Pick<Log, 'unread'> },
  replays: Replay[],
  waitMs: number,
): Promise<ReplayOutcome> {
  if (replays.length === 0) return { applied: 0, failed_again: 0, waiting: 0 }
  const tenants = [...new Set(replays.map(({ tenantId }) => tenantId))]
  const until = performance.now() + (tenants.length > MOST_TENANTS ? 0 : waitMs)
  const latest = new Date((await databaseNow(pool)).getTime() + NODES_AHEAD_MS)
  for (;;) {
    let unread = 0
    for (const tenantId of tenants.slice(0, MOST_TENANTS)) unread += (await log.unread(tenantId, latest)).entries
    if (unread > 0 && performance.now() < until) {
      await sleep(LOOK_EVERY_MS)
      continue
    }
    // Read after the log, so that entries which leave the log meanwhile are found here.
    const { failed, parked } = await replayedOutcomes(pool, replays)
    const ended = replays.length - failed - parked
    const isUnreadKnown = tenants.length <= MOST_TENANTS
    const waiting = isUnreadKnown ? Math.min(ended, unread) : ended
    return { applied: ended - waiting, failed_again: failed, waiting: waiting + parked }
  }
}

export const DeadLetterView = Type.Object(
  {
    id: Type.String({ format: 'uuid', description: 'For a record write, the operation id' }),
    tenant: Type.String(),
    kind: Type.Enum(['record', 'events']),
    source_config_id: NullableText,
    inbound_event_id: NullableText,
    reason: Type.Enum([...DEAD_LETTER_REASONS], {
      description: 'rejected: the item is invalid; failed: it could not be applied',
    }),
    error: Type.String(),
    attempts: Type.Integer(),
    received_at: Timestamp,
    failed_at: Timestamp,
    replayed_at: NullableTimestamp,
    replayed_as: Nullable(Type.String({ description: 'The id of the replayed entry' })),
    resolved_at: Nullable(Type.String({ format: 'date-time', description: 'Closed without a replay' })),
  },
  {
    title: 'DeadLetter',
    description: 'An entry or item that was rejected or failed every attempt',
    examples: [
      {
        id: '019c1234-5678-7000-8abc-def012300003',
        tenant: 'ten_1',
        kind: 'events',
        source_config_id: 'src_4fTzQ9aXw2LmN8pB',
        inbound_event_id: null,
        reason: 'rejected',
        error: 'event_type is required',
        attempts: 0,
        received_at: '2026-01-31T09:30:00.000Z',
        failed_at: '2026-01-31T09:30:00.040Z',
        replayed_at: null,
        replayed_as: null,
        resolved_at: null,
      },
    ],
  },
)
export type DeadLetterView = Static<typeof DeadLetterView>
