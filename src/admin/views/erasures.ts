import { type Static, Type } from 'typebox'
import { IDENTITY_KINDS } from '../../domain/identity/identity.ts'
import { Count, NullableText, NullableTimestamp, Timestamp, Uuid } from '../../domain/shapes.ts'

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
const SuppressionView = Type.Object({
  id: Type.String({ format: 'uuid', description: 'Of the erasure that it came with' }),
  tenant: Type.String(),
  suppressed_at: Timestamp,
  names: Type.Array(Type.Object({ kind: Type.Enum([...IDENTITY_KINDS]), hash: Type.String() }), {
    description: 'SHA-256 of "<tenant id> <kind> <value>", in hex: nothing else is kept',
  }),
})

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
  not_joined: Type.Array(
    Type.Object({
      profile_id: Type.String(),
      kind: Type.Enum([...IDENTITY_KINDS]),
      value: Type.String(),
      remaining_events: Type.Integer({ minimum: 0, description: 'Those that this erasure would leave' }),
    }),
    {
      description:
        'Others who go by the same id or e-mail under another kind of name and are no part of this: merge them first where they are the same person. At most 20',
    },
  ),
  not_yet_processed: Count,
  needs_confirmation: Type.Boolean({ description: 'With more than 20 names: send confirm: true' }),
})
export type ErasurePreview = Static<typeof ErasurePreview>

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
