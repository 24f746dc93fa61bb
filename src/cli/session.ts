import { userInfo } from 'node:os'
import { InvalidArgumentError, Option } from '@commander-js/extra-typings'
import type pg from 'pg'
import { defaultSystemDirectory, type Embedded, joinCluster, ownCluster } from '../../embedded-postgres/cluster.ts'
import { type Actor, commandLineActor } from '../admin/actor.ts'
import type { Admin } from '../admin/admin.ts'
import { AdminError, kontorCommand } from '../admin/error.ts'
import { loadSecretKeys, openSecrets, type Secrets } from '../admin/secrets.ts'
import { type Config, cliEnvironment, type RemoteServer, readConfig, sendingSettings } from '../config/config.ts'
import { withoutTrailingSlash } from '../config/values.ts'
import { parseTenantId } from '../domain/tenants/tenants.ts'
import type { Log } from '../log/log.ts'
import { type Connection, databaseNow, openPool } from '../postgres/database.ts'
import { migrate, SchemaError, schemaState } from '../postgres/migrate.ts'
import { initializeLog, openLog, toNatsSettings } from '../runtime/log.ts'
import { UsageError } from './errors.ts'
import type { Output } from './output.ts'
import { emptyDataDir, findRemote, type Place, readDigestPreview, remoteAdmin, requireLocal } from './remote.ts'
import { readServerFile } from './server-file.ts'
import { onStopByDefault, Stopped } from './stop.ts'

/** For commands that use the database. */
export const dataOption = () => new Option('--data <directory>', 'data directory (default: KONTOR_DATA_DIR, or ./data)')

/** For commands that send requests to a server. */
export const urlOption = () =>
  new Option(
    '--url <url>',
    'URL of the server to send to; it must use the same database as this command (default: the server that runs on the data directory)',
  ).argParser(parseServerUrl)

function parseServerUrl(text: string): string {
  if (/^https?:\/\//i.test(text) && URL.canParse(text)) return withoutTrailingSlash(text)
  throw new InvalidArgumentError('Expected a URL, for example http://localhost:8080.')
}

/** For commands about one tenant. */
export const tenantOption = () => new Option('--tenant <tenant>', 'tenant id or name').makeOptionMandatory()

/** For lists across tenants. */
export const tenantFilter = () => new Option('--tenant <tenant>', 'only this tenant (id or name)')

export type Database = {
  pool: pg.Pool
  connection: Connection
  config: Config
  log: Log
}
export type Session = Database & { admin: Admin }

/** Opens the database of DATABASE_URL or of the data directory, whether a server uses it or not. */
export async function withBareDatabase<T>(
  options: Place,
  out: Output,
  work: (database: Database) => Promise<T>,
): Promise<T> {
  await requireLocal(options)
  const config = readConfig(undefined, { dataDir: options.data })
  const stopping = new AbortController()
  const endStop = onStopByDefault(() => stopping.abort())
  try {
    return await withConnections(config, stopping.signal, out, work)
  } catch (error) {
    throw stopping.signal.aborted ? new Stopped() : error
  } finally {
    endStop()
  }
}

async function withConnections<T>(
  config: Config,
  stopping: AbortSignal,
  out: Output,
  work: (database: Database) => Promise<T>,
): Promise<T> {
  const embedded = config.databaseUrl === null ? await joinEmbedded(config, out) : null
  try {
    stopping.throwIfAborted()
    const connection = embedded?.connection ?? { url: config.databaseUrl! }
    const pool = openPool({ connection, max: 2, name: 'kontor command', onError: () => {} })
    const endPool = endOnStop(pool, stopping)
    let unwinding: NodeJS.Timeout | undefined
    stopping.addEventListener('abort', () => {
      unwinding = setTimeout(() => abandonWork(embedded, out), MAX_UNWIND_MS)
    })
    const { log, close } = await openLog({ pool, nats: toNatsSettings(config), name: 'kontor command' })
    try {
      return await work({ pool, connection, config, log })
    } finally {
      clearTimeout(unwinding)
      await close()
      await endPool()
    }
  } finally {
    await embedded?.stop()
  }
}

// Longer than it takes to delete unfinished files.
const MAX_UNWIND_MS = 5_000

/** When the command must stop, its connections end: statements fail, and so does the work. Returns a function that ends the pool. */
function endOnStop(pool: pg.Pool, stopping: AbortSignal): () => Promise<void> {
  const clients = new Set<pg.Client>()
  pool.on('connect', client => clients.add(client as pg.Client))
  pool.on('remove', client => clients.delete(client as pg.Client))
  let ended: Promise<void> | undefined
  const end = () => {
    ended ??= pool.end()
    return ended
  }
  stopping.addEventListener('abort', () => {
    void end()
    for (const client of clients) client.end().catch(() => {})
  })
  return end
}

/** For work that does not notice that its connections have ended, such as output that no one reads. */
async function abandonWork(embedded: Embedded | null, out: Output): Promise<never> {
  await embedded?.stop().catch(({ message }: Error) => out.say(message))
  await out.sayNow(new Stopped().message).catch(() => {})
  return process.exit(1)
}

/** Also migrates the schema: for commands that change something. */
export async function withDatabase<T>(options: Place, out: Output, work: (session: Session) => Promise<T>): Promise<T> {
  await requireData(options)
  return withNewDatabase(options, out, work)
}

/** Creates the database if there is none. */
export function withNewDatabase<T>(options: Place, out: Output, work: (session: Session) => Promise<T>): Promise<T> {
  return withBareDatabase(options, out, async database => {
    await migrate(database.pool)
    return work(await openSession(database))
  })
}

/**
 * For commands that only read: does not migrate a database of an older version, because a server of that version may be using it.
 * An empty database gets its tables, as with any other command.
 */
export async function withReadDatabase<T>(
  options: Place,
  out: Output,
  work: (session: Session) => Promise<T>,
): Promise<T> {
  await requireData(options)
  return withBareDatabase(options, out, async database => {
    const problem = await schemaProblem(database)
    if (problem !== null) throw new SchemaError(problem)
    return work(await openSession(database))
  })
}

/**
 * What a command about tenants, keys, sources and so on needs. `url`: where the server is reached. `pool`: the database of this machine;
 * null if a remote server runs the command.
 */
type AdminSession = { admin: Admin; url: string; previewDigest(tenant: string): Promise<DigestPreview> } & (
  | { pool: pg.Pool; remote: null }
  | { pool: null; remote: RemoteServer }
)
type AdminWork<T> = (session: AdminSession) => Promise<T>
type DigestPreview = { subject: string; text: string; html: string }

/**
 * Runs a command on the admin API of a remote server (`--profile`, KONTOR_URL and KONTOR_KEY, or `kontor login` on a machine without a
 * database), or on the database of this machine.
 */
export async function withAdmin<T>(options: Place, out: Output, work: AdminWork<T>): Promise<T> {
  await requireData(options)
  return withNewAdmin(options, out, work)
}

/** For a command that may be the first one: creates the database. */
export function withNewAdmin<T>(options: Place, out: Output, work: AdminWork<T>): Promise<T> {
  return runAdmin(options, work, local => withNewDatabase(options, out, local))
}

/** For commands that only read. */
export function withReadAdmin<T>(options: Place, out: Output, work: AdminWork<T>): Promise<T> {
  return runAdmin(options, work, local => withReadDatabase(options, out, local))
}

/** For commands that append to the log. */
export function withAppendingAdmin<T>(options: Place, out: Output, work: AdminWork<T>): Promise<T> {
  return runAdmin(options, work, local =>
    withDatabase(options, out, async session => {
      await prepareLog(session)
      return local(session)
    }),
  )
}

async function runAdmin<T>(
  options: Place,
  work: AdminWork<T>,
  locally: (local: (session: Session) => Promise<T>) => Promise<T>,
): Promise<T> {
  const remote = await findRemote(options)
  if (remote !== null) {
    const previewDigest = (tenant: string) => readDigestPreview(remote, tenant)
    return work({ admin: remoteAdmin(remote), url: remote.url, previewDigest, pool: null, remote })
  }
  return locally(async ({ admin, config, pool }) => {
    const running = config.databaseUrl === null ? await readServerFile(config.dataDir) : null
    const url = config.publicUrl ?? running?.url ?? `http://localhost:${config.port}`
    const previewDigest = (tenant: string) => buildDigest({ admin, pool, config }, tenant)
    return work({ admin, url, previewDigest, pool, remote: null })
  })
}

async function buildDigest(
  { admin, pool, config }: Pick<Session, 'admin' | 'pool' | 'config'>,
  tenant: string,
): Promise<DigestPreview> {
  // Reports are loaded only by this command.
  const [{ digestReport }, { renderDigest }] = await Promise.all([
    import('../reports/digest.ts'),
    import('../domain/alerts/digest.ts'),
  ])
  const { id, name } = await admin.tenants.show(tenant)
  const now = await databaseNow(pool)
  const digest = await digestReport(pool, { id: parseTenantId(id)!, name }, { due: now, now })
  return renderDigest(digest, sendingSettings(config).consoleUrl)
}

/** Prints the result of an action that changes something. */
export function printChange(options: Place, out: Output, action: (admin: Admin) => Promise<unknown>): Promise<void> {
  return withAdmin(options, out, async ({ admin }) => out.json(await action(admin)))
}

/** Prints the result of an action that only reads. */
export function printRead(options: Place, out: Output, action: (admin: Admin) => Promise<unknown>): Promise<void> {
  return withReadAdmin(options, out, async ({ admin }) => out.json(await action(admin)))
}

/** The tenant for a command without `--tenant`: KONTOR_TENANT, or the only one. */
export async function chooseTenant(options: Place, out: Output): Promise<string> {
  const { tenant } = cliEnvironment()
  if (tenant !== undefined) return tenant
  const tenants = await withReadAdmin(options, out, ({ admin }) => admin.tenants.list())
  if (tenants.length === 1) return tenants[0]!.id
  throw new UsageError(
    tenants.length === 0
      ? 'There is no tenant yet. Create one with kontor start or kontor tenant create.'
      : 'There are several tenants. Choose one with --tenant or KONTOR_TENANT. `kontor tenant list` shows them.',
  )
}

/** Why this version cannot read the database, with the command that fixes it; null if it can. Creates the tables of an empty database. */
export async function schemaProblem({ pool, config }: Database): Promise<string | null> {
  const state = await schemaState(pool)
  if (state === 'empty') await migrate(pool)
  if (state === 'empty' || state === 'current') return null
  const { databaseUrl, dataDir } = config
  const command = kontorCommand({ dataDir: databaseUrl === null ? dataDir : null }, 'migrate')
  return `The database has the schema of an older version of Kontor. Missing migrations: ${state.lacks.join(', ')}. Run \`${command}\`, or start the server.`
}

export async function openSession(database: Database): Promise<Session> {
  const { pool, config, log } = database
  const { oidcIssuer } = config
  const secrets = await loadSecrets(config)
  // Not at the top: loading takes a tenth of a second, and many commands do not need it.
  const { openAdmin } = await import('../admin/admin.ts')
  const adminFor = openAdmin({ ...{ pool, log, secrets, oidcIssuer }, ...sendingSettings(config) })
  return { ...database, admin: adminFor(currentUser()) }
}

/** The operating system user who runs this command. */
export function currentUser(): Actor {
  try {
    return commandLineActor(userInfo().username)
  } catch {
    // in a container, a user may have only a number
    return commandLineActor(`uid ${process.getuid?.()}`)
  }
}

export async function loadSecrets(config: Config): Promise<Secrets> {
  return openSecrets(await readSecretKeys(config))
}

export function readSecretKeys({ secretKeys, dataDir, databaseUrl }: Config): Promise<Buffer[] | null> {
  return loadSecretKeys({ secretKeys, dataDir, isEmbedded: databaseUrl === null })
}

/** Fails instead of creating a database in a mistyped data directory. */
export async function requireData(options: Place): Promise<void> {
  if ((await findRemote(options)) !== null) return
  const empty = await emptyDataDir(options)
  if (empty === null) return
  throw new AdminError(
    'not_found',
    'no_database',
    `There is no database in ${empty}. Set --data to the data directory of the server, set DATABASE_URL, or sign in to a remote server: kontor login URL`,
  )
}

/** For commands that append to the log, whether a server runs or not. */
async function prepareLog({ pool, config }: Session): Promise<void> {
  await initializeLog(pool, { partitions: config.logPartitions, now: await databaseNow(pool) })
}

const NAME = 'kontor'

/** The directory for clusters of root whose data directories PostgreSQL's user cannot access. */
export const systemDirectory = defaultSystemDirectory(NAME)

/** For the server: starts the embedded PostgreSQL of the data directory and owns it. */
export function ownEmbedded({ dataDir }: Config, out: Output, whileStarting: () => void): Promise<Embedded> {
  return ownCluster({ name: NAME, dataDir, log: out.say, whileStarting })
}

/** For other commands: uses the PostgreSQL of a running server, or starts it until the command is done. */
export function joinEmbedded({ dataDir }: Config, out: Output): Promise<Embedded> {
  return joinCluster({ name: NAME, dataDir, log: out.say })
}
