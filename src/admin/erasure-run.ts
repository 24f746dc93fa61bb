import type pg from 'pg'
import { type Static, Type } from 'typebox'
import { hashIdentifier, KEPT_ORDER_FIELDS } from '../domain/identity/erasure.ts'
import { newEntryId } from '../domain/ids.ts'
import { Count, NullableTimestamp, Timestamp, Uuid } from '../domain/shapes.ts'
import { CLOCKS_APART_MS } from '../domain/time.ts'
import type { Log } from '../log/log.ts'
import { anonymizeBilling } from '../pipeline/billing/erasure.ts'
import { type Db, databaseNow, inTransaction } from '../postgres/database.ts'
import { lockPeople } from '../postgres/locks.ts'
import { anonymizeArchivable } from '../store/archive/archive.ts'
import {
  anonymizeSaleMessages,
  deleteEventMessages,
  deleteRecordMessages,
} from '../store/destinations/outbox.ts'
import {
  advanceErasure,
  keepErasure,
  type StoredErasure,
  saveErasure,
  takeLeftErasure,
} from '../store/identity/erasures.ts'
import { findCurrentProfile, findIdentifiers } from '../store/identity/people.ts'
import { insertSuppressions } from '../store/identity/suppressions.ts'
import {
  anonymizeReceipts,
  anonymizeSales,
  buryContacts,
  deleteArchivedOf,
  deleteEntry,
  deleteEventsAt,
  deleteIdentifiers,
  type EntryRow,
  type EntryTable,
  loadTracedIdentifiers,
  narrowEntry,
  reduceOrders,
  type TracedIdentifier,
} from '../store/identity/traces.ts'
import { deleteRejectionExamples } from '../store/inbound/rejections.ts'
import { deleteRequestsOf, holdRequests } from '../store/inbound/requests.ts'
import { findOldestUnapplied, resume, type Storage, waitUntilApplied, withHeartbeat } from './long-work.ts'
import {
  findEntriesAbout,
  findEventsAbout,
  findRecordsNaming,
  findSalesAbout,
  type Items,
  nodeIds,
  portions,
  toEntryNames,
  valuesOfKind,
} from './person-data.ts'
/** Whom an erasure is about. */
export type Subject = { email: string } | { profile: number }

/** Kept with an erasure until it is done. */
type Stored = {
  subject: Subject
  waitMs: number
  /** They are not to be recorded again. */
  suppress?: boolean
  /** Taken away with the last of them; what was written meanwhile is found by them. */
  names: TracedIdentifier[]
  /** What was waiting when it began came in no earlier than this. */
  since: string | null
}

export function serializeSubject(subject: Subject, waitMs: number, suppress: boolean): string {
  return JSON.stringify({ subject, waitMs, suppress, names: [], since: null } satisfies Stored)
}

/** Runs an erasure from where it stands to its end, and returns the receipt. Whatever was done before is not done twice. */
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
      const since = new Date(
        Math.min(Date.parse(stored.since!), erasure.requestedAt.getTime()) - CLOCKS_APART_MS,
      )
      await eraseEffects(work, stored.names, since)
      await eraseWaiting(work, stored.names)
      // Once, when nobody writes of the person any more: no index leads to them.
      await anonymizeReceipts(pool, erasure.tenantId, valuesOfKind(stored.names, 'email'))
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

/** What waits first: what is not there when it would be its turn cannot come back. Then what stands, then the names. */
async function erasePerson(
  work: ErasureWork & Storage,
  erasure: StoredErasure,
  stored: Stored,
  receipt: ErasureReceipt,
): Promise<void> {
  const { pool, tenantId } = work
  const at = await findOldestUnapplied(work, tenantId)
  stored.since ??= (at ?? erasure.requestedAt).toISOString()
  await eraseWaiting(work, mergeNames(stored.names, await findNamesOfSubject(pool, tenantId, stored.subject)))
  // What left the overflow before it could be taken out is in the log by now: it is applied, and then found.
  receipt.not_yet_processed = await waitUntilApplied(work, tenantId, await databaseNow(pool), stored.waitMs)
  // Until no further name turns up: what is merged into the profile meanwhile belongs to the person.
  for (let known = 0; ; ) {
    stored.names = mergeNames(stored.names, await findNamesOfSubject(pool, tenantId, stored.subject))
    if (stored.names.length === known) break
    known = stored.names.length
    await eraseEffects(work, stored.names, null)
  }
  await inTransaction(pool, async client => {
    // Every worker's transaction about this tenant lies wholly before this one or wholly after it. Those before are
    // committed now: the names they added are found here, and what they wrote in the second pass. Those after
    // read a newer version (holdConfigVersion) and forget the nodes they remembered: nobody writes to one that
    // is gone, and the person does not come back.
    await lockPeople(client, tenantId)
    stored.names = mergeNames(stored.names, await findNamesOfSubject(client, tenantId, stored.subject))
    const deleted = await deleteIdentifiers(client, tenantId, nodeIds(stored.names))
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

/** From the commit on, whatever comes under one of these names is not recorded. */
async function suppress(
  client: pg.PoolClient,
  erasure: StoredErasure,
  names: TracedIdentifier[],
): Promise<number> {
  const { tenantId } = erasure
  const hashes = names.map(name => ({ kind: name.kind, hash: hashIdentifier(tenantId, name) }))
  await holdRequests(client)
  await insertSuppressions(client, tenantId, erasure.id, hashes)
  return hashes.length
}

/** All that the person is known by; an e-mail that nobody was seen under may still stand in what waits. */
export async function findNamesOfSubject(
  db: pg.Pool | pg.PoolClient,
  tenantId: number,
  subject: Subject,
): Promise<TracedIdentifier[]> {
  const profile = await findProfileOfSubject(db, tenantId, subject)
  if (profile !== null) return loadTracedIdentifiers(db, tenantId, profile)
  return 'email' in subject ? [{ node: null, kind: 'email', value: subject.email }] : []
}

export async function findProfileOfSubject(
  db: pg.Pool | pg.PoolClient,
  tenantId: number,
  subject: Subject,
): Promise<number | null> {
  if ('profile' in subject) return findCurrentProfile(db, tenantId, subject.profile)
  const [found] = await findIdentifiers(db, tenantId, { kinds: ['email'], values: [subject.email] })
  return found?.profile ?? null
}

function mergeNames(some: TracedIdentifier[], more: TracedIdentifier[]): TracedIdentifier[] {
  const all = [...some, ...more].map(name => [`${name.kind} ${name.value} ${name.node}`, name] as const)
  return [...new Map(all).values()]
}

/** Goes on with what a process left behind when it ended. */
export const resumeErasures = (storage: Storage, silentS?: number): Promise<void> =>
  resume({
    take: silent => takeLeftErasure(storage.pool, silent),
    run: left => runErasure(storage, left),
    silentS,
  })

/** What an erasure works on. Counts are saved in the transaction that they are about, so that a crash falsifies none. */
export type ErasureWork = {
  pool: pg.Pool
  log: Pick<Log, 'forget'>
  tenantId: number
  erased: ErasureReceipt['erased']
  save(db: Db): Promise<void>
}

// Short transactions: an open one that writes holds the readers of the log back.
// A body that is larger is read with a pause after it: requests are served between.
const MAX_ROUNDS = 10

/** Everything that stands about these names, but for what waits and the names themselves. */
async function eraseEffects(
  work: ErasureWork,
  names: TracedIdentifier[],
  receivedSince: Date | null,
): Promise<void> {
  const { pool, log, tenantId, erased, save } = work
  const nodes = nodeIds(names)
  const named = await findRecordsNaming(work, names)
  const contactIds = [...new Set([...valuesOfKind(names, 'contact'), ...named.contacts])]
  // Bodies as they came, for developers, of the last days: rather all of them than to search in them.
  await deleteRequestsOf(pool, tenantId)
  await deleteRejectionExamples(pool, tenantId)
  for (const events of portions(await findEventsAbout(work, names, receivedSince))) {
    await inTransaction(pool, async client => {
      erased.archived += await deleteArchivedOf(client, tenantId, events)
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
  for (const sales of portions(await findSalesAbout(work, { nodes, contactIds, orderIds: named.orders }))) {
    const orderIds = sales.flatMap(({ orderId }) => orderId ?? [])
    await inTransaction(pool, async client => {
      erased.orders += await reduceOrders(client, tenantId, orderIds, KEPT_ORDER_FIELDS)
      const saleKeys = sales.map(({ saleKey }) => saleKey)
      await anonymizeSaleMessages(client, tenantId, saleKeys)
      await anonymizeArchivable(client, tenantId, saleKeys)
      await deleteRecordMessages(
        client,
        tenantId,
        orderIds.map(id => `order/${id}`),
      )
      erased.conversions += await anonymizeSales(client, tenantId, saleKeys)
      await save(client)
    })
  }
  // An account keeps its id, and is found again in the next pass: it is counted once.
  const billing = { customers: contactIds, emails: valuesOfKind(names, 'email') }
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
}

const TABLES: readonly EntryTable[] = ['dead_letters', 'parked_entries', 'overflow']

/** What waits or was given up, and is about the person. */
async function eraseWaiting(work: ErasureWork, names: TracedIdentifier[]): Promise<void> {
  for (const table of TABLES) {
    // An entry that is moved on or cut in two while it is read is read again.
    for (let round = 0; round < MAX_ROUNDS; round++) if (!(await eraseEntries(work, table, names))) break
  }
}

/** Whether an entry about the person moved on meanwhile. */
async function eraseEntries(
  work: ErasureWork,
  table: EntryTable,
  names: TracedIdentifier[],
): Promise<boolean> {
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
  const context = withItems(row.entry.context, others)
  return narrowEntry(db, table, row, { context, items: others.length })
}

function withItems(context: string, items: number[]): string {
  return JSON.stringify({ ...JSON.parse(context), items })
}

const counted = (description: string) => Type.Integer({ minimum: 0, description })

/** A preview and a receipt count the same things alike; they differ by what came in, or went, between them. */
export const Erased = Type.Object(
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
