import { hash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
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

/** Where a PostgreSQL is that can be written to, among several: node-postgres itself knows one host only. */
type Hosts = {
  /** Looks for it where that is not known; gives up before whoever connects does. */
  writable(): Promise<Host>
  /** A connection broke, or could not be opened: where it is has to be found out again. */
  doubt(): void
}

type Host = { host: string; port: number }

const DEFAULT_PORT = 5432
const PROBE_MS = 4_000
// Once one was found, the others have so long to say that they were promoted later.
const OTHERS_MS = 300
const AGAIN_MS = 200
// Of the five seconds that a pool gives to a new connection.
const GIVE_UP_MS = 4_000

/** `addresses`: one for each host, in the order in which they are preferred. */
function openHosts(addresses: string[]): Hosts {
  let known: Host | null = null
  let finding: Promise<Host> | null = null

  async function find(): Promise<Host> {
    const deadline = performance.now() + GIVE_UP_MS
    for (;;) {
      const probed = await probeAll(addresses)
      const newest = probed.reduce((a, b) => ((b.timeline ?? 0) > (a.timeline ?? 0) ? b : a))
      if (newest.timeline !== null) return hostIn(newest.address)
      const refused = probed.find(({ error }) => isRefusal(error))
      if (refused) throw refused.error
      if (performance.now() + AGAIN_MS > deadline) throw noneWritable(probed)
      await sleep(AGAIN_MS)
    }
  }

  return {
    async writable() {
      if (known !== null) return known
      finding ??= find().finally(() => {
        finding = null
      })
      known = await finding
      return known
    },
    doubt() {
      known = null
    },
  }
}

function hostIn(address: string): Host {
  const { hostname, port } = new URL(address)
  const host = decodeURIComponent(hostname).replace(/^\[(.*)\]$/, '$1')
  return { host: host || 'localhost', port: port === '' ? DEFAULT_PORT : Number(port) }
}

/** Whoever answers in time: a host that is gone does not hold up those that are there. */
async function probeAll(addresses: string[]): Promise<Probed[]> {
  const probed: Probed[] = []
  const found = Promise.withResolvers<void>()
  const all = addresses.map(async address => {
    const answer = await probe(address)
    probed.push(answer)
    if (answer.timeline !== null) found.resolve()
  })
  await Promise.race([Promise.all(all), found.promise.then(() => sleep(OTHERS_MS))])
  return [...probed]
}

/** `timeline`: of a server that can be written to. Where two say that of themselves, the one that was promoted later has the higher. */
type Probed = { address: string; timeline: number | null; error: unknown }

async function probe(address: string): Promise<Probed> {
  const client = new pg.Client({
    ...{ connectionString: address, application_name: 'kontor hosts' },
    ...{ connectionTimeoutMillis: PROBE_MS, query_timeout: PROBE_MS },
  })
  client.on('error', () => {})
  try {
    await client.connect()
    const { rows } = await client.query<{ timeline: string | null }>(
      `select case when not ${IS_READ_ONLY} then substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8) end as timeline`,
    )
    const { timeline } = rows[0]!
    return { address, timeline: timeline === null ? null : Number.parseInt(timeline, 16), error: null }
  } catch (error) {
    return { address, timeline: null, error }
  } finally {
    // Not waited for: a host that is gone never says good-bye.
    void client.end().catch(() => {})
  }
}

const IS_READ_ONLY = `(pg_is_in_recovery() or current_setting('transaction_read_only')::boolean)`
const READ_ONLY = '25006'
const CANNOT_CONNECT = '08001'

/** On a new connection: what could be written to a moment ago may have come back as somebody's standby. */
async function refuseReadOnly(client: Pick<pg.ClientBase, 'query'>, hosts: Hosts): Promise<void> {
  const { rows } = await client.query<{ isReadOnly: boolean }>(`select ${IS_READ_ONLY} as "isReadOnly"`)
  if (!rows[0]!.isReadOnly) return
  hosts.doubt()
  throw Object.assign(new Error('This PostgreSQL can only be read'), { code: READ_ONLY })
}

/** It is there, and does not let us in: trying again does not help. */
function isRefusal(error: unknown): boolean {
  const code = (error as { code?: unknown } | null)?.code
  return typeof code === 'string' && code.startsWith('28')
}

function noneWritable(probed: Probed[]): Error {
  const words = probed.map(({ address, error }) => {
    const { host, port } = hostIn(address)
    return `${host}:${port} (${error === null ? 'can only be read' : (error as Error).message})`
  })
  const message = `No host of DATABASE_URL can be written to: ${words.join(', ')}`
  return Object.assign(new Error(message), { code: CANNOT_CONNECT })
}

// The function of PostgreSQL that waits; its words are in the server's language.
const WAITS_FOR_STANDBY = 'SyncRepWaitForLSN'
const OUTCOME_UNKNOWN = '08007'

/**
 * Where a synchronous standby is asked for, a commit that waits for it and is cancelled (by pg_cancel_backend, say) is answered as
 * done, with a warning: it is on this one machine, and lost with it. Whoever committed hears that the outcome is unknown instead, so
 * that nothing is acknowledged which a failover may lose. A statement_timeout cancels no such wait (it ends before the commit
 * begins), and a session that is terminated in it answers nothing.
 */
function distrustCancelledCommits(client: pg.PoolClient): void {
  client.on('notice', ({ routine }) => {
    if (routine !== WAITS_FOR_STANDBY) return
    const { connection } = client as unknown as pg.Client
    // At once: the answer may follow in the bytes that are being read.
    const message = 'A commit was cancelled while it waited for the synchronous standby'
    connection.emit('error', Object.assign(new Error(message), { code: OUTCOME_UNKNOWN }))
    connection.stream.destroy()
  })
}

/**
 * Limits of Kontor's own, whatever the server's defaults: nobody reads past a transaction that is open, so one that belongs to a
 * host which stands still would stop all workers for as long as it does.
 */

// A worker reads and works out a batch between two statements: tens of milliseconds, a second on a machine that is overrun.
const IDLE_IN_TRANSACTION_MS = 10_000
// A host that is gone is noticed after 15 s idle + 3 × 5 s; one that does not take what it is sent, after 30 s. Warnings are listened to.
const CONNECTION_SETTINGS = `
set idle_in_transaction_session_timeout = ${IDLE_IN_TRANSACTION_MS};
set tcp_keepalives_idle = 15; set tcp_keepalives_interval = 5; set tcp_keepalives_count = 3;
set tcp_user_timeout = 30000; set client_min_messages = warning`

// A server that does not know one of them keeps its own.
const UNKNOWN_SETTING = '42704'

/** On a new connection. Behind a transaction pooler this sticks to whichever connection it meets, and does no harm. */
async function limitConnection(client: Pick<pg.ClientBase, 'query'>): Promise<void> {
  try {
    await client.query(CONNECTION_SETTINGS)
  } catch (error) {
    if ((error as { code?: unknown }).code !== UNKNOWN_SETTING) throw error
  }
}

type TransactionLimits = { lockMs?: number; statementMs?: number }

/** What a transaction begins with: what is set with it holds behind a transaction pooler too, and costs no round trip. */
function beginWith({ lockMs, statementMs }: TransactionLimits = {}): string {
  return [
    `begin; set local idle_in_transaction_session_timeout = ${IDLE_IN_TRANSACTION_MS}`,
    ...(lockMs === undefined ? [] : [`set local lock_timeout = ${lockMs}`]),
    ...(statementMs === undefined ? [] : [`set local statement_timeout = ${statementMs}`]),
  ].join('; ')
}

/**
 * Ends sessions of servers and workers that have written and then waited so long for their client: a COPY that was cut off in
 * the middle is under no limit of PostgreSQL's own, because it counts as running. Returns how many.
 */
export async function endStuckSessions(db: Pick<pg.Pool, 'query'>, olderThanMs: number): Promise<number> {
  const { rowCount } = await db.query(
    `select pg_terminate_backend(pid) from pg_stat_activity
     where datname = current_database() and usename = current_user and pid <> pg_backend_pid()
       and application_name in ('kontor', 'kontor worker') and backend_xid is not null and wait_event_type = 'Client'
       and greatest(xact_start, query_start, state_change) < clock_timestamp() - $1 * interval '1 ms'`,
    [olderThanMs],
  )
  return rowCount ?? 0
}

/** PostgreSQL's clock: it is one for all nodes. */
export async function databaseNow(db: Db): Promise<Date> {
  const { rows } = await db.query<{ now: Date }>('select now()')
  return rows[0]!.now
}

/** Rows as columns, for `unnest`: one array a field. */
export function columnsOf<Row extends object>(rows: readonly Row[], ...fields: (keyof Row)[]): unknown[][] {
  return fields.map(field => rows.map(row => row[field]))
}
