import type pg from 'pg'
import { DAY_MS, earliest, HOUR_MS } from '../domain/time.ts'
import { IDEMPOTENCY_KEY_DAYS } from '../log/postgres/claims.ts'
import { hasEntriesSince } from '../log/postgres/reader.ts'
import { inTransaction } from '../postgres/database.ts'
import { dropPartitionsBefore, type PartitionedTable } from '../postgres/partitions.ts'
import { dropQueuedBefore, oldestQueued } from '../store/destinations/outbox.ts'
import { deleteDeadLettersBefore } from '../store/entries/dead-letters.ts'
import { oldestHeldUp } from '../store/entries/parked.ts'
import { lockRetentionClock, type RetentionClock, writeRetentionClock } from '../store/entries/retention-clock.ts'
import { dropEventSums } from '../store/sums/fold.ts'
import type { Job } from './jobs.ts'

// If the clock is wrongly ahead, dropped partitions cannot come back: used idempotency keys and event ids would be accepted again.
const JUMP_MS = 7 * DAY_MS
const STEADY_MS = DAY_MS
// Added to the log's retention, so that a log that receives nothing is emptied before this check holds retention.
const QUIET_MS = 3 * DAY_MS
const LETTERS_AT_A_TIME = 500

type Retention = {
  logRetentionMs: number
  operationsRetentionMs: number
  receiptsRetentionMs: number
  archiveRetentionMs: number
  processedRetentionMs: number
  deliveriesRetentionMs: number
  eventsRetentionMs: number | null
  deadLettersRetentionMs: number | null
}

type RetentionOptions = {
  pool: pg.Pool
  settings: Retention
  /** PostgreSQL's clock; the clocks of nodes may be wrong. */
  now(): Promise<Date>
  oldestUnread(): Promise<Date | null>
  logger: { warn(facts: object, message: string): void }
}

/** Drops expired data, a whole partition at a time. */
export function retentionJob(options: RetentionOptions): Job {
  return {
    name: 'retention',
    everyMs: HOUR_MS,
    async run() {
      const { pool, settings, logger } = options
      const now = await options.now()
      const heldReason = await inTransaction(pool, client => checkClock(client, now, options))
      if (heldReason) {
        logger.warn({ reason: heldReason }, 'retention is on hold and drops nothing')
        return
      }
      const waiting = earliest(await options.oldestUnread(), await oldestHeldUp(pool))
      await dropExpired(options, now, waiting)
      await deleteExpiredLetters(pool, settings, now)
    },
  }
}

/** Keeps entries that are not applied yet, however old, and everything that applying them needs. */
async function dropExpired({ pool, settings }: RetentionOptions, now: Date, waiting: Date | null): Promise<void> {
  const ago = (ms: number) => new Date(now.getTime() - ms)
  const unlessNeeded = (ms: number) => earliest(ago(ms), waiting)!
  const limits: [PartitionedTable, Date][] = [
    ['log', unlessNeeded(settings.logRetentionMs)],
    ['operations', unlessNeeded(settings.operationsRetentionMs)],
    ['idempotency_keys', ago(IDEMPOTENCY_KEY_DAYS * DAY_MS)],
    ['receipts', unlessNeeded(settings.receiptsRetentionMs)],
    ['archive', unlessNeeded(settings.archiveRetentionMs)],
    ['processed_events', ago(settings.processedRetentionMs)],
    // Unsent messages stay, however old.
    ['outbox', earliest(ago(settings.deliveriesRetentionMs), await oldestQueued(pool))!],
    ['delivery_attempts', ago(settings.deliveriesRetentionMs)],
  ]
  if (settings.eventsRetentionMs !== null) limits.push(['events', ago(settings.eventsRetentionMs)])
  await dropQueuedBefore(pool, ago(settings.deliveriesRetentionMs))
  const failures: unknown[] = []
  for (const [table, limit] of limits) {
    const onDrop = table === 'events' ? dropEventSums : undefined
    await dropPartitionsBefore(pool, table, limit, onDrop).catch(error => failures.push(error))
  }
  if (failures.length > 0) throw failures[0]
}

async function deleteExpiredLetters(pool: pg.Pool, settings: Retention, now: Date): Promise<void> {
  if (settings.deadLettersRetentionMs === null) return
  const before = new Date(now.getTime() - settings.deadLettersRetentionMs)
  while ((await deleteDeadLettersBefore(pool, before, LETTERS_AT_A_TIME)) === LETTERS_AT_A_TIME);
}

/** Returns why nothing may be dropped now; null: dropping is allowed. */
async function checkClock(client: pg.PoolClient, now: Date, { settings }: RetentionOptions): Promise<string | null> {
  const clock = await lockRetentionClock(client, now)
  const next = nextClock(clock, now)
  if (next.heldReason === null) {
    const quietSince = new Date(now.getTime() - settings.logRetentionMs - QUIET_MS)
    if (!(await hasEntriesSince(client, quietSince)))
      next.heldReason = `The newest entry of the log is older than ${quietSince.toISOString()}: PostgreSQL's clock may be wrong.`
  }
  await writeRetentionClock(client, next)
  return next.heldReason
}

/** After a clock jump, or when the machine was off, nothing is dropped until the clock has been steady for a day. */
export function nextClock({ trustedAt, heldSince }: RetentionClock, now: Date): RetentionClock {
  const jumped = now.getTime() - trustedAt.getTime() > JUMP_MS
  const since = heldSince === null || heldSince > now ? now : heldSince
  const isSteady = now.getTime() - since.getTime() >= STEADY_MS
  if (!jumped || isSteady) return { trustedAt: now, heldSince: null, heldReason: null }
  const until = new Date(since.getTime() + STEADY_MS).toISOString()
  return {
    trustedAt,
    heldSince: since,
    heldReason: `The clock went from ${trustedAt.toISOString()} to ${now.toISOString()} since the last run: nothing is dropped before ${until}.`,
  }
}
