import { isTransient, KontorError } from './error.ts'
import { randomId, type Send } from './http.ts'
import { byteLength } from './records.ts'
import type { AliasCall, EventStorage, GroupCall, IdentifyCall, PageCall, QueuedCall, TrackedEvent } from './types.ts'

export type QueueOptions = {
  /** How long an event may wait for a batch. Default 1,000. */
  flushIntervalMs?: number
  /** Maximum number of queued events. Further events are rejected. Default 10,000 (and 16 MiB). */
  maxQueued?: number
  /**
   * Called for failures in the background. `error.events` are lost; it is empty while events only wait, because Kontor is
   * unreachable. Default: console.error; for a full queue, it prints after 1, 10, 100 … rejected events.
   */
  onError?(error: KontorError): void
  /** Keeps queued events when the program ends. Default: they are kept in memory only. */
  storage?: EventStorage | undefined
}

export type CallKind = 'track' | 'identify' | 'group' | 'alias' | 'page'

export type Queue = ReturnType<typeof openQueue>

type Item = { event: QueuedCall; id: string; text: string; bytes: number; isBeaconed?: boolean }
type Answer = { rejected?: { index: number; message: string }[] }

/** Browser APIs that other platforms lack. */
type Page = {
  document?: { visibilityState: string }
  navigator?: { sendBeacon?(url: string, body: string): boolean }
  addEventListener?(type: string, listener: (event: { type: string }) => void): void
  removeEventListener?(type: string, listener: (event: { type: string }) => void): void
}

const MAX_EVENT_BYTES = 65_536
const MAX_QUEUED_BYTES = 16 * 1_048_576
const BATCH_ITEMS = 500
const BATCH_BYTES = 524_288
// Browsers send at most 64 KiB after the end of a page, over all requests.
const PAGE_BATCH_BYTES = 30_000
const MAX_PAUSE_MS = 300_000

const page = globalThis as Page
const isPage = page.document !== undefined && page.addEventListener !== undefined

/** Sends events in order, one batch at a time. An event leaves the queue when Kontor has responded. */
export function openQueue(send: Send, target: { url: string; key: string }, options: QueueOptions) {
  const { flushIntervalMs = 1_000, maxQueued = 10_000, onError = log, storage } = options
  const url = `${target.url}/v1/batch`
  const urlWithKey = `${url}?key=${encodeURIComponent(target.key)}`
  const batchBytes = isPage ? PAGE_BATCH_BYTES : BATCH_BYTES

  let items: Item[] = []
  let queuedBytes = 0
  /** How many of the first `items` are in the current request. */
  let inFlight = 0
  let draining: Promise<void> | null = null
  let timer: ReturnType<typeof setTimeout> | undefined
  let failures = 0
  /** Events lost since the last flush. The oldest thousand are kept for `error.events`. */
  let lost: { events: QueuedCall[]; error: KontorError } | null = null
  let closing: Promise<void> | null = null
  /** Events rejected because the queue was full, since it was last empty. */
  let dropped = 0
  /** Settles when all writes to the storage have. */
  let stored: Promise<void> = Promise.resolve()
  if (storage) store(loadStored)

  function add(kind: CallKind, call: QueuedCall): boolean {
    const item = createItem(kind, call)
    const error = item instanceof KontorError ? item : bounds(item)
    if (error) drop([call], error)
    else {
      const { id, text } = item as Item
      if (storage) store(() => storage.add({ id, text }))
      enqueue(item as Item)
    }
    return error === null
  }

  /** Does not wait for earlier writes: the page may end first. A failure is reported; the event is still sent from memory. */
  function store(write: () => Promise<void>): void {
    const written = (async () => write())().catch(cause => {
      const message = `The storage of the queue failed: ${(cause as Error).message}`
      report(new KontorError({ code: 'storage_failed', message, cause }))
    })
    stored = stored.then(() => written)
  }

  /** Queues the events of an earlier program. Kontor recognizes those that it has received by their ids. */
  async function loadStored(): Promise<void> {
    for (const { id, text } of await storage!.load())
      enqueue({ event: JSON.parse(text) as QueuedCall, id, text, bytes: byteLength(text) })
  }

  function bounds({ event, bytes }: Item): KontorError | null {
    const events = [event]
    if (closing) return new KontorError({ code: 'closed', message: 'The client is closed.', events })
    if (items.length < maxQueued && queuedBytes + bytes <= MAX_QUEUED_BYTES) return null
    const message = `The queue is full: ${items.length} events wait to be sent.`
    return new KontorError({ code: 'queue_full', message, events })
  }

  function enqueue(item: Item): void {
    if (isPage && items.length === 0) watchPage('addEventListener')
    items.push(item)
    queuedBytes += item.bytes
    const isBatch = items.length >= BATCH_ITEMS || queuedBytes >= batchBytes
    if (isBatch && failures === 0) drainInBackground()
    else drainSoon()
  }

  function drainSoon(): void {
    if (!draining) timer ??= setTimeout(drainInBackground, flushIntervalMs)
  }

  function drainInBackground(): void {
    drain().catch(report)
  }

  /** Sends until the queue is empty. Rejects if Kontor is unreachable; unsent events stay queued. */
  function drain(): Promise<void> {
    clearTimeout(timer)
    timer = undefined
    draining ??= sendAll().finally(() => {
      draining = null
      if (items.length > 0 && !closing) drainSoon()
    })
    return draining
  }

  async function sendAll(): Promise<void> {
    while (items.length > 0) {
      const batch = items.slice(0, batchLength(items, batchBytes))
      inFlight = batch.length
      try {
        const { rejected = [] } = await send<Answer>(buildCall(batch))
        settle(batch)
        if (rejected.length > 0) drop(...collectRejected(batch, rejected))
      } catch (error) {
        if (isTransient(error as KontorError)) {
          waitAfter(error as KontorError)
          throw error
        }
        settle(batch)
        drop(
          batch.map(({ event }) => event),
          error as KontorError,
        )
      } finally {
        inFlight = 0
      }
    }
    if (isPage) watchPage('removeEventListener')
    logDropped()
  }

  function settle(batch: Item[]): void {
    items = items.slice(batch.length)
    for (const { bytes } of batch) queuedBytes -= bytes
    if (storage) store(() => storage.remove(batch.map(({ id }) => id)))
    failures = 0
  }

  function buildCall(batch: Item[]) {
    const body = () => buildBody(batch)
    // In a browser, the key is in the URL instead of a header, which avoids a preflight request.
    if (isPage) {
      const keepalive = batch.length > 1 || batch[0]!.bytes < batchBytes
      return { method: 'POST', url: urlWithKey, body, keepalive } as const
    }
    const headers = { authorization: `Bearer ${target.key}`, 'content-type': 'application/json' }
    return { method: 'POST', url, headers, body } as const
  }

  /** All retries have failed. Schedules the next attempt without keeping the program alive. */
  function waitAfter({ retryAfterS }: KontorError): void {
    if (closing) return
    const pauseMs = Math.min(5_000 * 2 ** failures++, MAX_PAUSE_MS) * (0.5 + Math.random() / 2)
    timer = setTimeout(drainInBackground, Math.max(pauseMs, (retryAfterS ?? 0) * 1_000))
    ;(timer as { unref?(): void }).unref?.()
  }

  function drop(events: QueuedCall[], reason: KontorError): void {
    const error = withEvents(reason, events)
    lost ??= { events: [], error }
    lost.events.push(...events.slice(0, 1_000 - lost.events.length))
    report(error)
  }

  /** The default onError: a full queue must not print a line for each event. */
  function log({ code, message }: KontorError): void {
    if (code !== 'queue_full') console.error(`kontor: ${message}`)
    else if (/^10*$/.test(`${++dropped}`)) console.error(`kontor: ${message} Dropped so far: ${dropped}.`)
  }

  function logDropped(): void {
    if (dropped > 1) console.error(`kontor: ${dropped} events were dropped while the queue was full.`)
    dropped = 0
  }

  function report(error: KontorError): void {
    try {
      onError(error)
    } catch {
      // an error in onError must not stop the delivery of other events
    }
  }

  async function flush(): Promise<void> {
    await stored
    const waiting = new Set(items)
    const left = () => items.filter(item => waiting.has(item)).map(({ event }) => event)
    try {
      while (items[0] && waiting.has(items[0])) await drain()
    } catch (error) {
      throw withEvents(error as KontorError, left())
    }
    await stored
    const given = lost
    lost = null
    if (given) throw withEvents(given.error, given.events)
  }

  function close(): Promise<void> {
    closing ??= flush().finally(() => {
      logDropped()
      clearTimeout(timer)
      if (isPage) watchPage('removeEventListener')
    })
    return closing
  }

  /** The page may end at any moment. Events that are sent as beacons stay queued; their ids identify duplicates. */
  function leave({ type }: { type: string }): void {
    if (type !== 'pagehide' && page.document?.visibilityState !== 'hidden') return
    let rest = items.slice(inFlight).filter(({ isBeaconed }) => !isBeaconed)
    while (rest.length > 0) {
      const batch = rest.slice(0, batchLength(rest, batchBytes))
      const isBeaconed = page.navigator?.sendBeacon?.(urlWithKey, buildBody(batch)) ?? false
      for (const item of batch) item.isBeaconed = isBeaconed
      rest = rest.slice(batch.length)
    }
  }

  function watchPage(change: 'addEventListener' | 'removeEventListener'): void {
    page[change]!('visibilitychange', leave)
    page[change]!('pagehide', leave)
  }

  return { add, flush, close }
}

/** Converts a call to the format of the batch route. */
function createItem(kind: CallKind, call: QueuedCall): Item | KontorError {
  const invalid = (message: string) => new KontorError({ code: 'invalid_event', message, events: [call] })
  if (typeof call !== 'object' || call === null || Array.isArray(call)) return invalid('The event must be an object.')
  try {
    const id = call.event_id ?? randomId()
    const fields = FIELDS[kind](call as never)
    if (typeof fields === 'string') return invalid(fields)
    const text = JSON.stringify({
      type: kind,
      messageId: id,
      timestamp: call.occurred_at ?? new Date(),
      anonymousId: call.visitor,
      userId: call.user_id,
      ...(call.session_id !== undefined && { context: { sessionId: call.session_id } }),
      ...fields,
    })
    const bytes = byteLength(text)
    return bytes > MAX_EVENT_BYTES
      ? invalid(`The event has ${bytes} bytes. At most 65,536 are allowed.`)
      : { event: call, id, text, bytes }
  } catch (error) {
    return invalid(`The event is not JSON: ${(error as Error).message}`)
  }
}

/** By kind: the fields of a call besides the person, the id and the time, or why it is invalid. */
const FIELDS = {
  track({
    event_type,
    visitor: _,
    session_id: __,
    user_id: ___,
    event_id: ____,
    occurred_at: _____,
    data,
    ...others
  }: TrackedEvent) {
    if (typeof event_type !== 'string' || event_type === '') return 'event_type must be a string.'
    return { event: event_type, properties: { ...others, ...data } }
  },
  identify: ({ traits, user_id, visitor }: IdentifyCall) =>
    user_id || visitor ? { traits } : 'identify() needs a user_id or a visitor.',
  group: ({ group_id, traits }: GroupCall) => (group_id ? { groupId: group_id, traits } : 'group() needs a group_id.'),
  alias: ({ previous_id, user_id }: AliasCall) =>
    previous_id && user_id ? { previousId: previous_id } : 'alias() needs a previous_id and a user_id.',
  page: ({ name, data }: PageCall) => ({ name, properties: data ?? {} }),
}

/** sentAt lets Kontor correct a wrong client clock. */
function buildBody(batch: Item[]): string {
  return `{"sentAt":"${new Date().toISOString()}","batch":[${batch.map(({ text }) => text).join()}]}`
}

/** How many of the first items fit in a batch: at least one. */
function batchLength(items: Item[], maxBytes: number): number {
  let bytes = 0
  let count = 0
  while (count < items.length && count < BATCH_ITEMS) {
    bytes += items[count]!.bytes + 1
    if (count > 0 && bytes > maxBytes) break
    count++
  }
  return count
}

function collectRejected(batch: Item[], rejected: NonNullable<Answer['rejected']>): [QueuedCall[], KontorError] {
  const events = rejected.flatMap(({ index }) => batch[index]?.event ?? [])
  const errors = rejected.map(({ index, message }) => ({ pointer: `/batch/${index}`, message }))
  const message = `${rejected.length} of ${batch.length} events were refused: ${rejected[0]!.message}`
  return [events, new KontorError({ status: 200, code: 'events_rejected', message, errors })]
}

function withEvents(error: KontorError, events: QueuedCall[]): KontorError {
  const { message, status, code, requestId, errors, retryAfterS, cause } = error
  return new KontorError({ message, status, code, requestId, errors, retryAfterS, events, cause })
}
