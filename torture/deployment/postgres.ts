import { readdirSync, readFileSync } from 'node:fs'
import { readFile, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { type Embedded, joinCluster } from '../../embedded-postgres/cluster.ts'
import { endWithUs } from './end.ts'
import { steadyPort } from './ports.ts'

export type Postgres = {
  /** Bypasses all proxies. */
  connection(): Promise<pg.ClientConfig>
  postmasterPid(): Promise<number | null>
  /** Who restarts it. */
  isOurs: boolean
  start(): Promise<void>
  stop(): Promise<void>
}

/** The embedded PostgreSQL of `kontor start`, found through the documented layout of the data directory. */
export function embeddedPostgres(dataDir: string): Postgres {
  const home = join(dataDir, 'postgres')
  endWithUs(() => endPostgres(home))
  return {
    isOurs: false,
    async connection() {
      const password = (await readFile(join(home, 'password'), 'utf8')).trim()
      return { host: await findSocket(home), user: 'kontor', password, database: 'kontor' }
    },
    postmasterPid: async () => pidIn(home),
    start: () => Promise.reject(new Error('the embedded PostgreSQL belongs to Kontor')),
    stop: () => Promise.reject(new Error('the embedded PostgreSQL belongs to Kontor')),
  }
}

async function findSocket(home: string): Promise<string> {
  const settings = await readFile(join(home, 'postgres.conf'), 'utf8')
  const named = /^unix_socket_directories = '"(.+)"'$/m.exec(settings)?.[1]
  return named ?? realpath(join(home, 'socket'))
}

// PostgreSQL's defaults, without the tuning of the embedded one.
const DEFAULTS = {
  idle_in_transaction_session_timeout: '0',
  client_connection_check_interval: '0',
  max_connections: '200',
}

export type OwnPostgres = Postgres & { directory: string; port: number; url(port: number): string }

/** An external PostgreSQL over TCP. */
export async function ownPostgres(directory: string, settings: Record<string, string>): Promise<OwnPostgres> {
  const port = await steadyPort()
  let running: Embedded | null = null
  let password = ''
  const home = join(directory, 'postgres')
  async function start() {
    const listening = { listen_addresses: '127.0.0.1', port: String(port) }
    running = await joinCluster({
      name: 'kontor',
      dataDir: directory,
      log: () => {},
      settings: { ...DEFAULTS, ...settings, ...listening },
    })
    password = running.connection.password
  }
  endWithUs(() => endPostgres(home))
  await start()
  const connection = async () => ({ host: '127.0.0.1', port, user: 'kontor', password, database: 'kontor' })
  await addUser(await connection())
  return {
    directory,
    port,
    url: proxyPort => `postgres://${OWNER}:${OWNER}@127.0.0.1:${proxyPort}/kontor`,
    isOurs: true,
    connection,
    postmasterPid: async () => pidIn(home),
    async start() {
      // Retries until it is running, like an operator.
      for (let attempt = 1; ; attempt++) {
        try {
          return await start()
        } catch (error) {
          if (attempt === 20) throw error
          await sleep(500)
        }
      }
    },
    async stop() {
      const pid = pidIn(home)
      // Disconnects clients, because stop() alone would wait for them.
      if (pid !== null) process.kill(pid, 'SIGINT')
      while (pidIn(home) !== null) await sleep(20)
      await running?.stop()
      running = null
    },
  }
}

/** The role of Kontor, the same in every cluster: it owns the database and has no other privileges. */
export const OWNER = 'shop_owner'

async function addUser(connection: pg.ClientConfig): Promise<void> {
  const client = new pg.Client(connection)
  await client.connect()
  try {
    const { rowCount } = await client.query('select from pg_roles where rolname = $1', [OWNER])
    if (rowCount === 0) await client.query(`create role ${OWNER} login password '${OWNER}'`)
    await client.query(`alter database kontor owner to ${OWNER}`)
  } finally {
    await client.end()
  }
}

export function pidIn(home: string): number | null {
  try {
    const pid = Number(readFileSync(join(home, 'data/postmaster.pid'), 'utf8').split('\n')[0])
    return pid > 0 && isAlive(pid) ? pid : null
  } catch {
    return null
  }
}

/** Kills it immediately, for the exit of this process. */
export function endPostgres(home: string): void {
  const pid = pidIn(home)
  if (pid === null) return
  for (const signal of ['SIGCONT', 'SIGQUIT'] as const) process.kill(pid, signal)
}

function isAlive(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return false
  }
}

type Child = { pid: number; command: string }

/** PostgreSQL's processes. */
export function listChildren(postmaster: number): Child[] {
  return readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .flatMap(pid => {
      try {
        const parent = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)!.split(' ')[1]
        if (Number(parent) !== postmaster) return []
        return [{ pid: Number(pid), command: readFileSync(`/proc/${pid}/cmdline`, 'utf8') }]
      } catch {
        return []
      }
    })
}

/** Backends that serve a client. */
export const listBackends = (postmaster: number): Child[] =>
  listChildren(postmaster).filter(({ command }) => /: \w+ kontor (\[local\]|127)/.test(command))

export async function query<Row extends pg.QueryResultRow>(
  postgres: Postgres,
  text: string,
  values: unknown[] = [],
): Promise<Row[]> {
  const client = new pg.Client({ ...(await postgres.connection()), application_name: 'torture' })
  client.on('error', () => {})
  await client.connect()
  try {
    return (await client.query<Row>(text, values)).rows
  } finally {
    await client.end().catch(() => {})
  }
}
