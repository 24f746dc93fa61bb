import type { EventTypeOverride } from '../inbound/source-config.ts'
import type { ValidationError } from '../validation-error.ts'

/** The log entry of one request with events: the body as received, and the context known on arrival. */
export type ReceivedEvents = {
  /** UUIDv7 of the log entry; event ids derive from it (ids.ts). */
  entryId: string
  receivedAt: Date
  /** The request body, decompressed and decoded, never re-serialized. */
  body: string
  context: EventContext
  /** The maximum age of an event sent with a public tracking key. Absent or null: no limit. */
  floorMs?: number | null
}

export type EventContext = TrackContext | CdpContext | InboundContext

/** `by` is the name of an actor. */
export type Edit = { by: string; at: string; deadLetter: string }

type RequestFacts = {
  ip: string | null
  /** Allow-listed request headers, lower-case names; never credentials. */
  headers: Record<string, string>
  /** Only these items of the body belong to this entry, because volume protection or a retry split it. Absent: all. */
  items?: number[]
  /** Over the budget of its source, accepted while the overflow queue was unavailable: the worker moves it there. */
  overBudget?: true
  /** The body needs no sanitizing (see `Document`). */
  plain?: true
  /** Set on a replay: when the request was first received. */
  firstReceivedAt?: string
  /** Set if an operator replaced the body. The dead letter keeps the original. */
  edited?: Edit
  /** The tracking key that sent it. Absent on inbound routes. */
  key?: number
  /** On arrival: the event types that its key may send. Absent: all. */
  allowedTypes?: string[]
  /** In the log: its event types that its key was not allowed to send. */
  refusedTypes?: string[]
  /** The maximum age of its events in days. 0: no limit. Absent: the setting of the installation. */
  floorDays?: number
  /** The key is a server key. It may merge people; a public tracking key may not. */
  trusted?: true
}

/** Native `POST /v1/track/`. */
type TrackContext = RequestFacts & { route: 'track' }

/** CDP-compatible routes of the event host. `kind` is the kind in the path; with 'batch' and 'any' each item has its own. */
export type CdpContext = RequestFacts & { route: 'cdp'; kind: CdpKind | 'batch' | 'any' }

export const CDP_KINDS = ['track', 'identify', 'page', 'screen', 'group', 'alias'] as const
export type CdpKind = (typeof CDP_KINDS)[number]

/** `POST /ingest/inbound/:sourceConfigId`, with the source's settings at the time of the request. */
export type InboundContext = RequestFacts & {
  route: 'inbound'
  sourceId: string
  sourceType: SourceType
  preset: string | null
  eventTypeOverride: EventTypeOverride | null
  eventIdPath: string | null
  /** Whether the source feeds billing, and under which namespace. Absent: determined by its type and preset. */
  billing?: boolean
  namespace?: string
  /** False: objects of a shop do not become records. */
  records?: boolean
  /** A built-in sample sent by `source test`: listed, but not counted in any total and without other effects. */
  test?: true
  /** Events without an id are rejected, because a duplicate of such an event cannot be detected. */
  requireEventId?: boolean
  /** The scheme of the verified signature: 't,v1' | 'sha256' | 'stripe' | …. Null if the source has no secret. */
  signature: string | null
}

export const SOURCE_TYPES = ['webhook', 'automation', 'cdp'] as const
export type SourceType = (typeof SOURCE_TYPES)[number]

/** The common form of the events of all routes. */
export type NormalizedEvent = {
  id: string
  /** Position in the request: 0 for single events. */
  index: number
  eventType: string
  occurredAt: Date
  receivedAt: Date
  source: EventSource
  sourceConfigId: string | null
  /** The preset of the source, which determines the format. */
  preset: string | null
  /** Whether it changes records. Only if its preset is a shop. */
  makesRecords: boolean
  /** The billing namespace. Null: it does not feed the ledger. */
  billingNamespace: string | null
  /** The tracking key that sent it. Null for inbound sources. */
  key: number | null
  /** The sender holds a secret: the token of an inbound source, or a server key. */
  trusted: boolean
  /** The sender's id of this event (event_id, messageId, inbound_event_id), by which duplicates are detected. */
  inboundEventId: string | null
  providerEventId: string | null
  visitor: string | null
  sessionId: string | null
  userId: string | null
  /** The id that an alias links to `userId`. */
  previousId: string | null
  email: string | null
  /** JSON text as stored, with exact digits. */
  payload: string
  /** The business object inside: `data`, `properties` / `traits`, or the webhook's payload. */
  subject: Record<string, unknown>
  /** The `context` of a CDP item (page, campaign, traits …). Null for other routes. */
  context: Record<string, unknown> | null
  headers: Record<string, string>
  meta: EventMeta
}

/** What else is known about an event. The four named fields have columns of their own. */
type EventMeta = {
  kind?: string
  ip?: string
  batch_index?: number
  batch_size?: number
  [name: string]: unknown
}

export type EventSource = 'tracking' | SourceType

export const MAX_EVENT_TYPE_LENGTH = 200

/** A rejected item. `message` describes all its errors. */
export type RejectedItem = { index: number; message: string }

/** For the dead letter: the item as received, sanitized, and the sender's id of it, if readable. */
type RejectedEvent = RejectedItem & { raw: string; inboundEventId: string | null }

export type Normalized = { events: NormalizedEvent[]; rejected: RejectedEvent[] }

/** The validation result of a request. `normalize` reads the items in the same way later. */
export type Inspection = {
  /** accepted + rejected. 1 if the body is rejected as a whole, 0 for an empty batch. */
  items: number
  accepted: { index: number; inboundEventId: string | null }[]
  rejected: RejectedItem[]
  /** All errors of all rejected items, with JSON pointers into the body. */
  errors: ValidationError[]
  /** The request exceeds a limit, and nothing of it is accepted. The only error says which limit. */
  isTooLarge: boolean
  /** It is a single event whose only error is that its key may not send this type. */
  isForbidden: boolean
  refusedTypes: string[]
  /** The stored size of the accepted items, with the shared context of each. */
  storedBytes: number
  /** Visitor, user or object of the first valid item. Null if it has none. */
  orderingKey: string | null
}
