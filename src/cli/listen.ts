import { request as requestHttps } from 'node:https'
import { setTimeout as pause } from 'node:timers/promises'
import { type Command, InvalidArgumentError } from '@commander-js/extra-typings'
import { EmbeddedError } from '../../embedded-postgres/cluster.ts'
import { AdminError, notFound } from '../admin/error.ts'
import { remoteServer } from '../config/config.ts'
import { UNIT_MS } from '../config/values.ts'
import { parseTimestamp } from '../domain/time.ts'
import { request as requestHttp } from '../node-http.ts'
import { isUnavailable } from '../postgres/database.ts'
import { decodeBody, type RequestsView, type RequestView, readRequests } from '../reports/inbound-requests.ts'
import { findSource } from '../store/inbound/sources.ts'
import { examples } from './options.ts'
import { formatLine, type Output } from './output.ts'
import { dataOption, withReadDatabase } from './session.ts'
import { untilReaderStops } from './stop.ts'

const NOTES = `
Shows every request that the source accepts, including duplicates. With --forward, sends each request to the handler, one at a time
and in order, with its body (decompressed) and its headers, except Authorization, Cookie, Host and connection headers.
Prints one line per request on a terminal, and one JSON object per line in a pipe or with --json.

With KONTOR_KEY (a private key with the scopes events:read and conversions:read), the command reads from the server at KONTOR_URL
(default: http://localhost:8080). Without KONTOR_KEY, it reads from the database.

Kontor records the first 1,000 requests that a source receives within 24 hours of its creation. While \`kontor listen\` runs, and for
about seven days after it ends, Kontor records every request of the source. Kontor deletes each recorded request after three days.`

type Options = { forward?: URL; since?: Date; retry?: true; json?: true; data?: string }

export function addListen(program: Command, out: Output): void {
  program
    .command('listen')
    .description('Show the requests that a source accepts, and forward them to a local handler.')
    .argument('<source>', 'id of the source (src_…)')
    .option('--forward <url>', 'URL to forward each request to, for example http://localhost:3000/hook', parseUrl)
    .option(
      '--since <time>',
      'first show the requests since this time: an age such as 10m, 2h or 1d, or a time such as 2026-01-31T09:30:00Z',
      parseSince,
    )
    .option('--retry', 'while the handler is unreachable, retry the request instead of skipping it')
    .option('--json', 'print JSON lines with headers and body, also on a terminal')
    .addOption(dataOption())
    .addHelpText('after', NOTES)
    .addHelpText(
      'after',
      examples(
        'kontor listen src_4fTzQ9aXw2LmN8pB --forward http://localhost:3000/hook',
        'kontor listen src_4fTzQ9aXw2LmN8pB --forward http://localhost:3000/hook --since 1h --retry',
        'KONTOR_URL=https://kontor.example.com KONTOR_KEY=private-… kontor listen src_4fTzQ9aXw2LmN8pB --json',
      ),
    )
    .action((source, options) => untilReaderStops(signal => listen(source, options as Options, signal, out)))
}

/** Handles one request at a time, which preserves their order. */
async function listen(sourceId: string, options: Options, signal: AbortSignal, out: Output): Promise<void> {
  const start: ListenStart = { sourceId, since: options.since ?? null, data: options.data }
  const target = options.forward ?? null
  const onReady = () =>
    out.say(`Listening to ${sourceId}${target ? `, forwarding to ${target.href}` : ''}. Press Ctrl-C to stop.`)
  const isLine = process.stdout.isTTY && !options.json
  const onRequest = async (request: RequestView) => {
    const forwarded = target ? await forwardAll({ request, target, options, signal, out }) : null
    if (signal.aborted && forwarded?.error !== undefined) return
    const shown = () => JSON.stringify({ ...request, ...(forwarded && { forwarded }) })
    out.print(`${isLine ? requestLine(request, forwarded) : shown()}\n`)
  }
  await followRequests({ start, signal, out, onReady, onRequest })
}

const MAX_RETRY_PAUSE_MS = 10_000

type Forwarding = { request: RequestView; target: URL; options: Options; signal: AbortSignal; out: Output }

/** With --retry, repeats until the handler responds. Any response counts as delivered. */
async function forwardAll({ request, target, options, signal, out }: Forwarding): Promise<Forwarded> {
  for (let pauseMs = 500; ; pauseMs = Math.min(2 * pauseMs, MAX_RETRY_PAUSE_MS)) {
    const forwarded = await forward({ target, headers: request.headers, body: decodeBody(request), signal })
    if (forwarded.error === undefined || signal.aborted) return forwarded
    const next = options.retry ? `Next attempt in ${pauseMs / 1000} s.` : 'Request skipped.'
    out.say(`${target.href} is unreachable: ${forwarded.error}. ${next}`)
    if (!options.retry) return forwarded
    await pause(pauseMs, null, { signal }).catch(() => {})
  }
}

function requestLine(request: RequestView, forwarded: Forwarded | null): string {
  const { accepted, duplicates } = request.answer
  const isRepeat = accepted === 0 && duplicates > 0
  const answer = forwarded && (forwarded.error ?? `→ ${forwarded.status} in ${forwarded.ms} ms`)
  const isGood = forwarded === null || (forwarded.status !== undefined && forwarded.status < 400)
  const size = `${decodeBody(request).length} bytes`
  return formatLine(new Date(request.received_at), isGood ? 'green' : 'red', readType(request), [
    size,
    isRepeat ? 'duplicate' : null,
    answer,
    request.id,
  ])
}

const TYPE_HEADERS = ['x-shopify-topic', 'x-wc-webhook-topic', 'x-github-event']

/** The event type, from the headers and fields that most senders use. */
function readType({ headers, body }: RequestView): string {
  const header = headers.find(([name]) => TYPE_HEADERS.includes(name.toLowerCase()))
  if (header) return header[1]
  try {
    const value = JSON.parse(body) as Record<string, unknown>
    const type = value.event_type ?? value.type ?? value.webhook_type ?? value.event
    return typeof type === 'string' ? type : 'request'
  } catch {
    return 'request'
  }
}

function parseUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : null
  if (url && /^https?:$/.test(url.protocol)) return url
  throw new InvalidArgumentError('Expected a URL that starts with http:// or https://.')
}

function parseSince(text: string): Date {
  const [, count, unit] = /^(\d{1,6})([smhd])$/.exec(text) ?? []
  if (count !== undefined) return new Date(Date.now() - Number(count) * UNIT_MS[unit as keyof typeof UNIT_MS])
  const at = parseTimestamp(text)
  if (at) return at
  throw new InvalidArgumentError('Expected a time such as 10m, 2h, 1d or 2026-05-01T12:00:00Z.')
}

/** The response of a handler; `error` if there was none. */
export type Forwarded = { status?: number; ms: number; error?: string }

// Hop-by-hop headers (RFC 9110, 7.6.1), and headers that describe an encoding that the body no longer has.
const OMITTED_HEADERS = new Set([
  ...['connection', 'keep-alive', 'proxy-connection', 'te', 'trailer', 'transfer-encoding', 'upgrade'],
  ...['host', 'content-length', 'content-encoding', 'expect'],
])

// Providers time out after 5 to 30 seconds.
const RESPONSE_TIMEOUT_MS = 30_000
const NO_RESPONSE = `no response within ${RESPONSE_TIMEOUT_MS / 1000} s`

/** Posts a body with its original headers. Node's client preserves their case and order. */
export function forward({
  target,
  headers,
  body,
  signal,
}: {
  target: URL
  headers: [string, string][]
  body: Buffer
  signal: AbortSignal
}): Promise<Forwarded> {
  const send = target.protocol === 'https:' ? requestHttps : requestHttp
  const startedAt = performance.now()
  const took = () => Math.round(performance.now() - startedAt)
  const named = new Set((headers.find(([name]) => /^connection$/i.test(name))?.[1] ?? '').toLowerCase().split(/[\s,]+/))
  const isKept = (name: string) => !OMITTED_HEADERS.has(name) && !named.has(name)
  const sent = headers.filter(([name]) => isKept(name.toLowerCase()))
  const own: [string, string][] = [
    ['Host', target.host],
    ['Content-Length', String(body.length)],
  ]
  return new Promise(resolve => {
    const fail = (error: Error & { code?: string }) =>
      resolve({ ms: took(), error: signal.aborted ? 'stopped' : error.message || error.code || error.name })
    try {
      const outgoing = send(target, { method: 'POST', headers: [...own, ...sent].flat(), agent: false, signal })
      const timer = setTimeout(() => outgoing.destroy(new Error(NO_RESPONSE)), RESPONSE_TIMEOUT_MS)
      outgoing.on('close', () => clearTimeout(timer))
      outgoing.on('error', fail)
      // A handler that sent a status has received the request. If the rest of its response breaks off, a retry would deliver twice.
      outgoing.on('response', answer => {
        const answered = () => resolve({ status: answer.statusCode!, ms: took() })
        answer.on('error', answered).on('close', answered)
        answer.resume()
      })
      outgoing.on('upgrade', (answer, socket) => {
        socket.destroy()
        resolve({ status: answer.statusCode!, ms: took() })
      })
      outgoing.end(body)
    } catch (error) {
      fail(error as Error)
    }
  })
}

export type ListenStart = { sourceId: string; since: Date | null; data: string | undefined }

type Following = {
  start: ListenStart
  signal: AbortSignal
  out: Output
  onReady(): void
  /** Called for one request at a time. */
  onRequest(request: RequestView): Promise<void>
}

/** Reads the page after a cursor; null reads the first page. */
type ReadPage = (cursor: string | null) => Promise<RequestsView>

const WAIT_S = 20
const LIMIT = 50
const FIRST_PAUSE_MS = 500
const MAX_PAUSE_MS = 5_000

/**
 * Passes on each request of a source exactly once, in order. While the server or the database is unavailable, it retries, and
 * then continues where it stopped.
 */
export async function followRequests({ start, signal, out, onReady, onRequest }: Following): Promise<void> {
  let cursor: string | null = null
  let pauseMs = FIRST_PAUSE_MS
  const follow = async (read: ReadPage) => {
    while (!signal.aborted) {
      const page = await read(cursor)
      if (cursor === null) onReady()
      else if (pauseMs > FIRST_PAUSE_MS) out.say('Reconnected.')
      pauseMs = FIRST_PAUSE_MS
      for (const request of page.results) if (!signal.aborted) await onRequest(request)
      cursor = page.next_cursor
    }
  }
  while (!signal.aborted) {
    try {
      await connect(start, signal, out, follow)
    } catch (error) {
      if (signal.aborted) return
      if (!isTemporary(error)) throw error
      if (pauseMs === FIRST_PAUSE_MS) out.say(`The connection failed: ${(error as Error).message}. Retrying.`)
      await pause(pauseMs, null, { signal }).catch(() => {})
      pauseMs = Math.min(2 * pauseMs, MAX_PAUSE_MS)
    }
  }
}

function isTemporary(error: unknown): boolean {
  return error instanceof Unreachable || error instanceof EmbeddedError || isUnavailable(error)
}

async function connect(
  start: ListenStart,
  signal: AbortSignal,
  out: Output,
  work: (read: ReadPage) => Promise<void>,
): Promise<void> {
  const remote = remoteServer()
  if (remote) return work(cursor => fetchPage({ ...remote, start, signal, cursor }))
  return withReadDatabase(start, out, async ({ pool }) => {
    const source = await findSource(pool, start.sourceId)
    if (!source) throw notFound('source', start.sourceId)
    const of = { tenantId: source.tenantId, sourceId: source.id }
    const begin = { since: start.since, cursor: null, limit: LIMIT, waitMs: 0 }
    const next = { since: null, limit: LIMIT, waitMs: WAIT_S * 1000 }
    await work(cursor => readRequests(pool, of, cursor === null ? begin : { ...next, cursor }, signal))
  })
}

class Unreachable extends Error {
  override name = 'Away'
}

type FetchPage = {
  url: string
  key: string
  start: ListenStart
  signal: AbortSignal
  cursor: string | null
}

async function fetchPage({ url, key, start, signal, cursor }: FetchPage): Promise<RequestsView> {
  const address = new URL(`${url}/v1/sources/${encodeURIComponent(start.sourceId)}/requests?limit=${LIMIT}`)
  if (cursor !== null) address.searchParams.set('cursor', cursor)
  else if (start.since) address.searchParams.set('since', start.since.toISOString())
  if (cursor !== null) address.searchParams.set('wait', String(WAIT_S))
  const response = await fetch(address, { headers: { authorization: `Bearer ${key}` }, signal }).catch(
    ({ message, cause }: Error) => {
      throw new Unreachable((cause as Error | undefined)?.message || message)
    },
  )
  if (response.status === 429 || response.status >= 500) {
    await response.body?.cancel()
    throw new Unreachable(`${url} responded with status ${response.status}`)
  }
  const text = await response.text().catch(({ message }: Error) => {
    throw new Unreachable(message)
  })
  if (response.ok) return JSON.parse(text) as RequestsView
  throw new AdminError('forbidden', 'refused', `${url} responded with status ${response.status}: ${readDetail(text)}`)
}

function readDetail(text: string): string {
  try {
    return (JSON.parse(text) as { detail?: string }).detail ?? text.slice(0, 200)
  } catch {
    return text.slice(0, 200)
  }
}
