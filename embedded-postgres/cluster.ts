import { randomBytes } from 'node:crypto'
import { chmod, readFile, realpath, rm, stat } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { type Account, isRoot } from './account.ts'
import { type Binaries, findBinaries, run } from './binaries.ts'
import { EmbeddedError, errorCode, explain, withExplanation } from './error.ts'
import { createDirectories, createDirectory, partialName, putInPlace, removeLeftovers, writeWhole } from './files.ts'
import {
  chooseLocation,
  findHome,
  type Home,
  homeAt,
  linkIn,
  linkTo,
  readPassword,
  recordDataDirectory,
} from './home.ts'
import { addUser, liveUsers, type Role, removeUser, type User, withLock } from './lock.ts'
import { findPostmaster, type Postmaster } from './postmaster.ts'
import { type Installation, keepRunning, launch, rotateLog, stopServer, waitUntilSettled } from './server.ts'
import { inspectMachine, type Settings, settingsFile, settingsFor } from './settings.ts'
import { listenSettings } from './socket.ts'

export { EmbeddedError } from './error.ts'

/** `host` is a socket directory or '127.0.0.1'. */
export type EmbeddedConnection = {
  host: string
  port: number
  user: string
  password: string
  database: string
}

export type Embedded = {
  connection: EmbeddedConnection
  /** initialized: there was no cluster; started: it was not running; adopted: it was running. */
  state: 'initialized' | 'started' | 'adopted'
  stop(): Promise<void>
}

type EmbeddedOptions = {
  dataDir: string
  log: (message: string) => void
  /** Called when initdb or PostgreSQL has been started: meanwhile, work that blocks this thread delays nothing. */
  whileStarting?: () => void
  /** The name of the database and its superuser. Every call must pass the same name. */
  name?: string
  /** PostgreSQL settings that override ours if this call starts the cluster. */
  settings?: Settings
  /** Used as root for files that PostgreSQL's user cannot reach in the data directory. Default: /var/lib/<name>. */
  systemDirectory?: string
}

const DEFAULT_NAME = 'postgres'
export const defaultSystemDirectory = (name: string) => `/var/lib/${name}`
const lockTimeoutMs = 120_000 // longer than a start or a stop may take
const recoveryTimeoutMs = 60_000 // a checkpoint every few minutes limits what recovery replays

/** For a server: owns the data directory exclusively. */
export function ownCluster(options: EmbeddedOptions): Promise<Embedded> {
  return use(options, 'server')
}

/**
 * For commands: uses the cluster of a running server, or starts one for the duration of the command. The last command stops a
 * cluster that no server owns.
 */
export function joinCluster(options: EmbeddedOptions): Promise<Embedded> {
  return use(options, 'command')
}

/** The process id of the server that owns the data directory, even if it is still starting; null if there is none. */
export async function findServer(dataDir: string): Promise<number | null> {
  const server = (await liveUsers(join(dataDir, 'usage'))).find(user => user.role === 'server')
  return server?.pid ?? null
}

function use(options: EmbeddedOptions, role: Role): Promise<Embedded> {
  return withExplanation(`The embedded PostgreSQL in ${options.dataDir} cannot be used.`, async () => {
    const dataDir = await prepareDataDirectory(options.dataDir)
    const usage = join(dataDir, 'usage')
    return withLock(usage, lockTimeoutMs, async () => {
      const server = (await liveUsers(usage)).find(user => user.role === 'server')
      if (role === 'server' && server) {
        throw new EmbeddedError(
          `Another server (process ${server.pid}) uses the data directory ${dataDir}. ` +
            'Stop it first, or use another data directory.',
        )
      }
      const { installation, postmaster, state } = await startOrAdopt(dataDir, options)
      try {
        const connection = await connect(installation.home, postmaster, options.name ?? DEFAULT_NAME)
        const user = await addUser(usage, role)
        const watch =
          role === 'server'
            ? keepRunning({
                ...{ postmaster, log: options.log },
                restart: () => restart(installation, usage, connection, options),
                upkeep: () => rotateLog(installation.home),
              })
            : null
        let stopped: Promise<void> | undefined
        const stop = () => {
          stopped ??= (watch?.stop() ?? Promise.resolve()).then(() => release(installation, usage, user))
          return stopped
        }
        return { connection, state, stop }
      } catch (error) {
        if (state !== 'adopted') await stopServer(installation, postmaster, 'fast')
        throw error
      }
    })
  })
}

/** Uses the same port, because the clients keep it. */
function restart(
  installation: Installation,
  usage: string,
  { port }: EmbeddedConnection,
  { settings = {} }: EmbeddedOptions,
): Promise<Postmaster> {
  return withLock(usage, lockTimeoutMs, async () => {
    const running = await waitUntilSettled(installation)
    return running ?? (await start(installation, { ...settings, port: String(port) }))
  })
}

function release(installation: Installation, usage: string, user: User): Promise<void> {
  return withExplanation('The embedded PostgreSQL cannot be stopped.', () =>
    withLock(usage, lockTimeoutMs, async () => {
      const hasOthers = (await liveUsers(usage)).some(({ id }) => id !== user.id)
      const running = await findPostmaster(installation.home)
      // Stops before it removes the user from the list: that writes a file, which fails on a full disk.
      if (running && user.role === 'server') await stopServer(installation, running, 'fast')
      if (running && user.role === 'command' && !hasOthers) await stopServer(installation, running, 'smart')
      await removeUser(usage, user)
    }),
  )
}

async function prepareDataDirectory(path: string): Promise<string> {
  // 711 for root: PostgreSQL's user must be able to enter. The files in it have their own modes.
  const mode = isRoot() ? 0o711 : 0o700
  const found = await stat(path).catch(() => null)
  if (found?.isDirectory() === false)
    throw new EmbeddedError(`${resolve(path)} is not a directory. Use another data directory.`)
  const outermost = await createDirectories(resolve(path), mode)
  for (let dir = resolve(path); outermost && dir.startsWith(resolve(outermost)); dir = dirname(dir)) {
    await chmod(dir, mode)
  }
  const dataDir = await realpath(path)
  if (Buffer.byteLength(dataDir) > 900 || /[\r\n]/.test(dataDir)) {
    throw new EmbeddedError(
      `PostgreSQL cannot use ${JSON.stringify(dataDir)}: the path must be at most 900 bytes long and contain no line break. ` +
        'Use another data directory.',
    )
  }
  return dataDir
}

async function startOrAdopt(
  dataDir: string,
  {
    log,
    whileStarting = () => {},
    name = DEFAULT_NAME,
    settings = {},
    systemDirectory = defaultSystemDirectory(name),
  }: EmbeddedOptions,
): Promise<{ installation: Installation; postmaster: Postmaster; state: Embedded['state'] }> {
  const existing = await findHome(dataDir)
  if (existing === null) {
    log(`Initializing PostgreSQL in ${dataDir}.`)
    const { account, target } = await chooseLocation(dataDir, systemDirectory, log)
    const binaries = await findBinaries(account, systemDirectory, log)
    const home = await initialize({ dataDir, target, account, binaries, superuser: name, whileStarting })
    await linkTo(target, dataDir)
    const installation = { home, account, binaries, log, whileStarting }
    return { installation, postmaster: await start(installation, settings), state: 'initialized' }
  }
  await recordDataDirectory(existing.home, dataDir, systemDirectory)
  const binaries = await findBinaries(existing.account, systemDirectory, log)
  const installation = { ...existing, binaries, log, whileStarting }
  const running = await waitUntilSettled(installation)
  if (running) return { installation, postmaster: running, state: 'adopted' }
  await checkVersion(existing.home, binaries.major)
  return { installation, postmaster: await start(installation, settings), state: 'started' }
}

async function start(installation: Installation, settings: Settings): Promise<Postmaster> {
  const { home, account, binaries } = installation
  await removeLeftovers(home.directory)
  const machine = await inspectMachine(home, account, binaries)
  const own = { cluster_name: home.name, ...(await listenSettings(home, account)) }
  const all = { ...settingsFor(machine), ...own, ...settings }
  const content = settingsFile(join(home.data, 'postgresql.conf'), all)
  await writeWhole(home.settingsFile, content, { mode: 0o644 })
  return launch(installation)
}

async function checkVersion(home: Home, major: string): Promise<void> {
  const written = (await readFile(join(home.data, 'PG_VERSION'), 'utf8')).trim()
  if (written === major) return
  throw new EmbeddedError(
    `The database in ${home.directory} was written by PostgreSQL ${written}, but this version uses PostgreSQL ${major}. ` +
      `Start the version that wrote it, convert it with pg_upgrade of an installed PostgreSQL ${major}, or run an installed ` +
      `PostgreSQL ${written} on it.`,
  )
}

/** Checks that PostgreSQL accepts connections, and creates the database if a crash prevented that. */
async function connect(home: Home, { host, port }: Postmaster, name: string): Promise<EmbeddedConnection> {
  const connection = { host, port, user: name, password: await readPassword(home), database: name }
  const deadline = Date.now() + recoveryTimeoutMs
  for (;;) {
    const client = new pg.Client({ ...connection, database: 'postgres', connectionTimeoutMillis: 10_000 })
    try {
      await client.connect()
      const { rowCount } = await client.query('select from pg_database where datname = $1', [name])
      if (rowCount === 0) await client.query(`create database ${client.escapeIdentifier(name)}`)
      return connection
    } catch (error) {
      // PostgreSQL recovers after one of its processes died. Its pid file says "ready" meanwhile.
      const isRecovering = errorCode(error) === '57P03' || errorCode(error) === '57P02'
      if (!isRecovering || Date.now() > deadline) throw explainConnectError(home, error as Error)
      await sleep(50)
    } finally {
      await client.end().catch(() => {})
    }
  }
}

function explainConnectError(home: Home, error: Error): EmbeddedError {
  const explained =
    errorCode(error) === '28P01'
      ? new EmbeddedError(`PostgreSQL rejects the password in ${home.passwordFile}. Restore the file from a backup.`)
      : explain('PostgreSQL is running but cannot be reached.', error.message)
  explained.cause = error
  return explained
}

type Options = {
  dataDir: string
  target: string
  account: Account | null
  binaries: Binaries
  superuser: string
  whileStarting: () => void
}

/** Creates a cluster at `target`. It has a temporary name until the last step, so a crash leaves no partial cluster. */
async function initialize({ dataDir, target, ...options }: Options): Promise<Home> {
  const { account } = options
  await removeLeftovers(dirname(target))
  const prepared = homeAt(partialName(target))
  try {
    // 711: the account must be able to enter `data`, but not read the password and the log next to it.
    await createDirectory(prepared.directory, account ? 0o711 : 0o700, null)
    await createDirectory(prepared.data, 0o700, account)
    const password = randomBytes(24).toString('base64url')
    await writeWhole(prepared.passwordFile, `${password}\n`)
    await runInitdb(prepared, password, options)
    if (target !== linkIn(dataDir)) await writeWhole(prepared.dataDirectoryFile, dataDir)
    await putInPlace(prepared.directory, target)
  } catch (error) {
    await rm(prepared.directory, { recursive: true, force: true }).catch(() => {})
    throw error
  }
  return homeAt(target)
}

/** initdb syncs all its files before it exits: 30 ms of its 800 ms on a laptop's disk. */
async function runInitdb(
  home: Home,
  password: string,
  { account, binaries, superuser, whileStarting }: Omit<Options, 'target' | 'dataDir'>,
): Promise<void> {
  // initdb runs as the account and reads the password only from a file, so it needs a temporary one that the account may read.
  const passwordFile = join(home.directory, 'password-for-initdb')
  await writeWhole(passwordFile, `${password}\n`, { owner: account })
  const running = run(account, binaries.initdb, [
    `--pgdata=${home.data}`,
    `--username=${superuser}`,
    `--pwfile=${passwordFile}`,
    '--auth=scram-sha-256',
    '--encoding=UTF8',
    '--locale-provider=builtin',
    '--builtin-locale=C.UTF-8',
    '--locale=C',
    '--no-instructions',
  ])
  whileStarting()
  const { status, output } = await running
  if (status !== 0) throw explain(`PostgreSQL could not initialize a database in ${home.data}.`, output)
  await rm(passwordFile)
}
