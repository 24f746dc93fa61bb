import https from 'node:https'
import { setTimeout as sleep } from 'node:timers/promises'
import { isObject } from '../domain/json/json.ts'
import type { EntityType } from '../domain/records/records.ts'
import * as http from '../node-http.ts'
import { type ErrorsFile, type Journal, NO_PROGRESS, type Progress } from './files.ts'
import { FileError, type Item, isRejection, type Read, type Reading, type Rejection, type Row } from './rows.ts'
export type Totals = { read: number; accepted: number; duplicates: number; rejected: number }

export type ImportOptions = {
  /** The rows from the beginning, or from `progress.page` on. */
  rows: (progress: Progress) => AsyncIterable<(Row | Rejection)[]>
  reading: Reading
  /** Null for a dry run. */
  target: Target | null
  journal: Journal
  errors: (from: number) => Promise<ErrorsFile>
  onRejected: (rejections: Rejection[]) => void
  onResumed: (read: number) => void
  onProgress: (totals: Totals) => void
  onEnd: () => void
  signal: AbortSignal
}

/** The number of requests in flight, which also bounds how much of the file is in memory. */
const IN_FLIGHT = 4
const MAX_READS = 2_000
const DRY: Target = {
  maxItems: MAX_READS,
  maxBytes: Number.POSITIVE_INFINITY,
  deliver: async items => ({ accepted: items.length, duplicates: 0, rejected: [] }),
}

type Batch = { items: Item[]; rejected: Rejection[]; bytes: number; ids: Set<string> }
const newBatch = (): Batch => ({ items: [], rejected: [], bytes: 0, ids: new Set() })

/**
 * Reads a file and sends its items in batches. Batches are settled in order. After a crash, the same command skips the settled
 * batches, which the journal contains. It sends batches that were in flight again, and the service recognizes the duplicates.
 */
export async function runImport(options: ImportOptions): Promise<Totals & { isWhole: boolean }> {
  const { reading, journal, signal } = options
  const target = options.target ?? DRY
  const resumed = await journal.load()
  const progress: Progress = { ...(resumed ?? NO_PROGRESS) }
  if (resumed) options.onResumed(resumed.read)
  const errors = await options.errors(progress.errorsBytes)
  const underWay: { batch: Batch; done: Promise<Awaited<ReturnType<Target['deliver']>>> }[] = []
  let taken = progress.page?.read ?? 0
  const skipped = progress.read
  const pages: NonNullable<Progress['page']>[] = []
  let batch = newBatch()
  let unread: FileError | null = null

  async function settle(): Promise<void> {
    const { batch: first, done } = underWay.shift()!
    const outcome = await done
    const rejected = [...first.rejected, ...outcome.rejected].sort((a, b) => a.line - b.line)
    progress.read += first.items.length + first.rejected.length
    progress.accepted += outcome.accepted
    progress.duplicates += outcome.duplicates
    progress.rejected += rejected.length
    if (rejected.length > 0) {
      await errors.write(rejected)
      options.onRejected(rejected)
    }
    progress.errorsBytes = errors.bytes()
    while (pages[0] && pages[0].read <= progress.read) progress.page = pages.shift()!
    await journal.save(progress)
    options.onProgress(progress)
  }

  async function dispatch(): Promise<void> {
    if (batch.items.length + batch.rejected.length === 0) return
    // Two changes with the same id must arrive in the order of their rows.
    while (underWay.length >= IN_FLIGHT || underWay.some(({ batch: other }) => overlap(other, batch))) await settle()
    const { items } = batch
    const done =
      items.length > 0 ? target.deliver(items) : Promise.resolve({ accepted: 0, duplicates: 0, rejected: [] })
    done.catch(() => undefined) // `settle` handles the error
    underWay.push({ batch, done })
    batch = newBatch()
  }

  async function take(reads: Read[]): Promise<void> {
    for (const read of reads) {
      if (taken++ < skipped) continue
      if (isRejection(read)) batch.rejected.push(read)
      else {
        const bytes = Buffer.byteLength(read.text) + 2
        if (batch.items.length > 0 && batch.bytes + bytes > target.maxBytes) await dispatch()
        batch.items.push(read)
        batch.ids.add(read.id)
        batch.bytes += bytes
      }
      if (batch.items.length >= target.maxItems || batch.items.length + batch.rejected.length >= MAX_READS)
        await dispatch()
    }
  }

  try {
    try {
      for await (const rows of options.rows({ ...progress })) {
        for (const row of rows) {
          if ('page' in row) pages.push({ ...row.page!, read: taken })
          await take(isRejection(row) ? [row] : reading.push(row))
        }
        if (signal.aborted) break
      }
    } catch (error) {
      // an API that fails keeps its next page, so everything read before counts
      if (!(error instanceof FileError) || !(progress.page ?? pages[0])) throw error
      unread = error
    }
    if (!signal.aborted && !unread) await take(reading.end())
    await dispatch()
    while (underWay.length > 0) await settle()
    if (signal.aborted || unread) await journal.save(progress, true)
    else await journal.end()
    if (unread) throw unread
  } finally {
    await Promise.allSettled(underWay.map(({ done }) => done))
    await errors.close()
    options.onEnd()
  }
  const { read, accepted, duplicates, rejected } = progress
  return { read, accepted, duplicates, rejected, isWhole: !signal.aborted }
}

function overlap(a: Batch, b: Batch): boolean {
  const [few, many] = a.ids.size < b.ids.size ? [a.ids, b.ids] : [b.ids, a.ids]
  for (const id of few) if (many.has(id)) return true
  return false
}

type Outcome = { accepted: number; duplicates: number; rejected: Rejection[] }

/** Sends items to one of the public APIs, with bounds for one request. */
export type Target = { maxItems: number; maxBytes: number; deliver(items: Item[]): Promise<Outcome> }

const NOTHING: Outcome = { accepted: 0, duplicates: 0, rejected: [] }

export function recordTarget(send: Send, key: string, entityType: EntityType): Target {
  const path = `/v1/${entityType}s/batch`
  const post = (items: Item[]) => send({ path, key, type: 'application/x-ndjson', text: lines(items) })
  return {
    maxItems: 500,
    maxBytes: 6 * 1_048_576,
    deliver: items =>
      sendBisected(items, post, (sent, { body }) => recordOutcome(sent, body.results as RecordResult[])),
  }
}

type ItemErrors = { pointer: string; message: string }[]
type RecordResult = { accepted: boolean; duplicate?: boolean; errors?: ItemErrors }

function recordOutcome(items: Item[], results: RecordResult[]): Outcome {
  const outcome = { accepted: 0, duplicates: 0, rejected: [] as Rejection[] }
  for (const [index, { accepted, duplicate, errors }] of results.entries()) {
    if (!accepted) outcome.rejected.push(toRejection(items[index]!, errors ?? []))
    else if (duplicate) outcome.duplicates++
    else outcome.accepted++
  }
  return outcome
}

/** Number of sent ids to remember: an event that was just sent is not yet found as processed. */
const REMEMBERED_IDS = 100_000

export function eventTarget(
  send: Send,
  key: string,
  /** Returns the event ids that are already processed. */
  known: (ids: string[]) => Promise<Set<string>>,
): Target {
  const sentIds = new Set<string>()
  const post = (items: Item[]) =>
    send({ path: '/v1/import', key, type: 'application/json', text: `{"batch":${array(items)}}` })
  return {
    maxItems: 500,
    maxBytes: 900_000,
    async deliver(items) {
      const fresh = items.filter(({ id }) => !sentIds.has(id) && sentIds.add(id))
      const there = fresh.length > 0 ? await known(fresh.map(({ id }) => id)) : new Set()
      const wanted = fresh.filter(({ id }) => !there.has(id))
      for (const id of sentIds) {
        if (sentIds.size <= REMEMBERED_IDS) break
        sentIds.delete(id)
      }
      const outcome = wanted.length > 0 ? await sendBisected(wanted, post, eventOutcome) : NOTHING
      return { ...outcome, duplicates: outcome.duplicates + items.length - wanted.length }
    },
  }
}

type RejectedItems = { rejected?: { index: number; message: string }[]; rejected_total?: number }

/** Null if the response does not list all rejections. */
function eventOutcome(items: Item[], { body }: Answer): Outcome | null {
  const { rejected = [], rejected_total: total } = body as RejectedItems
  if (total !== undefined) return null
  const named = rejected.map(({ index, message }) => ({ line: items[index]!.line, column: null, reason: message }))
  return { accepted: items.length - named.length, duplicates: 0, rejected: named }
}

export function sourceTarget(send: Send, { path, token }: { path: string; token: string }): Target {
  const post = (items: Item[]) => send({ path, key: token, type: 'application/json', text: array(items) })
  return {
    maxItems: 200,
    maxBytes: 900_000,
    deliver: items =>
      sendBisected(items, post, (sent, answer) => {
        const { accepted, duplicates, deferred } = answer.body as Record<string, number>
        const outcome = eventOutcome(sent, answer)
        return outcome && { ...outcome, accepted: accepted! + (deferred ?? 0), duplicates: duplicates! }
      }),
  }
}

const lines = (items: Item[]) => items.map(({ text }) => text).join('\n')
const array = (items: Item[]) => `[${items.map(({ text }) => text).join(',')}]`

/** Bisects a rejected request to find the invalid items. Sending valid items twice adds nothing. */
async function sendBisected(
  items: Item[],
  post: (items: Item[]) => Promise<Answer>,
  read: (items: Item[], answer: Answer) => Outcome | null,
): Promise<Outcome> {
  const answer = await post(items)
  const outcome = answer.status < 300 ? read(items, answer) : null
  if (outcome) return outcome
  if (items.length === 1) {
    const { errors, detail } = answer.body as { errors?: ItemErrors; detail?: string }
    return { ...NOTHING, rejected: [toRejection(items[0]!, errors ?? [], detail)] }
  }
  const middle = items.length >> 1
  const first = await sendBisected(items.slice(0, middle), post, read)
  const second = await sendBisected(items.slice(middle), post, read)
  return {
    accepted: first.accepted + second.accepted,
    duplicates: first.duplicates + second.duplicates,
    rejected: [...first.rejected, ...second.rejected],
  }
}

function toRejection({ line }: Item, errors: ItemErrors, detail = 'was rejected'): Rejection {
  const [error] = errors
  if (!error) return { line, column: null, reason: detail }
  return { line, column: error.pointer.slice(1).replaceAll('/', '.') || null, reason: error.message }
}

/** The service rejected a request permanently, or was unreachable for too long. */
export class NotSent extends Error {
  override name = 'NotSent'
}

type Answer = { status: number; body: Record<string, unknown> }
export type Send = (request: { path: string; key: string; type: string; text: string }) => Promise<Answer>

const MAX_WAIT_MS = 120_000
const PAUSE_MS = 250
const TIMEOUT_MS = 60_000
// A server caches for two seconds that a key does not exist.
const MAX_KEY_WAIT_MS = 10_000

/**
 * Posts a request and returns the response: 2xx, or a 4xx about the content. Retries temporary failures: no connection, 429, 5xx,
 * and 401 while the key is not yet known. Sends no user agent, because it would be stored with every event, and a header so that
 * a source does not store the address.
 */
export function openSend(url: string, signal: AbortSignal): Send & { close(): void } {
  const { request, Agent } = url.startsWith('https:') ? https : http
  const agent = new Agent({ keepAlive: true, maxSockets: 8 })
  const post = ({ path, key, type, text }: Parameters<Send>[0]) =>
    new Promise<{ status: number; text: string; retryAfterS: number }>(resolve => {
      const headers = {
        authorization: `Bearer ${key}`,
        'content-type': type,
        'x-kontor-import': 'true',
        'content-length': Buffer.byteLength(text),
      }
      const sent = request(`${url}${path}`, { method: 'POST', agent, headers, timeout: TIMEOUT_MS }, response => {
        const chunks: Buffer[] = []
        response.on('data', chunk => chunks.push(chunk))
        response.on('error', error => resolve({ status: 0, text: error.message, retryAfterS: 0 }))
        response.on('end', () => {
          const retryAfterS = Number(response.headers['retry-after'] ?? 0) || 0
          resolve({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString(), retryAfterS })
        })
      })
      sent.on('timeout', () => sent.destroy(new Error('no response within a minute')))
      sent.on('error', error => resolve({ status: 0, text: error.message, retryAfterS: 0 }))
      sent.end(text)
    })
  const send: Send = async wanted => {
    const startedAt = performance.now()
    for (;;) {
      const { status, text, retryAfterS } = await post(wanted)
      const body = parseBody(text)
      if (status >= 200 && status < 300) {
        if (body === null) throw new NotSent(`${url} did not respond like a Kontor server: ${text.slice(0, 200)}`)
        return { status, body }
      }
      const waited = performance.now() - startedAt
      const mayPass = status === 0 || status === 429 || status >= 500
      const patience = mayPass ? MAX_WAIT_MS : status === 401 ? MAX_KEY_WAIT_MS : 0
      // a proxy with a smaller size limit may answer with its own text
      if (status === 400 || status === 413)
        return { status, body: body ?? { detail: `was rejected with status ${status}` } }
      if (waited > patience || signal.aborted) throw new NotSent(describeFailure(url, wanted.path, status, text))
      await sleep(Math.max(PAUSE_MS, retryAfterS * 1000), undefined, { signal }).catch(() => undefined)
    }
  }
  return Object.assign(send, { close: () => agent.destroy() })
}

function parseBody(text: string): Answer['body'] | null {
  try {
    const body: unknown = JSON.parse(text)
    return isObject(body) ? body : null
  } catch {
    return null
  }
}

function describeFailure(url: string, path: string, status: number, text: string): string {
  if (status === 0) return `${url} did not respond: ${text}`
  const missing = status === 404 ? ' Check that this server runs the surfaces data, events and inbound.' : ''
  return `${url}${path} answered ${status}: ${text.slice(0, 500)}${missing}`
}
