import { createRequire } from 'node:module'
import { Writable } from 'node:stream'
import { type DestinationStream, destination, type Logger, pino, stdSerializers } from 'pino'

const CREDENTIAL_HEADERS = ['authorization', 'x-api-key', 'x-write-key', 'cookie', 'set-cookie']
const STDERR = 2

export type LoggerOptions = { level: string; pretty: boolean }

/** Logs go to stderr, because stdout is for the output of commands. `to` is for tests. */
export function openLogger(options: LoggerOptions & { to?: DestinationStream }): Logger {
  return pino(
    {
      level: options.level,
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
      formatters: { level: label => ({ level: label }) },
      base: undefined,
      serializers: { err: serializeError },
      redact: {
        paths: CREDENTIAL_HEADERS.flatMap(name => [`["${name}"]`, `*["${name}"]`, `*.*["${name}"]`]),
        censor: '[redacted]',
      },
    },
    options.to ?? (options.pretty ? prettyStream() : openStderr()),
  )
}

// System errors, and these of PostgreSQL: connections, resources, shutdown and canceled statements, conflicts, locks, read-only.
const TRANSIENT_CODE = /^(?:E[A-Z\d]+|(?:08|40|53|57)\w{3}|55P03|25006|25P03|3D000)$/
const TRANSIENT_MESSAGE =
  /Connection terminated|Query read timeout|timeout exceeded when trying to connect|Client has encountered a connection error/

/** Transient errors, such as a database that is still starting, are logged without their stack, which adds nothing. */
function serializeError(error: unknown): unknown {
  if (!(error instanceof Error)) return error
  const serialized = stdSerializers.err(error)
  const { type, message } = serialized
  const { code: given } = error as { code?: unknown }
  const code = typeof given === 'string' ? given : ''
  const isTransient = TRANSIENT_CODE.test(code) || TRANSIENT_MESSAGE.test(message) || type === 'RestartTransaction'
  return isTransient ? { type, message, ...(code && { code }) } : serialized
}

/**
 * A line that cannot be written is dropped, for example while the disk of the log is full. The stream would keep the line and stop
 * writing, so a new one replaces it.
 */
function openStderr(): DestinationStream {
  const open = () =>
    destination({ dest: STDERR, sync: true }).on('error', () => {
      stream = open()
    })
  let stream = open()
  return { write: line => stream.write(line) }
}

// Loaded only if a person reads the log.
function prettyStream(): DestinationStream {
  const pretty = createRequire(import.meta.url)('pino-pretty') as typeof import('pino-pretty')
  const stderr = openStderr()
  const lines = new Writable({
    write(line, _, done) {
      stderr.write(String(line))
      done()
    },
  })
  return pretty({ destination: lines, colorize: process.stderr.isTTY === true })
}

/** Removes the keys that some senders must put into the URL. */
export function redactUrl(url: string): string {
  return url
    .replace(/([?&](?:key|writekey|token|code|state)=)[^&#]*/gi, '$1[redacted]')
    .replace(/(private-|trk_|adm_|tok_|whsec_)[^/?&#]*/gi, '$1[redacted]')
}
