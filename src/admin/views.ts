import { type Static, Type } from 'typebox'
import { RULE_NAMES, RULES } from '../domain/alerts/rules.ts'
import { DEAD_LETTER_REASONS } from '../domain/entries/dead-letters.ts'
import { MAX_EVENT_TYPE_LENGTH, SOURCE_TYPES } from '../domain/events/events.ts'
import { IDENTITY_KINDS } from '../domain/identity/identity.ts'
import { RECEIPT_OUTCOMES } from '../domain/inbound/receipts.ts'
import { Nullable, NullableText, NullableTimestamp, OpenObject, Timestamp, Uuid } from '../domain/shapes.ts'
import { IP_MODES } from '../domain/tenants/ip-addresses.ts'
import { KeyLimits } from '../domain/tenants/key-limits.ts'
import { KEY_KINDS, SCOPES } from '../domain/tenants/keys.ts'
import { ROLES } from '../domain/tenants/roles.ts'
import { DESTINATION_SETTINGS } from './destination-settings.ts'
import { SOURCE_SETTINGS } from './sources/settings.ts'

/** What operators are shown: one shape for the command line, the admin API and its documentation. */

export const ConversionTypes = Nullable(
  Type.Array(Type.String({ minLength: 1, maxLength: MAX_EVENT_TYPE_LENGTH }), {
    maxItems: 1000,
    description: 'Event types that count as conversions; null: the default list',
  }),
)

export const EventsFloor = Nullable(
  Type.String({
    maxLength: 6,
    description:
      'How long ago an event of a public tracking key may say it happened: days (`3650d`) or `off`; null: as the installation has it (`KONTOR_EVENTS_FLOOR`)',
  }),
)

export const IpAddresses = Type.Enum([...IP_MODES], {
  description:
    'What becomes of IP addresses that come in with events, before anything is written: kept, cut to their network (IPv4 /24, IPv6 /48), or dropped',
})

export const TenantView = Type.Object(
  {
    id: Type.String(),
    name: Type.String(),
    conversion_types: ConversionTypes,
    events_floor: EventsFloor,
    ip_addresses: IpAddresses,
    created_at: Timestamp,
  },
  {
    examples: [
      {
        id: 'ten_1',
        name: 'acme',
        conversion_types: null,
        events_floor: null,
        ip_addresses: 'keep',
        created_at: '2026-01-31T09:30:00.000Z',
      },
    ],
  },
)
export type TenantView = Static<typeof TenantView>

const either =
  (...values: string[]) =>
  (description: string) =>
    Type.Enum(values, { description })
const policySettings = {
  pause: either('churn', 'keep')('Whether a subscription that is paused leaves MRR or keeps what it had'),
  trial_on_paying: either('churn', 'keep')('The same of one that is put on trial after it counted'),
  past_due_grace_days: Type.Union([Type.Literal('none'), Type.Integer()], {
    description: 'For how many days a past-due subscription counts; none: as long as it is past due',
  }),
  time_zone: Type.String({
    description: 'Of days, weeks and months in reports: a name of the IANA database',
    examples: ['Europe/Berlin'],
  }),
  net_within_day: Type.Boolean({ description: 'Whether movements of one account on one day are one' }),
  retention_base: either(
    'first_instant',
    'end_of_month',
  )('What retention is measured by: what an account first paid, or paid at the end of its first month'),
}
export const PolicyView = Type.Object(
  {
    tenant: Type.String(),
    version: Type.Integer({ description: 'Every change makes another; 1 is what holds before any' }),
    ...policySettings,
    set_at: NullableTimestamp,
    set_by: NullableText,
    applied: Type.Boolean({
      description: 'Whether reports follow it; if not yet, the ledger is being restated by it',
    }),
    applied_version: Type.Integer({ description: 'The version that reports follow' }),
  },
  {
    examples: [
      {
        tenant: 'ten_1',
        version: 2,
        pause: 'keep',
        trial_on_paying: 'churn',
        past_due_grace_days: 'none',
        time_zone: 'Europe/Berlin',
        net_within_day: false,
        retention_base: 'first_instant',
        set_at: '2026-01-31T09:30:00.000Z',
        set_by: 'cli:ada',
        applied: true,
        applied_version: 2,
      },
    ],
  },
)
export type PolicyView = Static<typeof PolicyView>

const KEY_EXAMPLE = {
  id: 'key_4fTzQ9aXw2LmN8pB',
  kind: 'private',
  scopes: ['orders:read', 'orders:write'],
  server: false,
  role: null,
  allowed_addresses: [],
  origins: [],
  event_types: [],
  rate_limit: null,
  tenant: 'ten_1',
  hint: '…x7Qe',
  created_by: 'key_9kTzQ9aXw2LmN8pC',
  created_at: '2026-01-31T09:30:00.000Z',
  expires_at: null,
  expires_soon: false,
  revoked_at: null,
  last_used_at: null,
}
const created_by = Nullable(
  Type.String({ description: 'Who made it: the id of a key, or cli: and the user of the command line' }),
)
const key = {
  id: Type.String(),
  kind: Type.Enum([...KEY_KINDS]),
  scopes: Type.Array(Type.Enum([...SCOPES])),
  server: Type.Boolean({
    description: 'A tracking key that only servers have: it may alias and merge people',
  }),
  role: Nullable(Type.Enum([...ROLES], { description: 'Of an admin key' })),
  allowed_addresses: Type.Array(Type.String(), {
    description: 'Addresses and networks that it is accepted from; none: from everywhere',
  }),
  ...KeyLimits.properties,
  tenant: Nullable(Type.String({ description: 'null for admin keys that see all tenants' })),
  hint: Type.String({ description: 'How the key ends, to tell keys apart' }),
  created_by,
  created_at: Timestamp,
  expires_at: NullableTimestamp,
  expires_soon: Type.Boolean({ description: 'It ends within 14 days: replace it' }),
  revoked_at: NullableTimestamp,
  last_used_at: NullableTimestamp,
}
export const KeyView = Type.Object(key, { examples: [KEY_EXAMPLE] })
export type KeyView = Static<typeof KeyView>

/** The only moment in which the key itself is there. */
export const CreatedKey = Type.Object(
  { ...key, key: Type.String({ description: 'The key itself, shown only once' }) },
  { examples: [{ ...KEY_EXAMPLE, key: 'private-9f…' }] },
)
export type CreatedKey = Static<typeof CreatedKey>

export const RotatedKey = Type.Object(
  {
    ...CreatedKey.properties,
    previous: Type.Object({ id: Type.String(), expires_at: Timestamp }, { description: 'Good until then' }),
  },
  {
    examples: [
      {
        ...KEY_EXAMPLE,
        key: 'private-9f…',
        previous: { id: 'key_7dTzQ9aXw2LmN8pA', expires_at: '2026-02-01T09:30:00.000Z' },
      },
    ],
  },
)
export type RotatedKey = Static<typeof RotatedKey>

const Made = Type.Object({
  id: Type.String(),
  tenant: Type.String(),
  name: Type.String(),
  enabled: Type.Boolean(),
})

/** What was made with a key, also by keys that it made, and was still good when it was revoked. */
export const RevokedKey = Type.Object(
  {
    ...key,
    made: Type.Object({
      keys: Type.Array(KeyView),
      sources: Type.Array(Made),
      destinations: Type.Array(Made),
    }),
  },
  {
    examples: [
      {
        ...KEY_EXAMPLE,
        revoked_at: '2026-01-31T09:30:00.000Z',
        made: { keys: [], sources: [], destinations: [] },
      },
    ],
  },
)
export type RevokedKey = Static<typeof RevokedKey>

const SOURCE_EXAMPLE = {
  id: 'src_4fTzQ9aXw2LmN8pB',
  tenant: 'ten_1',
  name: 'shop',
  type: 'webhook',
  preset: null,
  enabled: true,
  path: '/ingest/inbound/src_4fTzQ9aXw2LmN8pB',
  event_type_override: { prefix: 'shop.' },
  event_id_path: null,
  require_timestamped_signature: false,
  require_event_id: null,
  billing: null,
  namespace: null,
  records: null,
  custom: null,
  rate_limit: { events: 6000, per_seconds: 60 },
  overflow: 'defer',
  max_body_bytes: 1_048_576,
  headers: [],
  allowed_addresses: [],
  tokens: [{ hint: '…x7Qe', expires_at: null }],
  signing_secrets: [],
  created_by: 'key_9kTzQ9aXw2LmN8pC',
  created_at: '2026-01-31T09:30:00.000Z',
  updated_at: '2026-01-31T09:30:00.000Z',
}
const CredentialView = Type.Object({ hint: Type.String(), expires_at: NullableTimestamp })
export type CredentialView = Static<typeof CredentialView>
const source = {
  id: Type.String(),
  tenant: Type.String(),
  type: Type.Enum([...SOURCE_TYPES]),
  path: Type.String({ description: 'Where events are posted to, below the address of this service' }),
  ...SOURCE_SETTINGS,
  tokens: Type.Array(CredentialView),
  signing_secrets: Type.Array(CredentialView),
  created_by,
  created_at: Timestamp,
  updated_at: Timestamp,
}
export const SourceView = Type.Object(source, { examples: [SOURCE_EXAMPLE] })
export type SourceView = Static<typeof SourceView>

/** The only moment in which token and secret themselves are there. */
export const CreatedSource = Type.Object(
  {
    ...source,
    token: Type.String({ description: 'The token itself, shown only once' }),
    signing_secret: Nullable(Type.String({ description: 'The secret itself, shown only once' })),
  },
  { examples: [{ ...SOURCE_EXAMPLE, token: 'tok_3k…', signing_secret: null }] },
)
export type CreatedSource = Static<typeof CreatedSource>

export const RotatedSource = Type.Object(
  { ...source, token: Type.Optional(Type.String()), signing_secret: Type.Optional(Type.String()) },
  { examples: [{ ...SOURCE_EXAMPLE, token: 'tok_8s…' }] },
)
export type RotatedSource = Static<typeof RotatedSource>

export const ReceiptView = Type.Object(
  {
    id: Type.String({ format: 'uuid', description: 'The id of the event' }),
    tenant: Type.String(),
    source_config_id: Type.String(),
    inbound_event_id: NullableText,
    event_type: NullableText,
    outcome: Type.Enum([...RECEIPT_OUTCOMES]),
    archived: Type.Boolean({ description: 'GET /admin/v1/archive/:id has its result' }),
    detail: NullableText,
    received_at: Timestamp,
    written_at: Timestamp,
  },
  {
    examples: [
      {
        id: '019c1234-5678-7000-8abc-def012300000',
        tenant: 'ten_1',
        source_config_id: 'src_4fTzQ9aXw2LmN8pB',
        inbound_event_id: 'evt_1001',
        event_type: 'order.shipped',
        outcome: 'processed',
        archived: true,
        detail: null,
        received_at: '2026-01-31T09:30:00.000Z',
        written_at: '2026-01-31T09:30:00.040Z',
      },
    ],
  },
)
export type ReceiptView = Static<typeof ReceiptView>

/** An archived result without the result, which is JSON text as it was stored. */
export const ArchiveFacts = Type.Object({
  id: Uuid,
  tenant: Type.String(),
  source_config_id: Type.String(),
  received_at: Timestamp,
})
export type ArchiveFacts = Static<typeof ArchiveFacts>

export const RejectionView = Type.Object(
  {
    id: Type.String(),
    tenant: Type.String(),
    source_config_id: Nullable(
      Type.String({ description: 'Where it was sent to; null: it came with a key' }),
    ),
    key_id: NullableText,
    route: Nullable(Type.String({ description: 'Of a request with a key, for example POST /v1/track' })),
    rejected_at: Timestamp,
    status: Type.Integer(),
    code: Type.String(),
    detail: Type.String(),
    ip: NullableText,
    user_agent: NullableText,
    bytes: Nullable(Type.Integer()),
    body: Nullable(
      Type.String({
        description:
          'Of a request with a key: its first 2,000 characters, without credentials. Gone after an erasure, and where it names somebody who is not to be recorded',
      }),
    ),
    suppressed: Type.Integer({
      description: 'How many more like it came within the minute and were only counted',
    }),
  },
  {
    examples: [
      {
        id: '81',
        tenant: 'ten_1',
        source_config_id: 'src_4fTzQ9aXw2LmN8pB',
        key_id: null,
        route: null,
        rejected_at: '2026-01-31T09:30:00.000Z',
        status: 401,
        code: 'signature_invalid',
        detail: 'The signature does not match the body and the signing secret of this source.',
        ip: '203.0.113.7',
        user_agent: 'curl/8.5.0',
        bytes: 218,
        body: null,
        suppressed: 0,
      },
    ],
  },
)
export type RejectionView = Static<typeof RejectionView>

export const BacklogView = Type.Object({
  source_config_id: Type.String(),
  events: Type.Integer(),
  oldest_at: Timestamp,
})
export type BacklogView = Static<typeof BacklogView>

export const DeadLetterView = Type.Object(
  {
    id: Type.String({ format: 'uuid', description: 'Of a record write: the operation id' }),
    tenant: Type.String(),
    kind: Type.Enum(['record', 'events']),
    source_config_id: NullableText,
    inbound_event_id: NullableText,
    reason: Type.Enum([...DEAD_LETTER_REASONS], {
      description: 'rejected: never valid; failed: could not be applied',
    }),
    error: Type.String(),
    attempts: Type.Integer(),
    received_at: Timestamp,
    failed_at: Timestamp,
    replayed_at: NullableTimestamp,
    replayed_as: Nullable(Type.String({ description: 'The id of the replayed entry' })),
    resolved_at: Nullable(Type.String({ format: 'date-time', description: 'Closed without a replay' })),
  },
  {
    examples: [
      {
        id: '019c1234-5678-7000-8abc-def012300003',
        tenant: 'ten_1',
        kind: 'events',
        source_config_id: 'src_4fTzQ9aXw2LmN8pB',
        inbound_event_id: null,
        reason: 'rejected',
        error: 'event_type is required',
        attempts: 0,
        received_at: '2026-01-31T09:30:00.000Z',
        failed_at: '2026-01-31T09:30:00.040Z',
        replayed_at: null,
        replayed_as: null,
        resolved_at: null,
      },
    ],
  },
)
export type DeadLetterView = Static<typeof DeadLetterView>

/** What an event came in with. */
export const ReceivedRequest = Type.Object({
  id: Type.String(),
  tenant: Type.String(),
  missing: Nullable(
    Type.Enum(['expired', 'erased', 'unknown'], {
      description:
        'Why it is not there. expired: the log keeps requests for a few days (KONTOR_LOG_RETENTION); erased: somebody in it was erased, or is not recorded, and requests go as a whole; null: it is there',
    }),
  ),
  received_at: NullableTimestamp,
  bytes: Nullable(Type.Integer({ minimum: 0, description: 'Of the whole request' })),
  batch: Nullable(
    Type.Object(
      { index: Type.Integer(), items: Type.Integer() },
      { description: 'Which item of how many the event is; null: the request is no batch' },
    ),
  ),
  body: Nullable(
    Type.String({
      description:
        'As received; of a batch the item, unless all of it is asked for; at most the first 100,000 characters',
    }),
  ),
  truncated: Type.Boolean(),
})
export type ReceivedRequest = Static<typeof ReceivedRequest>

const Headers = Type.Record(Type.String(), Type.String())

/** What became of a sample event: its receipts, and the results that were archived. */
export const SourceTest = Type.Object({
  source_config_id: Type.String(),
  ok: Type.Boolean(),
  sent: Type.Object({ headers: Headers, body: Type.String() }),
  steps: Type.Array(
    Type.Object({
      step: Type.Enum(['source', 'normalize', 'accept', 'process', 'archive']),
      ok: Type.Boolean(),
      detail: Type.String(),
    }),
  ),
  receipts: Type.Array(ReceiptView),
  archived: Type.Array(OpenObject()),
})
export type SourceTest = Static<typeof SourceTest>

const Count = Type.Integer({ minimum: 0 })

const counted = (description: string) => Type.Integer({ minimum: 0, description })

/** A preview and a receipt count the same things alike; they differ by what came in, or went, between them. */
const Erased = Type.Object(
  {
    events: counted('Deleted; those that other people sent and that name the person too'),
    conversions: counted('Made anonymous, also those that lists do not show; they stay, and so does revenue'),
    orders: counted('Reduced to amounts, status and dates'),
    contacts: counted('Deleted, with a tombstone'),
    identities: counted('Names that the person was known by'),
    touches: counted('Attribution touches'),
    archived: counted('Archived results of webhooks'),
    dead_letters: counted('Events among them'),
    waiting: Count,
    log_entries: Count,
    /** Accounts and invoices of the billing ledger that lost their names; what was billed stays. */
    billing: Count,
  },
  {
    description:
      'How much of each was removed; of conversions, orders and billing, how many were made anonymous',
  },
)

/** What was erased, without naming the person. */
export const ErasureReceipt = Type.Object({
  id: Uuid,
  tenant: Type.String(),
  /** Whoever knows the subject can find the receipt again. */
  subject_hash: Type.String({
    description: 'SHA-256 of "<tenant id> email <address>" or "<tenant id> profile <number>"',
  }),
  status: Type.Enum(['running', 'completed']),
  requested_at: Timestamp,
  completed_at: NullableTimestamp,
  erased: Erased,
  suppressed_names: Type.Optional(
    Type.Integer({ minimum: 0, description: 'Names that are not recorded again, where that was asked for' }),
  ),
  not_yet_processed: Type.Integer({
    minimum: 0,
    description: 'Entries that came in before and could not be awaited: erase again once they are processed',
  }),
  notes: Type.Array(Type.String()),
})
export type ErasureReceipt = Static<typeof ErasureReceipt>

/** Somebody who was erased, and is not recorded again. */
export const SuppressionView = Type.Object({
  id: Type.String({ format: 'uuid', description: 'Of the erasure that it came with' }),
  tenant: Type.String(),
  suppressed_at: Timestamp,
  names: Type.Array(Type.Object({ kind: Type.Enum([...IDENTITY_KINDS]), hash: Type.String() }), {
    description: 'SHA-256 of "<tenant id> <kind> <value>", in hex: nothing else is kept',
  }),
})
export type SuppressionView = Static<typeof SuppressionView>

export const SuppressionList = Type.Object({
  results: Type.Array(SuppressionView),
  next_cursor: Type.Null(),
  not_recorded: Type.Object(
    { events: Count, records: Count, last_at: NullableTimestamp },
    { description: 'How much came of these people and was not recorded, since the first of them' },
  ),
})
export type SuppressionList = Static<typeof SuppressionList>

export const RemovedSuppression = Type.Object({ id: Uuid, tenant: Type.String(), names: Count })
export type RemovedSuppression = Static<typeof RemovedSuppression>

/** What an erasure would take. */
export const ErasurePreview = Type.Object({
  dry_run: Type.Literal(true),
  tenant: Type.String(),
  profile_id: NullableText,
  names: Type.Array(Type.Object({ kind: Type.Enum([...IDENTITY_KINDS]), value: Type.String() }), {
    description: 'All that the person is known by',
  }),
  would_erase: Erased,
  not_yet_processed: Count,
  needs_confirmation: Type.Boolean({ description: 'With more than 20 names: send confirm: true' }),
})
export type ErasurePreview = Static<typeof ErasurePreview>

const ByHour = Type.Array(Type.Integer(), {
  description: 'The last 24 hours, oldest first; the last is not over',
})

const HoursOfActivity = Type.Object({
  last_24_hours: Count,
  by_hour: Type.Array(Type.Integer(), {
    description: 'The last 24 hours, oldest first; the last is not over. Counted up to 10,000 in an hour',
  }),
})

/** How much a source brought. */
export const SourceActivity = Type.Object({
  id: Type.String(),
  received: HoursOfActivity,
  refused: HoursOfActivity,
})
export type SourceActivity = Static<typeof SourceActivity>

/** How sending to a destination went: attempts. */
export const DestinationActivity = Type.Object({
  id: Type.String(),
  delivered: HoursOfActivity,
  failed: HoursOfActivity,
})
export type DestinationActivity = Static<typeof DestinationActivity>

/** How a tenant stands. */
export const HealthView = Type.Object({
  tenant: Type.String(),
  waiting: Nullable(
    Type.Object(
      { entries: Count, oldest_at: NullableTimestamp },
      {
        description:
          'Accepted and not processed yet, of this tenant; null while that is not known, because the log is away or holds more than 100,000 of all tenants',
      },
    ),
  ),
  retrying: Type.Object(
    { entries: Count, oldest_at: NullableTimestamp },
    { description: 'Of this tenant: could not be applied, and are tried again; what waits behind them too' },
  ),
  installation: Nullable(
    Type.Object(
      {
        waiting: Nullable(Type.Object({ entries: Count, oldest_at: NullableTimestamp })),
      },
      { description: 'Of all tenants together; null for who has but one' },
    ),
  ),
  dead_letters: Type.Object({ open: Count, by_hour: ByHour }),
  refused: Type.Object({ last_24_hours: Count, by_hour: ByHour }),
  deferred: Type.Object({ events: Count, oldest_at: NullableTimestamp }),
  disk_free: Nullable(
    Type.Number({
      description: 'Of the whole installation, from 0 to 1; null where PostgreSQL is not the embedded one',
    }),
  ),
  disk_days_left: Nullable(
    Type.Number({
      description:
        'Until the disk of the installation is full, at the pace of the last day; null while that is not known, or it does not fill',
    }),
  ),
})
export type HealthView = Static<typeof HealthView>

/** Something that a tenant is warned of. */
export const AlertView = Type.Object({
  id: Uuid,
  tenant: Type.String(),
  rule: Type.Enum([...RULE_NAMES]),
  subject: Nullable(Type.String({ description: 'Of source_silent the source, of mrr_drop the currency' })),
  state: Type.Enum(['raised', 'resolved']),
  summary: Type.String({ description: 'In words' }),
  value: Type.Number(),
  threshold: Type.Number(),
  raised_at: Timestamp,
  resolved_at: NullableTimestamp,
})
export type AlertView = Static<typeof AlertView>

const threshold = (rule: keyof typeof RULES) => Nullable(Type.Number({ description: RULES[rule].means }))
export const AlertRules = {
  lag: threshold('lag'),
  refused_share: threshold('refused_share'),
  dead_letters: threshold('dead_letters'),
  source_silent: threshold('source_silent'),
  mrr_drop: threshold('mrr_drop'),
}
/** From which value on each rule warns; null: it does not. */
export const AlertRulesView = Type.Object({ tenant: Type.String(), ...AlertRules })
export type AlertRulesView = Static<typeof AlertRulesView>

/** Failures that have one cause. */
export const IssueView = Type.Object({
  kind: Type.Enum(['dead_letters', 'refused', 'failing_destination']),
  cause: Type.String({
    description:
      'Of dead letters the error without what varies, of refused requests of a source their code, of those with a key the reason without what varies, of a destination its name',
  }),
  reason: NullableText,
  route: Nullable(Type.String({ description: 'Of refused requests with a key, for example POST /v1/track' })),
  source_config_id: NullableText,
  destination_id: NullableText,
  count: Type.Integer({ minimum: 0, description: 'Of a destination: messages still to be delivered' }),
  first_at: Timestamp,
  last_at: Timestamp,
  example: Type.String({ description: 'The newest error or refusal, in full' }),
  example_id: Nullable(Type.String({ format: 'uuid', description: 'The newest dead letter' })),
})
export type IssueView = Static<typeof IssueView>

const AuditedState = Nullable(
  Type.Unsafe<object>(Type.Object({}, { description: 'Only what differs; never a secret' })),
)

/** Who changed what. */
export const AuditView = Type.Object(
  {
    id: Uuid,
    at: Timestamp,
    actor: Type.String({ description: 'The id of a key, or cli: and the user of the command line' }),
    action: Type.String({ description: 'noun.verb' }),
    target: Nullable(
      Type.String({ description: 'The id of what was changed; of an erasure, a hash that names nobody' }),
    ),
    tenant: Nullable(Type.String({ description: 'null: it concerns the whole installation' })),
    ip: NullableText,
    request_id: NullableText,
    before: AuditedState,
    after: AuditedState,
  },
  {
    examples: [
      {
        id: '019c1234-5678-7000-8abc-def012300004',
        at: '2026-01-31T09:30:00.000Z',
        actor: 'key_4fTzQ9aXw2LmN8pB',
        action: 'source.disable',
        target: 'src_4fTzQ9aXw2LmN8pB',
        tenant: 'ten_1',
        ip: '203.0.113.7',
        request_id: 'req_8sT2kQ',
        before: { enabled: true },
        after: { enabled: false },
      },
    ],
  },
)
export type AuditView = Static<typeof AuditView>

/** Somebody, by all that they are known by. */
export const PersonView = Type.Object(
  {
    profile_id: Type.String(),
    tenant: Type.String(),
    names: Type.Array(
      Type.Object({
        kind: Type.Enum([...IDENTITY_KINDS]),
        value: Type.String(),
        first_seen_at: Timestamp,
        /** Set where the name belongs to somebody else by now; what came under it before is still here. */
        moved_on_at: NullableTimestamp,
        /** null for the name that the profile began with */
        joined_at: NullableTimestamp,
        cause: Nullable(
          Type.Object(
            { kind: Type.Enum(['event', 'record', 'sale', 'command']), id: Type.String() },
            { description: 'What joined it: an event, a record (contact/…, order/…), a sale, a command' },
          ),
        ),
      }),
    ),
    contact: Nullable(
      Type.Object({ id: Type.String(), name: NullableText, email: NullableText, company: NullableText }),
    ),
    merged_profiles: Type.Array(Type.String(), { description: 'Profiles that were merged into this one' }),
    events: Count,
    conversions: Count,
  },
  {
    examples: [
      {
        profile_id: 'prof_17',
        tenant: 'ten_1',
        names: [
          {
            ...{ kind: 'user', value: 'ada', first_seen_at: '2026-01-31T09:30:00.000Z', moved_on_at: null },
            ...{ joined_at: null, cause: null },
          },
        ],
        contact: null,
        merged_profiles: [],
        events: 12,
        conversions: 1,
      },
    ],
  },
)
export type PersonView = Static<typeof PersonView>

export const SplitPeople = Type.Object({ person: PersonView, split_off: PersonView })
export type SplitPeople = Static<typeof SplitPeople>

const Purged = Type.Object({
  events: Count,
  conversions: Count,
  identities: Type.Integer({ minimum: 0, description: 'Names that nothing else speaks of' }),
  dead_letters: Count,
  waiting: Count,
})

/** What was taken out of all that a tracking key added. */
export const PurgeReceipt = Type.Object({
  id: Uuid,
  tenant: Type.String(),
  key: Type.String(),
  since: Timestamp,
  until: NullableTimestamp,
  status: Type.Enum(['running', 'completed']),
  requested_at: Timestamp,
  completed_at: NullableTimestamp,
  purged: Purged,
  not_yet_processed: Type.Integer({
    minimum: 0,
    description: 'Entries that could not be awaited: purge again once they are processed',
  }),
})
export type PurgeReceipt = Static<typeof PurgeReceipt>

export const PurgePreview = Type.Object({
  dry_run: Type.Literal(true),
  tenant: Type.String(),
  key: Type.String(),
  since: Timestamp,
  until: NullableTimestamp,
  would_purge: Type.Object({
    events: Count,
    sales: Type.Integer({ minimum: 0, description: 'Sales that its events are, or speak of' }),
    joins: Type.Integer({ minimum: 0, description: 'Joins of people that its events caused' }),
  }),
})
export type PurgePreview = Static<typeof PurgePreview>

const DESTINATION_EXAMPLE = {
  id: 'dst_4fTzQ9aXw2LmN8pB',
  tenant: 'ten_1',
  name: 'warehouse',
  url: 'https://warehouse.example/hooks',
  what: ['events', 'conversions'],
  event_types: ['order.*'],
  enabled: true,
  headers: {},
  disabled_reason: null,
  secrets: [{ hint: '…x7Qe', expires_at: null }],
  health: {
    status: 'ok',
    pending: 0,
    failing_since: null,
    last_attempt_at: '2026-01-31T09:30:00.000Z',
    last_success_at: '2026-01-31T09:30:00.000Z',
    last_status: 200,
    last_error: null,
  },
  created_by: 'key_9kTzQ9aXw2LmN8pC',
  created_at: '2026-01-31T09:30:00.000Z',
  updated_at: '2026-01-31T09:30:00.000Z',
}
const destination = {
  id: Type.String(),
  tenant: Type.String(),
  ...DESTINATION_SETTINGS,
  disabled_reason: Nullable(Type.String({ description: 'Why Kontor disabled it; null where somebody did' })),
  secrets: Type.Array(Type.Object({ hint: Type.String(), expires_at: NullableText }), {
    description: 'Two while a secret is being rotated: messages are signed with both',
  }),
  health: Type.Object({
    status: Type.Enum(['ok', 'failing', 'disabled']),
    pending: Type.Integer({ description: 'Messages still to be delivered; counted up to 100,000' }),
    failing_since: NullableTimestamp,
    last_attempt_at: NullableTimestamp,
    last_success_at: NullableTimestamp,
    last_status: Nullable(Type.Integer()),
    last_error: NullableText,
  }),
  created_by,
  created_at: Timestamp,
  updated_at: Timestamp,
}
export const DestinationView = Type.Object(destination, { examples: [DESTINATION_EXAMPLE] })
export type DestinationView = Static<typeof DestinationView>

/** The only moment in which the secret itself is there. */
export const CreatedDestination = Type.Object(
  {
    ...destination,
    secret: Type.String({ description: 'What messages are signed with, shown only once' }),
  },
  { examples: [{ ...DESTINATION_EXAMPLE, secret: 'whsec_9f…' }] },
)
export type CreatedDestination = Static<typeof CreatedDestination>

export const DestinationTest = Type.Object({
  ok: Type.Boolean({ description: 'It was answered 2xx within 15 seconds' }),
  message_id: Type.String(),
  url: Type.String(),
  status: Nullable(Type.Integer()),
  error: NullableText,
  response: Nullable(Type.String({ description: 'How the answer began' })),
  duration_ms: Type.Integer(),
})
export type DestinationTest = Static<typeof DestinationTest>

export const DELIVERY_OUTCOMES = ['delivered', 'retrying', 'failed'] as const

/** One attempt to deliver a message. */
export const DeliveryView = Type.Object({
  id: Type.String({ description: 'webhook-id: the same in every attempt' }),
  type: Type.String(),
  outcome: Type.Enum([...DELIVERY_OUTCOMES]),
  attempt: Type.Integer(),
  attempted_at: Timestamp,
  status: Nullable(Type.Integer({ description: 'null: there was no answer' })),
  error: NullableText,
  response: Nullable(Type.String({ description: 'How the answer began' })),
  duration_ms: Type.Integer(),
  next_attempt_at: NullableTimestamp,
})
export type DeliveryView = Static<typeof DeliveryView>
