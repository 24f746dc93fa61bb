import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import { type Static, Type } from 'typebox'
import { DEAD_LETTER_REASONS, type Entry } from '../domain/entries/entry.ts'
import type { Edit, EventContext } from '../domain/events/events.ts'
import { isUuid, newEntryId } from '../domain/ids.ts'
import { changedFields, isObject } from '../domain/json/json.ts'
import { Nullable, NullableText, NullableTimestamp, Timestamp } from '../domain/shapes.ts'
import { publicTenantId } from '../domain/tenants/tenants.ts'
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

/** Which letters to replay: one, those of a source or of a reason, or all of them. */
type ReplayQuery = {
  tenant?: string | undefined
  id?: string | undefined
  source?: string | undefined
  reason?: string | undefined
  cause?: string | undefined
  all?: boolean | undefined
}

/** `body`: of one letter, what takes the place of what came in. */
export type ReplayOrder = ReplayQuery & { body?: string | undefined }

/** `remaining`: what was there before the replay began and has not been replayed. */
export type Replayed = { replayed: number; remaining: number } & ReplayOutcome

type ReplayOptions = {
  atMost?: number
  /** How long to wait for what becomes of them. */
  waitMs?: number
  progress?: (replayed: number) => void
}

// Short transactions, so that readers of the log are not held back; enough for 100,000 letters in seconds.
const LETTERS_AT_A_TIME = 500
const BYTES_AT_A_TIME = 4_000_000
const RESOLVED_AT_A_TIME = 10_000
// What an event may have as it comes in by itself.
const MAX_EDITED_BYTES = 65_536

export type DeadLetterAdmin = ReturnType<typeof deadLetterAdmin>

export function deadLetterAdmin({ pool, log, actor }: { pool: pg.Pool; log: Log; actor: Actor }) {
  const tenantIdOf = (tenant: string | undefined) => resolveTenantFilter(pool, actor, tenant)

  async function filterOf({ tenant, id, source, reason, cause }: ReplayQuery): Promise<DeadLetterFilter> {
    const failedBefore = await databaseNow(pool)
    return { tenantId: await tenantIdOf(tenant), id, sourceId: source, reason, cause, failedBefore }
  }

  /** Where one is asked for: that one, which is there. */
  async function ofOne({ tenantId, id }: DeadLetterFilter): Promise<DeadLetter | null> {
    if (id === undefined) return null
    const letter = await findDeadLetter(pool, tenantId, id)
    if (!letter) throw deadLetterNotFound(id)
    return letter
  }

  /** `first`: the portion that also writes down who replays, and how many there are to replay. */
  async function replaySome(filter: DeadLetterFilter, first: boolean, body?: string): Promise<Replay[]> {
    return inTransaction(pool, async client => {
      const letters = await takeForReplay(client, {
        ...filter,
        limit: LETTERS_AT_A_TIME,
        maxBytes: BYTES_AT_A_TIME,
      })
      if (letters.length === 0) return []
      if (first) await recordReplay(client, actor, filter, letters, body)
      const now = await databaseNow(client)
      const entries: Entry[] = []
      for (const letter of letters)
        entries.push(
          await toReplayEntry(
            client,
            body === undefined ? letter : withEditedBody(letter, body, actor, now),
            now,
          ),
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
    /** With the body as it came in. */
    async show(id: string, tenant?: string): Promise<DeadLetterView & { body: string }> {
      const letter = isUuid(id) ? await findDeadLetter(pool, await tenantIdOf(tenant), id) : null
      if (!letter) throw deadLetterNotFound(id)
      return { ...deadLetterView(letter), body: letter.body }
    },
    /**
     * Puts letters back into the log, oldest first, each exactly once. What fails again meanwhile is left alone. Stops
     * after `atMost`, if given; `remaining` then says how many are left. What became of them is told after `waitMs` at the latest.
     */
    async replay(
      { body, ...query }: ReplayOrder,
      { atMost, waitMs = 0, progress }: ReplayOptions = {},
    ): Promise<Replayed> {
      // Whoever writes the body writes any event: more than to repeat what came in.
      if (body !== undefined) requireRole(actor, 'admin')
      throwIfInvalid([...validateQuery(query), ...validateBody(body, query)])
      const filter = await filterOf(query)
      const letter = await ofOne(filter)
      if (body !== undefined && letter?.kind !== 'events')
        throwIfInvalid([{ pointer: '/body', message: 'must be left out: only events can be edited' }])
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
    /** Closes letters without a replay: nobody needs them any more. They stay until they expire. */
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
      // names of fields only: what stands in them may be about people
      ...(body !== undefined && { edited: true, changed: changedFields(taken[0]!.body, body) }),
    },
  })
}

/** Whoever looks at the event sees that this is not what came in. */
function withEditedBody(letter: Entry, body: string, { name }: Actor, now: Date): Entry {
  // `plain` was found of the other body
  const { plain: _, ...context } = JSON.parse(letter.context) as EventContext
  const edit: Edit = { by: name, at: now.toISOString(), deadLetter: letter.id }
  return { ...letter, body, context: JSON.stringify({ ...context, edited: edit }) }
}

function validateQuery({ id, source, reason, cause, all }: ReplayQuery) {
  const faults = []
  if (id !== undefined && !isUuid(id))
    faults.push({ pointer: '/id', message: 'must be the id of a dead letter' })
  if (reason !== undefined && !DEAD_LETTER_REASONS.includes(reason as never))
    faults.push({ pointer: '/reason', message: `must be one of ${DEAD_LETTER_REASONS.join(', ')}` })
  if ([id, source, reason, cause].every(given => given === undefined) && all !== true)
    faults.push({ pointer: '', message: 'must say which: id, source, reason, cause, or all: true' })
  return faults
}

/**
 * The letter as a new entry. A record keeps its id, because its operation is known by it; events get new ones, since
 * their id tells when they came in, and count from when they first did. They are read with the source's settings of
 * today: what was rejected for a setting goes through once that is put right.
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
  if (id === undefined) return [{ pointer, message: 'must be left out, or the id of one dead letter given' }]
  if (Buffer.byteLength(body) > MAX_EDITED_BYTES)
    return [{ pointer, message: `must have at most ${MAX_EDITED_BYTES} bytes` }]
  try {
    return isObject(JSON.parse(body)) ? [] : [{ pointer, message: 'must be a JSON object' }]
  } catch (error) {
    return [{ pointer, message: `must be JSON: ${(error as Error).message}` }]
  }
}

function deadLetterNotFound(id: string): AdminError {
  return new AdminError(
    'not_found',
    'dead_letter_not_found',
    `There is no dead letter ${JSON.stringify(id)}.`,
  )
}

function deadLetterView(letter: DeadLetter): DeadLetterView {
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

/** An entry that went in again. */
type Replay = { tenantId: number; as: string }

/** What became of what was replayed: `waiting` is not known yet, or failed and is tried again. */
type ReplayOutcome = { applied: number; failed_again: number; waiting: number }

const LOOK_EVERY_MS = 50
// The log is asked for each; beyond, nobody waits for the answer.
const MOST_TENANTS = 10
// As in erasures: nodes count on from PostgreSQL's clock.
const NODES_AHEAD_MS = 1_000

/** Waits for so long until all of it was processed, and tells how that went. */
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
    for (const tenantId of tenants.slice(0, MOST_TENANTS))
      unread += (await log.unread(tenantId, latest)).entries
    if (unread > 0 && performance.now() < until) {
      await sleep(LOOK_EVERY_MS)
      continue
    }
    // After the log: what moves on meanwhile is found where it went.
    const { failed, parked } = await replayedOutcomes(pool, replays)
    const ended = replays.length - failed - parked
    const isTold = tenants.length <= MOST_TENANTS
    const waiting = isTold ? Math.min(ended, unread) : ended
    return { applied: ended - waiting, failed_again: failed, waiting: waiting + parked }
  }
}

export const DeadLetterView = Type.Object(
  {
    id: Type.String({ format: 'uuid', description: 'Of a record write: the operation id' }),
    tenant: Type.String(),
    kind: Type.Enum(['record', 'events']),
    source_config_id: NullableText,
    inbound_event_id: NullableText,
    reason: Type.Enum([...DEAD_LETTER_REASONS], {
      description: 'rejected: never valid; failed: could not be applied',
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
