import { readFile } from 'node:fs/promises'
import type { JetStreamClient, JetStreamManager } from '@nats-io/jetstream'
import type { NatsConnection } from '@nats-io/transport-node'
import type { NatsAccess } from './settings.ts'

const CONNECT_MS = 2_000
const RECONNECT_EVERY_MS = 100
// A server that answers no ping for so long is taken for gone, and another one of the cluster is tried.
const PING_EVERY_MS = 2_000
const MAX_PINGS_OUT = 2

/** Loaded when it is first used: whoever has no NATS never pays for it. */
const natsPackages = async () => ({
  ...(await import('@nats-io/transport-node')),
  ...(await import('@nats-io/jetstream')),
})
type NatsPackages = Awaited<ReturnType<typeof natsPackages>>

export type Connected = {
  packages: NatsPackages
  connection: NatsConnection
  js: JetStreamClient
  manager: JetStreamManager
}

/** Connected once; from then on it reconnects by itself, for as long as it takes. */
export async function connectTo(access: NatsAccess, name: string): Promise<Connected> {
  const packages = await natsPackages()
  const { servers, user, password, token, tls, credentialsFile } = access
  const connection = await packages.connect({
    ...{ servers, name, timeout: CONNECT_MS, pingInterval: PING_EVERY_MS, maxPingOut: MAX_PINGS_OUT },
    ...{ maxReconnectAttempts: -1, reconnectTimeWait: RECONNECT_EVERY_MS, ignoreAuthErrorAbort: true },
    // A stack for every request, in case it fails, is a tenth of what a message costs.
    noAsyncTraces: true,
    ...(user !== null && { user }),
    ...(password !== null && { pass: password }),
    ...(token !== null && { token }),
    ...(tls && { tls: {} }),
    ...(credentialsFile !== null && {
      authenticator: packages.credsAuthenticator(await readFile(credentialsFile)),
    }),
  })
  try {
    const manager = await packages.jetstreamManager(connection, { timeout: CONNECT_MS, checkAPI: false })
    return { packages, connection, manager, js: manager.jetstream() }
  } catch (error) {
    await connection.close()
    throw error
  }
}
