import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import { itemsAbout, KEPT_ORDER_FIELDS, mentions } from '../domain/identity/erasure.ts'
import { emailOf } from '../domain/identity/identity.ts'
import { newEntryId } from '../domain/ids.ts'
import { publicTenantId } from '../domain/tenants/tenants.ts'
import { anonymiseBilling } from '../pipeline/billing/erasure.ts'
import { inTransaction } from '../postgres/database.ts'
import { lockPeople } from '../postgres/locks.ts'
import {
  anonymiseSales,
  buryContacts,
  countUnapplied,
  deleteArchivedOf,
  deleteEntry,
  deleteEventsAt,
  deleteLoggedOf,
  deleteNames,
  type EntryTable,
  findEntriesWith,
  findEventsOf,
  findSalesOf,
  findUnjoinedEvents,
  finishErasure,
  insertErasure,
  type KnownName,
  listErasures,
  namesOf,
  narrowEntry,
  reduceOrders,
} from '../store/identity/erasures.ts'
import type { Actor } from './actor.ts'
import { recordChange } from './audit.ts'
import { AdminError, refuse } from './error.ts'
import { tenantNamed } from './tenants.ts'
import type { ErasureReceipt } from './views.ts'

export type ErasureQuery = { tenant: string; email?: string | undefined; profile?: string | undefined }

export type ErasureAdmin = ReturnType<typeof erasureAdmin>

// Short transactions: an open one that writes holds the readers of the log back.
const AT_A_TIME = 1_000
const MAX_WAIT_MS = 10_000
// What was applied during the first pass came in after the request, give or take the clocks of other nodes.
const SECOND_PASS_BACK_MS = 60_000

const NOTES = [
  'The log of raw requests keeps what is not listed here until its retention time is over (7 days unless set otherwise). Backups keep what they hold.',
  'Ids of processed events are kept as hashes, so that a late repeat does not bring an event back.',
  'What a shop or CRM sends again is stored again: erase the person there first.',
]

export function erasureAdmin({
  pool,
  actor,
  waitMs = MAX_WAIT_MS,
}: {
  pool: pg.Pool
  actor: Actor
  waitMs?: number
}) {
  return {
    async erase(query: ErasureQuery): Promise<ErasureReceipt> {
      const subject = subjectOf(query)
      const tenantId = (await tenantNamed(pool, actor, query.tenant)).id
      const requestedAt = new Date()
      const unapplied = await untilApplied(pool, tenantId, requestedAt, waitMs)
      const erased = nothing()
      const id = newEntryId(requestedAt.getTime())
      const receipt = (completedAt: Date | null): ErasureReceipt => ({
        id,
        tenant: publicTenantId(tenantId),
        subject_hash: hashOf(tenantId, subject).toString('hex'),
        requested_at: requestedAt.toISOString(),
        completed_at: completedAt?.toISOString() ?? null,
        erased,
        not_yet_processed: unapplied,
        notes: NOTES,
      })

      const names = await eraseEffects(pool, tenantId, subject, erased)
      const all = await inTransaction(pool, async client => {
        // Every worker's transaction about this tenant lies wholly before this one or wholly after it. Those before are
        // committed now: the names they added are found here, and what they wrote in the second pass. Those after
        // read a newer version (holdConfigVersion) and forget the nodes they remembered: nobody writes to one that
        // is gone, and the person does not come back.
        await lockPeople(client, tenantId)
        const known = merged(names, await namesOf(client, tenantId, subject))
        const nodes = known.map(({ node }) => node)
        const deleted = await deleteNames(client, tenantId, nodes)
        erased.identities += deleted.names
        erased.touches += deleted.touches
        await insertErasure(client, {
          id,
          tenantId,
          requestedAt,
          subjectHash: hashOf(tenantId, subject),
          receipt: JSON.stringify(receipt(null)),
        })
        // The hash names nobody, and whoever knows the person can find the row again.
        const target = hashOf(tenantId, subject).toString('hex')
        await recordChange(client, actor, { action: 'person.erase', target, tenantId, after: { id } })
        return known
      })
      if (all.length > 0)
        await eraseNamed(pool, tenantId, all, erased, new Date(requestedAt.getTime() - SECOND_PASS_BACK_MS))
      const done = receipt(new Date())
      await finishErasure(pool, tenantId, id, JSON.stringify(done))
      return done
    },
    /** Newest first. */
    async list(tenant: string): Promise<ErasureReceipt[]> {
      const { id } = await tenantNamed(pool, actor, tenant)
      return (await listErasures(pool, id, 100)).map(({ receipt }) => JSON.parse(receipt) as ErasureReceipt)
    },
  }
}

type Subject = { email: string } | { profile: number }

function subjectOf({ email, profile }: ErasureQuery): Subject {
  if ((email === undefined) === (profile === undefined)) {
    throw new AdminError(
      'invalid',
      'invalid_request',
      'Name the person by e-mail or by profile: one of the two.',
    )
  }
  const address = emailOf(email)
  const number = /^prof_([1-9]\d{0,15})$/.exec(profile ?? '')?.[1]
  if (email !== undefined) {
    refuse(address === null ? [{ pointer: '/email', message: 'must be an e-mail address' }] : [])
    return { email: address! }
  }
  refuse(
    number === undefined
      ? [{ pointer: '/profile', message: 'must be a profile id, for example prof_7' }]
      : [],
  )
  return { profile: Number(number) }
}

function hashOf(tenantId: number, subject: Subject): Buffer {
  const text = 'email' in subject ? `email ${subject.email}` : `profile ${subject.profile}`
  return createHash('sha256')
    .update(`${publicTenantId(tenantId)} ${text}`)
    .digest()
}

/** What came in before the request is applied first: then it can be found. Returns how much of it is not. */
async function untilApplied(pool: pg.Pool, tenantId: number, at: Date, waitMs: number): Promise<number> {
  const deadline = Date.now() + waitMs
  for (;;) {
    const unapplied = await countUnapplied(pool, tenantId, at)
    if (unapplied === 0 || Date.now() >= deadline) return unapplied
    await sleep(50)
  }
}

/** Erases until no further name turns up: what is merged into the profile meanwhile belongs to the person. */
async function eraseEffects(
  pool: pg.Pool,
  tenantId: number,
  subject: Subject,
  erased: ErasureReceipt['erased'],
): Promise<KnownName[]> {
  let names: KnownName[] = []
  for (;;) {
    const known = merged(names, await namesOf(pool, tenantId, subject))
    if (known.length === names.length) return known
    names = known
    await eraseNamed(pool, tenantId, names, erased, null)
  }
}

function merged(some: KnownName[], more: KnownName[]): KnownName[] {
  return [...new Map([...some, ...more].map(name => [name.node, name])).values()]
}

async function eraseNamed(
  pool: pg.Pool,
  tenantId: number,
  names: KnownName[],
  erased: ErasureReceipt['erased'],
  receivedSince: Date | null,
): Promise<void> {
  const nodes = names.map(({ node }) => node)
  const contactIds = names.flatMap(({ kind, value }) => (kind === 'contact' ? [value] : []))

  const own = await findEventsOf(pool, tenantId, nodes, receivedSince)
  const unjoined = await findUnjoinedEvents(pool, tenantId, nodes, receivedSince)
  const about = unjoined.filter(({ payload }) => mentions(payload, names))
  for (const events of portions([...own, ...about])) {
    await inTransaction(pool, async client => {
      erased.archived += await deleteArchivedOf(client, tenantId, events)
      erased.log_entries += await deleteLoggedOf(client, tenantId, events)
      erased.events += await deleteEventsAt(client, events)
    })
  }
  for (const sales of portions(await findSalesOf(pool, tenantId, nodes, contactIds))) {
    const orderIds = sales.flatMap(({ orderId }) => orderId ?? [])
    await inTransaction(pool, async client => {
      erased.orders += await reduceOrders(client, tenantId, orderIds, KEPT_ORDER_FIELDS)
      const saleKeys = sales.map(({ saleKey }) => saleKey)
      erased.conversions += await anonymiseSales(client, tenantId, saleKeys)
    })
  }
  const emails = names.flatMap(({ kind, value }) => (kind === 'email' ? [value] : []))
  erased.billing += await anonymiseBilling(pool, tenantId, { customers: contactIds, emails })
  const now = new Date()
  erased.contacts += await buryContacts(pool, tenantId, contactIds, now, newEntryId(now.getTime()))
  erased.dead_letters += await eraseEntries(pool, 'dead_letters', tenantId, names)
  erased.waiting += await eraseEntries(pool, 'parked_entries', tenantId, names)
  erased.waiting += await eraseEntries(pool, 'overflow', tenantId, names)
}

/** What waits or was given up, and is about the person. Returns how many items. */
async function eraseEntries(
  pool: pg.Pool,
  table: EntryTable,
  tenantId: number,
  names: KnownName[],
): Promise<number> {
  let items = 0
  const texts = names.map(({ value }) => value)
  for (const found of await findEntriesWith(pool, table, tenantId, texts)) {
    const { about, others } = itemsAbout(found.entry, names)
    if (about.length === 0) continue
    const isErased =
      others.length > 0 && table !== 'dead_letters'
        ? await narrowEntry(pool, table, found, {
            context: withItems(found.entry.context, others),
            items: others.length,
          })
        : await deleteEntry(pool, table, found)
    if (isErased) items += about.length
  }
  return items
}

function withItems(context: string, items: number[]): string {
  return JSON.stringify({ ...JSON.parse(context), items })
}

function* portions<T>(all: T[]): Generator<T[]> {
  for (let from = 0; from < all.length; from += AT_A_TIME) yield all.slice(from, from + AT_A_TIME)
}

function nothing(): ErasureReceipt['erased'] {
  return {
    events: 0,
    conversions: 0,
    orders: 0,
    contacts: 0,
    identities: 0,
    touches: 0,
    archived: 0,
    dead_letters: 0,
    waiting: 0,
    log_entries: 0,
    billing: 0,
  }
}
