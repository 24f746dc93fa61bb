import type { EventTypeOverride } from '../inbound/source-config.ts'
import type { ValidationError } from '../validation-error.ts'

/** What stands in the log for one request: the body as received, and what was known of it on arrival. */
export type ReceivedEvents = {
  /** UUIDv7 of the log entry; event ids derive from it (ids.ts). */
  entryId: string
  receivedAt: Date
  /** The request body, decompressed and decoded, never re-serialised. */
  body: string
  context: EventContext
  /** How long ago, at most, an event of a public key may have happened; absent or null: any time. */
  floorMs?: number | null
}

export type EventContext = TrackContext | CdpContext | InboundContext

/** By the name of an actor. */
export type Edit = { by: string; at: string; deadLetter: string }

type RequestFacts = {
  ip: string | null
  /** Allow-listed request headers, lower-case names; never credentials. */
  headers: Record<string, string>
  /** Only these items of the body belong to this entry (volume protection or a retry split it); absent: all. */
  items?: number[]
  /** On arrival nothing was found in the body that needs care (see `Document`). */
  plain?: true
  /** Set on a replay: when the request first came in. */
  firstReceivedAt?: string
  /** Set where an operator put another body in the place of what came in, which the dead letter keeps. */
  edited?: Edit
  /** The tracking key that it came with; absent on inbound routes. */
  keyId?: string
  /** On arrival: the only event types that its key may send; absent: all. */
  allowedTypes?: string[]
  /** In the log: those of its event types that its key might not send. */
  refusedTypes?: string[]
  /** How many days ago its events may say they happened; 0: any time; absent: what the installation says. */
  floorDays?: number
  /** The key is a server's: it may merge people, which a key in every browser may not. */
  trusted?: true
}

/** Native `POST /v1/track/`. */
type TrackContext = RequestFacts & { route: 'track' }

/** CDP-compatible routes of the event host. `kind` is what the path says; 'batch' and 'any' read it from the items. */
export type CdpContext = RequestFacts & { route: 'cdp'; kind: CdpKind | 'batch' | 'any' }

export const CDP_KINDS = ['track', 'identify', 'page', 'screen', 'group', 'alias'] as const
export type CdpKind = (typeof CDP_KINDS)[number]

/** `POST /ingest/inbound/:sourceConfigId`, with the source's settings as they were when the request came in. */
export type InboundContext = RequestFacts & {
  route: 'inbound'
  sourceId: string
  sourceType: SourceType
  preset: string | null
  eventTypeOverride: EventTypeOverride | null
  eventIdPath: string | null
  /** The source's own word on whether it feeds billing, and under which namespace; absent: by its type and preset. */
  billing?: boolean
  namespace?: string
  /** False: a shop's objects become no records. */
  records?: boolean
  /** What has no id of its own is refused: a repeat of it could not be told from a new event. */
  requireEventId?: boolean
  /** How the signature was given: 't,v1' | 'sha256' | 'stripe' | … ; null when the source has no secret. */
  signature: string | null
}

export const SOURCE_TYPES = ['webhook', 'automation', 'cdp'] as const
export type SourceType = (typeof SOURCE_TYPES)[number]

/** The one shape that events of every route are brought into. */
export type NormalizedEvent = {
  id: string
  /** Position in the request: 0 for single events. */
  index: number
  eventType: string
  occurredAt: Date
  receivedAt: Date
  source: EventSource
  sourceType: EventSource
  sourceConfigId: string | null
  /** Of the source: whose shape it may have. */
  preset: string | null
  /** It becomes records, where its preset is a shop's. */
  makesRecords: boolean
  /** The namespace of what it says about billing; null: it feeds no ledger. */
  billingNamespace: string | null
  /** The tracking key that it came with; null from inbound sources. */
  keyId: string | null
  /** Its sender holds a secret: an inbound source's token, or a server's key. */
  trusted: boolean
  /** The sender's id of this event (event_id, messageId, inbound_event_id): what duplicates are found by. */
  inboundEventId: string | null
  providerEventId: string | null
  visitor: string | null
  sessionId: string | null
  userId: string | null
  /** The id that an alias joins to `userId`. */
  previousId: string | null
  email: string | null
  /** JSON text as stored: exact digits, storable text. */
  payload: string
  /** The business object inside: `data`, `properties` / `traits`, or the webhook's payload. */
  subject: Record<string, unknown>
  /** A CDP item's `context` (page, campaign, traits …); null elsewhere. */
  context: Record<string, unknown> | null
  headers: Record<string, string>
  meta: Record<string, unknown>
}

export type EventSource = 'tracking' | SourceType

export const MAX_EVENT_TYPE_LENGTH = 200

/** An item that cannot be taken, with all its faults in words. */
export type RejectedItem = { index: number; message: string }

/** For the dead letter: the item as received, made storable, and the id it has at its sender, if that can be read. */
type RejectedEvent = RejectedItem & { raw: string; inboundEventId: string | null }

export type Normalized = { events: NormalizedEvent[]; rejected: RejectedEvent[] }

/** What must be known of a request before it is accepted; the same reading that `normalize` does later. */
export type Inspection = {
  /** accepted + rejected; 1 where the body as a whole is at fault, 0 for an empty batch. */
  items: number
  accepted: { index: number; inboundEventId: string | null }[]
  rejected: RejectedItem[]
  /** Every fault of every rejected item, by JSON pointer into the body. */
  faults: ValidationError[]
  /** It holds more than a request may: the one fault says what. Nothing of it is accepted then. */
  isTooLarge: boolean
  /** A single event of a type that its key may not send, and nothing else is wrong with it. */
  isForbidden: boolean
  refusedTypes: string[]
  /** What the accepted items become when they are stored, each with what it shares with the others. */
  storedBytes: number
  /** Whose order must be kept: visitor, user or object of the first good item; null when it names none. */
  orderingKey: string | null
}
