import type { Amount } from '../amount.ts'

/**
 * What the server answers with, as far as the console reads it. test/console/api-types.ts holds these against the
 * server's own schemas, so that `npm run types` tells when they drift apart.
 */

export type JsonObject = Record<string, unknown>
type Time = string
type Maybe<T> = T | null

/** A list that goes on under its cursor. */
export type List<Row> = { results: Row[]; next_cursor: string | null }

/** A list of a report, page by page. */
export type Paged<Row> = { results: Row[]; page: number; page_size: number; count: number; pages: number }

export type Alert = {
  id: string
  rule: RuleName
  subject: string | null
  state: 'raised' | 'resolved'
  summary: string
  value: number
  threshold: number
  raised_at: Time
  resolved_at: Maybe<Time>
}
export type RuleName = 'lag' | 'refused_share' | 'dead_letters' | 'source_silent' | 'mrr_drop'
/** From which value on each rule warns; null: it does not. */
export type AlertRules = Record<RuleName, Maybe<number>>
export type Tenant = { id: string; name: string }
export type TenantSettings = Tenant & {
  conversion_types: Maybe<string[]>
  events_floor: Maybe<string>
  ip_addresses: 'keep' | 'truncate' | 'drop'
  created_at: Time
}

export type KeyKind = 'private' | 'tracking' | 'admin'
export type Role = 'viewer' | 'operator' | 'admin'
export type Key = {
  id: string
  kind: KeyKind
  scopes: string[]
  role: Maybe<Role>
  tenant: Maybe<string>
  allowed_addresses: string[]
  hint: string
  created_by: Maybe<string>
  created_at: Time
  expires_at: Maybe<Time>
  expires_soon: boolean
  revoked_at: Maybe<Time>
  last_used_at: Maybe<Time>
}
export type CreatedKey = Key & { key: string }
export type RotatedKey = CreatedKey & { previous: { id: string; expires_at: Time } }
export type RevokedKey = Key & { made: { keys: { id: string }[]; sources: { id: string }[] } }
export type NewKey = {
  kind: KeyKind
  tenant?: string | null
  scopes?: string[]
  role?: Role
  allowed_addresses?: string[]
  expires_at?: string
}

export type Credential = { hint: string; expires_at: Maybe<Time> }
export type SourceType = 'webhook' | 'automation' | 'cdp'
export type RateLimit = { events: number; per_seconds: number }
export type Source = {
  id: string
  tenant: string
  name: string
  type: SourceType
  preset: Maybe<string>
  enabled: boolean
  path: string
  rate_limit: RateLimit
  overflow: 'defer' | 'drop'
  tokens: Credential[]
  signing_secrets: Credential[]
  created_at: Time
  updated_at: Time
}
export type CreatedSource = Source & { token: string; signing_secret: Maybe<string> }
export type NewSource = {
  tenant: string
  type: string
  overflow: string
  name?: string
  preset?: string
  signing_secret?: string
  rate_limit?: RateLimit
}
export type SecretKind = 'token' | 'signing_secret'
export type RotatedSource = Source & { [Kind in SecretKind]?: string }
export type SourceTest = {
  ok: boolean
  steps: { step: string; ok: boolean; detail: string }[]
  archived: JsonObject[]
}

export type ReceiptOutcome = 'processed' | 'duplicate' | 'dropped' | 'dead_letter' | 'suppressed' | 'expired'
export type Receipt = {
  id: string
  inbound_event_id: Maybe<string>
  event_type: Maybe<string>
  outcome: string
  archived: boolean
  detail: Maybe<string>
  received_at: Time
}
/** What an event came in with. */
export type ReceivedRequest = {
  missing: Maybe<'expired' | 'erased' | 'unknown'>
  bytes: Maybe<number>
  batch: Maybe<{ index: number; items: number }>
  body: Maybe<string>
  /** An operator wrote it; the dead letter keeps what came in. */
  edited: Maybe<{ by: string; at: Time; dead_letter: string }>
  truncated: boolean
}
export type ArchivedEvent = { id: string; received_at: Time; result: JsonObject }
export type Backlog = { source_config_id: string; events: number; oldest_at: Time }
export type Rejection = {
  id: string
  source_config_id: Maybe<string>
  key_id: Maybe<string>
  route: Maybe<string>
  rejected_at: Time
  status: number
  code: string
  detail: string
  ip: Maybe<string>
  user_agent: Maybe<string>
  bytes: Maybe<number>
  body: Maybe<string>
  suppressed: number
}

export type DeadLetter = {
  id: string
  tenant: string
  kind: 'record' | 'events'
  source_config_id: Maybe<string>
  inbound_event_id: Maybe<string>
  reason: string
  error: string
  attempts: number
  received_at: Time
  failed_at: Time
  replayed_at: Maybe<Time>
  replayed_as: Maybe<string>
  /** Closed without a replay. */
  resolved_at: Maybe<Time>
}
export type DeadLetterWithBody = DeadLetter & { body: string }
export type ReplayOrder = {
  tenant: string | null
  id?: string
  source?: string
  reason?: string
  cause?: string
  all?: boolean
  /** Of one: what takes the place of what came in. */
  body?: string
}
export type AuditRow = {
  id: string
  at: Time
  actor: string
  action: string
  target: Maybe<string>
  ip: Maybe<string>
  before: Maybe<object>
  after: Maybe<object>
}
export type ReplayResult = {
  replayed: number
  applied: number
  failed_again: number
  waiting: number
  remaining: number
}

export type Event = {
  id: string
  event_type: string
  occurred_at: Time
  received_at: Time
  source_type: string
  source_config_id: Maybe<string>
  inbound_event_id: Maybe<string>
  provider_event_id: Maybe<string>
  visitor: Maybe<string>
  session_id: Maybe<string>
  profile_id: Maybe<string>
  contact_id: Maybe<string>
  payload: unknown
  headers: object
  meta: object
}
export type EventStatus =
  | 'queued'
  | 'deferred'
  | 'stored'
  | 'duplicate'
  | 'dead_letter'
  | 'dropped'
  | 'suppressed'
export type EventOutcome = {
  id: string
  status: EventStatus
  reason: Maybe<string>
  received_at: Time
  duplicate_of: Maybe<string>
  attempts: Maybe<number>
  next_attempt_at: Maybe<Time>
  failed_at: Maybe<Time>
  replayed_at: Maybe<Time>
  replayed_as: Maybe<string>
  conversion: Maybe<boolean>
  event: Maybe<Event>
}
export type Conversion = {
  id: string
  occurred_at: Time
  conversion_type: string
  source: string
  source_object_id: Maybe<string>
  /** An exact decimal: may have more digits than a double. */
  amount: Maybe<Amount>
  currency: Maybe<string>
  visitor: Maybe<string>
  profile_id: Maybe<string>
  contact_id: Maybe<string>
  contact_name: Maybe<string>
  contact_email: Maybe<string>
}

/** Something that goes by what was looked for. */
export type Found = {
  kind: 'product' | 'contact' | 'order' | 'event' | 'person'
  id: string
  title: string
  note: Maybe<string>
}

export type RecordType = 'products' | 'contacts' | 'orders'
export type StoredRecord = {
  entityType: 'product' | 'contact' | 'order'
  id: string
  externalId: Maybe<string>
  sourceUpdatedAt: Time
  data: Maybe<JsonObject>
  createdAt: Time
  updatedAt: Time
  deleted?: boolean
}

/** How many there were in a stretch of time, and what they come to by currency. */
export type SeriesRow = { at: Time; count: number; amounts?: Record<string, Amount> }
export type Series = { interval: string; results: SeriesRow[] }

/** By hour: the last 24 hours, oldest first. */
type Waiting = { entries: number; oldest_at: Maybe<Time> }

export type Health = {
  /** Of the tenant; null: not known. */
  waiting: Maybe<Waiting>
  retrying: Waiting
  /** Of all tenants; null: not for this key. */
  installation: Maybe<{ waiting: Maybe<Waiting> }>
  dead_letters: { open: number; by_hour: number[] }
  refused: { last_24_hours: number; by_hour: number[] }
  deferred: { events: number; oldest_at: Maybe<Time> }
  disk_free: Maybe<number>
  /** At the pace of the last day; null: not known yet, or it does not fill. */
  disk_days_left: Maybe<number>
}

type HoursOfActivity = { last_24_hours: number; by_hour: number[] }
export type SourceActivity = { received: HoursOfActivity; refused: HoursOfActivity }
export type DestinationActivity = { delivered: HoursOfActivity; failed: HoursOfActivity }

export type PersonName = {
  kind: string
  value: string
  first_seen_at: Time
  moved_on_at: Maybe<Time>
  joined_at: Maybe<Time>
  cause: Maybe<{ kind: string; id: string }>
}
export type Person = {
  profile_id: string
  tenant: string
  names: PersonName[]
  contact: Maybe<{ id: string; name: Maybe<string>; email: Maybe<string>; company: Maybe<string> }>
  merged_profiles: string[]
  events: number
  events_of_others: number
  conversions: number
}
/** How much of each an erasure takes. */
export type Erased = Record<string, number>
export type ErasurePreview = {
  would_erase: Erased
  /** Others by the same id, whom it would leave. */
  not_joined: { profile_id: string; kind: string; value: string; remaining_events: number }[]
}
export type ErasureReceipt = {
  id: string
  status: 'running' | 'completed'
  requested_at: Time
  completed_at: Maybe<Time>
  erased: Erased
  /** Where nothing of the person is recorded again. */
  suppressed_names?: number
}

/** Somebody who is not recorded again: only hashes of their names are kept. */
export type Suppression = { id: string; suppressed_at: Time; names: { kind: string; hash: string }[] }
export type SuppressionList = List<Suppression> & {
  /** What came of these people all the same. */
  not_recorded: { events: number; records: number; last_at: Maybe<Time> }
}

/** Failures that have one cause. */
export type Issue = {
  kind: 'dead_letters' | 'refused' | 'failing_destination'
  cause: string
  reason: Maybe<string>
  route: Maybe<string>
  source_config_id: Maybe<string>
  destination_id: Maybe<string>
  count: number
  first_at: Time
  last_at: Time
  example: string
  example_id: Maybe<string>
}
