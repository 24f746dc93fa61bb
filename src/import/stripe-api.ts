import { setTimeout as sleep } from 'node:timers/promises'
import { isObject, type JsonObject } from '../domain/json/json.ts'
import { FileError, type Place, type Row } from './rows.ts'

export type StripeApi = {
  url: string
  key: string
  signal: AbortSignal
  /** Called before a long pause that Stripe asked for. */
  onPause: (seconds: number) => void
}

/** In this version, discounts contain their coupons, and invoices list their payments. */
const API_VERSION = '2025-08-27.basil'

/**
 * The parameters of the list endpoints. Expanding goes at most four levels deep. Coupons come first, and customers before their
 * subscriptions, so that most discounts are known when a subscription refers to them.
 */
const PARAMETERS = {
  coupons: { expand: ['data.applies_to'] },
  promotion_codes: {},
  customers: {},
  subscriptions: {
    status: 'all',
    expand: ['data.customer', 'data.discounts.coupon.applies_to', 'data.items.data.discounts'],
  },
  invoices: {},
  invoice_payments: {},
  charges: {},
  refunds: {},
  credit_notes: {},
  disputes: {},
} satisfies Record<string, { status?: string; expand?: string[] }>

export type StripeList = keyof typeof PARAMETERS

export const IMPORTED_LISTS = Object.keys(PARAMETERS) as StripeList[]
export const RECONCILED_LISTS: StripeList[] = ['subscriptions', 'invoices', 'refunds']

/** Reads lists page by page, from `start` on. The first row of each page has its place. Ends early when the signal aborts. */
export async function* stripeApiRows(
  api: StripeApi,
  lists: StripeList[],
  start: Place | null = null,
): AsyncGenerator<Row[]> {
  try {
    yield* readLists(api, lists, start)
  } catch (error) {
    if (!api.signal.aborted) throw error
  }
}

async function* readLists(api: StripeApi, lists: StripeList[], start: Place | null): AsyncGenerator<Row[]> {
  for (const list of lists.slice(start ? Math.max(0, lists.indexOf(start.list as StripeList)) : 0)) {
    const from = start?.list === list ? start.after : null
    for await (const { objects, readAt, after } of readList(api, list, PARAMETERS[list], from)) {
      if (list === 'subscriptions') await completeItems(api, objects)
      yield objects.map((cells, i) => ({
        ...{ line: 0, cells, text: JSON.stringify(cells), readAt },
        ...(i === 0 && { page: { list, after } }),
      }))
    }
  }
}

type Parameters = { status?: string; expand?: string[]; subscription?: string }
type ReadPage = { objects: JsonObject[]; readAt: number; after: string | null }

async function* readList(
  api: StripeApi,
  path: string,
  parameters: Parameters,
  from: string | null,
): AsyncGenerator<ReadPage> {
  const seen = new Set<string>()
  for (let after = from; ; ) {
    const page = await fetchPage(api, path, { ...parameters, after }).catch((error: Error) => {
      // the object at which an interrupted import stopped can be gone
      if (after === null || after !== from || !(error instanceof Rejected)) throw error
      after = null
      return fetchPage(api, path, { ...parameters, after })
    })
    const { objects, hasMore, readAt } = page
    const last = objects.at(-1)?.id as string | undefined
    if (hasMore && (last === undefined || seen.has(last)))
      throw new FileError(
        `${api.url}/v1/${path} returned an incomplete list: "has_more" is true, but there is no next page.`,
      )
    yield { objects, readAt, after }
    if (!hasMore) return
    seen.clear()
    seen.add(last!)
    after = last!
  }
}

/** A subscription contains its first items only. */
async function completeItems(api: StripeApi, subscriptions: JsonObject[]): Promise<void> {
  for (const subscription of subscriptions) {
    if (!isObject(subscription.items) || subscription.items.has_more !== true) continue
    const items: JsonObject[] = []
    const parameters = { subscription: String(subscription.id), expand: ['data.discounts'] }
    for await (const { objects } of readList(api, 'subscription_items', parameters, null)) items.push(...objects)
    subscription.items = { ...subscription.items, has_more: false, data: items }
  }
}

/** Stripe rejected a request because of its parameters. */
class Rejected extends FileError {}

const ATTEMPTS = 8
const FIRST_PAUSE_MS = 500
const LONGEST_PAUSE_S = 600
const TIMEOUT_MS = 80_000

type Page = { objects: JsonObject[]; hasMore: boolean; readAt: number }

/** Retries when Stripe is unreachable, fails or limits the rate, and waits as long as its `Retry-After` says. */
async function fetchPage(
  { url, key, signal, onPause }: StripeApi,
  path: string,
  { after, expand = [], ...parameters }: Parameters & { after: string | null },
): Promise<Page> {
  const query = new URLSearchParams({ limit: '100', ...parameters, ...(after !== null && { starting_after: after }) })
  for (const field of expand) query.append('expand[]', field)
  const where = `${url}/v1/${path}`
  for (let attempt = 1; ; attempt++) {
    const startedAt = Date.now()
    const answer = await fetch(`${where}?${query}`, {
      headers: { authorization: `Bearer ${key}`, 'stripe-version': API_VERSION },
      signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
    })
      .then(async response => ({ response, text: await response.text() }))
      .catch((error: Error) => error)
    signal.throwIfAborted()
    if (!(answer instanceof Error) && answer.response.ok)
      return parsePage(where, answer.text, stripeTime(answer.response, startedAt))
    const isTemporary = answer instanceof Error || answer.response.status === 429 || answer.response.status >= 500
    const pauseMs = retryPauseMs(answer instanceof Error ? new Headers() : answer.response.headers, attempt)
    if (!isTemporary || pauseMs === null) throw failure(where, answer)
    if (pauseMs > 5_000) onPause(Math.round(pauseMs / 1000))
    await sleep(pauseMs, undefined, { signal })
  }
}

/** By Stripe's clock, a time before the response was built: a webhook about a later change must be newer. */
function stripeTime({ headers }: Response, startedAt: number): number {
  const sentAt = Date.parse(headers.get('date') ?? '')
  const took = Date.now() - startedAt
  return Math.floor((Number.isNaN(sentAt) ? startedAt : sentAt - took) / 1000)
}

function parsePage(where: string, text: string, readAt: number): Page {
  let body: unknown = null
  try {
    body = JSON.parse(text)
  } catch {
    // reported below
  }
  const isPage = isObject(body) && Array.isArray(body.data) && typeof body.has_more === 'boolean'
  const { data, has_more: hasMore } = (isPage ? body : { data: [], has_more: false }) as {
    data: unknown[]
    has_more: boolean
  }
  const objects = data.filter((entry): entry is JsonObject => isObject(entry) && typeof entry.id === 'string')
  if (!isPage || objects.length < data.length)
    throw new FileError(`${where} did not return a page of a list: ${text.slice(0, 200)}`)
  return { objects, hasMore, readAt }
}

/**
 * The pause before the next attempt: at least as long as `Retry-After` says (seconds or a date). Null: there is no next
 * attempt, or it would be too late.
 */
export function retryPauseMs(headers: Headers, attempt: number, now = Date.now()): number | null {
  const given = headers.get('retry-after') ?? ''
  const at = Date.parse(given)
  const asked = /^\d+$/.test(given) ? Number(given) * 1000 : Number.isNaN(at) ? 0 : at - now
  if (attempt >= ATTEMPTS || asked > LONGEST_PAUSE_S * 1000) return null
  return Math.max(FIRST_PAUSE_MS * 2 ** (attempt - 1), asked)
}

function failure(where: string, answer: { response: Response; text: string } | Error): FileError {
  if (answer instanceof Error) return new FileError(`${where} did not respond: ${answer.message}`)
  const { status } = answer.response
  const message = errorMessage(answer.text)
  const words = `${where} answered ${status}${message === null ? '' : `: ${message}`}.`
  return status === 400 || status === 404 ? new Rejected(words) : new FileError(words)
}

function errorMessage(text: string): string | null {
  try {
    const { error } = JSON.parse(text) as { error?: { message?: string } }
    return error?.message?.replace(/\.$/, '') ?? null
  } catch {
    return null
  }
}
