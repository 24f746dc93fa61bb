import type { RecordDelete, RecordWrite } from './catalog.ts'
import type { Shop } from './shop.ts'

/** The server that receives the year, and its credentials. */
export type Target = {
  url: string
  privateKey: string
  trackingKey: string
  source: { path: string; token: string }
  /** Stops the delivery. */
  signal?: AbortSignal
}

/** `known`: the number of duplicates that the server reported. Duplicate tracking events are found later, during processing. */
type Delivery = { sent: number; known: number }

const RECORDS_AT_ONCE = 500
const CALLS_AT_ONCE = 250
const BILLING_EVENTS_AT_ONCE = 200
// Waiting requests share one flush, which helps most on slow disks.
const SINGLES_IN_FLIGHT = 128

/** Sends a year through the public APIs. */
export async function deliver(shop: Shop, target: Target, report: (line: string) => void): Promise<Delivery> {
  const send = openSend(target)
  const delivery: Delivery = { sent: 0, known: 0 }
  const calls = shop.events.filter(({ route }) => route === 'cdp').map(({ body }) => body)
  const singles = shop.events.filter(({ route }) => route === 'native').map(({ body }) => body)
  const steps: [number, string, () => Promise<number>][] = [
    [shop.products.length, 'products', () => sendRecords(send, target, shop.products)],
    [shop.discontinued.length, 'discontinued products', () => sendDeletes(send, target, shop.discontinued)],
    [shop.contacts.length, 'contacts', () => sendRecords(send, target, shop.contacts)],
    [shop.orders.length, 'order versions', () => sendRecords(send, target, shop.orders)],
    [calls.length, 'events of an SDK, in batches', () => sendCalls(send, target, calls)],
    [singles.length, 'single tracking events', () => sendSingles(send, target, singles)],
    [shop.billing.length, 'billing events', () => sendBilling(send, target, shop.billing)],
  ]
  for (const [count, what, work] of steps) {
    const startedAt = performance.now()
    const known = await work()
    const seconds = ((performance.now() - startedAt) / 1000).toFixed(1)
    delivery.sent += count
    delivery.known += known
    report(`${String(count).padStart(7)} ${what}${known > 0 ? `, ${known} already known` : ''} (${seconds} s)`)
  }
  return delivery
}

type Item = { accepted: boolean; duplicate?: boolean }

async function sendRecords(send: Send, { privateKey }: Target, records: RecordWrite[]): Promise<number> {
  let known = 0
  await forEachLimited(splitChunks(records, RECORDS_AT_ONCE), 3, async chunk => {
    const path = `/v1/${chunk[0]!.entityType}s/batch`
    const answer = await send({ path, key: privateKey, body: { records: chunk } })
    const results = answer.results as Item[]
    refuse(
      path,
      results.filter(({ accepted }) => !accepted),
    )
    known += results.filter(({ duplicate }) => duplicate).length
  })
  return known
}

async function sendDeletes(send: Send, { privateKey }: Target, deletes: RecordDelete[]): Promise<number> {
  let known = 0
  await forEachLimited(deletes, 2, async body => {
    const request = { path: '/v1/products', key: privateKey, body, idempotencyKey: `${body.id}-delete` }
    const { duplicate } = await send({ ...request, method: 'DELETE' })
    if (duplicate) known++
  })
  return known
}

async function sendCalls(send: Send, { trackingKey }: Target, calls: object[]): Promise<number> {
  await forEachLimited(splitChunks(calls, CALLS_AT_ONCE), 4, async batch => {
    const { rejected } = await send({ path: '/v1/batch', key: trackingKey, body: { batch } })
    refuse('/v1/batch', (rejected as object[] | undefined) ?? [])
  })
  return 0
}

async function sendSingles(send: Send, { trackingKey }: Target, events: object[]): Promise<number> {
  await forEachLimited(events, SINGLES_IN_FLIGHT, async body => {
    await send({ path: '/v1/track', key: trackingKey, body })
  })
  return 0
}

async function sendBilling(send: Send, { source }: Target, events: object[]): Promise<number> {
  let known = 0
  await forEachLimited(splitChunks(events, BILLING_EVENTS_AT_ONCE), 3, async body => {
    const { duplicates, rejected } = await send({ path: source.path, key: source.token, body })
    refuse(source.path, rejected as object[])
    known += duplicates as number
  })
  return known
}

function refuse(path: string, rejected: object[]): void {
  if (rejected.length > 0) throw new Refused(`${path} rejected ${rejected.length}: ${JSON.stringify(rejected[0])}`)
}

/** The server rejected a request, and a retry would not help. */
export class Refused extends Error {
  override name = 'Refused'
}

type Request = { path: string; key: string; body: unknown; method?: 'DELETE'; idempotencyKey?: string }
type Send = (request: Request) => Promise<Record<string, unknown>>

const ATTEMPTS = 25
const PAUSE_MS = 300

// Not from Node, because this module also runs in browsers.
const sleep = (ms: number) => new Promise<void>(resolve => setTimeout(resolve, ms))

/**
 * Sends JSON and returns the JSON of the response. Retries temporary failures: no connection, 429, 5xx, and 401, because a server
 * may cache for up to two seconds that a key does not exist.
 */
function openSend({ url, signal }: Target): Send {
  return async request => {
    for (let attempt = 1; ; attempt++) {
      const { status, text, retryAfterS } = await post(url, request, signal)
      signal?.throwIfAborted()
      if (status >= 200 && status < 300) return JSON.parse(text) as Record<string, unknown>
      const isTemporary = status === 0 || status === 429 || status >= 500 || (status === 401 && attempt < 10)
      if (!isTemporary || attempt === ATTEMPTS) throw new Refused(refusal(url, request, status, text))
      await sleep(retryAfterS === null ? PAUSE_MS : retryAfterS * 1000)
    }
  }
}

type Answer = { status: number; text: string; retryAfterS: number | null }

async function post(
  url: string,
  { path, key, body, method, idempotencyKey }: Request,
  signal?: AbortSignal,
): Promise<Answer> {
  try {
    const response = await fetch(url + path, {
      method: method ?? 'POST',
      headers: {
        authorization: `Bearer ${key}`,
        'content-type': 'application/json',
        ...(idempotencyKey && { 'x-idempotency-key': idempotencyKey }),
      },
      body: JSON.stringify(body),
      signal: AbortSignal.any([AbortSignal.timeout(30_000), ...(signal ? [signal] : [])]),
    })
    const retryAfterS = Number(response.headers.get('retry-after') ?? Number.NaN)
    return {
      status: response.status,
      text: await response.text(),
      retryAfterS: Number.isInteger(retryAfterS) ? retryAfterS : null,
    }
  } catch (error) {
    const { message, cause } = error as Error
    return { status: 0, text: cause instanceof Error ? cause.message : message, retryAfterS: null }
  }
}

function refusal(url: string, { path }: Request, status: number, text: string): string {
  if (status === 0) return `${url} did not respond: ${text}`
  const missing = status === 404 ? ' Check that this server runs the surfaces data, events and inbound.' : ''
  return `${url}${path} answered ${status}: ${text.slice(0, 500)}${missing}`
}

/** Processes the list with bounded concurrency. */
async function forEachLimited<T>(list: T[], atATime: number, work: (item: T) => Promise<void>): Promise<void> {
  let next = 0
  async function worker(): Promise<void> {
    while (next < list.length) await work(list[next++]!)
  }
  await Promise.all(Array.from({ length: Math.min(atATime, list.length) }, worker))
}

function splitChunks<T>(list: T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(list.length / size) }, (_, i) => list.slice(i * size, (i + 1) * size))
}
