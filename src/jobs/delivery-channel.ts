import type pg from 'pg'
import type { Secrets } from '../admin/secrets.ts'
import { messageId, retryDelayMs } from '../domain/destinations/destinations.ts'
import type { Sender, Sent, Target } from '../pipeline/deliveries/send.ts'
import { bodyOf, targetOf } from '../pipeline/deliveries/target.ts'
import { type Destination, findDestination } from '../store/destinations/destinations.ts'
import {
  type Attempt,
  type Due,
  leaseDestination,
  readDue,
  releaseDestination,
  removeQueued,
} from '../store/destinations/queue.ts'

// At a time to one destination. One that keeps failing is tried with one: it gets no heap of requests when it comes back.
const MAX_AT_A_TIME = 16
const FAILURES_TO_SLOW = 5
const READ_AT_A_TIME = 100
// Of messages in memory, on their way or about to be: beyond it, no more are read.
const MAX_HELD = 500
const MAX_HELD_BYTES = 4_194_304
const READ_BYTES = 1_048_576
// Secrets that were replaced end by the clock: what is sent with is put together anew so often.
const TARGET_MS = 1_000
const LEASE_EVERY_MS = 5_000
const MAX_PAUSE_MS = 60_000

type ChannelOptions = {
  id: string
  /** This node, for the lease. */
  owner: string
  pool: pg.Pool
  sender: Sender
  secrets: Pick<Secrets, 'open'>
  now: () => Date
  /** Resolves once it is written down. */
  save(attempt: Attempt): Promise<void>
  isStopping(): boolean
  /** How often the configuration has changed, as far as this node knows: what is remembered of it holds until then. */
  configChanges(): number
}

/** Sends to one destination what is due there, until nothing is: whether it is slow or away is nobody else's concern. */
export async function runChannel(options: ChannelOptions): Promise<void> {
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
  let onTheirWay = 0
  let failuresInARow = 0
  let pausedUntil = 0
  let wake = () => {}
  const configured = openConfigured(options)
  let leasedAt = Date.now()
  const isHeldBack = () =>
    onTheirWay >= (failuresInARow >= FAILURES_TO_SLOW ? 1 : MAX_AT_A_TIME) || Date.now() < pausedUntil
  const isFull = () => held.size >= MAX_HELD || heldBytes >= MAX_HELD_BYTES

  /** Until something changes here, or so long. */
  function change(ms: number): Promise<void> {
    return new Promise(resolve => {
      const timer = setTimeout(resolve, ms)
      wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  function letGo(messageId: string): void {
    heldBytes -= held.get(messageId) ?? 0
    held.delete(messageId)
    wake()
  }

  async function fill(): Promise<boolean> {
    const due = await readDue(pool, id, {
      limit: READ_AT_A_TIME,
      maxBytes: READ_BYTES,
      held: [...held.keys()],
    })
    const gone = due.filter(({ data }) => data === null)
    if (gone.length > 0)
      await removeQueued(
        pool,
        id,
        gone.map(message => message.id),
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
      const sent = await options.sender.send(target, { id: messageId(due.id), body: bodyOf(due) })
      onTheirWay--
      failuresInARow = sent.isDelivered ? 0 : failuresInARow + 1
      // Whoever says so is told nothing more for as long, instead of using up the attempts of everything that waits.
      if (sent.status === 429) pausedUntil = Date.now() + Math.min(sent.retryAfterMs ?? 1_000, MAX_PAUSE_MS)
      wake()
      // What this node ended itself was no attempt.
      if (!(options.isStopping() && sent.status === null))
        await options.save(attemptOf(destination, due, sent, attemptedAt))
    } finally {
      letGo(due.id)
    }
  }

  const failures: unknown[] = []
  while (!options.isStopping() && failures.length === 0) {
    if (Date.now() - leasedAt > LEASE_EVERY_MS) {
      if (!(await leaseDestination(pool, id, owner))) break
      leasedAt = Date.now()
    }
    const current = await configured()
    if (current === null) break
    if (buffer.length === 0 && !isFull() && !(await fill()) && held.size === 0) break
    if (buffer.length === 0 || isHeldBack()) {
      const pauseMs = pausedUntil - Date.now()
      await change(pauseMs > 0 ? Math.min(pauseMs, LEASE_EVERY_MS) : LEASE_EVERY_MS)
      continue
    }
    onTheirWay++
    deliver(current.destination, current.target, buffer.shift()!).catch(error => failures.push(error))
  }
  for (const { id } of buffer) letGo(id)
  // Also until it is written down what came of them: whoever takes the destination next would send them again.
  while (held.size > 0) await change(LEASE_EVERY_MS)
  if (failures.length > 0) throw failures[0]
}

/** The destination as it is, and how to send to it; null: nothing is to be sent to it. */
function openConfigured({ id, pool, secrets, now, configChanges }: ChannelOptions) {
  let known: { destination: Destination; target: Target } | null = null
  let destination: Destination | null = null
  let readAt = -1
  let madeAt = 0
  return async () => {
    const changes = configChanges()
    const isChanged = changes !== readAt
    if (!isChanged && Date.now() - madeAt < TARGET_MS) return known
    if (isChanged) destination = await findDestination(pool, id)
    readAt = changes
    madeAt = Date.now()
    known = destination?.enabled ? { destination, target: targetOf(destination, secrets, now()) } : null
    return known
  }
}

function attemptOf(destination: Destination, due: Due, sent: Sent, attemptedAt: Date): Attempt {
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
    attemptedAt,
    outcome: sent.isDelivered ? 'delivered' : delayMs === null ? 'failed' : 'retrying',
    status: sent.status,
    error: sent.error,
    response: sent.response,
    durationMs: sent.durationMs,
    nextAttemptAt: delayMs === null ? null : new Date(attemptedAt.getTime() + sent.durationMs + delayMs),
  }
}
