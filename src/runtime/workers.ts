import type pg from 'pg'
import type { Logger } from 'pino'
import { DEFAULT_CONVERSION_TYPES } from '../domain/conversions.ts'
import { startJobs } from '../jobs/jobs.ts'
import { directoryRefresh } from '../jobs/upkeep.ts'
import type { Log } from '../log/log.ts'
import { openPostgresLog } from '../log/postgres.ts'
import { billingEvents } from '../pipeline/billing.ts'
import { openConsumer } from '../pipeline/consumer.ts'
import { orderConversions } from '../pipeline/conversions.ts'
import { contactIdentities, eventKind } from '../pipeline/events.ts'
import { openIdentities } from '../pipeline/identity.ts'
import { recordKind } from '../pipeline/records.ts'
import { openTouches } from '../pipeline/touches.ts'
import type { Kind } from '../pipeline/unit.ts'
import { brokenConnection, type Connection, openPool } from '../store/database.ts'
import { type Directory, openDirectory } from '../store/directory.ts'
import { listenForNotices } from '../store/notices.ts'
import { ensurePartitionsFor, periodOf } from '../store/partitions.ts'

/** Plain data: it goes to another thread as it is. */
export type WorkerOptions = { connection: Connection; workers: number; partitions: number }

export type PoolCounts = Pick<pg.Pool, 'totalCount' | 'idleCount' | 'waitingCount'>

export type Workers = { counts(): PoolCounts; stop(): Promise<void> }

// The listener for changes of the configuration, and the partitions that are made beside a transaction.
const CONNECTIONS_BESIDE_WORKERS = 2

/** The pipeline with all it needs, on connections of its own: requests never wait behind a batch. */
export async function startWorkers(
  { connection, workers, partitions }: WorkerOptions,
  { logger, onAppend }: { logger: Logger; onAppend: Log['onAppend'] },
): Promise<Workers> {
  const pool = openPool({
    connection,
    max: workers + CONNECTIONS_BESIDE_WORKERS,
    name: 'kontor worker',
    onError: brokenConnection(logger),
  })
  const directory = openDirectory({ pool })
  const notices = listenForNotices(pool, 'kontor_config', () => directory.forget())
  const jobs = startJobs([directoryRefresh(directory)], logger)
  const identities = openIdentities()
  const kinds = {
    record: recordKind([contactIdentities(identities), orderConversions(identities)]) as Kind,
    events: eventKind({
      identities,
      touches: openTouches(),
      conversionTypes: tenantId => conversionTypesOf(directory, tenantId),
      ensureMonths: monthKeeper(pool),
      listeners: [billingEvents()],
    }) as Kind,
  }
  const log = { ...openPostgresLog({ pool, partitions }), onAppend }
  const consumer = openConsumer({ pool, log, kinds, workers, logger })
  consumer.start()
  return {
    counts: () => ({
      totalCount: pool.totalCount,
      idleCount: pool.idleCount,
      waitingCount: pool.waitingCount,
    }),
    async stop() {
      await consumer.stop()
      await jobs.stop()
      await notices.stop()
      await pool.end()
    },
  }
}

const defaultConversionTypes = new Set(DEFAULT_CONVERSION_TYPES)

async function conversionTypesOf(directory: Directory, tenantId: number): Promise<Set<string>> {
  const own = (await directory.tenant(tenantId))?.conversionTypes
  return own ? new Set(own) : defaultConversionTypes
}

const FIRST_MONTH = Date.parse('2000-01-01T00:00:00Z')

/** Makes the partitions of months that events turn up for; what is older than 2000 has one for all. */
function monthKeeper(pool: pg.Pool): (moments: Date[]) => Promise<void> {
  const known = new Set<number>()
  return async moments => {
    const missing = moments.filter(at => at.getTime() >= FIRST_MONTH && !known.has(periodOf('events', at)))
    if (missing.length === 0) return
    await ensurePartitionsFor(pool, 'events', missing)
    for (const at of missing) known.add(periodOf('events', at))
  }
}
