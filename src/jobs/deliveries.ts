import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import { disableFailing } from '../admin/destinations.ts'
import type { Secrets } from '../admin/secrets.ts'
import { DISABLED_AFTER_MS, retryDelayMs } from '../domain/destinations/destinations.ts'
import { coalesce } from '../overload/coalesce.ts'
import {
  buildTarget,
  openSender,
  type Sendable,
  type Sender,
  type SenderOptions,
  type Sent,
  type Target,
} from '../pipeline/deliveries/send.ts'
import { retryWithPartitions } from '../postgres/partitions.ts'
import { type Destination, findDestination } from '../store/destinations/destinations.ts'
import {
  type Attempt,
  type Due,
  destinationsDue,
  type Health,
  leaseDestination,
  readDue,
  releaseDestination,
  removeQueued,
  saveAttempts,
} from '../store/destinations/outbox.ts'
import { createFailureLog, type FailureLogger } from './jobs.ts'

const POLL_EVERY_MS = 250
// After a failure that is not the destination's: the database is unavailable, or the secret key cannot decrypt a secret.
const AFTER_FAILURE_MS = 2_000
// Requests in flight at shutdown get this long. After that another node retries them.
const GRACE_MS = 2_000

type DeliveryOptions = SenderOptions & {
  pool: pg.Pool
  secrets: Secrets
  logger: FailureLogger
  /** A counter that changes whenever this node learns of a configuration change; cached destinations are valid until then. */
  configChanges(): number
  /** Called with the outcome of each attempt, for metrics. */
  count(outcome: Attempt['outcome']): void
}

/** Sends due messages to all destinations. Nodes share the destinations; one node at a time sends to each. */
export function startDeliveries(options: DeliveryOptions): { stop(): Promise<void> } {
  const { pool, logger } = options
  const owner = randomUUID()
  const sender = openSender(options)
  const saver = openSaver(options)
  const channels = new Map<string, Promise<void>>()
  const restingUntil = new Map<string, number>()
  const stopping = new AbortController()
  const isStopping = () => stopping.signal.aborted

  function open(id: string): void {
    const running = runChannel({ ...options, id, owner, sender, isStopping, save: saver.save })
      .catch(error => {
        restingUntil.set(id, performance.now() + AFTER_FAILURE_MS)
        logger.warn({ err: error, destination: id }, 'sending to a destination failed and will be retried')
      })
      .finally(() => channels.delete(id))
    channels.set(id, running)
  }

  async function openDue(): Promise<void> {
    for (const id of await destinationsDue(pool, owner)) {
      const isResting = (restingUntil.get(id) ?? 0) > performance.now()
      if (!isResting) restingUntil.delete(id)
      if (!channels.has(id) && !isResting && !isStopping()) open(id)
    }
  }

  async function openDueUntilStopped(): Promise<void> {
    const failures = createFailureLog(logger, {
      job: 'deliveries',
      failed: 'reading due deliveries failed and will be retried',
    })
    while (!isStopping()) {
      await openDue().then(failures.succeeded, failures.failed)
      await sleep(POLL_EVERY_MS, undefined, { signal: stopping.signal }).catch(() => {})
    }
  }

  const opening = openDueUntilStopped()
  return {
    async stop() {
      stopping.abort()
      await opening
      const ended = Promise.all(channels.values())
      await Promise.race([ended, sleep(GRACE_MS, undefined, { ref: false })])
      sender.close()
      await ended
      await saver.idle()
    },
  }
}

/** Records attempts. Those that end while a statement is running share the next one. */
function openSaver({ pool, now, logger, count }: DeliveryOptions) {
  async function saveSome(attempts: Attempt[]): Promise<void> {
    const healths = [...Map.groupBy(attempts, ({ destinationId }) => destinationId).values()].map(computeHealth)
    const failing = await retryWithPartitions(pool, () => saveAttempts(pool, attempts, healths))
    for (const { outcome } of attempts) count(outcome)
    for (const { destinationId, failingSince } of failing) {
      const isGone = attempts.some(attempt => attempt.destinationId === destinationId && attempt.status === 410)
      const isOver = failingSince !== null && now().getTime() - failingSince.getTime() > DISABLED_AFTER_MS
      if (!isGone && !isOver) continue
      const reason = isGone ? 'It responded with 410 Gone.' : 'All deliveries failed for five days.'
      await disableFailing(pool, destinationId, reason)
      logger.warn({ destination: destinationId, reason }, 'Kontor disabled a destination')
    }
  }

  const saving = coalesce<Attempt, void>({
    async run(attempts) {
      await saveSome(attempts)
      return attempts.map(() => undefined)
    },
    ...{ maxItems: Infinity, maxInFlight: 1 },
  })
  return {
    save: async (attempt: Attempt): Promise<void> => {
      await saving.submit([attempt])
    },
    idle: saving.drained,
  }
}

/** `attempts`: of one destination, in order. */
function computeHealth(attempts: Attempt[]): Health {
  const last = attempts.at(-1)!
  const lastSuccess = attempts.findLastIndex(({ outcome }) => outcome === 'delivered')
  return {
    destinationId: last.destinationId,
    lastAttemptAt: last.attemptedAt,
    lastSuccessAt: attempts[lastSuccess]?.attemptedAt ?? null,
    failingSince: attempts[lastSuccess + 1]?.attemptedAt ?? null,
    lastStatus: last.status,
    lastError: last.error,
  }
}

// Concurrent requests to one destination. A failing destination gets one at a time, so that recovery starts slowly.
const MAX_AT_A_TIME = 16
const FAILURES_TO_SLOW = 5
const READ_AT_A_TIME = 100
// Messages in memory, in flight or waiting for a slot. No more are read beyond this.
const MAX_HELD = 500
const MAX_HELD_BYTES = 4_194_304
const READ_BYTES = 1_048_576
// Rotated secrets expire by time, so the signing keys are rebuilt this often.
const TARGET_MS = 1_000
const LEASE_EVERY_MS = 5_000
const MAX_PAUSE_MS = 60_000
// Messages that waited longer are read again, because an erasure may have deleted them.
const BUFFERED_MS = 1_000
const PAUSE_STEP_MS = 500

type ChannelOptions = {
  id: string
  /** This node, for the lease. */
  owner: string
  pool: pg.Pool
  sender: Sender
  secrets: Pick<Secrets, 'open'>
  now: () => Date
  /** Resolves once the attempt is stored. */
  save(attempt: Attempt): Promise<void>
  isStopping(): boolean
  configChanges(): number
}

/** Sends due messages to one destination until none is left. A slow or unreachable destination delays no other. */
async function runChannel(options: ChannelOptions): Promise<void> {
  const { id, owner, pool } = options
  if (!(await leaseDestination(pool, id, owner))) return
  try {
    await drain(options)
  } finally {
    await releaseDestination(pool, id, owner)
  }
}

async function drain(options: ChannelOptions): Promise<void> {
  const { id, owner, pool } = options
  const held = new Map<string, number>()
  const buffer: Due[] = []
  let heldBytes = 0
  let inFlight = 0
  let failuresInARow = 0
  let pausedUntil = 0
  let wake = () => {}
  const readTarget = createTargetReader(options)
  let leasedAt = performance.now()
  let readAt = 0
  const isHeldBack = () =>
    inFlight >= (failuresInARow >= FAILURES_TO_SLOW ? 1 : MAX_AT_A_TIME) || performance.now() < pausedUntil
  const isFull = () => held.size >= MAX_HELD || heldBytes >= MAX_HELD_BYTES

  /** Resolves when a delivery ends, or after `ms`. */
  function nextChange(ms: number): Promise<void> {
    return new Promise(resolve => {
      const timer = setTimeout(resolve, ms)
      wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  function release(messageId: string): void {
    heldBytes -= held.get(messageId) ?? 0
    held.delete(messageId)
    wake()
  }

  async function fill(): Promise<boolean> {
    readAt = performance.now()
    const due = await readDue(pool, id, { limit: READ_AT_A_TIME, maxBytes: READ_BYTES, held: [...held.keys()] })
    const deleted = due.filter(({ data }) => data === null)
    if (deleted.length > 0)
      await removeQueued(
        pool,
        id,
        deleted.map(message => message.id),
      )
    for (const message of due) {
      if (message.data === null) continue
      held.set(message.id, message.data.length)
      heldBytes += message.data.length
      buffer.push(message)
    }
    return due.length > 0
  }

  async function deliver(destination: Destination, target: Target, due: Due): Promise<void> {
    try {
      const attemptedAt = options.now()
      const sent = await options.sender.send(target, due as Sendable)
      inFlight--
      failuresInARow = sent.isDelivered ? 0 : failuresInARow + 1
      // A throttled destination gets nothing for as long as it asked. Otherwise all waiting messages would use up their attempts.
      if (sent.status === 429) pausedUntil = performance.now() + Math.min(sent.retryAfterMs ?? 1_000, MAX_PAUSE_MS)
      wake()
      // A request that this node aborted is not an attempt.
      if (!(options.isStopping() && sent.status === null))
        await options.save(toAttempt(destination, due, sent, attemptedAt))
    } finally {
      release(due.id)
    }
  }

  const failures: unknown[] = []
  while (!options.isStopping() && failures.length === 0) {
    if (performance.now() - leasedAt > LEASE_EVERY_MS) {
      if (!(await leaseDestination(pool, id, owner))) break
      leasedAt = performance.now()
    }
    const current = await readTarget()
    if (current === null) break
    // The pause also applies to messages that become due meanwhile.
    const isPaused = () => performance.now() < pausedUntil
    if (buffer.length === 0 && !isFull() && !(await fill()) && held.size === 0 && !isPaused()) break
    if (buffer.length === 0 || isHeldBack()) {
      await nextChange(isPaused() ? PAUSE_STEP_MS : LEASE_EVERY_MS)
      continue
    }
    if (performance.now() - readAt > BUFFERED_MS) {
      for (const { id } of buffer.splice(0)) release(id)
      continue
    }
    inFlight++
    deliver(current.destination, current.target, buffer.shift()!).catch(error => failures.push(error))
  }
  for (const { id } of buffer) release(id)
  // Wait until the outcomes are stored: the next node to lease the destination would send these messages again.
  while (held.size > 0) await nextChange(LEASE_EVERY_MS)
  if (failures.length > 0) throw failures[0]
}

/** Reads the current destination and its target; null: it is disabled or deleted. */
function createTargetReader({ id, pool, secrets, now, configChanges }: ChannelOptions) {
  let known: { destination: Destination; target: Target } | null = null
  let destination: Destination | null = null
  let readAt = -1
  let madeAt = 0
  return async () => {
    const changes = configChanges()
    const isChanged = changes !== readAt
    if (!isChanged && performance.now() - madeAt < TARGET_MS) return known
    if (isChanged) destination = await findDestination(pool, id)
    readAt = changes
    madeAt = performance.now()
    known = destination?.enabled ? { destination, target: buildTarget(destination, secrets, now()) } : null
    return known
  }
}

function toAttempt(destination: Destination, due: Due, sent: Sent, attemptedAt: Date): Attempt {
  const attempt = due.attempts + 1
  const delayMs = sent.isDelivered
    ? null
    : retryDelayMs(attempt, { retryAfterMs: sent.retryAfterMs, random: Math.random() })
  return {
    tenantId: destination.tenantId,
    destinationId: destination.id,
    id: due.id,
    type: due.type!,
    attempt,
    dueAt: due.dueAt,
    attemptedAt,
    outcome: sent.isDelivered ? 'delivered' : delayMs === null ? 'failed' : 'retrying',
    status: sent.status,
    error: sent.error,
    response: sent.response,
    durationMs: sent.durationMs,
    nextAttemptAt: delayMs === null ? null : new Date(attemptedAt.getTime() + sent.durationMs + delayMs),
  }
}
