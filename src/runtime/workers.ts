import type pg from 'pg'
import type { Logger } from 'pino'
import type { NatsSettings } from '../log/jetstream/nats.ts'
import type { Log } from '../log/log.ts'
import { applyBatch } from '../pipeline/apply.ts'
import { openConversionTypes } from '../pipeline/conversions/conversions.ts'
import { openAudience } from '../pipeline/deliveries/audience.ts'
import { eventKind } from '../pipeline/events/events.ts'
import { openIdentities } from '../pipeline/identity/identity.ts'
import { openSuppressions } from '../pipeline/identity/suppressions.ts'
import { openTouches } from '../pipeline/identity/touches.ts'
import { recordKind } from '../pipeline/records/records.ts'
import { openScheduler } from '../pipeline/scheduler.ts'
import { openTransactions } from '../pipeline/transaction.ts'
import type { Kind } from '../pipeline/unit.ts'
import { brokenConnection, type Connection, openPool, RestartTransaction } from '../postgres/database.ts'
import { computePeriod, ensurePartitionsFor } from '../postgres/partitions.ts'
import type { PoolCounts } from '../telemetry/metrics.ts'
import type { Tracing } from '../telemetry/tracing.ts'
import { openLog } from './log.ts'

/** Plain data: it goes to another thread as it is. */
export type WorkerOptions = {
  connection: Connection
  nats: NatsSettings | null
  workers: number
  eventsFloorMs: number | null
}

export type Workers = { counts(): PoolCounts; stop(): Promise<void> }

// For whoever makes partitions.
const CONNECTIONS_BESIDE_WORKERS = 1

// Whoever waits longer for a lock begins again. A statement that takes longer fails: what makes it do so is found and set aside.
const LIMITS = { lockMs: 30_000, statementMs: 120_000 }

/** The pipeline with all it needs, on connections of its own: requests never wait behind a batch. */
export async function startWorkers(
  { connection, nats, workers, eventsFloorMs }: WorkerOptions,
  { logger, onAppend, tracing }: { logger: Logger; onAppend: Log['onAppend']; tracing?: Tracing | null },
): Promise<Workers> {
  const pool = openPool({
    connection,
    max: workers + CONNECTIONS_BESIDE_WORKERS,
    name: 'kontor worker',
    onError: brokenConnection(logger),
    transactionLimits: LIMITS,
  })
  const effects = {
    identities: openIdentities(),
    touches: openTouches(),
    conversionTypes: openConversionTypes(),
    suppressions: openSuppressions(),
    loadAudience: openAudience(),
    ensureMonths: monthKeeper(pool),
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
    counts: () => ({
      totalCount: pool.totalCount,
      idleCount: pool.idleCount,
      waitingCount: pool.waitingCount,
    }),
    async stop() {
      await scheduler.stop()
      await close()
      await pool.end()
    },
  }
}

const FIRST_MONTH = Date.parse('2000-01-01T00:00:00Z')

/**
 * Makes the partitions of months that events turn up for; what is older than 2000 has one for all. Made before the
 * transaction begins again, not beside it: a worker that waits for a second connection could wait for ever.
 */
function monthKeeper(pool: pg.Pool): (moments: Date[]) => void {
  const known = new Set<number>()
  return moments => {
    const missing = moments.filter(
      at => at.getTime() >= FIRST_MONTH && !known.has(computePeriod('events', at)),
    )
    if (missing.length === 0) return
    throw new RestartTransaction('There may be no partition for an event yet', async () => {
      await ensurePartitionsFor(pool, 'events', missing)
      for (const at of missing) known.add(computePeriod('events', at))
    })
  }
}
