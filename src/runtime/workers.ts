import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import type pg from 'pg'
import type { Logger } from 'pino'
import type { NatsSettings } from '../log/jetstream/nats.ts'
import type { Log } from '../log/log.ts'
import { applyBatch } from '../pipeline/apply.ts'
import { openConversionTypes } from '../pipeline/conversions/conversions.ts'
import { openAudience } from '../pipeline/deliveries/notify.ts'
import { eventKind } from '../pipeline/events/events.ts'
import { openLastSeen } from '../pipeline/identity/last-seen.ts'
import { openIdentities } from '../pipeline/identity/linking.ts'
import { openSuppressions } from '../pipeline/identity/suppressions.ts'
import { openTouches } from '../pipeline/identity/touches.ts'
import { recordKind } from '../pipeline/records/records.ts'
import { openScheduler } from '../pipeline/scheduler.ts'
import { openTransactions } from '../pipeline/transaction.ts'
import type { Kind } from '../pipeline/unit.ts'
import { brokenConnection, type Connection, openPool, RestartTransaction } from '../postgres/database.ts'
import { computePeriod, ensurePartitionsFor } from '../postgres/partitions.ts'
import type { LoggerOptions } from '../telemetry/logging.ts'
import type { PoolCounts } from '../telemetry/metrics.ts'
import type { Tracing } from '../telemetry/tracing.ts'
import { openLog } from './log.ts'

/** Plain data, because it is passed to another thread. */
type WorkerOptions = {
  connection: Connection
  nats: NatsSettings | null
  workers: number
  eventsFloorMs: number | null
  eventsRetentionMs: number | null
}

export type Workers = { counts(): PoolCounts; stop(): Promise<void> }

// For the creation of partitions.
const EXTRA_CONNECTIONS = 1

// A transaction that waits longer for a lock restarts. A statement that takes longer fails, and the entry that causes it is isolated.
const LIMITS = { lockMs: 30_000, statementMs: 120_000 }

/** Starts the pipeline on its own connections, so that requests never wait behind a batch. */
export async function startWorkers(
  { connection, nats, workers, eventsFloorMs, eventsRetentionMs }: WorkerOptions,
  { logger, onAppend, tracing }: { logger: Logger; onAppend: Log['onAppend']; tracing?: Tracing | null },
): Promise<Workers> {
  const pool = openPool({
    connection,
    max: workers + EXTRA_CONNECTIONS,
    name: 'kontor worker',
    onError: brokenConnection(logger),
    transactionLimits: LIMITS,
  })
  const effects = {
    identities: openIdentities(),
    touches: openTouches(),
    lastSeen: openLastSeen(),
    conversionTypes: openConversionTypes(),
    suppressions: openSuppressions(),
    loadAudience: openAudience(),
    ensureMonths: createMonthPartitions(pool),
    copiesEvents: eventsRetentionMs !== null,
  }
  const { log, close } = await openLog({ pool, nats, name: 'kontor worker', logger })
  const runTransaction = openTransactions({
    ...{ pool, log, logger, suppressions: effects.suppressions, tracing: tracing ?? null },
    kinds: { record: recordKind as Kind, events: eventKind(eventsFloorMs) as Kind },
    applyBatch: (transaction, units) => applyBatch(effects, transaction, units),
  })
  const scheduler = openScheduler({ runTransaction, workers, onAppend, logger })
  scheduler.start()
  return {
    counts: () => ({ totalCount: pool.totalCount, idleCount: pool.idleCount, waitingCount: pool.waitingCount }),
    async stop() {
      await scheduler.stop()
      await close()
      await pool.end()
    },
  }
}

const FIRST_MONTH = Date.parse('2000-01-01T00:00:00Z')

/**
 * Creates missing month partitions of events. Events before 2000 share one partition. The transaction is rolled back first and
 * restarts afterwards: a worker that waits for a second connection inside its transaction could deadlock.
 */
function createMonthPartitions(pool: pg.Pool): (moments: Date[]) => void {
  const known = new Set<number>()
  return moments => {
    const missing = moments.filter(at => at.getTime() >= FIRST_MONTH && !known.has(computePeriod('events', at)))
    if (missing.length === 0) return
    throw new RestartTransaction('A partition for an event may be missing', async () => {
      await ensurePartitionsFor(pool, 'events', missing)
      for (const at of missing) known.add(computePeriod('events', at))
    })
  }
}

/** The start parameters of the thread. */
export type ThreadData = {
  options: WorkerOptions
  logging: LoggerOptions
  /** 1 while a wake-up message is in transit, so that many appends between two reads send only one message. */
  isWaking: Int32Array
}

export type ToThread = 'wake' | 'stop'

export type FromThread = 'started' | PoolCounts

/**
 * Runs the workers in a separate thread. Reading and normalizing a batch blocks its thread for tens of milliseconds, and
 * requests should not wait for that.
 */
export async function startWorkerThread(
  options: WorkerOptions,
  { logging, onAppend }: { logging: LoggerOptions; onAppend: Log['onAppend'] },
): Promise<Workers> {
  const isWaking = new Int32Array(new SharedArrayBuffer(4))
  const workerData: ThreadData = { options, logging, isWaking }
  const thread = new Worker(new URL('./thread.ts', import.meta.url), { workerData, name: 'pipeline' })
  const send = (message: ToThread) => thread.postMessage(message)
  let counts: PoolCounts = { totalCount: 0, idleCount: 0, waitingCount: 0 }
  thread.on('message', (message: FromThread) => {
    if (message !== 'started') counts = message
  })
  await once(thread, 'message')

  let stopping = false
  // Rethrown in the main thread: a process without its pipeline must not look healthy.
  thread.on('error', error => {
    throw error
  })
  thread.on('exit', code => {
    if (!stopping) throw new Error(`The pipeline thread exited unexpectedly with code ${code}`)
  })
  const unsubscribe = onAppend(() => {
    if (Atomics.exchange(isWaking, 0, 1) === 0) send('wake')
  })
  return {
    counts: () => counts,
    async stop() {
      stopping = true
      unsubscribe()
      const ended = once(thread, 'exit')
      send('stop')
      await ended
    },
  }
}
