import { setTimeout as sleep } from 'node:timers/promises'
import { findServer } from '../../embedded-postgres/cluster.ts'
import type { Config } from '../config/config.ts'
import { parseTenantId } from '../domain/tenants/tenants.ts'
import { databaseNow } from '../postgres/database.ts'
import { countDeferred } from '../store/entries/parked.ts'
import { openLogger } from '../telemetry/logging.ts'
import type { Output } from './output.ts'
import { type RunningServer, readServerFile } from './server-file.ts'
import { joinEmbedded, type Session } from './session.ts'

export type ReachedServer = {
  url: string
  /** Whether the server keeps running after the command. */
  lasts: boolean
  /** Where the result can be read: this server, or the address where `kontor start` will listen. */
  readUrl: string
  close(): Promise<void>
}

type ServerOptions = { config: Config; url: string | undefined; out: Output }

/** The given server, the one that runs on the data directory, or a temporary one. */
export async function reachServer({ config, url, out }: ServerOptions): Promise<ReachedServer> {
  if (url !== undefined) return lastingServer(url)
  const running = config.databaseUrl === null ? await findRunningServer(config.dataDir, out) : null
  if (running !== null) return lastingServer(running)
  out.say('No server is running. Starting a temporary one.')
  return startTemporaryServer(config, out)
}

// Longer than a start that migrates an older database.
const MAX_WAIT_MS = 60_000
const POLL_MS = 200

/** The URL of the server on the data directory. Waits for a server that is still starting. */
async function findRunningServer(dataDir: string, out: Output): Promise<string | null> {
  for (let waited = 0; ; waited += POLL_MS) {
    const announced = await readServerFile(dataDir)
    if (announced && (await isResponding(announced.url))) return announced.url
    const pid = await findServer(dataDir)
    const isStarting = pid !== null && announced?.pid !== pid
    if (!isStarting || waited >= MAX_WAIT_MS) return null
    if (waited === 0) out.say(`Waiting for the server of this data directory (process ${pid}) to start.`)
    await sleep(POLL_MS)
  }
}

function lastingServer(url: string): ReachedServer {
  return { url, lasts: true, readUrl: url, close: async () => {} }
}

async function startTemporaryServer(config: Config, out: Output): Promise<ReachedServer> {
  const embedded = config.databaseUrl === null ? await joinEmbedded(config, out) : null
  const stop = async () => embedded?.stop()
  try {
    const { startRuntime } = await import('../runtime/runtime.ts')
    const runtime = await startRuntime({
      config: {
        ...config,
        port: 0,
        host: '127.0.0.1',
        opsPort: null,
        surfaces: ['data', 'events', 'inbound', 'worker'],
      },
      connection: embedded?.connection ?? { url: config.databaseUrl! },
      log: openLogger({ level: 'warn', pretty: process.stderr.isTTY }),
    })
    return {
      url: runtime.url,
      lasts: false,
      readUrl: config.publicUrl ?? `http://localhost:${config.port}`,
      close: () => runtime.close().finally(stop),
    }
  } catch (error) {
    await stop()
    throw error
  }
}

const MAX_STALL_MS = 60_000
const LAG_POLL_MS = 100
// Nodes derive the time from PostgreSQL's clock, so their clocks may differ a little.
const CLOCK_SKEW_MS = 1_000

/**
 * Waits until every entry of the tenant accepted so far is applied, or failed and will be retried. Returns false if there is
 * no progress for 60 s, or if the command is stopped.
 */
export async function waitUntilApplied(
  { pool, log }: Session,
  tenant: string,
  signal: AbortSignal,
  out: Output,
): Promise<boolean> {
  const tenantId = parseTenantId(tenant)!
  const sentBy = new Date((await databaseNow(pool)).getTime() + CLOCK_SKEW_MS)
  let [fewest, movedAt] = [Number.POSITIVE_INFINITY, performance.now()]
  for (;;) {
    // In the order in which entries move: an entry that is parked meanwhile is found there.
    const unread = (await log.unread(tenantId, sentBy)).entries
    const entries = unread + (await countDeferred(pool, tenantId, sentBy))
    if (entries === 0) return true
    if (signal.aborted) {
      out.say(`Stopped while ${entries} accepted entries wait. A running server processes them.`)
      return false
    }
    if (entries < fewest) [fewest, movedAt] = [entries, performance.now()]
    if (performance.now() - movedAt > MAX_STALL_MS) {
      out.say(
        `${entries} accepted entries are not processed. Check that a server with the surface "worker" is running (kontor start --surfaces worker).`,
      )
      return false
    }
    await new Promise(resolve => setTimeout(resolve, LAG_POLL_MS))
  }
}

/** Whether a server responds at this URL. */
export async function isResponding(url: string): Promise<boolean> {
  return (await fetchText(url)) !== null
}

/** Reads /healthz. An older server reports fewer fields. Null if there is no response, or it is not from Kontor. */
export async function fetchServer(opsUrl: string): Promise<Partial<RunningServer> | null> {
  try {
    const answer = JSON.parse((await fetchText(`${opsUrl}/healthz`)) ?? 'null')
    if (answer?.status !== 'alive') return null
    const { status: _, ...server } = answer
    return server as Partial<RunningServer>
  } catch {
    return null
  }
}

async function fetchText(url: string): Promise<string | null> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(2_000) })
    const text = await response.text()
    return response.status < 500 ? text : null
  } catch {
    return null
  }
}
