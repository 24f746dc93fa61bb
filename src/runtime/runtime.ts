import type { AddressInfo } from 'node:net'
import type pg from 'pg'
import type { Logger } from 'pino'
import { openAdmin } from '../admin/admin.ts'
import { loadMasterKeys, openSecrets, type Secrets } from '../admin/secrets.ts'
import type { Config } from '../config/config.ts'
import { version } from '../config/version.ts'
import type { App, Surface } from '../http/app.ts'
import { type Ops, startOps } from '../http/ops.ts'
import { buildServer } from '../http/server.ts'
import { adminSurface, consoleSurface, dataSurface, eventSurface, inboundSurface } from '../http/surfaces.ts'
import { openAccept } from '../intake/accept.ts'
import { openInbound } from '../intake/inbound.ts'
import { openOverflow } from '../intake/overflow.ts'
import { openPace } from '../intake/pace.ts'
import { openTraces } from '../intake/traces.ts'
import { openBudgets } from '../intake/volume.ts'
import { inboundUpkeep } from '../jobs/inbound-upkeep.ts'
import { type Job, startJobs } from '../jobs/jobs.ts'
import { ledgerUpkeep } from '../jobs/ledger.ts'
import { overflowDrain } from '../jobs/overflow.ts'
import { dailySnapshots } from '../jobs/snapshots.ts'
import { keyUse, partitionUpkeep, retention } from '../jobs/upkeep.ts'
import type { Log } from '../log/log.ts'
import { initialisePostgresLog } from '../log/postgres/initialise.ts'
import { openPostgresLog } from '../log/postgres/log.ts'
import { brokenConnection, type Connection, isUnavailable, openPool } from '../postgres/database.ts'
import { ensurePartitions } from '../postgres/partitions.ts'
import { countDeadLetters } from '../store/entries/dead-letters.ts'
import { watchConfigVersion } from '../store/tenants/config-version.ts'
import { openDirectory } from '../store/tenants/directory.ts'
import type { LoggerOptions } from '../telemetry/logging.ts'
import { type Metrics, openMetrics } from '../telemetry/metrics.ts'
import { startWorkerThread } from './thread.ts'
import { startWorkers, type Workers } from './workers.ts'

export type Runtime = { url: string; opsUrl: string | null; http: App; close(): Promise<void> }

type RuntimeOptions = {
  config: Config
  connection: Connection
  log: Logger
  now?: () => Date
  /** Given, the pipeline runs in a thread of its own beside the surfaces, and logs there like this. */
  threadLogging?: LoggerOptions
}

/** Builds everything that the chosen surfaces need, in order; `close` takes it down in reverse. */
export async function startRuntime(options: RuntimeOptions): Promise<Runtime> {
  const { config, connection, log } = options
  const now = options.now ?? (() => new Date())
  const closers: (() => Promise<unknown>)[] = []
  async function close() {
    for (const closer of closers.splice(0).reverse()) {
      await closer().catch(error => log.error({ err: error }, 'a part did not close cleanly'))
    }
  }

  try {
    const onError = brokenConnection(log)
    const pool = openPool({
      ...{ connection, max: config.poolSize, name: 'kontor', onError },
      queryTimeoutMs: config.requestTimeoutMs,
    })
    closers.push(() => pool.end())
    await ensurePartitions(pool, now())
    await initialisePostgresLog(pool, config.logPartitions)
    const postgresLog = openPostgresLog({ pool })

    const metrics = openMetrics()
    watch(metrics, pool, postgresLog)
    const directory = openDirectory({ pool })
    const watcher = await watchConfigVersion(pool, directory.forget)
    closers.push(() => watcher.stop())

    const intake = openAccept({
      append: postgresLog.append,
      maxPendingBytes: config.maxPendingBytes,
      metrics: metrics.accept,
    })
    closers.push(() => intake.drained())
    const parts = { pool, log: postgresLog, accept: intake.accept, directory, now }
    const isEmbedded = config.databaseUrl === null
    const secrets = openSecrets(await loadMasterKeys({ ...config, isEmbedded }))
    const plugins = surfaces(config, { ...parts, secrets })
    const jobs: Job[] = [keyUse(directory)]
    closers.push(() => directory.writeUses())
    if (config.surfaces.includes('inbound')) {
      const inbound = await openInboundSurface(config, { ...parts, secrets, metrics })
      plugins.push(inbound.plugin)
      jobs.push(...inbound.jobs)
      closers.push(inbound.close)
    }
    const runsWorkers = config.surfaces.includes('worker')
    if (runsWorkers) {
      jobs.push(
        partitionUpkeep(pool, now),
        retention(pool, config, now, () => oldestUnread(postgresLog)),
        ...ledgerUpkeep(pool, now),
        dailySnapshots(pool, now),
      )
    }
    // Stopped after the surfaces: whoever waits for an effect is still answered.
    let workers: Workers | null = null
    closers.push(async () => workers?.stop())
    const runningJobs = startJobs(jobs, log)
    closers.push(() => runningJobs.stop())

    const app = await buildServer({
      surfaces: plugins,
      log,
      metrics,
      isUnavailable,
      trustProxy: config.trustProxy,
      publicUrl: config.publicUrl,
      version,
      timeouts: { requestMs: config.requestTimeoutMs, drainMs: config.drainTimeoutMs },
    })
    await app.listen({ port: config.port, host: config.host })
    closers.push(() => app.close())

    if (runsWorkers) {
      // Last: loading its thread takes half a second, in which the doors are open already.
      workers = await openWorkers(options, postgresLog.onAppend)
      metrics.watchPool('workers', workers.counts)
    }
    const ops = await openOps(config, log, metrics, pool)
    if (ops) closers.push(() => ops.close())
    return {
      url: urlOf(app, config.host),
      http: app,
      opsUrl: ops && `http://${config.opsHost}:${ops.port}`,
      close,
    }
  } catch (error) {
    await close()
    throw error
  }
}

type Parts = Parameters<typeof dataSurface>[0] & { secrets: Secrets }

function surfaces(config: Config, parts: Parts): Surface[] {
  const plugins: Surface[] = []
  if (config.surfaces.includes('data')) plugins.push(dataSurface(parts))
  if (config.surfaces.includes('events')) plugins.push(eventSurface(parts))
  if (config.surfaces.includes('console'))
    plugins.push(adminSurface({ ...parts, admin: openAdmin(parts) }), consoleSurface())
  return plugins
}

/** The inbound route, with the budgets of its sources and the lane for what is over them. */
async function openInboundSurface(
  config: Config,
  parts: Parts & { metrics: Metrics },
): Promise<{ plugin: Surface; jobs: Job[]; close(): Promise<void> }> {
  const { pool, directory, metrics, now, secrets } = parts
  const budgets = openBudgets({ store: config.volumeStore, pool })
  const overflow = openOverflow({ pool, maxPendingBytes: config.maxPendingBytes })
  // Before the first request: what comes now queues behind what was left waiting.
  await overflow.refresh()
  const traces = openTraces({ pool, now })
  const pace = openPace({ maxWaitingBytes: config.maxPendingBytes })
  const inbound = openInbound({ ...parts, budgets, overflow, traces, pace })
  const moved = (sourceId: string, events: number) => metrics.inbound(sourceId, 'drained', events)
  return {
    plugin: inboundSurface({
      ...{ directory, inbound, traces, metrics, now },
      openSecret: secrets.open,
      signatureHeader: config.signatureHeader,
    }),
    jobs: [overflowDrain({ ...parts, overflow, budgets, moved }), ...inboundUpkeep(pool, traces, now)],
    close: () => traces.write(),
  }
}

/** Where nothing else is to be done, a thread more would only take memory. */
function openWorkers(
  { config, connection, log, threadLogging }: RuntimeOptions,
  onAppend: Log['onAppend'],
): Promise<Workers> {
  const options = { connection, workers: config.workers }
  const isAlone = config.surfaces.every(surface => surface === 'worker')
  if (isAlone || !threadLogging) return startWorkers(options, { logger: log, onAppend })
  return startWorkerThread(options, { logging: threadLogging, onAppend })
}

async function oldestUnread(log: Log): Promise<Date | null> {
  const times = (await log.lag()).flatMap(({ oldestAt }) => oldestAt ?? [])
  return times.length === 0 ? null : new Date(Math.min(...times.map(Number)))
}

function watch(metrics: Metrics, pool: pg.Pool, log: Log): void {
  metrics.watchPool('requests', () => pool)
  metrics.watchDeadLetters(() => countDeadLetters(pool))
  metrics.watchPipeline(async () => {
    const lags = await log.lag()
    return lags.map(({ partition, entries, oldestAt }) => ({
      partition,
      entries,
      seconds: oldestAt ? (Date.now() - oldestAt.getTime()) / 1000 : 0,
    }))
  })
}

/** A taken operations port stops the service only when it was asked for by name. */
async function openOps(config: Config, log: Logger, metrics: Metrics, pool: pg.Pool): Promise<Ops | null> {
  if (config.opsPort === null) return null
  const readiness = async () => {
    const started = performance.now()
    await pool.query('select 1')
    return { ok: true, checks: { database: `answered in ${Math.round(performance.now() - started)} ms` } }
  }
  try {
    return await startOps({ port: config.opsPort, host: config.opsHost, metrics, readiness })
  } catch (error) {
    if (config.opsPortIsGiven) throw error
    log.warn(
      { port: config.opsPort, reason: (error as Error).message },
      'the operations port is taken: this process serves no /healthz, /readyz and /metrics. Set KONTOR_OPS_PORT.',
    )
    return null
  }
}

function urlOf(app: App, host: string): string {
  const { port } = app.server.address() as AddressInfo
  const name = host === '0.0.0.0' || host === '::' || host === '127.0.0.1' ? 'localhost' : host
  return `http://${name.includes(':') ? `[${name}]` : name}:${port}`
}
