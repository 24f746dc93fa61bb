import { parseJson } from '../amount.ts'
import { type Query, toSearch } from '../router.ts'
import type { PersonChoice, ValidationError } from './types.ts'

/** The body of an error response (RFC 9457). */
type ProblemBody = {
  status: number
  title: string
  detail?: string
  code?: string
  request_id?: string | null
  errors?: ValidationError[]
  choices?: PersonChoice[]
}

/** The same as an Error. */
export class Problem extends Error {
  readonly status: number
  readonly title: string
  readonly code: string | null
  readonly requestId: string | null
  readonly errors: ValidationError[]
  readonly choices: PersonChoice[]
  constructor({ status, title, detail, code, request_id, errors, choices }: ProblemBody) {
    super(detail ?? title)
    this.status = status
    this.title = title
    this.code = code ?? null
    this.requestId = request_id ?? null
    this.errors = errors ?? []
    this.choices = choices ?? []
  }
}

export type RequestOptions = {
  method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  query?: Query
  /** Sent as JSON. */
  body?: unknown
  signal?: AbortSignal | undefined
  /** The request completes even if the tab is closed. */
  keepalive?: boolean
}

const TIMEOUT_MS = 30_000

/** In place of a key: use the session cookie. */
export const WITH_COOKIE = ''

/** In place of a key: use the session cookie to read this tenant. */
export const cookieFor = (tenant: string) => `${COOKIE_PREFIX}${tenant}`
const COOKIE_PREFIX = 'cookie:'

/** The fetch options that send a key or the cookie. */
export function credentials(key: string): {
  headers: Record<string, string>
  credentials: RequestCredentials
} {
  const tenant = key.startsWith(COOKIE_PREFIX) ? key.slice(COOKIE_PREFIX.length) : null
  return key === WITH_COOKIE || tenant !== null
    ? { headers: { 'x-kontor-console': '1', ...(tenant && { 'x-kontor-tenant': tenant }) }, credentials: 'same-origin' }
    : { headers: { authorization: `Bearer ${key}` }, credentials: 'omit' }
}

/** Sends one request to this server; throws a Problem on an error response or none. */
export async function request<Body>(
  key: string,
  path: string,
  { method = 'GET', query = {}, body, signal, keepalive = false }: RequestOptions = {},
): Promise<Body> {
  const signals = [AbortSignal.timeout(TIMEOUT_MS), ...(signal ? [signal] : [])]
  let response: Response
  let text: string
  try {
    response = await fetch(path + toSearch(query), {
      method,
      headers: {
        ...credentials(key).headers,
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      body: body === undefined ? null : JSON.stringify(body),
      signal: AbortSignal.any(signals),
      cache: 'no-store',
      credentials: credentials(key).credentials,
      keepalive,
    })
    text = await response.text()
  } catch (error) {
    if (signal?.aborted) throw error
    const detail = 'The server cannot be reached or takes too long to respond. Check that it is running.'
    throw new Problem({ status: 0, title: 'No response', code: 'no_answer', detail })
  }
  const value = parseBody(text, response.headers.get('content-type') ?? '')
  if (response.ok) return value as Body
  throw toProblem(response, value)
}

function toProblem({ status, statusText, headers }: Response, body: unknown): Problem {
  return new Problem({
    title: statusText || 'Error',
    detail: `The server answered ${status}.`,
    request_id: headers.get('x-request-id'),
    ...(body as Partial<ProblemBody> | null),
    status,
  })
}

/** Yields the data of server-sent events until the stream ends. Throws a Problem on an error response. */
export async function* streamEvents<Data>(
  key: string,
  path: string,
  { query = {}, signal }: { query?: Query; signal: AbortSignal },
): AsyncGenerator<Data> {
  const response = await fetch(path + toSearch(query), { ...credentials(key), signal, cache: 'no-store' })
  if (!response.ok || !response.body)
    throw toProblem(response, parseBody(await response.text(), response.headers.get('content-type') ?? ''))
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
  let rest = ''
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    const messages = (rest + value).split('\n\n')
    rest = messages.pop()!
    for (const message of messages) {
      const data = message.split('\n').find(line => line.startsWith('data: '))
      if (data) yield parseJson(data.slice('data: '.length)) as Data
    }
  }
}

/** The response, or null if it is a problem with this status. */
export async function nullOn<Body>(status: number, answer: Promise<Body>): Promise<Body | null> {
  try {
    return await answer
  } catch (error) {
    if (errorStatus(error) === status) return null
    throw error
  }
}

export function errorStatus(error: unknown): number | null {
  return error instanceof Problem ? error.status : null
}

function parseBody(text: string, type: string): unknown {
  if (!/json/.test(type)) return null
  try {
    return parseJson(text)
  } catch {
    return null
  }
}
