import type pg from 'pg'
import type { Logger } from 'pino'
import type { Config } from '../config/config.ts'
import { type Ops, type OpsMetrics, startOps } from '../http/ops.ts'
import { countSkippedMessages } from '../log/jetstream/known-streams.ts'
import type { Log } from '../log/log.ts'
import { type Backlog, describeBacklog } from '../overload/backlog.ts'
import { type Disk, describeDisk } from '../overload/disk.ts'
import { countDeadLetters } from '../store/entries/dead-letters.ts'
import { listStalled } from '../store/entries/parked.ts'
import { retentionHeldBy } from '../store/entries/retention-clock.ts'
import { countAllSuppressed } from '../store/identity/suppressions.ts'
import type { Metrics } from '../telemetry/metrics.ts'

/** What /metrics tells of the parts, read when it is asked for. */
export function watchParts(
  metrics: Metrics,
  {
    pool,
    log: { outside },
    backlog,
    disk,
  }: { pool: pg.Pool; log: Pick<Log, 'outside'>; backlog: Backlog; disk: Disk },
): void {
  metrics.watchDisk(disk.free)
  metrics.watchDeadLetters(() => countDeadLetters(pool))
  if (outside)
    metrics.watchSkippedMessages(async () => {
      const { foreign, unreadable } = await countSkippedMessages(pool, outside.stream)
      return (foreign?.messages ?? 0) + (unreadable?.messages ?? 0)
    })
  metrics.watchSuppressed(() => countAllSuppressed(pool))
  metrics.watchStalled(async () => (await listStalled(pool)).length)
  metrics.watchRetention(async () => (await retentionHeldBy(pool)) !== null)
  metrics.watchBacklog(backlog)
  metrics.watchPipeline(async () => {
    const lags = await backlog.lags()
    return lags.map(({ partition, entries, oldestAt }) => ({
      partition,
      entries,
      seconds: oldestAt ? (Date.now() - oldestAt.getTime()) / 1000 : 0,
    }))
  })
}

type OpsParts = {
  pool: pg.Pool
  log: Pick<Log, 'outside'>
  metrics: OpsMetrics
  logger: Logger
  disk: Disk
  backlog: Backlog
  about: object
}

/** A taken operations port stops the service only when it was asked for by name. */
export async function openOps(
  config: Config,
  { pool, log: { outside }, metrics, logger, disk, backlog, about }: OpsParts,
): Promise<Ops | null> {
  if (config.opsPort === null) return null
  const readiness = async () => {
    const started = performance.now()
    await pool.query('select 1')
    const database = `answered in ${Math.round(performance.now() - started)} ms`
    // Ready all the same: reads go on.
    const nats = outside && { nats: outside.promise() ?? 'away: events are answered 503' }
    return {
      ok: true,
      checks: { database, disk: describeDisk(disk), backlog: describeBacklog(backlog), ...nats },
    }
  }
  try {
    return await startOps({ port: config.opsPort, host: config.opsHost, metrics, readiness, about })
  } catch (error) {
    if (config.opsPortIsGiven) throw error
    logger.warn(
      { port: config.opsPort, reason: (error as Error).message },
      'the operations port is taken: this process serves no /healthz, /readyz and /metrics. Set KONTOR_OPS_PORT.',
    )
    return null
  }
}
