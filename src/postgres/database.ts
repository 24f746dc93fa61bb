import { hash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'

export type Db = { query: pg.Pool['query'] }

export type Connection =
  /** A list has one URL per host. The pool connects to the one that accepts writes. */
  { url: string | string[] } | { host: string; port: number; user: string; password: string; database: string }

const JSON_OIDS = new Set([114, 3802])
const INT8_OID = 20

// json and jsonb stay strings: most values are passed on unchanged, and parsing would lose digits of large numbers.
const types = {
  getTypeParser(oid: number, format?: 'text' | 'binary') {
    if (JSON_OIDS.has(oid)) return (text: string) => text
    if (oid === INT8_OID) return (text: string) => Number(text)
    return pg.types.getTypeParser(oid, format as 'text')
  },
} as pg.CustomTypesConfig

/**
 * Sets every session to UTC, whatever the server's default. It is a startup parameter because a transaction pooler passes it
 * on: PgBouncer tracks TimeZone, but rejects `options`.
 */
class UtcClient extends pg.Client {
  getStartupConf(): Record<string, string> {
    const { getStartupConf } = pg.Client.prototype as unknown as { getStartupConf(): Record<string, string> }
    return { ...getStartupConf.call(this), TimeZone: 'UTC', DateStyle: 'ISO' }
  }
}

type Connected = ((error: Error) => void) | ((error: null, client: pg.Client) => void)

/** A client class that connects to the host that currently accepts writes. */
function createHostClient(hosts: Hosts): typeof UtcClient {
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
      Object.assign(this, await hosts.findWritable())
      this.once('error', hosts.forget)
      try {
        return await super.connect()
      } catch (error) {
        hosts.forget()
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
  /** A query that takes longer fails: a database that hangs counts as unavailable. */
  queryTimeoutMs?: number
  /** For every transaction that `inTransaction` starts. */
  transactionLimits?: TransactionLimits
}): pg.Pool {
  const addresses = 'url' in options.connection ? [options.connection.url].flat() : []
  const hosts = addresses.length > 1 ? openHosts(addresses) : null
  const target = 'url' in options.connection ? { connectionString: addresses[0] } : { ...options.connection }
  const pool = new pg.Pool({
    ...target,
    Client: hosts ? createHostClient(hosts) : UtcClient,
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
  // Without these listeners, a connection that breaks would end the process. The pool replaces an idle one. If it is in use, the
  // next query on it fails.
  pool.on('error', options.onError)
  pool.on('connect', client => client.on('error', () => {}))
  pool.on('connect', failCancelledCommits)
  return pool
}

const begins = new WeakMap<pg.Pool, string>()

/** Logs only message and code: the error of an idle connection contains the connection with its credentials. */
export function brokenConnection(logger: {
  warn(facts: object, message: string): void
}): (error: Error & { code?: string }) => void {
  return ({ message, code }) => logger.warn({ reason: message, code }, 'a database connection broke')
}

/** Runs `work` with a connection of the pool. A broken connection is not returned to the pool. */
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

export async function inTransaction<T>(pool: pg.Pool, work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
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

// Longer than any statement that reads all data of a tenant.
const LONG_MS = 6 * 3_600_000

/** For statements that may read a tenant's whole history: `queryTimeoutMs` does not apply to them. */
export function queryLong<R extends pg.QueryResultRow>(
  db: Db,
  text: string,
  values: unknown[] = [],
): Promise<pg.QueryResult<R>> {
  const config: pg.QueryConfig & { query_timeout: number } = { text, values, query_timeout: LONG_MS }
  return db.query<R>(config)
}

/** Yields the rows of a query in portions, in the caller's transaction. One such query at a time. */
export async function* readPortions<R extends pg.QueryResultRow>(
  client: pg.PoolClient,
  { text, values, rowsAtATime }: { text: string; values: unknown[]; rowsAtATime: number },
): AsyncGenerator<R[]> {
  await client.query(`declare portions no scroll cursor for ${text}`, values)
  try {
    for (;;) {
      const { rows } = await queryLong<R>(client, `fetch ${rowsAtATime} from portions`)
      if (rows.length > 0) yield rows
      if (rows.length < rowsAtATime) return
    }
  } finally {
    // After a failure the transaction is aborted, and its cursor is closed already.
    await client.query('close portions').catch(() => {})
  }
}

/** Runs `action` after the transaction that `inTransaction` opened on this connection has committed. It does not run after a rollback. */
export function afterCommit(client: pg.PoolClient, action: () => void): void {
  commitActions(client).push(action)
}

/** An object that identifies the transaction that `inTransaction` opened on this connection. */
export function transactionOn(client: pg.PoolClient): object {
  return commitActions(client)
}

function commitActions(client: pg.PoolClient): (() => void)[] {
  const actions = afterCommits.get(client)
  if (!actions) throw new Error('A transaction opened by inTransaction is required')
  return actions
}

// A transaction pooler without support for prepared statements prepares a statement on one connection and runs it on another,
// where it does not exist. After the first such error, this process stops preparing statements.
let canPrepare = true
const statementNames = new Map<string, string>()

/**
 * Runs a constant statement as a prepared statement, so that the connection keeps its plan. For most statements on the hot path,
 * planning took longer than execution.
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
    // Inside a transaction, the caller must restart it.
    if ('totalCount' in db) return db.query<R>(text, values)
    throw error
  }
}

export async function queryRows<R extends pg.QueryResultRow>(db: Db, text: string, values?: unknown[]): Promise<R[]> {
  return (await queryPrepared<R>(db, text, values)).rows
}

/** The first row, or null. */
export async function queryRow<R extends pg.QueryResultRow>(
  db: Db,
  text: string,
  values?: unknown[],
): Promise<R | null> {
  return (await queryPrepared<R>(db, text, values)).rows[0] ?? null
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

/** The database is unreachable, starting, stopping or out of resources: the same work may succeed later. */
export function isUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const code = (error as { code?: unknown }).code
  if (typeof code === 'string') {
    if (NETWORK.has(code) || code.startsWith('08') || code.startsWith('53') || code.startsWith('57P')) return true
    // 25006: the primary failed over and is read-only; 3D000: the database does not exist (yet); 25P03: the session was idle too long
    if (code === '25006' || code === '3D000' || code === '25P03') return true
  }
  return /Connection terminated|Query read timeout|timeout exceeded when trying to connect|Client has encountered a connection error|Cannot use a pool after/.test(
    error.message,
  )
}

/** This transaction cannot continue. It succeeds if the caller runs `prepare` and then restarts it. */
export class RestartTransaction extends Error {
  readonly prepare: () => Promise<void>
  constructor(why: string, prepare: () => Promise<void> = async () => {}) {
    super(why)
    this.prepare = prepare
  }
}

/** Two transactions waited for each other, and PostgreSQL aborted this one. */
export function isDeadlock(error: unknown): boolean {
  return (error as { code?: unknown } | null)?.code === '40P01'
}

/** A conflict between transactions: the same work succeeds on a retry. */
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

const QUERY_CANCELED = '57014'

/** The statement failed for a reason outside of it, such as an outage, a conflict or `statement_timeout`: the sender retries. */
export function isTransient(error: unknown): boolean {
  return isUnavailable(error) || isConflict(error) || (error as { code?: unknown } | null)?.code === QUERY_CANCELED
}

/** Finds the host that accepts writes among several: node-postgres itself supports only one host. */
type Hosts = {
  /** Returns the known host, or probes all. It gives up before the pool's connection timeout. */
  findWritable(): Promise<Host>
  /** After a connection broke or could not be opened: the next call of `findWritable` probes again. */
  forget(): void
}

type Host = { host: string; port: number }

const DEFAULT_PORT = 5432
const PROBE_MS = 4_000
// After the first writable host answers, the others get this long to report a later promotion.
const OTHERS_MS = 300
const AGAIN_MS = 200
// Less than the 5 s that the pool allows for a new connection.
const GIVE_UP_MS = 4_000

/** `addresses`: one URL per host, in order of preference. */
function openHosts(addresses: string[]): Hosts {
  let known: Host | null = null
  let finding: Promise<Host> | null = null

  async function find(): Promise<Host> {
    const deadline = performance.now() + GIVE_UP_MS
    for (;;) {
      const probed = await probeAll(addresses)
      const newest = probed.reduce((a, b) => ((b.timeline ?? 0) > (a.timeline ?? 0) ? b : a))
      if (newest.timeline !== null) return parseHost(newest.address)
      const refused = probed.find(({ error }) => isRefusal(error))
      if (refused) throw refused.error
      if (performance.now() + AGAIN_MS > deadline) throw noWritableHost(probed)
      await sleep(AGAIN_MS)
    }
  }

  return {
    async findWritable() {
      if (known !== null) return known
      finding ??= find().finally(() => {
        finding = null
      })
      known = await finding
      return known
    },
    forget() {
      known = null
    },
  }
}

function parseHost(address: string): Host {
  const { hostname, port } = new URL(address)
  const host = decodeURIComponent(hostname).replace(/^\[(.*)\]$/, '$1')
  return { host: host || 'localhost', port: port === '' ? DEFAULT_PORT : Number(port) }
}

/** The answers that arrive in time: an unreachable host does not delay the others. */
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

/** `timeline` is null if the server does not accept writes. Of two that do, the one promoted later has the higher timeline. */
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
    // Not awaited: an unreachable host never closes the connection.
    void client.end().catch(() => {})
  }
}

const IS_READ_ONLY = `(pg_is_in_recovery() or current_setting('transaction_read_only')::boolean)`
const READ_ONLY = '25006'
const CANNOT_CONNECT = '08001'

/** For a new connection: a host that accepted writes a moment ago may have restarted as a standby. */
async function refuseReadOnly(client: Pick<pg.ClientBase, 'query'>, hosts: Hosts): Promise<void> {
  const { rows } = await client.query<{ isReadOnly: boolean }>(`select ${IS_READ_ONLY} as "isReadOnly"`)
  if (!rows[0]!.isReadOnly) return
  hosts.forget()
  throw Object.assign(new Error('This PostgreSQL server is read-only'), { code: READ_ONLY })
}

/** The server rejects the credentials: a retry does not help. */
function isRefusal(error: unknown): boolean {
  const code = (error as { code?: unknown } | null)?.code
  return typeof code === 'string' && code.startsWith('28')
}

function noWritableHost(probed: Probed[]): Error {
  const words = probed.map(({ address, error }) => {
    const { host, port } = parseHost(address)
    return `${host}:${port} (${error === null ? 'read-only' : (error as Error).message})`
  })
  const message = `No host of DATABASE_URL accepts writes: ${words.join(', ')}`
  return Object.assign(new Error(message), { code: CANNOT_CONNECT })
}

// The PostgreSQL function that waits. The text of its warning depends on the server's language.
const WAITS_FOR_STANDBY = 'SyncRepWaitForLSN'
const OUTCOME_UNKNOWN = '08007'

/**
 * With synchronous replication, a commit that is cancelled while it waits for the standby (for example by pg_cancel_backend)
 * succeeds with a warning, although its data exists on the primary only. This turns the warning into an error with an unknown
 * outcome, so that Kontor acknowledges nothing that a failover may lose. statement_timeout does not cancel this wait (it ends
 * before the commit starts), and a session that is terminated meanwhile sends no answer.
 */
function failCancelledCommits(client: pg.PoolClient): void {
  client.on('notice', ({ routine }) => {
    if (routine !== WAITS_FOR_STANDBY) return
    const { connection } = client as unknown as pg.Client
    // Immediately: the success message may follow in the same chunk of bytes.
    const message = 'A commit was cancelled while it waited for the synchronous standby'
    connection.emit('error', Object.assign(new Error(message), { code: OUTCOME_UNKNOWN }))
    connection.stream.destroy()
  })
}

// Kontor sets its own limits, whatever the server's defaults. Log readers do not read past an open transaction, so the
// transaction of a client that hangs would stop all workers.

// Between two statements a worker computes a batch: tens of milliseconds, up to a second on an overloaded machine.
const IDLE_IN_TRANSACTION_MS = 10_000
// PostgreSQL detects an unreachable client after 15 s idle + 3 × 5 s, and one that stops receiving after 30 s.
// `failCancelledCommits` needs warnings.
const CONNECTION_SETTINGS = `
set idle_in_transaction_session_timeout = ${IDLE_IN_TRANSACTION_MS};
set tcp_keepalives_idle = 15; set tcp_keepalives_interval = 5; set tcp_keepalives_count = 3;
set tcp_user_timeout = 30000; set client_min_messages = warning`

// A server that does not support one of these settings keeps its own values.
const UNKNOWN_SETTING = '42704'

/** For a new connection. Behind a transaction pooler the settings apply to an arbitrary server connection, which is harmless. */
async function limitConnection(client: Pick<pg.ClientBase, 'query'>): Promise<void> {
  try {
    await client.query(CONNECTION_SETTINGS)
  } catch (error) {
    if ((error as { code?: unknown }).code !== UNKNOWN_SETTING) throw error
  }
}

type TransactionLimits = { lockMs?: number; statementMs?: number }

/** The statement that starts a transaction. Its `set local` also works behind a transaction pooler and costs no round trip. */
function beginWith({ lockMs, statementMs }: TransactionLimits = {}): string {
  return [
    `begin; set local idle_in_transaction_session_timeout = ${IDLE_IN_TRANSACTION_MS}`,
    ...(lockMs === undefined ? [] : [`set local lock_timeout = ${lockMs}`]),
    ...(statementMs === undefined ? [] : [`set local statement_timeout = ${statementMs}`]),
  ].join('; ')
}

/**
 * Terminates sessions of servers and workers that have written and then waited this long for their client, and returns their
 * number. An interrupted COPY counts as running, so none of PostgreSQL's timeouts ends it.
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

/** The time by PostgreSQL's clock, which all nodes share. */
export async function databaseNow(db: Db): Promise<Date> {
  const { rows } = await db.query<{ now: Date }>('select now()')
  return rows[0]!.now
}

/** Converts rows to columns for `unnest`: one array per field. */
export function toColumns<Row extends object>(rows: readonly Row[], ...fields: (keyof Row)[]): unknown[][] {
  return fields.map(field => rows.map(row => row[field]))
}
