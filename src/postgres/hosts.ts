import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'

/** Where a PostgreSQL is that can be written to, among several: node-postgres itself knows one host only. */
export type Hosts = {
  /** Looks for it where that is not known; gives up before whoever connects does. */
  writable(): Promise<Host>
  /** A connection broke, or could not be opened: where it is has to be found out again. */
  doubt(): void
}

export type Host = { host: string; port: number }

const DEFAULT_PORT = 5432
const PROBE_MS = 4_000
// Once one was found, the others have so long to say that they were promoted later.
const OTHERS_MS = 300
const AGAIN_MS = 200
// Of the five seconds that a pool gives to a new connection.
const GIVE_UP_MS = 4_000

/** `addresses`: one for each host, in the order in which they are preferred. */
export function openHosts(addresses: string[]): Hosts {
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
export async function refuseReadOnly(client: Pick<pg.ClientBase, 'query'>, hosts: Hosts): Promise<void> {
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
