import type pg from 'pg'
import { keepItems } from '../domain/events/normalize/normalize.ts'
import type { EventContext } from '../domain/events/types.ts'
import { hashIdentifier, KEPT_ORDER_FIELDS } from '../domain/identity/erasure.ts'
import { IDENTIFIER_KINDS } from '../domain/identity/identifiers.ts'
import { newEntryId } from '../domain/ids.ts'
import { Count, NullableTimestamp, Timestamp, Uuid } from '../domain/shapes.ts'
import { CLOCKS_APART_MS } from '../domain/time.ts'
import { type Static, Type } from '../domain/typebox.ts'
import type { Log } from '../log/log.ts'
import { anonymizeBilling } from '../pipeline/billing/erasure.ts'
import { followProfiles } from '../pipeline/identity/follow-profiles.ts'
import { deriveProfiles } from '../pipeline/identity/linking.ts'
import { type Db, databaseNow, inTransaction } from '../postgres/database.ts'
import { lockPeople } from '../postgres/locks.ts'
import { anonymizeArchivable } from '../store/archive/archive.ts'
import { anonymizeSaleMessages, deleteEventMessages, deleteRecordMessages } from '../store/destinations/outbox.ts'
import {
  advanceErasure,
  keepErasure,
  type StoredErasure,
  saveErasure,
  takeLeftErasure,
} from '../store/identity/erasures.ts'
import type { ProfileKey } from '../store/identity/identities.ts'
import { findCurrentProfile } from '../store/identity/people.ts'
import { insertSuppressions } from '../store/identity/suppressions.ts'
import {
  anonymizeReceipts,
  anonymizeSales,
  buryContacts,
  deleteArchived,
  deleteEntry,
  deleteEventsAt,
  deleteIdentifiers,
  type EntryRow,
  type EntryTable,
  narrowEntry,
  reduceOrders,
  type TracedIdentifier,
} from '../store/identity/traces.ts'
import { deleteRejectionExamples } from '../store/inbound/rejections.ts'
import { deleteRequestsOf, holdRequests } from '../store/inbound/requests.ts'
import { configVersion } from '../store/tenants/config-version.ts'
import { findOldestUnapplied, resume, type Storage, waitUntilApplied, withHeartbeat } from './long-work.ts'
import {
  addMentions,
  findEntriesAbout,
  findEventsAbout,
  findReadEntries,
  findRecordsNaming,
  findSalesAbout,
  type Items,
  MAX_MENTIONS,
  type Mentions,
  nodeIds,
  portions,
  searchableEmails,
  toEntryNames,
  valuesOfKind,
} from './person-data.ts'
import { findScope, findScopeOfAddress, type PersonScope, type ScopedIdentifier } from './person-scope.ts'

/** The person to erase. */
export type Subject = { email: string } | { profile: number }

type ErasedIdentifier = TracedIdentifier & Pick<ScopedIdentifier, 'isUnverifiedLink'>

/** Stored with an erasure until it is completed. */
type Stored = {
  subject: Subject
  waitMs: number
  /** Later data of the person is not recorded. */
  suppress?: boolean
  /** Covers the whole profile, also if only unverified input links the identifier to it. */
  confirmProfile?: boolean
  /** Needed until the end: the second pass uses them to find data that was written meanwhile. */
  names: ErasedIdentifier[]
  /** The entries that were waiting at the start were received at or after this time. */
  since: string | null
  /** What the first pass found. It leaves out what the second pass reads again. */
  mentions: Mentions
}

export const NO_MENTIONS: Mentions = { events: 0, event_ids: [] }

export function serializeSubject(
  subject: Subject,
  options: Pick<Stored, 'waitMs' | 'suppress' | 'confirmProfile'>,
): string {
  return JSON.stringify({ subject, ...options, names: [], since: null, mentions: NO_MENTIONS } satisfies Stored)
}

/** Runs or continues an erasure to its end and returns the receipt. Completed steps are not repeated. */
export async function runErasure(storage: Storage, erasure: StoredErasure): Promise<ErasureReceipt> {
  const { pool, log } = storage
  const receipt = JSON.parse(erasure.receipt) as ErasureReceipt
  const stored = JSON.parse(erasure.subject!) as Stored
  const work: ErasureWork = {
    ...{ pool, log },
    tenantId: erasure.tenantId,
    erased: receipt.erased,
    save: db => saveErasure(db, erasure, JSON.stringify(receipt)),
  }
  return withHeartbeat(
    () => keepErasure(pool, erasure),
    async () => {
      if (erasure.status === 'erasing') await erasePerson({ ...work, log }, erasure, stored, receipt)
      const receivedSince = startOfSecondPass(erasure, stored)
      receipt.mentions = addMentions(stored.mentions, await eraseEffects(work, stored.names, { receivedSince }))
      await eraseWaiting(work, stored.names)
      // Once, at the end, because no index covers this search and no new data about the person is written any more.
      await anonymizeReceipts(pool, erasure.tenantId, searchableEmails(stored.names))
      await log.outside?.forgetRead()
      receipt.status = 'completed'
      receipt.completed_at = (await databaseNow(pool)).toISOString()
      await advanceErasure(pool, {
        ...erasure,
        status: 'completed',
        subject: null,
        receipt: JSON.stringify(receipt),
      })
      return receipt
    },
  )
}

function startOfSecondPass({ requestedAt }: StoredErasure, { since }: Stored): Date {
  return new Date(Math.min(Date.parse(since!), requestedAt.getTime()) - CLOCKS_APART_MS)
}

/** Deletes waiting entries first, because applying them would restore data. Then the stored data, then the identifiers. */
async function erasePerson(
  work: ErasureWork & Storage,
  erasure: StoredErasure,
  stored: Stored,
  receipt: ErasureReceipt,
): Promise<void> {
  const { pool, tenantId } = work
  const at = await findOldestUnapplied(work, tenantId)
  stored.since ??= (at ?? erasure.requestedAt).toISOString()
  const confirmProfile = stored.confirmProfile === true
  const findSubject = (db: Db) => findScopeOfSubject(db, tenantId, stored.subject, confirmProfile)
  await eraseWaiting(work, mergeNames(stored.names, (await findSubject(pool)).names))
  // Entries that left the overflow queue before they were deleted are in the log now. They are applied and then found.
  receipt.not_yet_processed = await waitUntilApplied(work, tenantId, await databaseNow(pool), stored.waitMs)
  // Repeat until no new identifier appears: profiles that are merged meanwhile belong to the person too.
  for (let known = 0; ; ) {
    const { names, others } = await findSubject(pool)
    stored.names = mergeNames(stored.names, names)
    if (stored.names.length === known) break
    known = stored.names.length
    const mentionsBefore = startOfSecondPass(erasure, stored)
    stored.mentions = await eraseEffects(work, stored.names, { others, mentionsBefore })
  }
  await inTransaction(pool, async client => {
    // Every worker transaction of this tenant runs entirely before or after this one. Earlier ones are committed: their
    // identifiers are found here, their other writes in the second pass. Later ones read a newer configuration version
    // (holdConfigVersion) and drop their cached nodes, so no one writes to a deleted node and the person is not
    // recreated.
    await lockPeople(client, tenantId)
    const { names, profile, others } = await findSubject(client)
    stored.names = mergeNames(stored.names, names)
    const deleted = await deleteIdentifiers(client, tenantId, nodeIds(stored.names))
    // The identifier may have connected others of the profile.
    if (profile !== null && others.length > 0) await deriveWithout(client, { tenantId, profile })
    receipt.erased.identities += deleted.names
    receipt.erased.touches += deleted.touches
    if (stored.suppress) receipt.suppressed_names = await suppress(client, erasure, stored.names)
    await advanceErasure(client, {
      ...erasure,
      status: 'sweeping',
      subject: JSON.stringify(stored),
      receipt: JSON.stringify(receipt),
    })
  })
}

/**
 * After the commit, data with one of these identifiers is not recorded. Anyone with a public tracking key could link another
 * person's identifier, so one that only unverified input links suppresses only unverified input.
 */
async function suppress(client: pg.PoolClient, erasure: StoredErasure, names: ErasedIdentifier[]): Promise<number> {
  const { tenantId } = erasure
  const hashes = names.map(name => ({
    ...{ kind: name.kind, hash: hashIdentifier(tenantId, name), unverifiedOnly: name.isUnverifiedLink },
  }))
  await holdRequests(client)
  await insertSuppressions(client, tenantId, erasure.id, hashes)
  return hashes.length
}

/** What an erasure of the subject covers. An address without a profile may still occur in waiting entries. */
export async function findScopeOfSubject(
  db: Db,
  tenantId: number,
  subject: Subject,
  confirmProfile: boolean,
): Promise<PersonScope> {
  const wanted = { isExport: false, confirmProfile }
  if ('email' in subject) return findScopeOfAddress(db, tenantId, subject.email, wanted)
  const profile = await findCurrentProfile(db, tenantId, subject.profile)
  if (profile === null) return { profile, names: [], others: [] }
  return findScope(db, tenantId, { profile, node: null }, wanted)
}

/** Derives the rest of a profile after some of its identifiers were deleted. The caller holds the locks. */
async function deriveWithout(client: pg.PoolClient, profile: ProfileKey): Promise<void> {
  const transaction = { client, now: await databaseNow(client), configVersion: await configVersion(client) }
  await followProfiles(transaction, await deriveProfiles(transaction, [profile]))
}

function mergeNames(some: ErasedIdentifier[], more: ErasedIdentifier[]): ErasedIdentifier[] {
  const all = [...some, ...more].map(name => [`${name.kind} ${name.value} ${name.node}`, name] as const)
  return [...new Map(all).values()]
}

/** Continues erasures whose process ended. */
export const resumeErasures = (storage: Storage, silentS?: number): Promise<void> =>
  resume({
    take: silent => takeLeftErasure(storage.pool, silent),
    run: left => runErasure(storage, left),
    silentS,
  })

/** The state of an erasure. Counts are saved in the transaction that they describe, so that a crash keeps them correct. */
type ErasureWork = {
  pool: pg.Pool
  log: Pick<Log, 'findRead' | 'forget'>
  tenantId: number
  erased: ErasureReceipt['erased']
  save(db: Db): Promise<void>
}

// Short transactions: an open transaction that writes delays the readers of the log.
// After a larger body there is a pause, so that requests are served in between.
const MAX_ROUNDS = 10

/** Erases stored data with these identifiers, except waiting entries and the identifiers themselves. */
async function eraseEffects(
  work: ErasureWork,
  names: ErasedIdentifier[],
  search: Parameters<typeof findEventsAbout>[2],
): Promise<Mentions> {
  const { pool, log, tenantId, erased, save } = work
  const nodes = nodeIds(names)
  const named = await findRecordsNaming(work, names)
  const contactIds = [...new Set([...valuesOfKind(names, 'contact'), ...named.contacts])]
  // Recorded raw requests and rejection examples of the last days are all deleted, which is simpler than searching them.
  await deleteRequestsOf(pool, tenantId)
  await deleteRejectionExamples(pool, tenantId)
  const sales = await findSalesAbout(work, { nodes, contactIds, orderIds: named.orders })
  const orderIds = sales.flatMap(({ orderId }) => orderId ?? [])
  // Before the sales, which lead to the writes of their orders only until they are anonymized.
  for (const entries of portions(await findReadEntries(work, names, { contactIds, orderIds })))
    await inTransaction(pool, async client => {
      erased.log_entries += await log.forget(client, tenantId, entries)
      await save(client)
    })
  const found = await findEventsAbout(work, names, search)
  for (const events of portions(found.events)) {
    await inTransaction(pool, async client => {
      erased.archived += await deleteArchived(client, tenantId, events)
      erased.log_entries += await log.forget(client, tenantId, toEntryNames(events))
      await deleteEventMessages(
        client,
        tenantId,
        events.map(({ id }) => id),
      )
      erased.events += await deleteEventsAt(client, events)
      await save(client)
    })
  }
  for (const some of portions(sales)) {
    const orderIds = some.flatMap(({ orderId }) => orderId ?? [])
    await inTransaction(pool, async client => {
      erased.orders += await reduceOrders(client, tenantId, orderIds, KEPT_ORDER_FIELDS)
      const saleKeys = some.map(({ saleKey }) => saleKey)
      await anonymizeSaleMessages(client, tenantId, saleKeys)
      await anonymizeArchivable(client, tenantId, saleKeys)
      await deleteRecordMessages(
        client,
        tenantId,
        orderIds.map(id => `order/${id}`),
      )
      erased.conversions += await anonymizeSales(client, tenantId, nodes, some)
      await save(client)
    })
  }
  // An account keeps its id and is found again in the next pass, but is counted once.
  const billing = { customers: contactIds, emails: searchableEmails(names) }
  erased.billing = Math.max(erased.billing, await anonymizeBilling(pool, tenantId, billing))
  await inTransaction(pool, async client => {
    const now = await databaseNow(client)
    await deleteRecordMessages(
      client,
      tenantId,
      contactIds.map(id => `contact/${id}`),
    )
    erased.contacts += await buryContacts(client, tenantId, contactIds, now, newEntryId(now.getTime()))
    await save(client)
  })
  return found.mentions
}

const TABLES: readonly EntryTable[] = ['dead_letters', 'parked_entries', 'overflow']

/** Erases waiting entries and dead letters about the person. */
async function eraseWaiting(work: ErasureWork, names: ErasedIdentifier[]): Promise<void> {
  for (const table of TABLES) {
    // An entry that is moved or split while it is read is read again.
    for (let round = 0; round < MAX_ROUNDS; round++) if (!(await eraseEntries(work, table, names))) break
  }
}

/** Returns whether an entry about the person was moved meanwhile. */
async function eraseEntries(work: ErasureWork, table: EntryTable, names: ErasedIdentifier[]): Promise<boolean> {
  const { pool, erased, save } = work
  let hasMoved = false
  for (const some of portions(await findEntriesAbout(work, table, names)))
    await inTransaction(pool, async client => {
      for (const { row, items } of some) {
        const isErased = await eraseItems(client, table, row, items)
        if (isErased) erased[table === 'dead_letters' ? 'dead_letters' : 'waiting'] += items.about.length
        else hasMoved = true
      }
      await save(client)
    })
  return hasMoved
}

function eraseItems(db: Db, table: EntryTable, row: EntryRow, { others }: Items): Promise<boolean> {
  if (others.length === 0 || table === 'dead_letters') return deleteEntry(db, table, row)
  const context = { ...(JSON.parse(row.entry.context) as EventContext), items: others }
  const narrow = (body: string) => keepItems(body, context, others)
  return narrowEntry(db, table, row, { context: JSON.stringify(context), items: others.length, narrow })
}

const counted = (description: string) => Type.Integer({ minimum: 0, description })

/** The preview and the receipt use the same counts. They differ only by data that arrived or was deleted in between. */
export const Erased = Type.Object(
  {
    events: counted('Deleted events, including those of other people that mention the person'),
    conversions: counted('Anonymized conversions, including unlisted ones; revenue stays unchanged'),
    orders: counted('Orders reduced to amounts, status and dates'),
    contacts: counted('Deleted contacts; a tombstone remains'),
    identities: counted('Deleted identifiers'),
    touches: counted('Attribution touches'),
    archived: counted('Deleted archived results of webhooks'),
    dead_letters: counted('Events in deleted dead letters'),
    waiting: Count,
    log_entries: Count,
    /** Accounts and invoices of the billing ledger without their names; amounts stay. */
    billing: Count,
  },
  {
    title: 'Erased',
    description: 'Number of deleted objects; for conversions, orders and billing, of anonymized objects',
  },
)

export const Covers = Type.Enum(['profile', 'identifier'], {
  description:
    '`profile`: all identifiers of the profile. `identifier`: some identifiers of the profile are not covered, because they may belong to another person; see `not_covered`. Send `confirm_profile: true` to cover them',
})
export const LinkedProfile = Type.Union([Type.String(), Type.Null()], {
  description: 'The profile of the identifiers that are not covered, if `covers` is `identifier`',
})
export const NOT_COVERED = {
  description:
    'Identifiers of the profile that are not covered, because they may belong to another person: only unverified input (a public tracking key) links them to the identifier in the request, and they are verified or that identifier is not. At most 20',
}

export const Mentioned = Type.Object(
  { events: Count, event_ids: Type.Array(Uuid) },
  {
    title: 'ErasureMentions',
    description: `Events of other people that contain an e-mail address of the person, which are not deleted. \`event_ids\` lists at most ${MAX_MENTIONS}. To delete one with its visitor, erase the profile of the event`,
  },
)

/** What was erased, without personal data. */
export const ErasureReceipt = Type.Object(
  {
    id: Uuid,
    tenant: Type.String(),
    /** A caller who knows the subject can find the receipt. */
    subject_hash: Type.String({
      description: 'SHA-256 of "<tenant id> email <address>" or "<tenant id> profile <number>"',
    }),
    status: Type.Enum(['running', 'completed']),
    requested_at: Timestamp,
    completed_at: NullableTimestamp,
    erased: Erased,
    covers: Covers,
    linked_profile_id: LinkedProfile,
    not_covered: Type.Array(Type.Object({ kind: Type.Enum([...IDENTIFIER_KINDS]) }), NOT_COVERED),
    not_joined: Type.Array(
      Type.Object({ profile_id: Type.String(), kind: Type.Enum([...IDENTIFIER_KINDS]), remaining_events: Count }),
      { description: 'Other people with an id or e-mail address of the person, who were found and not erased' },
    ),
    mentions: Mentioned,
    suppressed_names: Type.Optional(
      Type.Integer({
        minimum: 0,
        description: 'Number of suppressed identifiers, if suppression was requested',
      }),
    ),
    not_yet_processed: Type.Integer({
      minimum: 0,
      description:
        'Earlier entries that were not processed in time. If not 0, repeat the erasure when they are processed',
    }),
    notes: Type.Array(Type.String()),
  },
  { title: 'ErasureReceipt', description: 'What was erased, without personal data' },
)

export type ErasureReceipt = Static<typeof ErasureReceipt>
