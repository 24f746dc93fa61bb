import { resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Command } from '@commander-js/extra-typings'
import type pg from 'pg'
import { onFirstStart } from '../admin/first-start.ts'
import { type Config, type ConfigFlags, inspectConfig, readConfig } from '../config/config.ts'
import { shownAddresses } from '../config/database-url.ts'
import { version } from '../config/version.ts'
import { type Connection, isUnavailable, openPool } from '../postgres/database.ts'
import { migrate } from '../postgres/migrate.ts'
import type { HttpProcesses, Runtime } from '../runtime/runtime.ts'
import { openLogger } from '../telemetry/logging.ts'
import { writeAdminKey } from './admin-key-file.ts'
import { banner, firstBanner, type StartedServer } from './banner.ts'
import { ownEmbedded } from './embedded.ts'
import { examples } from './examples.ts'
import { keepHeapSmall } from './heap.ts'
import type { Output } from './output.ts'
import { openHttpProcesses } from './processes/processes.ts'
import { giveUpRoot, giveUpRootFirst } from './root.ts'
import { announceServer, withdrawServer } from './server-file.ts'
import { currentUser, dataOption, secretsOf } from './session.ts'
import { closedInTime, STUCK_EXIT_CODE, stopSignal } from './stop-signal.ts'
import { onceReachable } from './wait-for-database.ts'

const NOTES = `
The first start creates the tenant "default" with keys, and prints them once. Without a terminal, the admin key is written to
the file admin-key in the data directory instead.
If your own PostgreSQL is unavailable, the server waits for it (KONTOR_START_TIMEOUT).
On SIGINT or SIGTERM, the server completes the requests in flight and stops. Work that does not end in time
(KONTOR_DRAIN_TIMEOUT) is aborted, with exit code 3. A second signal stops the server immediately.
All other settings are environment variables: see docs/configuration.md and \`kontor check-config\`.`

export function addStart(program: Command, out: Output): void {
  program
    .command('start')
    .description('Run the server.')
    .option('--port <n>', 'port to listen on (default: KONTOR_PORT, or 8080)')
    .option('--host <address>', 'address to listen on (default: KONTOR_HOST, or 127.0.0.1)')
    .addOption(dataOption())
    .option('--surfaces <a,b>', 'surfaces to run: data, events, inbound, console, worker (default: all)')
    .addHelpText('after', NOTES)
    .addHelpText(
      'after',
      examples(
        'kontor start',
        'kontor start --port 9000 --data /var/lib/kontor',
        'DATABASE_URL=postgres://kontor:PASSWORD@db.internal/kontor kontor start --surfaces events,inbound',
      ),
    )
    .action(({ data, ...options }) => start({ ...options, dataDir: data }, out))
}

const GREET_AGAIN_MS = 500

async function start(flags: ConfigFlags, out: Output): Promise<void> {
  keepHeapSmall()
  const config = readConfig(undefined, flags)
  for (const warning of inspectConfig(undefined, flags).warnings) out.say(`Warning: ${warning}`)
  const stopped = stopSignal(out)
  // Loading takes half a second, so it happens while PostgreSQL starts.
  const loading = import('../runtime/runtime.ts')
  loading.catch(() => {})
  const isEmbedded = config.databaseUrl === null
  const ports = [config.port, config.opsPort ?? 0]
  const runsAs = isEmbedded ? await giveUpRootFirst({ ...config, ports }) : null
  const embedded = isEmbedded ? await ownEmbedded(config, out) : null
  let isInTime = true
  try {
    const connection = embedded?.connection ?? { url: config.databaseUrl! }
    const begin = async () => {
      await withPool(connection, migrate)
      const { startRuntime } = await loading
      return startNode({ startRuntime, config, connection })
    }
    const node = await onceReachable(begin, { withinMs: config.startTimeoutMs, stopped, out })
    if (node !== null) isInTime = await serve(node, { config, connection, runsAs, stopped, out })
  } finally {
    await embedded?.stop()
  }
  // Work that does not end would keep the process alive.
  if (!isInTime) process.exit(STUCK_EXIT_CODE)
}

type Node = { runtime: Runtime; processes: HttpProcesses | null }

async function startNode({
  startRuntime,
  config,
  connection,
}: {
  startRuntime: typeof import('../runtime/runtime.ts').startRuntime
  config: Config
  connection: Connection
}): Promise<Node> {
  const pretty = config.logFormat === 'pretty' || (config.logFormat === 'auto' && process.stderr.isTTY)
  const logging = { level: config.logLevel, pretty }
  const log = openLogger(logging)
  const processes = hasSeveralProcesses(config)
    ? await openHttpProcesses({ config, connection, logging, count: config.processes, logger: log })
    : null
  try {
    const runtime = await startRuntime({ config, connection, log, threadLogging: logging, processes })
    return { runtime, processes }
  } catch (error) {
    await processes?.close()
    throw error
  }
}

/** Runs until the stop signal. Returns whether everything ended in time. */
async function serve(
  { runtime, processes }: Node,
  {
    config,
    connection,
    runsAs,
    stopped,
    out,
  }: {
    config: Config
    connection: Connection
    /** The message about the user that the process runs as; null if it has not switched users yet. */
    runsAs: string | null
    stopped: Promise<void>
    out: Output
  },
): Promise<boolean> {
  const isEmbedded = config.databaseUrl === null
  const close = () => closedInTime(runtime.close, config.drainTimeoutMs, out)
  try {
    if (isEmbedded) await announceServer(config.dataDir, announcement(runtime, processes?.count ?? 1))
    await Promise.race([
      greeted(() => withPool(connection, pool => greet(pool, config, runtime, out))),
      stopped,
    ])
    const now = runsAs ?? (await giveUpRoot({ user: config.user, isEmbedded }))
    if (now) out.say(`  ${now}\n`)
    await stopped
  } catch (error) {
    await close()
    throw error
  } finally {
    if (isEmbedded) await withdrawServer(config.dataDir)
  }
  return close()
}

/** A node with only the worker surface serves no requests. */
function hasSeveralProcesses({ processes, surfaces }: Config): boolean {
  return processes > 1 && surfaces.some(surface => surface !== 'worker')
}

/** The service is already running, so a short outage of PostgreSQL must not end it. */
async function greeted(greetOnce: () => Promise<void>): Promise<void> {
  for (;;) {
    try {
      return await greetOnce()
    } catch (error) {
      if (!isUnavailable(error)) throw error
      await sleep(GREET_AGAIN_MS, undefined, { ref: false })
    }
  }
}

async function greet(pool: pg.Pool, config: Config, runtime: Addresses, out: Output): Promise<void> {
  const isElsewhere = config.databaseUrl === null && config.dataDir !== resolve('data')
  const server: StartedServer = {
    version,
    url: config.publicUrl ?? runtime.url,
    opsUrl: runtime.opsUrl,
    promise: runtime.promise,
    data: config.databaseUrl === null ? config.dataDir : shownAddresses(config.databaseUrl),
    dataFlag: isElsewhere ? ` --data '${config.dataDir}'` : '',
    surfaces: config.surfaces,
    isLoopback: config.publicUrl === null && ['127.0.0.1', '::1', 'localhost'].includes(config.host),
  }
  const secrets = await secretsOf(config)
  const isFirst = await onFirstStart({ pool, secrets, actor: currentUser() }, async made =>
    out.sayNow(firstBanner(server, made, await placeOf(made.adminKey.key, config))),
  )
  if (!isFirst) out.say(banner(server))
}

/** The admin key itself on a terminal, otherwise the file that contains it. */
async function placeOf(adminKey: string, { dataDir }: Config): Promise<string> {
  if (process.stderr.isTTY) return adminKey
  try {
    return `in the file ${await writeAdminKey(dataDir, adminKey)}`
  } catch {
    // not writable, for example in a read-only container
    return adminKey
  }
}

async function withPool<T>(connection: Connection, work: (pool: pg.Pool) => Promise<T>): Promise<T> {
  const pool = openPool({ connection, max: 2, name: 'kontor start', onError: () => {} })
  return work(pool).finally(() => pool.end())
}

type Addresses = { url: string; opsUrl: string | null; promise: string | null }

function announcement({ url, opsUrl }: Addresses, processes: number) {
  const started_at = new Date().toISOString()
  return { pid: process.pid, version, url, ops_url: opsUrl, processes, started_at }
}
