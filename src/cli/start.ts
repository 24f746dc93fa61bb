import { open, rename } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Command } from '@commander-js/extra-typings'
import type pg from 'pg'
import { createDirectories } from '../../embedded-postgres/files.ts'
import type { FirstStart } from '../admin/first-start.ts'
import { type Config, type ConfigFlags, inspectConfig, readConfig, type Surface } from '../config/config.ts'
import { formatDatabaseUrl } from '../config/values.ts'
import { version } from '../config/version.ts'
import { type Connection, isUnavailable, openPool } from '../postgres/database.ts'
import { migrate } from '../postgres/migrate.ts'
import type { HttpProcesses, Runtime } from '../runtime/runtime.ts'
import { openLogger } from '../telemetry/logging.ts'
import { examples } from './options.ts'
import { MessageLost, type Output } from './output.ts'
import { openHttpProcesses } from './processes/processes.ts'
import { removeServerFile, writeServerFile } from './server-file.ts'
import {
  closeInTime,
  dropRoot,
  dropRootEarly,
  exitInTime,
  limitHeapGrowth,
  STUCK_EXIT_CODE,
  waitForStopSignal,
} from './server-process.ts'
import { currentUser, dataOption, loadSecrets, ownEmbedded } from './session.ts'

const NOTES = `
When Kontor starts for the first time, it creates the tenant "default" with keys, and prints them once. Without a
terminal, it writes them to the file \`keys\` in the data directory instead. Only the owner of the file can read it.
If your own PostgreSQL is unavailable, the server waits for it up to KONTOR_START_TIMEOUT (default: 60s), then exits.
On SIGINT, SIGTERM or SIGHUP, the server completes the requests in flight and stops. If the shutdown takes longer than
twice KONTOR_DRAIN_TIMEOUT, the server aborts it and exits with code 3. On a second signal, the server exits immediately.
All other settings are environment variables: see docs/configuration.md and \`kontor check-config\`.`

const SURFACES =
  'comma-separated parts of the server to run: data, events, inbound (the three APIs), console, worker (processes accepted requests) (default: all)'

export function addStart(program: Command, out: Output): void {
  program
    .command('start')
    .description('Run the server.')
    .option('--port <n>', 'port to listen on (default: KONTOR_PORT, or 8080)')
    .option('--host <address>', 'address to listen on (default: KONTOR_HOST, or 127.0.0.1)')
    .addOption(dataOption())
    .option('--surfaces <list>', SURFACES)
    .addHelpText('after', NOTES)
    .addHelpText(
      'after',
      examples(
        'kontor start',
        'kontor start --port 9000 --data /srv/kontor',
        'DATABASE_URL=postgres://kontor:PASSWORD@db.internal/kontor kontor start --surfaces events,inbound',
      ),
    )
    .action(({ data, ...options }) => start({ ...options, dataDir: data }, out))
}

const GREET_RETRY_MS = 500

async function start(flags: ConfigFlags, out: Output): Promise<void> {
  limitHeapGrowth()
  const config = readConfig(undefined, flags)
  for (const warning of inspectConfig(undefined, flags).warnings) out.say(`Warning: ${warning}`)
  const stopped = waitForStopSignal(out)
  const isEmbedded = config.databaseUrl === null
  const ports = [config.port, config.opsPort ?? 0]
  const runsAs = isEmbedded ? await dropRootEarly({ ...config, ports }) : null
  // Loading takes half a second and blocks this thread, so it happens while PostgreSQL starts.
  const load = () => import('../runtime/runtime.ts')
  const embedded = isEmbedded ? await ownEmbedded(config, out, () => load().catch(() => {})) : null
  exitInTime(stopped, config.drainTimeoutMs, out)
  let isInTime = true
  try {
    const connection = embedded?.connection ?? { url: config.databaseUrl! }
    const begin = async () => {
      await withPool(connection, migrate)
      const { startRuntime } = await load()
      return startNode({ startRuntime, config, connection })
    }
    const node = await retryUntilReachable(begin, { withinMs: config.startTimeoutMs, stopped, out })
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
    const runtime = await startRuntime({
      ...{ config, connection, log, threadLogging: logging, processes },
      directory: config.dataDir,
    })
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
  // The embedded PostgreSQL needs the rest of the time to stop.
  const share = isEmbedded ? 0.75 : 1
  const close = () => closeInTime(runtime.close, share * config.drainTimeoutMs, out)
  try {
    if (isEmbedded) await writeServerFile(config.dataDir, toServerFile(runtime, processes?.count ?? 1))
    await Promise.race([
      greetWithRetries(() => withPool(connection, pool => greet(pool, config, runtime, out))),
      stopped,
    ])
    const now = runsAs ?? (await dropRoot({ user: config.user, isEmbedded }))
    if (now) out.say(`  ${now}\n`)
    await stopped
  } catch (error) {
    await close()
    throw error
  } finally {
    if (isEmbedded) await removeServerFile(config.dataDir)
  }
  return close()
}

/** A node with only the worker surface serves no requests. */
function hasSeveralProcesses({ processes, surfaces }: Config): boolean {
  return processes > 1 && surfaces.some(surface => surface !== 'worker')
}

/** The service is already running, so a short outage of PostgreSQL must not end it. */
async function greetWithRetries(greetOnce: () => Promise<void>): Promise<void> {
  for (;;) {
    try {
      return await greetOnce()
    } catch (error) {
      // The next start creates new keys and shows them.
      if (error instanceof MessageLost) return
      if (!isUnavailable(error)) throw error
      await sleep(GREET_RETRY_MS, undefined, { ref: false })
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
    data: config.databaseUrl === null ? config.dataDir : formatDatabaseUrl(config.databaseUrl),
    dataFlag: isElsewhere ? ` --data '${config.dataDir}'` : '',
    surfaces: config.surfaces,
    isLoopback: config.publicUrl === null && ['127.0.0.1', '::1', 'localhost'].includes(config.host),
  }
  const secrets = await loadSecrets(config)
  // A worker alone serves nothing that the keys could be used for: a node that serves requests creates them.
  const servesHttp = config.surfaces.some(surface => surface !== 'worker')
  const show = async (created: FirstStart) => {
    const keysFile = await writeKeys(server, created, config)
    const text = firstBanner(server, created, keysFile)
    if (keysFile === null) await out.sayNow(text)
    else out.say(text)
  }
  const { onFirstStart } = await import('../admin/first-start.ts')
  const isFirst = servesHttp && (await onFirstStart({ pool, secrets, actor: currentUser() }, show))
  if (!isFirst) out.say(banner(server))
}

/** Many people can read logs: without a terminal, the keys go to a file. Returns its path; null: they are printed. */
async function writeKeys({ url }: StartedServer, created: FirstStart, { dataDir }: Config): Promise<string | null> {
  if (process.stderr.isTTY) return null
  const { privateKey, trackingKey, adminKey, source } = created
  const lines = [
    `PRIVATE_KEY=${privateKey.key}`,
    `TRACKING_KEY=${trackingKey.key}`,
    `ADMIN_KEY=${adminKey.key}`,
    `WEBHOOK_URL=${url}${source.path}`,
    `WEBHOOK_TOKEN=${source.token}`,
  ]
  try {
    return await writeSecretFile(dataDir, 'keys', lines.join('\n'))
  } catch {
    // not writable, for example in a read-only container
    return null
  }
}

async function withPool<T>(connection: Connection, work: (pool: pg.Pool) => Promise<T>): Promise<T> {
  const pool = openPool({ connection, max: 2, name: 'kontor start', onError: () => {} })
  return work(pool).finally(() => pool.end())
}

type Addresses = { url: string; opsUrl: string | null; promise: string | null }

function toServerFile({ url, opsUrl }: Addresses, processes: number) {
  const started_at = new Date().toISOString()
  return { pid: process.pid, version, url, ops_url: opsUrl, processes, started_at }
}

/** Only the owner can read the file. Returns its path. */
async function writeSecretFile(dataDir: string, name: string, text: string): Promise<string> {
  await createDirectories(dataDir, 0o700)
  const path = join(dataDir, name)
  const draft = `${path}.${process.pid}`
  const file = await open(draft, 'w', 0o600)
  try {
    await file.writeFile(`${text}\n`)
    await file.sync()
  } finally {
    await file.close()
  }
  await rename(draft, path)
  return path
}

/** What the start banner shows of the server. */
export type StartedServer = {
  version: string
  url: string
  opsUrl: string | null
  /** The data directory or the database addresses. */
  data: string
  /** The --data option that commands need to find this server; empty for the default directory. */
  dataFlag: string
  surfaces: readonly Surface[]
  /** The durability of an acknowledged event in JetStream; null without NATS. */
  promise: string | null
  /** Whether the server is reachable from this machine only. */
  isLoopback: boolean
}

/** `keysFile`: the file that contains the keys, instead of the banner. */
export function firstBanner(server: StartedServer, created: FirstStart, keysFile: string | null): string {
  const keys =
    keysFile === null
      ? [
          '  The keys are shown only once. Save them now.',
          '',
          `    Private key    ${created.privateKey.key}`,
          `    Tracking key   ${created.trackingKey.key}`,
          `    Admin key      ${created.adminKey.key}`,
          `    Webhook URL    ${server.url}${created.source.path}`,
          `    Webhook token  ${created.source.token}`,
        ]
      : [`  The keys are in the file ${keysFile}. Copy them, then delete the file.`]
  return [
    ...heading(server),
    '',
    `  First start: created the tenant "${created.tenant.name}" (${created.tenant.id}) and its keys.`,
    ...keys,
    '',
    '  Try these commands:',
    ...(keysFile === null ? [] : ['', '    # read the keys', `    . '${keysFile}'`]),
    ...exampleCommands(server, keysFile === null ? created : withVariables(created)).flatMap(({ what, line }) => [
      '',
      `    # ${what}`,
      `    ${line}`,
    ]),
    '',
    ...addresses(server),
    '',
  ].join('\n')
}

export function banner(server: StartedServer): string {
  return [
    ...heading(server),
    '',
    ...addresses(server),
    `  New keys        npm run kontor -- key create --tenant default --kind private${server.dataFlag}`,
    '  All commands    npm run kontor -- --help',
    '',
  ].join('\n')
}

function heading({ version, url, isLoopback }: StartedServer): string[] {
  const note = isLoopback
    ? ['  (reachable from this machine only; set KONTOR_HOST=0.0.0.0 to allow other machines)']
    : []
  return ['', `Kontor ${version} is running at ${url}`, ...note]
}

function addresses({ url, opsUrl, data, promise, surfaces }: StartedServer): string[] {
  const hasHttp = surfaces.some(surface => surface !== 'worker')
  return [
    ...(surfaces.includes('console') ? [`  Console         ${url}/console (sign in with the admin key)`] : []),
    ...(hasHttp ? [`  API reference   ${url}/docs`, `  Guides          ${url}/docs/guides`] : []),
    `  Operations      ${opsUrl === null ? 'disabled (KONTOR_OPS_PORT=off)' : `${opsUrl}/healthz, /readyz, /metrics`}`,
    `  Data            ${data}`,
    ...(promise === null ? [] : [`  Events          stored in JetStream, durability: ${promise}`]),
    `  Stop            Ctrl-C, or kill -TERM ${process.pid}`,
  ]
}

/** For commands that use the variables of the keys file. */
function withVariables(created: FirstStart): FirstStart {
  const { privateKey, trackingKey, source } = created
  return {
    ...created,
    privateKey: { ...privateKey, key: '$PRIVATE_KEY' },
    trackingKey: { ...trackingKey, key: '$TRACKING_KEY' },
    source: { ...source, token: '$WEBHOOK_TOKEN' },
  }
}

function exampleCommands({ url, surfaces }: StartedServer, created: FirstStart): { what: string; line: string }[] {
  const json = "-H 'Content-Type: application/json'"
  const bearer = (secret: string) => {
    const quote = secret.startsWith('$') ? '"' : "'"
    return `-H ${quote}Authorization: Bearer ${secret}${quote}`
  }
  const privateAuth = bearer(created.privateKey.key)
  const contact = {
    entityType: 'contact',
    id: 'c-1',
    sourceUpdatedAt: '2025-01-31T12:00:00Z',
    data: { email: 'ada@example.com', name: 'Ada Lovelace' },
  }
  const visit = { event_type: 'page_view', visitor: 'v-1', data: { page: 'https://example.com/' } }
  const hook = { inbound_event_id: 'evt-1', event_type: 'ticket.opened', payload: { subject: 'Hello' } }
  const post = (path: string, credential: string, body: object, extra = '') =>
    `curl ${url}${path} ${credential} ${json}${extra} -d '${JSON.stringify(body)}'`
  const reading = surfaces.includes('data')
    ? [{ what: 'list recent events', line: `curl '${url}/v1/events?limit=10' ${privateAuth} -H 'Prefer: wait=10'` }]
    : []
  return [
    ...(surfaces.includes('data')
      ? [
          {
            what: 'create a contact and wait until it is applied',
            line: post('/v1/contacts', privateAuth, contact, " -H 'Prefer: wait=10'"),
          },
          { what: 'read it back', line: `curl ${url}/v1/contacts/c-1 ${privateAuth}` },
        ]
      : []),
    ...(surfaces.includes('events')
      ? [{ what: 'track a page view', line: post('/v1/track/', bearer(created.trackingKey.key), visit) }]
      : []),
    ...(surfaces.includes('inbound')
      ? [{ what: 'send a webhook', line: post(created.source.path, bearer(created.source.token), hook) }]
      : []),
    ...reading,
  ]
}

const RETRY_MS = 1_000

/**
 * Retries `begin` while PostgreSQL is unavailable: it may be starting, or a standby may be taking over. Throws the last error after
 * `withinMs`. Returns null after a stop signal.
 */
export async function retryUntilReachable<T>(
  begin: () => Promise<T>,
  { withinMs, stopped, out }: { withinMs: number; stopped: Promise<void>; out: Output },
): Promise<T | null> {
  const deadline = performance.now() + withinMs
  let isStopped = false
  void stopped.then(() => {
    isStopped = true
  })
  for (let attempt = 1; ; attempt++) {
    try {
      return await begin()
    } catch (error) {
      if (isStopped) return null
      if (!isTemporary(error) || performance.now() + RETRY_MS > deadline) throw error
      if (attempt === 1) out.say(waitMessage(error as Error, withinMs))
      await Promise.race([stopped, sleep(RETRY_MS)])
      if (isStopped) return null
    }
  }
}

// At a start, a missing database means a wrong name.
const NO_SUCH_DATABASE = '3D000'

function isTemporary(error: unknown): boolean {
  if (!isUnavailable(error)) return false
  const { code, syscall } = error as NodeJS.ErrnoException
  const isFile = code === 'ENOENT' && syscall !== 'connect'
  return code !== NO_SUCH_DATABASE && !isFile && syscall !== 'listen'
}

function waitMessage({ message }: Error, withinMs: number): string {
  return (
    `PostgreSQL is unreachable: ${message || 'no host responds'}. ` +
    `Waiting up to ${withinMs / 1_000} s for it to start (KONTOR_START_TIMEOUT).`
  )
}
