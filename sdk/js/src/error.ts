import type { Problem, TrackedEvent } from './types.ts'

type Facts = {
  message: string
  status?: number
  code: string
  requestId?: string | null
  errors?: Problem['errors']
  retryAfterS?: number | null
  events?: TrackedEvent[]
  cause?: unknown
}

/** Why a call failed. Whatever the service may still answer has been tried before it is thrown. */
export class KontorError extends Error {
  override name = 'KontorError'
  /** The answer's HTTP status; 0 where there was no answer. */
  readonly status: number
  /** Stable, for programs: the service's own, or network_error, timeout, invalid_answer, queue_full, invalid_event, closed. */
  readonly code: string
  /** Quote it when you ask the operator of the service about this call. */
  readonly requestId: string | null
  /** All faults of the request: where (a JSON pointer into the body, or `/` and a parameter's name) and what. */
  readonly errors: NonNullable<Problem['errors']>
  /** How long the service wants to be left alone, if it said so. */
  readonly retryAfterS: number | null
  /** Of track(): the events that were not delivered. */
  readonly events: TrackedEvent[]

  constructor({ message, status, code, requestId, errors, retryAfterS, events, cause }: Facts) {
    super(message, { cause })
    this.status = status ?? 0
    this.code = code
    this.requestId = requestId ?? null
    this.errors = errors ?? []
    this.retryAfterS = retryAfterS ?? null
    this.events = events ?? []
  }
}

/** Whether the same call may well succeed later. */
export function isTransient({ status, code }: KontorError): boolean {
  return status === 0 || status === 408 || status === 429 || status >= 500 || code === 'invalid_answer'
}
