import { LogRefused, LogUnavailable } from '../log.ts'
import type { NatsAccess } from './settings.ts'

/** NATS is there, and what it has is not what Kontor needs: trying again does not help, an operator does. */
export class NatsRefused extends LogRefused {
  override name = 'NatsRefused'
}

/** The stream belongs to another database: this one neither reads nor writes nor purges it. */
export class StreamTaken extends NatsRefused {}

/** Nothing is lost: whoever sent it is told to come back. */
export class StreamFull extends LogUnavailable {}

type ApiError = { apiError?: () => { err_code?: number; description?: string } }

const errorCodeOf = (error: unknown) => (error as ApiError | null)?.apiError?.().err_code

const NO_ROOM = 10_047
// maximum messages, bytes of the stream, of the account, of the server; insufficient resources
const FULL = new Set([10_077, 10_076, 10_122, 10_002, 10_023, NO_ROOM])

export const isFull = (error: unknown) => FULL.has(errorCodeOf(error) ?? 0)
export const isMissingStream = (error: unknown) => errorCodeOf(error) === 10_059

/** Says what an operator has to do, where trying again does not help; null: it may. */
export function refusalOf(
  error: unknown,
  { access, hasJetStream }: { access: NatsAccess; hasJetStream: boolean | null },
): NatsRefused | null {
  if (error instanceof NatsRefused) return error
  const words = wordsFor(error as Coded, { access, hasJetStream })
  return words === null ? null : new NatsRefused(words, { cause: error })
}

type Coded = Error & { code?: string }

// The client has names for some of its errors only.
function wordsFor(
  error: Coded,
  { access, hasJetStream }: { access: NatsAccess; hasJetStream: boolean | null },
): string | null {
  const { name, message = '', code = '' } = error ?? {}
  const { credentialsFile, user, token, tls } = access
  const servers = access.servers.join(',')
  if (credentialsFile !== null && code === 'ENOENT')
    return `The credentials file ${credentialsFile} is not there: set NATS_CREDS to one that is.`
  if (credentialsFile !== null && (code === 'EACCES' || /unable to parse credentials/i.test(message)))
    return `The credentials file ${credentialsFile} cannot be read (${message}): NATS_CREDS takes a file as \`nsc generate creds\` writes it.`
  if (name === 'AuthorizationError' || /Authorization Violation/i.test(message))
    return user === null && token === null && credentialsFile === null
      ? `NATS at ${servers} wants credentials: give them in NATS_URL (nats://USER:PASSWORD@HOST) or in NATS_CREDS.`
      : `NATS at ${servers} does not accept these credentials (${message}): put right the user and password in NATS_URL, or NATS_CREDS.`
  if (name === 'UserAuthenticationExpiredError')
    return `The credentials for NATS at ${servers} have expired: give new ones in NATS_URL or NATS_CREDS.`
  // A cluster that is starting has no one to answer for a moment; a server says of itself whether it will.
  if (name === 'JetStreamNotEnabled' && hasJetStream !== true)
    return `The NATS server at ${servers} runs without JetStream: start it with \`jetstream { store_dir: … }\` in its configuration, or with -js.`
  if (name === 'JetStreamNotEnabled' && /for account/i.test(message))
    return `The account of this NATS user has no JetStream: enable it there (\`jetstream: enabled\`), or give another user in NATS_URL.`
  if (/does not support 'tls'/.test(message))
    return `NATS at ${servers} does not speak TLS, and NATS_URL asks for it: write nats:// for tls://, or set up TLS on the server.`
  if (/^(DEPTH_ZERO_SELF|SELF_SIGNED|UNABLE_TO_|CERT_|ERR_TLS_CERT|ERR_SSL)/.test(code))
    return `The TLS certificate of NATS at ${servers} is not accepted${tls ? '' : ' (the server wants TLS)'} (${message.split(';')[0]}): NODE_EXTRA_CA_CERTS names the file of its authority, and the host in NATS_URL has to be one of the certificate's names.`
  return null
}

/** For people, on one line and without what it was called with. */
export function reasonOf(error: unknown): string {
  if (errorCodeOf(error) === NO_ROOM)
    return 'JetStream has less room than KONTOR_NATS_MAX_BYTES asks for: lower it, or raise max_file_store of the NATS servers'
  const { name, message } = (error ?? {}) as Error
  return message || name || String(error)
}
