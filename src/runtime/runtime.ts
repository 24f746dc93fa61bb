import type { AddressInfo } from 'node:net'
import type pg from 'pg'
import type { Logger } from 'pino'
import { openAdmin } from '../admin/admin.ts'
import { openArchive } from '../admin/archive.ts'
import { openConsoleSessions } from '../admin/console-sessions.ts'
import { loadSecretKeys, openSecrets, type Secrets } from '../admin/secrets.ts'
import { type Config, otelVariables, sendingSettings } from '../config/config.ts'
import { version } from '../config/version.ts'
import type { App, Surface } from '../http/app.ts'
import { sessionReader } from '../http/console/session-cookie.ts'
import type { SessionOptions } from '../http/console/session-routes.ts'
import type { SignIn } from '../http/console/sign-in-routes.ts'
import { openExportLimit } from '../http/export/routes.ts'
import { type Ops, type OpsMetrics, startOps } from '../http/ops.ts'
import { buildServer } from '../http/server.ts'
import {
  adminSurface,
  consoleSurface,
  dataSurface,
  eventSurface,
  inboundSurface,
  toolSurface,
} from '../http/surfaces.ts'
import { type Accept, type AcceptMetrics, openAccept } from '../intake/accept.ts'
import { openInbound } from '../intake/inbound.ts'
import { openOverflow } from '../intake/overflow.ts'
import { openRejections, type Rejections } from '../intake/rejections.ts'
import { openRequests } from '../intake/requests.ts'
import { alertJob } from '../jobs/alerts.ts'
import { openStorage, startArchive } from '../jobs/archive.ts'
import { customerJob } from '../jobs/customers.ts'
import { startDeliveries } from '../jobs/deliveries.ts'
import { digestJob } from '../jobs/digests.ts'
import { type Job, startJobs } from '../jobs/jobs.ts'
import { ledgerJobs, snapshotJob } from '../jobs/ledger.ts'
import {
  inboundJobs,
  keyUseJob,
  partitionJob,
  rejectionJobs,
  resumeInterruptedJobs,
  seriesJobs,
  sqlAccessJobs,
  streamJobs,
  stuckSessionJob,
} from '../jobs/maintenance.ts'
import { overflowJob } from '../jobs/overflow.ts'
import { retentionJob } from '../jobs/retention.ts'
import { saleFoldJob } from '../jobs/sales.ts'
import { countSkippedMessages } from '../log/jetstream/known-streams.ts'
import { leaveStreams } from '../log/jetstream/leave.ts'
import { type Log, LogRefused, type OutsideLog, oldestUnread } from '../log/log.ts'
import { type Backlog, watchBacklog } from '../overload/backlog.ts'
import { type Budgets, openBudgets } from '../overload/budgets.ts'
import { type Disk, diskReader, type ReadFree, watchDisk } from '../overload/disk.ts'
import { type FairQueue, openAdaptiveCapacity, openFairQueue, openReadQueue } from '../overload/fair-queue.ts'
import { openOptionalDatabase, type WithDatabase } from '../overload/optional-database.ts'
import { openThrottle } from '../overload/throttle.ts'
import {
  brokenConnection,
  type Connection,
  databaseNow,
  isTransient,
  isUnavailable,
  openPool,
} from '../postgres/database.ts'
import { archiveState } from '../store/archive/archive.ts'
import { countExcessClaims } from '../store/conversions/conversions.ts'
import { countDeadLetters } from '../store/entries/dead-letters.ts'
import { listSetAside, listStalled } from '../store/entries/parked.ts'
import { retentionHeldBy } from '../store/entries/retention-clock.ts'
import { countUnlinked } from '../store/identity/identities.ts'
import { countAllSuppressed } from '../store/identity/suppressions.ts'
import { watchConfigVersion } from '../store/tenants/config-version.ts'
import { type Directory, openDirectory } from '../store/tenants/directory.ts'
import type { LoggerOptions } from '../telemetry/logging.ts'
import { type Metrics, type MetricsSample, openMetrics } from '../telemetry/metrics.ts'
import { openTracing, type Tracing } from '../telemetry/tracing.ts'
import { openClock } from './clock.ts'
import { initializeLog, isStorageUnavailable, openLog, toNatsSettings } from './log.ts'
import { readinessOf, type Writes, watchWrites } from './readiness.ts'
import { startWorkers, startWorkerThread, type Workers } from './workers.ts'
export type Runtime = {
  url: string
  opsUrl: string | null
  /** Null if other processes serve the requests. */
  http: App | null
  /** The listener is called after this process has appended entries. */
  onAppend: Log['onAppend']
  sampleMetrics(): Promise<MetricsSample>
  /** Describes which failures an acknowledged event on NATS survives; null without NATS. */
  promise: string | null
  close(): Promise<void>
}

/** Separate processes that serve the requests of this node. */
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
  /** Default: reads the disk of the data directory. */
  readFree?: ReadFree
  /** If set, the pipeline runs in a separate thread with these logging options. */
  threadLogging?: LoggerOptions
  processes?: HttpProcesses | null
  /** Where counts survive a kill of the process. */
  directory?: string
  /** One of several HTTP processes: another process collects the metrics of the node. */
  isOneOfSeveral?: boolean
}

/** Registers a function for `close`. The last one registered runs first. */
type OnClose = (closer: () => Promise<unknown>) => void

/** Builds everything that the configured surfaces need. `close` closes it in reverse order. */
export async function startRuntime(options: RuntimeOptions): Promise<Runtime> {
  const { config, log: logger } = options
  const closers: (() => Promise<unknown>)[] = []
  const onClose: OnClose = closer => closers.push(closer)
  async function close() {
    for (const closer of closers.splice(0).reverse()) {
      await closer().catch(error => logger.error({ err: error }, 'a component did not close cleanly'))
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
      ...(runsWorkers ? workerJobs(options, parts) : []),
    ]

    // Closed after the workers, so that their last effects are archived too.
    if (runsWorkers) await openArchiving(options, parts, onClose)
    // Stopped after the surfaces, so that requests that wait for an effect still get their response.
    let workers: Workers | null = null
    onClose(async () => workers?.stop())
    const runningJobs = startJobs(jobs, logger)
    onClose(() => runningJobs.stop())
    if (runsWorkers) openDeliveries(options, parts, onClose)

    const http = processes ? null : await buildApp(config, { surfaces: opened.surfaces, logger, metrics, tracing })
    await http?.listen({ port: config.port, host: config.host }).catch(listenError(config.host))
    onClose(async () => (http ?? processes!).close())

    if (runsWorkers) {
      // Last, because loading the thread takes 0.5 s and requests are already served meanwhile.
      workers = await openWorkers(options, { onAppend: processes?.onAppend ?? log.onAppend, tracing })
      metrics.watchPool('workers', workers.counts)
    }
    const { contentType } = metrics
    const text = async () => metrics.text(await processes?.metrics())
    const url = http ? buildUrl(http, config.host) : processes!.url
    const about = aboutServer(url, processes?.count ?? 1)
    const ops = await openOps(config, { ...parts, metrics: { contentType, text }, logger, about })
    if (ops) onClose(() => ops.close())
    const opsUrl = ops && `http://${config.opsHost}:${ops.port}`
    return {
      ...{ url, opsUrl, http, onAppend: log.onAppend, sampleMetrics: metrics.sample, close },
      promise: log.outside ? (log.outside.promise() ?? 'NATS is unreachable') : null,
    }
  } catch (error) {
    await close()
    throw error
  }
}

const NO_SURFACES: OpenedSurfaces = { surfaces: [], jobs: [], close: async () => {} }

/** Opens the database, the log and everything else that the surfaces use. */
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
    ...(options.directory !== undefined && { directory: options.directory }),
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
  if (!options.isOneOfSeveral) watchComponents(metrics, { pool, log, backlog, disk })

  const isEmbedded = config.databaseUrl === null
  const secrets = openSecrets(await loadSecretKeys({ ...config, isEmbedded }))
  const { withDatabase, stop } = openOptionalDatabase({
    ...{ pool, isOptional: log.outside !== null, isUnavailable, isTransient },
  })
  onClose(async () => stop())
  const directory = openDirectory({ pool })
  let changes = 0
  const watcher = await watchConfigVersion(pool, () => {
    changes++
    directory.forget()
  })
  onClose(() => watcher.stop())
  const writes = watchWrites({ pool, log })
  const { accept, drained } = openAccept({
    append: writes.watch(log.append),
    groupOf: log.flushGroup,
    maxPendingBytes: config.maxPendingBytes,
    metrics: countAppends(metrics, backlog),
  })
  onClose(drained)
  onClose(() => directory.writeUses())
  const configChanges = () => changes
  return {
    ...{ pool, withDatabase, log, writes, directory, configChanges, secrets, metrics, disk, backlog, tracing, now },
    accept: tracing ? tracing.accept(accept) : accept,
  }
}

function countAppends({ accept }: Metrics, backlog: Backlog): AcceptMetrics {
  return {
    ...accept,
    flushed(entries, seconds) {
      accept.flushed(entries, seconds)
      backlog.recordAppended(entries)
    },
  }
}

// NATS may be starting together with Kontor. After this time Kontor starts without it and answers events with 503.
const NATS_START_TIMEOUT_MS = 5_000

/** Logs which failures acknowledged events survive. Continues without NATS, because records and reads do not need it. */
async function startJetStream(outside: OutsideLog, logger: Logger): Promise<void> {
  try {
    await outside.start(NATS_START_TIMEOUT_MS)
    const { promise, stream, replicas, differs } = await outside.status()
    if (differs !== null) logger.warn({ stream }, differs)
    logger.info({ stream, replicas, promise }, `events are kept in JetStream: acknowledged means ${promise}`)
  } catch (error) {
    if (!isStorageUnavailable(error) || error instanceof LogRefused) throw error
    logger.warn(
      { reason: (error as Error).message },
      'NATS is unreachable: events are answered with 503 until it recovers',
    )
  }
}

/** The periodic jobs of nodes with workers. */
function workerJobs({ config, log: logger }: RuntimeOptions, { pool, log, now }: Parts): Job[] {
  return [
    stuckSessionJob(pool, logger),
    ...sqlAccessJobs(pool, logger),
    partitionJob(pool, () => databaseNow(pool)),
    retentionJob({
      ...{ pool, settings: config, logger },
      now: () => databaseNow(pool),
      oldestUnread: () => oldestUnread(log),
    }),
    ...ledgerJobs(pool, now),
    saleFoldJob(pool),
    customerJob(pool, now),
    ...seriesJobs(pool, now),
    alertJob({ pool, log }),
    digestJob({ pool, now }),
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
      logger.warn('The archive is enabled, but KONTOR_ARCHIVE_URL is not set. Set it, or run `kontor archive disable`.')
    return
  }
  if (!(await openArchive(pool, url)))
    logger.warn('The archive is disabled, so nothing is archived. See `kontor archive status`.')
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

// One to read due deliveries, one to write results, one spare.
const DELIVERY_CONNECTIONS = 3

/** Deliveries have their own connections, so that requests never wait for them. */
function openDeliveries(
  { config, connection, log: logger }: RuntimeOptions,
  { secrets, now, metrics, configChanges }: Parts,
  onClose: OnClose,
): void {
  const onError = brokenConnection(logger)
  const pool = openPool({ connection, max: DELIVERY_CONNECTIONS, name: 'kontor deliveries', onError })
  onClose(() => pool.end())
  const { allowPrivateDestinations: allowPrivate, mail, consoleUrl } = sendingSettings(config)
  const deliveries = startDeliveries({
    ...{ pool, secrets, allowPrivate, mail, consoleUrl, now, logger, configChanges },
    count: metrics.delivery,
  })
  onClose(() => deliveries.stop())
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

/** A process that only runs workers needs no separate thread, which would only use memory. */
function openWorkers(
  { config, connection, log, threadLogging, processes }: RuntimeOptions,
  { onAppend, tracing }: { onAppend: Log['onAppend']; tracing: Tracing | null },
): Promise<Workers> {
  const { workers, eventsFloorMs, eventsRetentionMs } = config
  const options = { connection, nats: toNatsSettings(config), workers, eventsFloorMs, eventsRetentionMs }
  const isAlone = processes || config.surfaces.every(surface => surface === 'worker')
  if (isAlone || !threadLogging) return startWorkers(options, { logger: log, onAppend, tracing })
  return startWorkerThread(options, { logging: threadLogging, onAppend })
}

/** The same facts that a server writes to its data directory. */
function aboutServer(url: string, processes: number): object {
  return { pid: process.pid, version, url, processes, started_at: new Date().toISOString() }
}

function buildUrl(app: App, host: string): string {
  const { port } = app.server.address() as AddressInfo
  const name = host === '0.0.0.0' || host === '::' || host === '127.0.0.1' ? 'localhost' : host
  return `http://${name.includes(':') ? `[${name}]` : name}:${port}`
}

/** Registers the metrics that are read on each scrape. */
function watchComponents(
  metrics: Metrics,
  { pool, log: { outside }, backlog, disk }: { pool: pg.Pool; log: Pick<Log, 'outside'>; backlog: Backlog; disk: Disk },
): void {
  metrics.watchDisk(disk.free)
  metrics.watchDeadLetters(() => countDeadLetters(pool))
  if (outside)
    metrics.watchSkippedMessages(async () => {
      const { foreign, unreadable } = await countSkippedMessages(pool, outside.stream)
      return (foreign?.messages ?? 0) + (unreadable?.messages ?? 0)
    })
  metrics.watchSuppressed(() => countAllSuppressed(pool))
  metrics.watchExcessClaims(() => countExcessClaims(pool))
  metrics.watchUnlinked(() => countUnlinked(pool))
  metrics.watchStalled(async () => (await listStalled(pool)).length)
  metrics.watchRetention(async () => (await retentionHeldBy(pool)) !== null)
  metrics.watchBacklog(backlog)
  metrics.watchPipeline(async () => {
    const waiting = [...(await backlog.lags()), ...(await listSetAside(pool))]
    return [...Map.groupBy(waiting, ({ partition }) => partition)].map(([partition, own]) => ({
      partition,
      entries: own.reduce((sum, { entries }) => sum + entries, 0),
      seconds: Math.max(...own.map(({ oldestAt }) => (oldestAt ? (Date.now() - oldestAt.getTime()) / 1000 : 0))),
    }))
  })
}

type OpsParts = {
  pool: pg.Pool
  log: Pick<Log, 'outside'>
  writes: Writes
  metrics: OpsMetrics
  logger: Logger
  disk: Disk
  backlog: Backlog
  about: object
}

/** A host name that cannot be resolved also counts as an error of `listen`. Its code alone could be that of an unreachable database. */
function listenError(host: string) {
  return (error: NodeJS.ErrnoException & { address?: string }): never => {
    throw Object.assign(error, { syscall: 'listen', address: error.address ?? host })
  }
}

/** An operations port in use is an error only if it was set explicitly. */
async function openOps(config: Config, { metrics, logger, about, ...parts }: OpsParts): Promise<Ops | null> {
  if (config.opsPort === null) return null
  const readiness = readinessOf({ ...parts, surfaces: config.surfaces })
  try {
    const { opsPort: port, opsHost: host } = config
    return await startOps({ port, host, metrics, readiness, about }).catch(listenError(host))
  } catch (error) {
    if (config.opsPortIsGiven || (error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error
    logger.warn(
      { port: config.opsPort, reason: (error as Error).message },
      'the operations port is in use: this process does not serve /healthz, /readyz and /metrics. Set KONTOR_OPS_PORT to a free port.',
    )
    return null
  }
}

/** The components that surfaces are built from. */
type Parts = {
  pool: pg.Pool
  log: Log
  writes: Writes
  accept: Accept
  withDatabase: WithDatabase
  directory: Directory
  /** The number of configuration changes that this node has seen. */
  configChanges(): number
  secrets: Secrets
  metrics: Metrics
  disk: Disk
  backlog: Backlog
  tracing: Tracing | null
  now: () => Date
}

/** Surfaces with their jobs. `close` writes what is still buffered. */
type OpenedSurfaces = { surfaces: Surface[]; jobs: Job[]; close(): Promise<void> }

/** Opens the configured surfaces. */
async function openSurfaces(config: Config, parts: Parts): Promise<OpenedSurfaces> {
  const serves = (surface: Config['surfaces'][number]) => config.surfaces.includes(surface)
  const store = config.processes > 1 ? 'postgres' : config.volumeStore
  const { pool, withDatabase, log } = parts
  const budgets = openBudgets({ store, pool, withDatabase, nodes: () => log.outside?.writers() ?? 1 })
  const writeQueue = openFairQueue({ capacity: openAdaptiveCapacity() })
  parts.metrics.watchFairQueue(writeQueue.waiting)
  const surfaces: Surface[] = []
  const rejections = openRejections(parts)
  const receiving = { ...parts, writeQueue, rejections }
  const readQueue = openReadQueue(config.poolSize)
  const session = openSessions(config, parts)
  const { sessionOf } = session
  const exportLimit = openExportLimit()
  if (serves('data'))
    surfaces.push(dataSurface({ ...receiving, readQueue, exportLimit, sessionOf }), toolSurface({ ...parts, version }))
  if (serves('events')) surfaces.push(eventSurface({ ...receiving, budgets }))
  if (serves('console')) {
    const { logRetentionMs, oidcIssuer } = config
    const adminFor = openAdmin({ ...parts, ...sendingSettings(config), logRetentionMs, oidcIssuer })
    const { consoleUrl } = sendingSettings(config)
    surfaces.push(adminSurface({ ...parts, adminFor, exportLimit, sessionOf, consoleUrl }), consoleSurface(session))
  }
  const recordsRejections = serves('data') || serves('events') || serves('inbound')
  const jobs = recordsRejections ? rejectionJobs(parts.pool, rejections, parts.now) : []
  if (!serves('inbound')) return { surfaces, jobs, close: () => rejections.write() }
  const inbound = await openInboundSurface(config, { ...parts, budgets, rejections, writeQueue })
  return {
    surfaces: [...surfaces, ...inbound.surfaces],
    jobs: [...jobs, ...inbound.jobs],
    close: async () => {
      await rejections.write()
      await inbound.close()
    },
  }
}

/** The sessions of the console. `signIn`: the OpenID Connect provider, if one is configured. */
function openSessions(config: Config, { pool, now }: Parts): SessionOptions & { signIn: SignIn | null } {
  const { oidcIssuer: issuer, oidcClientId: clientId, oidcClientSecret: clientSecret, publicUrl } = config
  const provider = issuer === null ? null : { issuer, roles: config.oidcRoles ?? [] }
  const sessions = openConsoleSessions({ pool, provider })
  const opened = { sessions, sessionOf: sessionReader({ sessions, publicUrl }), publicUrl }
  // The configuration has all of these settings or none.
  if (issuer === null || clientId === null || clientSecret === null || publicUrl === null)
    return { ...opened, signIn: null }
  const roleClaim = config.oidcRoleClaim
  return { ...opened, signIn: { issuer, clientId, clientSecret, publicUrl, roleClaim, sessions, now } }
}

/** The inbound route with the budgets of its sources and the overflow queue for events over budget. */
async function openInboundSurface(
  config: Config,
  parts: Parts & { budgets: Budgets; rejections: Rejections; writeQueue: FairQueue },
): Promise<OpenedSurfaces> {
  const { pool, withDatabase, directory, secrets, metrics, disk, backlog, rejections, writeQueue, now } = parts
  const overflow = openOverflow({ pool, maxPendingBytes: config.maxPendingBytes })
  // Before the first request, because new events queue behind those that already wait.
  await overflow.refresh()
  const throttle = openThrottle({ maxWaitingBytes: config.maxPendingBytes })
  const inbound = openInbound({ ...parts, overflow, throttle })
  const surface = inboundSurface({
    ...{ directory, inbound, rejections, metrics, disk, backlog, writeQueue, now },
    requests: openRequests({ pool, withDatabase }),
    openSecret: secrets.open,
    signatureHeader: config.signatureHeader,
  })
  const moved = (sourceId: string, events: number) => metrics.inbound(sourceId, 'drained', events)
  return {
    surfaces: [surface],
    jobs: [overflowJob({ ...parts, overflow, moved }), ...inboundJobs(pool, inbound, now)],
    close: () => inbound.writeReceipts(),
  }
}
