import { createRequire } from 'node:module'
import { type DestinationStream, destination, type Logger, pino } from 'pino'

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
      redact: {
        paths: CREDENTIAL_HEADERS.flatMap(name => [`["${name}"]`, `*["${name}"]`, `*.*["${name}"]`]),
        censor: '[redacted]',
      },
    },
    options.to ?? (options.pretty ? prettyStream() : destination({ dest: STDERR, sync: true })),
  )
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
