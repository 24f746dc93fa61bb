import { isTransient, KontorError } from './error.ts'
import type { Problem, Time } from './types.ts'

/** The part of `fetch` that the client uses. */
export type FetchOption = {
  fetch?(url: string, init: object): Promise<FetchAnswer>
}

export type FetchAnswer = {
  status: number
  headers: { get(name: string): string | null }
  text(): Promise<string>
}

export type RetryOptions = {
  /** Number of retries after a network failure, 408, 429, 5xx or an unreadable answer. Default 5; 0 disables retries. */
  maxRetries?: number
  /** First pause between attempts. It doubles each time, up to 8 s. Default 250. */
  retryDelayMs?: number
  /** Timeout of one attempt. Default 30,000. */
  timeoutMs?: number
}

export type Query = Record<string, Time | number | boolean | undefined>

export type Call = {
  method: 'GET' | 'POST' | 'DELETE'
  url: string
  headers?: Record<string, string>
  /** A function is called for each attempt, because the body contains the time of sending. */
  body?: string | (() => string)
  keepalive?: boolean
  timeoutMs?: number
}

export type Send = <Answer>(call: Call) => Promise<Answer>

const MAX_PAUSE_MS = 8_000
// A longer Retry-After is thrown, so that the caller decides.
const MAX_RETRY_AFTER_S = 60

/** Creates a function that sends requests and retries temporary failures. */
export function openSend(options: FetchOption & RetryOptions): Send {
  const { maxRetries = 5, retryDelayMs = 250, timeoutMs = 30_000 } = options
  // not called as a method, because a browser's fetch requires its own `this`
  const send = options.fetch ?? ((url, init) => fetch(url, init))

  async function attempt<Answer>(call: Call): Promise<Answer> {
    let answer: FetchAnswer
    let text: string
    try {
      answer = await send(call.url, {
        method: call.method,
        // a redirected POST would become a GET without a body
        redirect: 'manual',
        signal: AbortSignal.timeout(timeoutMs + (call.timeoutMs ?? 0)),
        ...(call.headers && { headers: call.headers }),
        ...(call.body && { body: typeof call.body === 'string' ? call.body : call.body() }),
        ...(call.keepalive && { keepalive: true }),
      })
      text = await answer.text()
    } catch (cause) {
      throw networkError(call, cause)
    }
    const body = parse(text)
    if (answer.status >= 200 && answer.status < 300 && body) return body as Answer
    throw responseError(call, answer, body as Partial<Problem> | null)
  }

  return async call => {
    for (let retries = 0; ; retries++) {
      try {
        return await attempt(call)
      } catch (error) {
        const { retryAfterS } = error as KontorError
        const isHopeless = !isTransient(error as KontorError) || (retryAfterS ?? 0) > MAX_RETRY_AFTER_S
        if (isHopeless || retries >= maxRetries) throw error
        const pauseMs = Math.min(retryDelayMs * 2 ** retries, MAX_PAUSE_MS) * (0.5 + Math.random() / 2)
        await sleep(pauseMs + (retryAfterS ?? 0) * 1_000)
      }
    }
  }
}

export function queryText(query: Query): string {
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) parameters.set(name, value instanceof Date ? value.toISOString() : `${value}`)
  }
  const text = `${parameters}`
  return text && `?${text}`
}

/** 160 random bits. randomUUID is not available on http pages. */
export function randomId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(20))
  return Array.from(bytes, byte => byte.toString(16).padStart(2, '0')).join('')
}

function sleep(ms: number): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, ms))
}

function networkError({ method, url }: Call, cause: unknown): KontorError {
  const isTimeout = (cause as Error | null)?.name === 'TimeoutError'
  // Node's fetch says only "fetch failed"; its cause has the reason, for example ECONNREFUSED.
  const { message, cause: inner } = (cause ?? {}) as { message?: string; cause?: { code?: string; message?: string } }
  const reason = isTimeout ? 'no answer in time' : inner?.message || inner?.code || (message ?? cause)
  return new KontorError({
    message: `${method} ${withoutQuery(url)}: ${reason}`,
    code: isTimeout ? 'timeout' : 'network_error',
    cause,
  })
}

function responseError({ method, url }: Call, answer: FetchAnswer, body: Partial<Problem> | null): KontorError {
  const { status, headers } = answer
  const isOk = status >= 200 && status < 300
  const location = headers.get('location')
  const facts = isOk ? 'the answer is not JSON' : `answered ${status}${location ? ` to ${location}` : ''}`
  return new KontorError({
    message: body?.detail ?? `${method} ${withoutQuery(url)}: ${facts}`,
    status,
    code: body?.code ?? (isOk ? 'invalid_answer' : 'http_error'),
    requestId: body?.request_id ?? headers.get('x-request-id'),
    errors: body?.errors,
    retryAfterS: secondsUntil(headers.get('retry-after')),
  })
}

/** Removes the query, because it may contain a key. */
function withoutQuery(url: string): string {
  return url.split('?', 1)[0]!
}

/** Retry-After: seconds, or a date. */
function secondsUntil(retryAfter: string | null): number | null {
  if (!retryAfter) return null
  const seconds = /^\d+$/.test(retryAfter) ? Number(retryAfter) : (Date.parse(retryAfter) - Date.now()) / 1_000
  return Number.isNaN(seconds) ? null : Math.max(0, seconds)
}

function parse(text: string): object | null {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' ? value : null
  } catch {
    return null
  }
}
