import { KontorError } from './error.ts'
import { type FetchOption, openSend, type Query, queryText, type RetryOptions, type Send } from './http.ts'
import { type CallKind, openQueue, type Queue, type QueueOptions } from './queue.ts'
import { type Api, openRecords, type Records, rows, segment } from './records.ts'
import { openSubscriptions, type Subscriptions } from './subscriptions.ts'
import type {
  AliasCall,
  Conversion,
  Event,
  EventListOptions,
  EventOutcome,
  GroupCall,
  IdentifyCall,
  Operation,
  PageCall,
  QueuedCall,
  TrackedEvent,
} from './types.ts'

export type KontorOptions = FetchOption &
  RetryOptions &
  QueueOptions & {
    /** URL of Kontor, for example https://kontor.example. */
    url: string
    /** URL of the event API, if it has its own host. */
    eventUrl?: string | undefined
    /** private-…: for records, lists and reports. Use it only on servers. */
    privateKey?: string | undefined
    /** trk_…: for track(). */
    trackingKey?: string | undefined
  }

/** A client of Kontor for the tenant of its keys. */
export class Kontor {
  readonly products: Records
  readonly contacts: Records
  readonly orders: Records
  readonly events: Events
  readonly conversions: Conversions
  readonly operations: Operations
  readonly subscriptions: Subscriptions
  readonly #queue: Queue | null

  constructor(options: KontorOptions) {
    const { privateKey, trackingKey } = options
    for (const key of [privateKey, trackingKey]) {
      if (key !== undefined && !/^[!-~]+$/.test(key))
        throw new TypeError('A key must consist of printable characters without spaces.')
    }
    const url = normalizeUrl(options.url)
    const send = openSend(options)
    const api = openApi(send, url, privateKey)
    this.products = openRecords(api, '/v1/products')
    this.contacts = openRecords(api, '/v1/contacts')
    this.orders = openRecords(api, '/v1/orders')
    this.subscriptions = openSubscriptions(api)
    this.events = openEvents(api)
    this.conversions = openConversions(api)
    this.operations = openOperations(api)
    const eventUrl = normalizeUrl(options.eventUrl ?? options.url)
    this.#queue = trackingKey ? openQueue(send, { url: eventUrl, key: trackingKey }, options) : null
  }

  /**
   * Queues an event, which is sent in the background. Returns false and calls onError if the event is invalid or the queue is
   * full.
   */
  track(event: TrackedEvent): boolean {
    return this.#send('track', event)
  }

  /** Says who a visitor is: `{ user_id, visitor, traits: { email } }`. Queued like an event. */
  identify(call: IdentifyCall): boolean {
    return this.#send('identify', call)
  }

  /** Says to which company a person belongs: `{ group_id, user_id, traits: { name } }`. Queued like an event. */
  group(call: GroupCall): boolean {
    return this.#send('group', call)
  }

  /** Says that `previous_id` and `user_id` are the same person. Two user ids are linked only with a server key. */
  alias(call: AliasCall): boolean {
    return this.#send('alias', call)
  }

  /** A page view: `{ visitor, data: { url, referrer, title } }`. Queued like an event. */
  page(call: PageCall): boolean {
    return this.#send('page', call)
  }

  #send(kind: CallKind, call: QueuedCall): boolean {
    if (!this.#queue) throw new TypeError(`${kind}() needs a trackingKey.`)
    return this.#queue.add(kind, call)
  }

  /** Sends all tracked events. Rejects with the undelivered events as `error.events`; those that may still succeed stay queued. */
  async flush(): Promise<void> {
    await this.#queue?.flush()
  }

  /** Sends all tracked events and accepts no more. Rejects with the undelivered events as `error.events`. */
  async close(): Promise<void> {
    await this.#queue?.close()
  }
}

export type Events = ReturnType<typeof openEvents>
export type Conversions = ReturnType<typeof openConversions>
export type Operations = ReturnType<typeof openOperations>

function openConversions(api: Api) {
  return {
    /** Newest first, one row per sale. */
    list: ({ limit, ...query }: EventListOptions = {}) => rows<Conversion>(api, '/v1/conversions', query, limit),
  }
}

function openOperations(api: Api) {
  return {
    /** The status of a write by its operationId; null if there is none. */
    get: async (id: string) => api.find<Operation>(`/v1/operations/${segment(id)}`),
  }
}

function openEvents(api: Api) {
  return {
    /** Newest first, without conversions. */
    list: ({ limit, ...query }: EventListOptions = {}) => rows<Event>(api, '/v1/events', query, limit),
    /** How an event was processed, by its id in Kontor; null if there is no such event. */
    get: async (id: string) => api.find<EventOutcome>(`/v1/events/${segment(id)}`),
    /** The same, by the id that its sender assigned. */
    lookup: (query: { event_id: string; source_config_id?: string }) =>
      api.find<EventOutcome>('/v1/events/lookup', query),
  }
}

function openApi(send: Send, url: string, privateKey: string | undefined): Api {
  const headers = () => {
    if (!privateKey) throw new TypeError('This needs a privateKey.')
    return { authorization: `Bearer ${privateKey}` }
  }
  return {
    get: async (path, query: Query = {}) =>
      send({ method: 'GET', url: url + path + queryText(query), headers: headers() }),
    async find<Answer>(path: string, query: Query = {}) {
      try {
        return await this.get<Answer>(path, query)
      } catch (error) {
        // any server may answer 404, but only Kontor's problem means that the object does not exist
        if (error instanceof KontorError && error.status === 404 && error.code === 'not_found') return null
        throw error
      }
    },
    write: async (method, path, body, { waitS }) =>
      send({
        method,
        url: url + path,
        body,
        headers: {
          ...headers(),
          'content-type': 'application/json',
          ...(waitS !== undefined && { prefer: `wait=${waitS}` }),
        },
        ...(waitS !== undefined && { timeoutMs: waitS * 1_000 }),
      }),
  }
}

/** Throws if it is not a URL of a web server. */
function normalizeUrl(url: string): string {
  let { protocol, origin, pathname } = new URL(url)
  if (protocol !== 'http:' && protocol !== 'https:')
    throw new TypeError(`The URL must start with http:// or https://, but it is ${JSON.stringify(url)}.`)
  while (pathname.endsWith('/')) pathname = pathname.slice(0, -1)
  return origin + pathname
}
