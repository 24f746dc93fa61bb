import { readFile } from 'node:fs/promises'
import type { JetStreamClient, JetStreamManager } from '@nats-io/jetstream'
import type { NatsConnection } from '@nats-io/transport-node'
import { LogRefused, LogUnavailable } from '../log.ts'

/** The address of the log on NATS and the configuration of its stream. Plain data, because it is passed to another thread. */
export type NatsSettings = {
  access: NatsAccess
  /** Access to the system account, where Kontor reads whether the servers sync. */
  systemAccess: NatsAccess | null
  stream: string
  /** Of a stream that Kontor creates. */
  partitions: number
  maxBytes: number
  maxAgeMs: number
  /** null: three if the cluster has three servers or more, else one */
  replicas: number | null
  /** The operator declares that every server syncs before it acknowledges. */
  isSynced: boolean
  /** Accept a stream that belongs to another database. The operator declares that this database is gone for good. */
  takesOver: boolean
}

export type NatsAccess = {
  /** host:port */
  servers: string[]
  tls: boolean
  user: string | null
  password: string | null
  token: string | null
  credentialsFile: string | null
}

/** The subject of a partition. The parts of an entry that is too large for one message have subjects below it. */
export const partitionSubject = (stream: string, partition: number) => `${stream}.log.${partition}`
export const partSubject = (stream: string, partition: number, group: string, part: number | '*') =>
  `${partitionSubject(stream, partition)}.part.${group}.${part}`

export type LogLogger = {
  error(facts: object, message: string): void
  warn(facts: object, message: string): void
  info(facts: object, message: string): void
}

const CONNECT_MS = 2_000
const RECONNECT_EVERY_MS = 100
// A server that answers no ping for 4 s counts as gone, and the client tries another one of the cluster.
const PING_EVERY_MS = 2_000
const MAX_PINGS_OUT = 2

/** Loaded on first use: an installation without NATS does not pay for it. */
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

/** Connects once. From then on the client reconnects by itself, without a limit. */
export async function connectTo(access: NatsAccess, name: string): Promise<Connected> {
  const packages = await natsPackages()
  const { servers, user, password, token, tls, credentialsFile } = access
  const connection = await packages.connect({
    ...{ servers, name, timeout: CONNECT_MS, pingInterval: PING_EVERY_MS, maxPingOut: MAX_PINGS_OUT },
    ...{ maxReconnectAttempts: -1, reconnectTimeWait: RECONNECT_EVERY_MS, ignoreAuthErrorAbort: true },
    // Recording a stack trace for every request takes a tenth of the time of a message.
    noAsyncTraces: true,
    ...(user !== null && { user }),
    ...(password !== null && { pass: password }),
    ...(token !== null && { token }),
    ...(tls && { tls: {} }),
    ...(credentialsFile !== null && { authenticator: packages.credsAuthenticator(await readFile(credentialsFile)) }),
  })
  try {
    const manager = await packages.jetstreamManager(connection, { timeout: CONNECT_MS, checkAPI: false })
    return { packages, connection, manager, js: manager.jetstream() }
  } catch (error) {
    await connection.close()
    throw error
  }
}

/** NATS is reachable but does not meet Kontor's requirements. Retrying does not help: an operator has to act. */
export class NatsRefused extends LogRefused {
  override name = 'NatsRefused'
}

/** The stream must not be written to: it could lose what it acknowledges, or it belongs to another database. */
export class StreamRefused extends NatsRefused {}

/** The stream belongs to another database. This one neither reads, writes nor purges it. */
export class StreamTaken extends StreamRefused {}

/** Another node may still use the stream that this one replaces. A killed node counts as gone after 30 s, so waiting helps. */
export class StreamInUse extends LogUnavailable {}

/** Nothing is lost: the sender is asked to retry. */
export class StreamFull extends LogUnavailable {}

/** JetStream cannot reserve the space of a stream: its account or its servers have less. */
export const hasNoRoom = (error: unknown) => apiErrorCode(error) === NO_ROOM

type ApiError = { apiError?: () => { err_code?: number; description?: string } }

const apiErrorCode = (error: unknown) => (error as ApiError | null)?.apiError?.().err_code

const NO_ROOM = 10_047
// maximum messages, bytes of the stream, of the account, of the server; insufficient resources
const FULL = new Set([10_077, 10_076, 10_122, 10_002, 10_023, NO_ROOM])

export const isFull = (error: unknown) => FULL.has(apiErrorCode(error) ?? 0)
export const isMissingStream = (error: unknown) => apiErrorCode(error) === 10_059

type RefusalContext = { access: NatsAccess; hasJetStream: boolean | null }

/** The error as a refusal that says what to do, if retrying does not help; else null. */
export function toRefusal(error: unknown, context: RefusalContext): NatsRefused | null {
  if (error instanceof NatsRefused) return error
  const message = describeRefusal(error as Error & { code?: string }, context)
  return message === null ? null : new NatsRefused(message, { cause: error })
}

// The client has classes for some of its errors only.
function describeRefusal(error: Error & { code?: string }, { access, hasJetStream }: RefusalContext): string | null {
  const { name, message = '', code = '' } = error ?? {}
  const { credentialsFile, user, token, tls } = access
  const servers = access.servers.join(',')
  if (credentialsFile !== null && code === 'ENOENT')
    return `The credentials file ${credentialsFile} does not exist: set NATS_CREDS to an existing file.`
  if (credentialsFile !== null && (code === 'EACCES' || /unable to parse credentials/i.test(message)))
    return `The credentials file ${credentialsFile} cannot be read (${message}): NATS_CREDS takes a file as written by \`nsc generate creds\`.`
  if (name === 'AuthorizationError' || /Authorization Violation/i.test(message))
    return user === null && token === null && credentialsFile === null
      ? `NATS at ${servers} requires credentials: set them in NATS_URL (nats://USER:PASSWORD@HOST) or in NATS_CREDS.`
      : `NATS at ${servers} does not accept these credentials (${message}): correct the user and password in NATS_URL, or NATS_CREDS.`
  if (name === 'UserAuthenticationExpiredError')
    return `The credentials for NATS at ${servers} have expired: set new ones in NATS_URL or NATS_CREDS.`
  // A cluster that is starting may not answer for a moment, but each server reports whether it has JetStream.
  if (name === 'JetStreamNotEnabled' && hasJetStream !== true)
    return `The NATS server at ${servers} runs without JetStream: start it with \`jetstream { store_dir: … }\` in its configuration, or with -js.`
  if (name === 'JetStreamNotEnabled' && /for account/i.test(message))
    return `The account of this NATS user has no JetStream: enable it there (\`jetstream: enabled\`), or set another user in NATS_URL.`
  if (/does not support 'tls'/.test(message))
    return `NATS at ${servers} does not support TLS, but NATS_URL requires it: write nats:// instead of tls://, or configure TLS on the server.`
  if (/^(DEPTH_ZERO_SELF|SELF_SIGNED|UNABLE_TO_|CERT_|ERR_TLS_CERT|ERR_SSL)/.test(code))
    return `The TLS certificate of NATS at ${servers} is not accepted${tls ? '' : ' (the server requires TLS)'} (${message.split(';')[0]}): set NODE_EXTRA_CA_CERTS to the file of its authority, and use a host in NATS_URL that the certificate names.`
  return null
}

/** One line for the user, without the arguments of the call. */
export function errorReason(error: unknown): string {
  const { name, message } = (error ?? {}) as Error
  return message || name || String(error)
}
