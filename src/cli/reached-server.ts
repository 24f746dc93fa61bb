import { setTimeout as sleep } from 'node:timers/promises'
import { serverOn } from '../../embedded-postgres/cluster.ts'
import type { Config } from '../config/config.ts'
import { openLogger } from '../telemetry/logging.ts'
import { joinEmbedded } from './embedded.ts'
import type { Output } from './output.ts'
import { announcedServer, answersAt } from './server-file.ts'

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
  if (url !== undefined) return lasting(url)
  const running = config.databaseUrl === null ? await runningServer(config.dataDir, out) : null
  if (running !== null) return lasting(running)
  out.say('No server is running. Starting a temporary one.')
  return ownServer(config, out)
}

// Longer than a start that migrates an older database.
const MAX_WAIT_MS = 60_000
const POLL_MS = 200

/** The URL of the server on the data directory. Waits for a server that is still starting. */
async function runningServer(dataDir: string, out: Output): Promise<string | null> {
  for (let waited = 0; ; waited += POLL_MS) {
    const announced = await announcedServer(dataDir)
    if (announced && (await answersAt(announced.url))) return announced.url
    const pid = await serverOn(dataDir)
    const isStarting = pid !== null && announced?.pid !== pid
    if (!isStarting || waited >= MAX_WAIT_MS) return null
    if (waited === 0) out.say(`Waiting for the server of this data directory (process ${pid}) to start.`)
    await sleep(POLL_MS)
  }
}

function lasting(url: string): ReachedServer {
  return { url, lasts: true, readUrl: url, close: async () => {} }
}

async function ownServer(config: Config, out: Output): Promise<ReachedServer> {
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
