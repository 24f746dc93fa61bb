import { createRequire } from 'node:module'
import { type DestinationStream, destination, type Logger, pino, stdSerializers } from 'pino'

const CREDENTIAL_HEADERS = ['authorization', 'x-api-key', 'x-write-key', 'cookie', 'set-cookie']
const STDERR = 2

export type LoggerOptions = { level: string; pretty: boolean }

/** Logs go to stderr: stdout belongs to what commands print. `to` is for tests. */
export function openLogger(options: LoggerOptions & { to?: DestinationStream }): Logger {
  return pino(
    {
      level: options.level,
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
      formatters: { level: label => ({ level: label }) },
      base: undefined,
      serializers: { err: errorFacts },
      redact: {
        paths: CREDENTIAL_HEADERS.flatMap(name => [`["${name}"]`, `*["${name}"]`, `*.*["${name}"]`]),
        censor: '[redacted]',
      },
    },
    options.to ?? (options.pretty ? prettyStream() : destination({ dest: STDERR, sync: true })),
  )
}

// The system's own, and of PostgreSQL: connections, resources, shutdown and cancelled statements, conflicts, locks, read-only.
const PASSING_CODE = /^(?:E(?!RR_)[A-Z\d]+|(?:08|40|53|57)\w{3}|55P03|25006|25P03|3D000)$/
const PASSING_WORDS =
  /Connection terminated|Query read timeout|timeout exceeded when trying to connect|Client has encountered a connection error/

/** What passes by itself, such as a database that starts slower than we do, is told in words: a stack says nothing more of it. */
function errorFacts(error: unknown): unknown {
  if (!(error instanceof Error)) return error
  const told = stdSerializers.err(error)
  const { type, message } = told
  const { code: given } = error as { code?: unknown }
  const code = typeof given === 'string' ? given : ''
  const isPassing = PASSING_CODE.test(code) || PASSING_WORDS.test(message) || type === 'BeginAgain'
  return isPassing ? { type, message, ...(code && { code }) } : told
}

// Loaded only where a person reads the log.
function prettyStream(): DestinationStream {
  const pretty = createRequire(import.meta.url)('pino-pretty') as typeof import('pino-pretty')
  return pretty({ destination: STDERR, sync: true, colorize: process.stderr.isTTY === true })
}

/** A URL fit for a log: without the keys that some senders have to put there. */
export function redactUrl(url: string): string {
  return url
    .replace(/([?&](?:key|writekey|token|code|state)=)[^&#]*/gi, '$1[redacted]')
    .replace(/(private-|trk_|adm_|tok_|whsec_)[^/?&#]*/gi, '$1[redacted]')
}
