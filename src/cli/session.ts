import { userInfo } from 'node:os'
import { InvalidArgumentError, Option } from '@commander-js/extra-typings'
import type pg from 'pg'
import { findHome } from '../../embedded-postgres/home.ts'
import { type Actor, commandLineActor } from '../admin/actor.ts'
import { type Admin, openAdmin } from '../admin/admin.ts'
import { kontor } from '../admin/doctor/finding.ts'
import { AdminError } from '../admin/error.ts'
import { loadMasterKeys, openSecrets, type Secrets } from '../admin/secrets.ts'
import { type Config, readConfig } from '../config/config.ts'
import type { Log } from '../log/log.ts'
import { databaseNow } from '../postgres/clock.ts'
import { type Connection, openPool } from '../postgres/database.ts'
import { migrate, SchemaError, schemaState } from '../postgres/migrate.ts'
import { initialiseLog, natsOf, openLog } from '../runtime/log.ts'
import { joinEmbedded } from './embedded.ts'
import type { Output } from './output.ts'

/** The option of every command that reaches the database. */
export const dataOption = () =>
  new Option('--data <directory>', 'the data directory (default: KONTOR_DATA_DIR, or ./data)')

/** Of commands that send something to a server. */
export const urlOption = () =>
  new Option('--url <url>', 'the server to send to (default: the one on this data directory)').argParser(
    urlOf,
  )

function urlOf(text: string): string {
  if (/^https?:\/\//i.test(text) && URL.canParse(text)) return text.replace(/\/+$/, '')
  throw new InvalidArgumentError('It must be an address like http://localhost:8080.')
}

/** Of commands about one tenant, where it has to be named. */
export const tenantOption = () =>
  new Option('--tenant <tenant>', 'the id or the name of the tenant').makeOptionMandatory()

/** Of lists that hold things of several tenants. */
export const tenantFilter = () =>
  new Option('--tenant <tenant>', 'only those of this tenant: its id or its name')

export type Database = {
  pool: pg.Pool
  connection: Connection
  config: Config
  log: Log
}
export type Session = Database & { admin: Admin }

/** Does something with the database of DATABASE_URL or of the data directory, whether a server runs on it or not. */
export async function withBareDatabase<T>(
  options: { data?: string | undefined },
  out: Output,
  work: (database: Database) => Promise<T>,
): Promise<T> {
  const config = readConfig(undefined, { dataDir: options.data })
  const embedded = config.databaseUrl === null ? await joinEmbedded(config, out) : null
  const connection = embedded?.connection ?? { url: config.databaseUrl! }
  const pool = openPool({ connection, max: 2, name: 'kontor command', onError: () => {} })
  const { log, close } = await openLog({ pool, nats: natsOf(config), name: 'kontor command' })
  try {
    return await work({ pool, connection, config, log })
  } finally {
    await close()
    await pool.end()
    await embedded?.stop()
  }
}

/** The same, with the newest schema in it: for commands that change something. */
export function withDatabase<T>(
  options: { data?: string | undefined },
  out: Output,
  work: (session: Session) => Promise<T>,
): Promise<T> {
  return withBareDatabase(options, out, async database => {
    await migrate(database.pool)
    return work(await sessionOf(database))
  })
}

/**
 * For commands that only read: a database of an older version stays as it is, because a server of that version may be at work on it. One
 * that is new gets its tables, as with any other command.
 */
export function readingDatabase<T>(
  options: { data?: string | undefined },
  out: Output,
  work: (session: Session) => Promise<T>,
): Promise<T> {
  return withBareDatabase(options, out, async database => {
    const fault = await schemaFault(database)
    if (fault !== null) throw new SchemaError(fault)
    return work(await sessionOf(database))
  })
}

/** Why this version cannot read the database as it is, and the command that changes that; null: it can. Makes the tables of a new one. */
export async function schemaFault({ pool, config }: Database): Promise<string | null> {
  const state = await schemaState(pool)
  if (state === 'empty') await migrate(pool)
  if (state === 'empty' || state === 'current') return null
  const { databaseUrl, dataDir } = config
  const command = kontor({ dataDir: databaseUrl === null ? dataDir : null }, 'migrate')
  return `The database is of an older version of Kontor: it lacks ${state.lacks.join(', ')}. Bring it to this version with \`${command}\`, or by starting the server.`
}

export async function sessionOf(database: Database): Promise<Session> {
  const { pool, config, log } = database
  const { allowPrivateDestinations } = config
  const adminFor = openAdmin({ pool, log, secrets: await secretsOf(config), allowPrivateDestinations })
  return { ...database, admin: adminFor(currentUser()) }
}

/** Whoever runs this command, as the operating system knows them. */
export function currentUser(): Actor {
  try {
    return commandLineActor(userInfo().username)
  } catch {
    // in a container a user may have a number only
    return commandLineActor(`uid ${process.getuid?.()}`)
  }
}

export async function secretsOf(config: Config): Promise<Secrets> {
  return openSecrets(await masterKeysOf(config))
}

export function masterKeysOf({ secretKeys, dataDir, databaseUrl }: Config): Promise<Buffer[] | null> {
  return loadMasterKeys({ secretKeys, dataDir, isEmbedded: databaseUrl === null })
}

/** For commands that only look: a data directory that was mistyped is not made. */
export async function requireData(options: { data?: string | undefined }): Promise<void> {
  const empty = await emptyDataDir(options)
  if (empty === null) return
  throw new AdminError(
    'not_found',
    'no_database',
    `There is no database in ${empty}. Give the data directory of the server with --data, or DATABASE_URL.`,
  )
}

/** The data directory, where it has no database and none elsewhere is named; null: there is one. */
export async function emptyDataDir(options: { data?: string | undefined }): Promise<string | null> {
  const { databaseUrl, dataDir } = readConfig(undefined, { dataDir: options.data })
  return databaseUrl !== null || (await findHome(dataDir)) !== null ? null : dataDir
}

/** For commands that put something into the log, whether a server runs or not. */
export async function readyLog({ pool, config }: Session): Promise<void> {
  await initialiseLog(pool, { partitions: config.logPartitions, now: await databaseNow(pool) })
}
