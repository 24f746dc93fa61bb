import { LogRefused, LogUnavailable } from '../log.ts'

/** NATS is there, and what it has is not what Kontor needs: trying again does not help, an operator does. */
export class NatsRefused extends LogRefused {
  override name = 'NatsRefused'
}

/** Nothing is lost: whoever sent it is told to come back. */
export class StreamFull extends LogUnavailable {}

type ApiError = { apiError?: () => { err_code?: number; description?: string } }

const errorCodeOf = (error: unknown) => (error as ApiError | null)?.apiError?.().err_code

// maximum messages, bytes of the stream, of the account, of the server; insufficient resources
const FULL = new Set([10_077, 10_076, 10_122, 10_002, 10_023, 10_047])

export const isFull = (error: unknown) => FULL.has(errorCodeOf(error) ?? 0)
export const isMissingStream = (error: unknown) => errorCodeOf(error) === 10_059

/** Where it is not known, the names of the client's own errors. */
export function isRefusal(error: unknown): boolean {
  const { name, message } = (error ?? {}) as Error
  return (
    error instanceof NatsRefused ||
    name === 'AuthorizationError' ||
    name === 'UserAuthenticationExpiredError' ||
    name === 'JetStreamNotEnabled' ||
    /Authorization Violation|no such file|ENOENT|unable to parse credentials/i.test(message ?? '')
  )
}

/** For people, on one line and without what it was called with. */
export function reasonOf(error: unknown): string {
  const { name, message } = (error ?? {}) as Error
  return message || name || String(error)
}
