import { hash } from 'node:crypto'
import pg from 'pg'
import { type Hosts, openHosts, refuseReadOnly } from './hosts.ts'
import { beginWith, limitConnection, type TransactionLimits } from './sessions.ts'
import { distrustCancelledCommits } from './standby.ts'

export type Db = { query: pg.Pool['query'] }

export type Connection =
  /** Several: one for each host; that which can be written to is taken. */
  | { url: string | string[] }
  | { host: string; port: number; user: string; password: string; database: string }

const JSON_OIDS = new Set([114, 3802])
const INT8_OID = 20

// json and jsonb stay text: most of it is passed on as it is, and parsing would cost exact digits.
const types = {
  getTypeParser(oid: number, format?: 'text' | 'binary') {
    if (JSON_OIDS.has(oid)) return (text: string) => text
    if (oid === INT8_OID) return (text: string) => Number(text)
    return pg.types.getTypeParser(oid, format as 'text')
  },
} as pg.CustomTypesConfig

/**
 * Every session is in UTC, whatever the server's default: as a parameter of the connection, which a transaction pooler
 * passes on (PgBouncer tracks TimeZone, and refuses `options`).
 */
class UtcClient extends pg.Client {
  getStartupConf(): Record<string, string> {
    const { getStartupConf } = pg.Client.prototype as unknown as { getStartupConf(): Record<string, string> }
    return { ...getStartupConf.call(this), TimeZone: 'UTC', DateStyle: 'ISO' }
  }
}

type Connected = ((error: Error) => void) | ((error: null, client: pg.Client) => void)

/** Connects to the host that can be written to at that moment. */
function clientAmong(hosts: Hosts): typeof UtcClient {
  return class extends UtcClient {
    override connect(): Promise<pg.Client>
    override connect(callback: Connected): void
    override connect(callback?: Connected): Promise<pg.Client> | undefined {
      const connected = this.#connectToWritable()
      if (!callback) return connected
      connected.then(
        client => callback(null as never, client),
        (error: Error) => callback(error as never, undefined as never),
      )
      return undefined
    }

    async #connectToWritable(): Promise<pg.Client> {
      Object.assign(this, await hosts.writable())
      this.once('error', hosts.doubt)
      try {
        return await super.connect()
      } catch (error) {
        hosts.doubt()
        throw error
      }
    }
  }
}

export function openPool(options: {
  connection: Connection
  max: number
  name: string
  onError: (error: Error) => void
  /** A database that hangs is as good as away: whoever waits longer than this is told so. */
  queryTimeoutMs?: number
  /** Of every transaction that `inTransaction` begins. */
  transactionLimits?: TransactionLimits
}): pg.Pool {
  const addresses = 'url' in options.connection ? [options.connection.url].flat() : []
  const hosts = addresses.length > 1 ? openHosts(addresses) : null
  const target = 'url' in options.connection ? { connectionString: addresses[0] } : { ...options.connection }
  const pool = new pg.Pool({
    ...target,
    Client: hosts ? clientAmong(hosts) : UtcClient,
    max: options.max,
    application_name: options.name,
    types,
    connectionTimeoutMillis: 5_000,
    ...(options.queryTimeoutMs !== undefined && { query_timeout: options.queryTimeoutMs }),
    idleTimeoutMillis: 60_000,
    keepAlive: true,
    async onConnect(client: pg.ClientBase) {
      await limitConnection(client)
      if (hosts) await refuseReadOnly(client, hosts)
    },
  })
  begins.set(pool, beginWith(options.transactionLimits))
  // An idle connection that breaks is replaced by the pool; without a listener it would end the process. So would one
  // that is in use, between two queries: whoever uses it hears of it with the next one.
  pool.on('error', options.onError)
  pool.on('connect', client => client.on('error', () => {}))
  pool.on('connect', distrustCancelledCommits)
  return pool
}

const begins = new WeakMap<pg.Pool, string>()

/** The error of an idle connection carries the connection itself, credentials included: only its words are logged. */
export function brokenConnection(logger: {
  warn(facts: object, message: string): void
}): (error: Error & { code?: string }) => void {
  return ({ message, code }) => logger.warn({ reason: message, code }, 'a database connection broke')
}

/** A connection of the pool for a while. One that breaks is not given back. */
export async function withClient<T>(pool: pg.Pool, work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  const client = await pool.connect()
  let broken: Error | undefined
  try {
    return await work(client)
  } catch (error) {
    if (isUnavailable(error)) broken = error as Error
    throw error
  } finally {
    client.release(broken)
  }
}

export async function inTransaction<T>(
  pool: pg.Pool,
  work: (client: pg.PoolClient) => Promise<T>,
): Promise<T> {
  const client = await pool.connect()
  const actions: (() => void)[] = []
  afterCommits.set(client, actions)
  let broken: Error | undefined
  let result: T
  try {
    await client.query(begins.get(pool) ?? beginWith())
    result = await work(client)
    await client.query('commit')
  } catch (error) {
    await client.query('rollback').catch(reason => {
      broken = reason
    })
    throw error
  } finally {
    afterCommits.delete(client)
    client.release(broken)
  }
  for (const action of actions) action()
  return result
}

const afterCommits = new WeakMap<pg.PoolClient, (() => void)[]>()

// Longer than any statement takes that reads all there is of a tenant.
const LONG_MS = 6 * 3_600_000

/** For what may read all of a tenant's history: it is not cut off where requests are (`queryTimeoutMs`). */
export function queryLong<R extends pg.QueryResultRow>(
  db: Db,
  text: string,
  values: unknown[] = [],
): Promise<pg.QueryResult<R>> {
  const config: pg.QueryConfig & { query_timeout: number } = { text, values, query_timeout: LONG_MS }
  return db.query<R>(config)
}

/** Runs once the transaction that `inTransaction` has opened on this connection is committed; never if it is not. */
export function afterCommit(client: pg.PoolClient, action: () => void): void {
  actionsOf(client).push(action)
}

/** The same for as long as the transaction lasts that `inTransaction` has opened on this connection. */
export function transactionOn(client: pg.PoolClient): object {
  return actionsOf(client)
}

function actionsOf(client: pg.PoolClient): (() => void)[] {
  const actions = afterCommits.get(client)
  if (!actions) throw new Error('This needs a transaction opened by inTransaction')
  return actions
}

// Behind a transaction pooler that does not know prepared statements, a statement is prepared on one connection and
// missed on the next. The first time that happens, this process stops preparing.
let canPrepare = true
const statementNames = new Map<string, string>()

/**
 * Runs a constant statement whose plan is kept by the connection: planning took longer than running for most of
 * the statements on the hot path.
 */
export async function queryPrepared<R extends pg.QueryResultRow>(
  db: Db,
  text: string,
  values: unknown[] = [],
): Promise<pg.QueryResult<R>> {
  if (!canPrepare) return db.query<R>(text, values)
  let name = statementNames.get(text)
  if (name === undefined) {
    name = `kontor_${hash('sha256', text, 'hex').slice(0, 16)}`
    statementNames.set(text, name)
  }
  try {
    return await db.query<R>({ name, text, values })
  } catch (error) {
    if (!isLostStatement(error)) throw error
    canPrepare = false
    // Inside a transaction the caller has to begin again.
    if ('totalCount' in db) return db.query<R>(text, values)
    throw error
  }
}

function isLostStatement(error: unknown): boolean {
  const code = (error as { code?: unknown } | null)?.code
  return code === '26000' || code === '42P05'
}

const NETWORK = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ENOENT',
  'ETIMEDOUT',
  'EPIPE',
  'EHOSTUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
])

/** The database is away, starting, stopping or out of room: worth trying again, nobody's fault. */
export function isUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const code = (error as { code?: unknown }).code
  if (typeof code === 'string') {
    if (NETWORK.has(code) || code.startsWith('08') || code.startsWith('53') || code.startsWith('57P'))
      return true
    // read-only: a failed-over primary; 3D000: the database is not (yet) there; 25P03: the session stood still for too long
    if (code === '25006' || code === '3D000' || code === '25P03') return true
  }
  return /Connection terminated|Query read timeout|timeout exceeded when trying to connect|Client has encountered a connection error|Cannot use a pool after/.test(
    error.message,
  )
}

/** This transaction cannot go on but, after `prepare`, would succeed if it began again. */
export class RestartTransaction extends Error {
  readonly prepare: () => Promise<void>
  constructor(why: string, prepare: () => Promise<void> = async () => {}) {
    super(why)
    this.prepare = prepare
  }
}

/** Two transactions waited for each other: this one was ended, the other went on. */
export function isDeadlock(error: unknown): boolean {
  return (error as { code?: unknown } | null)?.code === '40P01'
}

/** A conflict between transactions: the same work succeeds when it is simply done again. */
export function isConflict(error: unknown): boolean {
  const code = (error as { code?: unknown } | null)?.code
  return (
    error instanceof RestartTransaction ||
    isDeadlock(error) ||
    code === '40001' ||
    code === '55P03' ||
    isLostStatement(error)
  )
}
