import type { AddressInfo } from 'node:net'
import type { Logger } from 'pino'
import { openArchive } from '../admin/archive.ts'
import { loadMasterKeys, openSecrets } from '../admin/secrets.ts'
import { type Config, otelVariables } from '../config/config.ts'
import { version } from '../config/version.ts'
import type { App, Surface } from '../http/app.ts'
import { buildServer } from '../http/server.ts'
import { type AcceptMetrics, openAccept } from '../intake/accept.ts'
import { alertJob } from '../jobs/alerts.ts'
import { openStorage, startArchive } from '../jobs/archive.ts'
import { startDeliveries } from '../jobs/deliveries.ts'
import { type Job, startJobs } from '../jobs/jobs.ts'
import { ledgerJobs, snapshotJob } from '../jobs/ledger.ts'
import {
  keyUseJob,
  partitionJob,
  resumeInterruptedJobs,
  seriesJob,
  streamJobs,
  stuckSessionJob,
} from '../jobs/maintenance.ts'
import { retentionJob } from '../jobs/retention.ts'
import { leaveStreams } from '../log/jetstream/leave.ts'
import { type Log, LogRefused, type OutsideLog } from '../log/log.ts'
import { type Backlog, watchBacklog } from '../overload/backlog.ts'
import { diskReader, type ReadFree, watchDisk } from '../overload/disk.ts'
import { brokenConnection, type Connection, databaseNow, openPool } from '../postgres/database.ts'
import { archiveState } from '../store/archive/archive.ts'
import { watchConfigVersion } from '../store/tenants/config-version.ts'
import { openDirectory } from '../store/tenants/directory.ts'
import type { LoggerOptions } from '../telemetry/logging.ts'
import { type Metrics, type MetricsSample, openMetrics } from '../telemetry/metrics.ts'
import { openTracing, type Tracing } from '../telemetry/tracing.ts'
import { openClock } from './clock.ts'
import { initializeLog, isStorageUnavailable, openLog, toNatsSettings } from './log.ts'
import { openOps, watchParts } from './ops.ts'
import { type OpenedSurfaces, openSurfaces, type Parts } from './surfaces.ts'
import { startWorkerThread } from './thread.ts'
import { startWorkers, type Workers } from './workers.ts'

export type Runtime = {
  url: string
  opsUrl: string | null
  /** Null where other processes serve the requests. */
  http: App | null
  /** Called after something was appended here. */
  onAppend: Log['onAppend']
  sampleMetrics(): Promise<MetricsSample>
  /** What an acknowledged event on NATS survives, in words; null without NATS. */
  promise: string | null
  close(): Promise<void>
}

/** Processes that serve the requests of this node, where it does not do so itself. */
export type HttpProcesses = {
  url: string
  count: number
  onAppend: Log['onAppend']
  metrics(): Promise<MetricsSample[]>
  close(): Promise<void>
}

type RuntimeOptions = {
  config: Config
  connection: Connection
  log: Logger
  now?: () => Date
  /** Default: what the disk of the data directory says. */
  readFree?: ReadFree
  /** Given, the pipeline runs in a thread of its own beside the surfaces, and logs there like this. */
  threadLogging?: LoggerOptions
  processes?: HttpProcesses | null
  /** One of these: what there is once in a node, another process watches. */
  isOneOfSeveral?: boolean
}

/** Says what is to be closed; the last that was opened is closed first. */
type OnClose = (closer: () => Promise<unknown>) => void

/** Builds everything that the chosen surfaces need, in order; `close` takes it down in reverse. */
export async function startRuntime(options: RuntimeOptions): Promise<Runtime> {
  const { config, log: logger } = options
  const closers: (() => Promise<unknown>)[] = []
  const onClose: OnClose = closer => closers.push(closer)
  async function close() {
    for (const closer of closers.splice(0).reverse()) {
      await closer().catch(error => logger.error({ err: error }, 'a part did not close cleanly'))
    }
  }

  try {
    const parts = await openParts(options, onClose)
    const { log, metrics, directory, tracing } = parts
    const { processes } = options
    const opened = processes ? NO_SURFACES : await openSurfaces(config, parts)
    onClose(opened.close)
    const runsWorkers = config.surfaces.includes('worker')
    const jobs = [
      keyUseJob(directory),
      ...streamJobs(log),
      ...opened.jobs,
      ...(runsWorkers ? upkeep(options, parts) : []),
    ]

    // Closed after the workers: what they applied last is archived too.
    if (runsWorkers) await openArchiving(options, parts, onClose)
    // Stopped after the surfaces: whoever waits for an effect is still answered.
    let workers: Workers | null = null
    onClose(async () => workers?.stop())
    const runningJobs = startJobs(jobs, logger)
    onClose(() => runningJobs.stop())
    if (runsWorkers) openDeliveries(options, parts, onClose)

    const http = processes
      ? null
      : await buildApp(config, { surfaces: opened.surfaces, logger, metrics, tracing })
    await http?.listen({ port: config.port, host: config.host })
    onClose(async () => (http ?? processes!).close())

    if (runsWorkers) {
      // Last: loading its thread takes half a second, in which requests are served already.
      workers = await openWorkers(options, { onAppend: processes?.onAppend ?? log.onAppend, tracing })
      metrics.watchPool('workers', workers.counts)
    }
    const { contentType } = metrics
    const text = async () => metrics.text(await processes?.metrics())
    const url = http ? urlOf(http, config.host) : processes!.url
    const about = aboutServer(url, processes?.count ?? 1)
    const ops = await openOps(config, { ...parts, metrics: { contentType, text }, logger, about })
    if (ops) onClose(() => ops.close())
    const opsUrl = ops && `http://${config.opsHost}:${ops.port}`
    return {
      ...{ url, opsUrl, http, onAppend: log.onAppend, sampleMetrics: metrics.sample, close },
      promise: log.outside ? (log.outside.promise() ?? 'NATS is away') : null,
    }
  } catch (error) {
    await close()
    throw error
  }
}

const NO_SURFACES: OpenedSurfaces = { surfaces: [], jobs: [], close: async () => {} }

/** The database, the log, and what stands between them and the surfaces. */
async function openParts(options: RuntimeOptions, onClose: OnClose): Promise<Parts> {
  const { config, connection } = options
  const onError = brokenConnection(options.log)
  const tracing = await openTracing(otelVariables(), version)
  onClose(async () => tracing?.close())
  const pool = openPool({
    ...{ connection, max: config.poolSize, name: 'kontor', onError },
    queryTimeoutMs: config.requestTimeoutMs,
  })
  onClose(() => pool.end())
  const clock = await openClock(pool)
  onClose(async () => clock.stop())
  await initializeLog(pool, { partitions: config.logPartitions, now: clock.now() })
  const now = options.now ?? clock.now
  const nats = toNatsSettings(config)
  for (const note of await leaveStreams(pool, nats)) options.log.warn(note)
  const { log, close } = await openLog({
    pool,
    nats,
    name: 'kontor',
    isWriter: true,
    logger: options.log,
  })
  onClose(close)
  if (log.outside) await startJetStream(log.outside, options.log)
  const metrics = openMetrics()
  const disk = await watchDisk(options.readFree ?? diskReader(config), config.minFreeDisk)
  onClose(async () => disk.stop())
  const backlog = watchBacklog(log.lag, { max: config.maxBacklog, processes: config.processes })
  onClose(async () => backlog.stop())
  metrics.watchPool('requests', () => pool)
  if (!options.isOneOfSeveral) watchParts(metrics, { pool, log, backlog, disk })

  const isEmbedded = config.databaseUrl === null
  const secrets = openSecrets(await loadMasterKeys({ ...config, isEmbedded }))
  const directory = openDirectory({ pool })
  let changes = 0
  const watcher = await watchConfigVersion(pool, () => {
    changes++
    directory.forget()
  })
  onClose(() => watcher.stop())
  const { accept, drained } = openAccept({
    append: log.append,
    groupOf: log.flushGroup,
    maxPendingBytes: config.maxPendingBytes,
    metrics: counted(metrics, backlog),
  })
  onClose(drained)
  onClose(() => directory.writeUses())
  const configChanges = () => changes
  return {
    ...{ pool, log, directory, configChanges, secrets, metrics, disk, backlog, tracing, now },
    accept: tracing ? tracing.accept(accept) : accept,
  }
}

function counted({ accept }: Metrics, backlog: Backlog): AcceptMetrics {
  return {
    ...accept,
    flushed(entries, seconds) {
      accept.flushed(entries, seconds)
      backlog.recordAppended(entries)
    },
  }
}

// A NATS that is restarted together with Kontor has so long; then Kontor starts without it, and answers 503 for events.
const NATS_PATIENCE_MS = 5_000

/** Says which promise holds. Without NATS it goes on: records and reads do not need it. */
async function startJetStream(outside: OutsideLog, logger: Logger): Promise<void> {
  try {
    await outside.start(NATS_PATIENCE_MS)
    const { promise, stream, replicas, differs } = await outside.status()
    if (differs !== null) logger.warn({ stream }, differs)
    logger.info({ stream, replicas, promise }, `events are kept in JetStream: acknowledged means ${promise}`)
  } catch (error) {
    if (!isStorageUnavailable(error) || error instanceof LogRefused) throw error
    logger.warn(
      { reason: (error as Error).message },
      'NATS is away: events are answered 503 until it is back',
    )
  }
}

/** What nodes with workers do by the clock. */
function upkeep({ config, log: logger }: RuntimeOptions, { pool, log, now }: Parts): Job[] {
  return [
    stuckSessionJob(pool, logger),
    partitionJob(pool, () => databaseNow(pool)),
    retentionJob({
      ...{ pool, settings: config, logger },
      now: () => databaseNow(pool),
      oldestUnread: () => oldestUnread(log),
    }),
    ...ledgerJobs(pool, now),
    seriesJob(pool),
    alertJob({ pool, log }),
    snapshotJob(pool, now),
    ...resumeInterruptedJobs({ pool, log }),
  ]
}

async function openArchiving(
  { config, log: logger }: RuntimeOptions,
  { pool }: Parts,
  onClose: OnClose,
): Promise<void> {
  const { archiveUrl: url } = config
  if (url === null) {
    const { enabled } = await archiveState(pool)
    if (enabled)
      logger.warn(
        'The archive is on, and KONTOR_ARCHIVE_URL is not set: set it, or run `kontor archive disable`.',
      )
    return
  }
  if (!(await openArchive(pool, url)))
    logger.warn('The archive is disabled, and nothing is written: see `kontor archive status`.')
  const storage = await openStorage(url, {
    endpoint: config.awsEndpointUrl,
    region: config.awsRegion ?? config.awsDefaultRegion,
    accessKeyId: config.awsAccessKeyId,
    secretAccessKey: config.awsSecretAccessKey,
    sessionToken: config.awsSessionToken,
  })
  const archive = startArchive({ pool, storage, flushMs: config.archiveFlushMs, logger })
  onClose(() => archive.stop())
}

// For what is due, for what came of it, and one to spare.
const DELIVERY_CONNECTIONS = 3

/** On connections of their own: however much is to be sent, requests do not wait for it. */
function openDeliveries(
  { config, connection, log: logger }: RuntimeOptions,
  { secrets, now, metrics, configChanges }: Parts,
  onClose: OnClose,
): void {
  const onError = brokenConnection(logger)
  const pool = openPool({ connection, max: DELIVERY_CONNECTIONS, name: 'kontor deliveries', onError })
  onClose(() => pool.end())
  const allowPrivate = config.allowPrivateDestinations
  const deliveries = startDeliveries({
    ...{ pool, secrets, allowPrivate, now, logger, configChanges },
    count: metrics.delivery,
  })
  onClose(() => deliveries.stop())
}

async function oldestUnread(log: Log): Promise<Date | null> {
  const times = (await log.lag()).flatMap(({ oldestAt }) => oldestAt ?? [])
  return times.length === 0 ? null : new Date(Math.min(...times.map(Number)))
}

function buildApp(
  config: Config,
  {
    surfaces,
    logger,
    metrics,
    tracing,
  }: { surfaces: Surface[]; logger: Logger; metrics: Metrics; tracing: Tracing | null },
): Promise<App> {
  return buildServer({
    ...{ surfaces, log: logger, metrics, tracing, isUnavailable: isStorageUnavailable, version },
    trustProxy: config.trustProxy,
    publicUrl: config.publicUrl,
    maxInFlightBytes: config.maxInFlightBytes,
    failedAuthLimit: config.failedAuthLimit,
    timeouts: { requestMs: config.requestTimeoutMs, drainMs: config.drainTimeoutMs },
  })
}

/** Where nothing else is to be done, a thread more would only take memory. */
function openWorkers(
  { config, connection, log, threadLogging, processes }: RuntimeOptions,
  { onAppend, tracing }: { onAppend: Log['onAppend']; tracing: Tracing | null },
): Promise<Workers> {
  const { workers, eventsFloorMs } = config
  const options = { connection, nats: toNatsSettings(config), workers, eventsFloorMs }
  const isAlone = processes || config.surfaces.every(surface => surface === 'worker')
  if (isAlone || !threadLogging) return startWorkers(options, { logger: log, onAppend, tracing })
  return startWorkerThread(options, { logging: threadLogging, onAppend })
}

/** As a server on a data directory of its own announces itself there. */
function aboutServer(url: string, processes: number): object {
  return { pid: process.pid, version, url, processes, started_at: new Date().toISOString() }
}

function urlOf(app: App, host: string): string {
  const { port } = app.server.address() as AddressInfo
  const name = host === '0.0.0.0' || host === '::' || host === '127.0.0.1' ? 'localhost' : host
  return `http://${name.includes(':') ? `[${name}]` : name}:${port}`
}
