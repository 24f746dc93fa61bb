import { randomBytes } from 'node:crypto'
import { chmod, mkdir, readFile, realpath, rm } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { type Account, isRoot } from './account.ts'
import { type Binaries, findBinaries, run } from './binaries.ts'
import { codeOf, EmbeddedError, explain, withExplanation } from './error.ts'
import { makeDirectory, partialName, putInPlace, removeLeftovers, writeWhole } from './files.ts'
import {
  chooseLocation,
  findHome,
  type Home,
  homeAt,
  linkIn,
  pointTo,
  readPassword,
  rememberDataDirectory,
} from './home.ts'
import { enter, leave, liveUsers, type Role, type User, withLock } from './lock.ts'
import { findPostmaster, type Postmaster } from './postmaster.ts'
import { type Installation, keepRunning, launch, rotateLog, settled, stopServer } from './server.ts'
import { inspectMachine, type Settings, settingsFile, settingsFor } from './settings.ts'
import { listening } from './socket.ts'

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
  /** initialised: there was no cluster; started: it was not running; adopted: it was. */
  state: 'initialised' | 'started' | 'adopted'
  stop(): Promise<void>
}

type EmbeddedOptions = {
  dataDir: string
  log: (message: string) => void
  /** What the database and its superuser are called; the same name at every call. */
  name?: string
  /** PostgreSQL settings that take the place of ours when this call starts the cluster. */
  settings?: Settings
  /** Where root keeps what PostgreSQL's user could not reach in the data directory; /var/lib/<name> unless given. */
  systemDirectory?: string
}

const DEFAULT_NAME = 'postgres'
export const systemDirectoryOf = (name: string) => `/var/lib/${name}`
const lockTimeoutMs = 120_000 // longer than a start or a stop may take
const recoveryTimeoutMs = 60_000 // checkpoints come every few minutes: there is not more to replay

/** For a server: owns the data directory exclusively. */
export function ownCluster(options: EmbeddedOptions): Promise<Embedded> {
  return use(options, 'server')
}

/**
 * For commands: uses the running cluster beside a server, or starts one for the duration of the command.
 * The last one to leave a cluster that no server owns stops it.
 */
export function joinCluster(options: EmbeddedOptions): Promise<Embedded> {
  return use(options, 'command')
}

/** The process of the server that owns the data directory, also one that is still starting; null: none does. */
export async function serverOn(dataDir: string): Promise<number | null> {
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
            'Stop it first, or give this one a directory of its own.',
        )
      }
      const { installation, postmaster, state } = await startOrAdopt(dataDir, options)
      try {
        const connection = await connect(installation.home, postmaster, options.name ?? DEFAULT_NAME)
        const user = await enter(usage, role)
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

/** On the same port: those who use it know no other. */
function restart(
  installation: Installation,
  usage: string,
  { port }: EmbeddedConnection,
  { settings = {} }: EmbeddedOptions,
): Promise<Postmaster> {
  return withLock(usage, lockTimeoutMs, async () => {
    const running = await settled(installation)
    return running ?? (await start(installation, { ...settings, port: String(port) }))
  })
}

function release(installation: Installation, usage: string, user: User): Promise<void> {
  return withExplanation('The embedded PostgreSQL cannot be stopped.', () =>
    withLock(usage, lockTimeoutMs, async () => {
      const hasOthers = (await liveUsers(usage)).some(({ id }) => id !== user.id)
      const running = await findPostmaster(installation.home)
      // First of all stop: taking oneself off the list writes a file, which fails on a full disk.
      if (running && user.role === 'server') await stopServer(installation, running, 'fast')
      if (running && user.role === 'command' && !hasOthers) await stopServer(installation, running, 'smart')
      await leave(usage, user)
    }),
  )
}

async function prepareDataDirectory(path: string): Promise<string> {
  // 711 for root: PostgreSQL's user must pass through; what lies in it has modes of its own.
  const mode = isRoot() ? 0o711 : 0o700
  const outermost = await mkdir(path, { recursive: true, mode })
  for (let made = resolve(path); outermost && made.startsWith(resolve(outermost)); made = dirname(made)) {
    await chmod(made, mode)
  }
  const dataDir = await realpath(path)
  if (Buffer.byteLength(dataDir) > 900 || /[\r\n]/.test(dataDir)) {
    throw new EmbeddedError(
      `PostgreSQL cannot work in ${JSON.stringify(dataDir)}: the path must be shorter than 900 bytes and in one line. ` +
        'Give another data directory.',
    )
  }
  return dataDir
}

async function startOrAdopt(
  dataDir: string,
  { log, name = DEFAULT_NAME, settings = {}, systemDirectory = systemDirectoryOf(name) }: EmbeddedOptions,
): Promise<{ installation: Installation; postmaster: Postmaster; state: Embedded['state'] }> {
  const existing = await findHome(dataDir)
  if (existing === null) {
    log(`Initialising PostgreSQL in ${dataDir}.`)
    const { account, target } = await chooseLocation(dataDir, systemDirectory, log)
    const binaries = await findBinaries(account, systemDirectory, log)
    const home = await initialise({ dataDir, target, account, binaries, superuser: name })
    await pointTo(target, dataDir)
    const installation = { home, account, binaries, log }
    return { installation, postmaster: await start(installation, settings), state: 'initialised' }
  }
  await rememberDataDirectory(existing.home, dataDir, systemDirectory)
  const binaries = await findBinaries(existing.account, systemDirectory, log)
  const installation = { ...existing, binaries, log }
  const running = await settled(installation)
  if (running) return { installation, postmaster: running, state: 'adopted' }
  await checkVersion(existing.home, binaries.major)
  return { installation, postmaster: await start(installation, settings), state: 'started' }
}

async function start(installation: Installation, settings: Settings): Promise<Postmaster> {
  const { home, account, binaries } = installation
  await removeLeftovers(home.directory)
  const machine = await inspectMachine(home, account, binaries)
  const own = { cluster_name: home.name, ...(await listening(home, account)) }
  const all = { ...settingsFor(machine), ...own, ...settings }
  const content = settingsFile(join(home.data, 'postgresql.conf'), all)
  await writeWhole(home.settingsFile, content, { mode: 0o644 })
  return launch(installation)
}

async function checkVersion(home: Home, major: string): Promise<void> {
  const written = (await readFile(join(home.data, 'PG_VERSION'), 'utf8')).trim()
  if (written === major) return
  throw new EmbeddedError(
    `The database in ${home.directory} was written by PostgreSQL ${written}, and this version brings PostgreSQL ${major}. ` +
      `Either start the version that wrote it; or convert it with pg_upgrade (of an installed PostgreSQL ${major}); or serve ` +
      `it with an installed PostgreSQL ${written}.`,
  )
}

/** Sees that PostgreSQL lets us in and that the database is there: a crash may have come before it was made. */
async function connect(home: Home, { host, port }: Postmaster, name: string): Promise<EmbeddedConnection> {
  const connection = { host, port, user: name, password: await readPassword(home), database: name }
  const patientUntil = Date.now() + recoveryTimeoutMs
  for (;;) {
    const client = new pg.Client({ ...connection, database: 'postgres', connectionTimeoutMillis: 10_000 })
    try {
      await client.connect()
      const { rowCount } = await client.query('select from pg_database where datname = $1', [name])
      if (rowCount === 0) await client.query(`create database ${client.escapeIdentifier(name)}`)
      return connection
    } catch (error) {
      // One of its processes died and it recovers: its pid file calls it ready all the while.
      const isRecovering = codeOf(error) === '57P03' || codeOf(error) === '57P02'
      if (!isRecovering || Date.now() > patientUntil) throw noEntry(home, error as Error)
      await sleep(50)
    } finally {
      await client.end().catch(() => {})
    }
  }
}

function noEntry(home: Home, error: Error): EmbeddedError {
  const explained =
    codeOf(error) === '28P01'
      ? new EmbeddedError(
          `PostgreSQL refuses the password in ${home.passwordFile}. Bring the file back from a backup.`,
        )
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
}

/** Makes a new cluster at `target`. Until the last step it has another name, so a crash leaves nothing that counts. */
async function initialise({ dataDir, target, account, binaries, superuser }: Options): Promise<Home> {
  await removeLeftovers(dirname(target))
  const prepared = homeAt(partialName(target))
  try {
    // 711: the account must pass through to `data`; the password and the log beside it stay closed to it.
    await makeDirectory(prepared.directory, account ? 0o711 : 0o700, null)
    await makeDirectory(prepared.data, 0o700, account)
    const password = randomBytes(24).toString('base64url')
    await writeWhole(prepared.passwordFile, `${password}\n`)
    await runInitdb(prepared, password, { account, binaries, superuser })
    if (target !== linkIn(dataDir)) await writeWhole(prepared.dataDirectoryFile, dataDir)
    await putInPlace(prepared.directory, target)
  } catch (error) {
    await rm(prepared.directory, { recursive: true, force: true }).catch(() => {})
    throw error
  }
  return homeAt(target)
}

/** initdb syncs everything it wrote before it ends: 30 ms of its 800 ms on a laptop's disk. */
async function runInitdb(
  home: Home,
  password: string,
  { account, binaries, superuser }: Omit<Options, 'target' | 'dataDir'>,
): Promise<void> {
  // It runs as the account and takes the password from a file only, so for a moment there is one that it may read.
  const passwordFile = join(home.directory, 'password-for-initdb')
  await writeWhole(passwordFile, `${password}\n`, { owner: account })
  const { status, output } = await run(account, binaries.initdb, [
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
  if (status !== 0) throw explain(`PostgreSQL could not initialise a database in ${home.data}.`, output)
  await rm(passwordFile)
}
