import { toAmount } from '../amount.ts'
import { type Query, toSearch } from '../router.ts'
import type { PersonChoice, ValidationError } from './types.ts'

/** The body of an answer that is not what was asked for (RFC 9457). */
type ProblemBody = {
  status: number
  title: string
  detail?: string
  code?: string
  request_id?: string | null
  errors?: ValidationError[]
  choices?: PersonChoice[]
}

/** The same as an error, in the words of the server. */
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
  method?: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  query?: Query
  /** Goes as JSON. */
  body?: unknown
  signal?: AbortSignal | undefined
  /** Finishes even when the tab is closed. */
  keepalive?: boolean
}

const TIMEOUT_MS = 30_000

/** In place of a key: the cookie of whoever is signed in. */
export const WITH_COOKIE = ''

/** How a key, or a cookie, goes along. */
export function credentials(key: string): {
  headers: Record<string, string>
  credentials: RequestCredentials
} {
  return key === WITH_COOKIE
    ? { headers: { 'x-kontor-console': '1' }, credentials: 'same-origin' }
    : { headers: { authorization: `Bearer ${key}` }, credentials: 'omit' }
}

/** One request to this server; throws a Problem where the answer is none. */
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
  throw new Problem({
    title: response.statusText || 'Error',
    detail: `The server answered ${response.status}.`,
    request_id: response.headers.get('x-request-id'),
    ...(value as Partial<ProblemBody> | null),
    status: response.status,
  })
}

/** Server-sent events, as long as they come: each as its data. Throws a Problem where the answer is none. */
export async function* streamEvents<Data>(
  key: string,
  path: string,
  { query = {}, signal }: { query?: Query; signal: AbortSignal },
): AsyncGenerator<Data> {
  const headers = { authorization: `Bearer ${key}` }
  const response = await fetch(path + toSearch(query), { headers, signal, cache: 'no-store' })
  if (!response.ok || !response.body)
    throw new Problem({ status: response.status, title: response.statusText || 'Error' })
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

/** The answer, or null where it is a problem with this status. */
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

type Revive = (name: string, value: unknown, context?: { source?: string }) => unknown
const parse = JSON.parse as (text: string, revive: Revive) => unknown

/** JSON, with numbers that a double cannot hold kept as they were written (see ExactNumber). */
export function parseJson(text: string): unknown {
  return parse(text, (_name, value, context) =>
    typeof value === 'number' && context?.source !== undefined ? toAmount(context.source) : value,
  )
}
