import { setImmediate as turn } from 'node:timers/promises'
import type pg from 'pg'
import { parseStoredEvent } from '../domain/events/stored.ts'
import {
  containsAddress,
  decodePayload,
  findItems,
  findLetterItems,
  identifierKey,
  indexIdentifiers,
  isVerifiedEntry,
  mentionsAny,
} from '../domain/identity/erasure.ts'
import { contactIdentifiers, eventIdentifiers, orderIdentifiers } from '../domain/identity/identifiers.ts'
import { firstIdAt, toEntryId } from '../domain/ids.ts'
import { type EntityType, recordOrderingKey } from '../domain/records/records.ts'
import type { EntryName, Log } from '../log/log.ts'
import { inTransaction } from '../postgres/database.ts'
import { readStored } from '../store/events/events.ts'
import {
  addressPatterns,
  candidatePatterns,
  type EntryRow,
  type EntryTable,
  type EventRow,
  findEventsOfNodes,
  findLinkedNodes,
  findSales,
  readEntries,
  recordsLike,
  type TracedIdentifier,
  type TracedSale,
} from '../store/identity/traces.ts'
import type { ScopedIdentifier } from './person-scope.ts'

type Searched = { pool: pg.Pool; tenantId: number }

/** See `ScopedIdentifier`. */
type SearchedIdentifier = TracedIdentifier & Pick<ScopedIdentifier, 'isUnverifiedLink'>

/**
 * The identifiers to search for in the data of others. Anyone can link any text to a person as a user id or address, so
 * those that only unverified input links lead to their own events alone.
 */
const searchable = (names: SearchedIdentifier[]) => names.filter(({ isUnverifiedLink }) => !isUnverifiedLink)

export const searchableEmails = (names: SearchedIdentifier[]) => valuesOfKind(searchable(names), 'email')

/** Events of other people that contain an e-mail address of the person: the number, and the first ids. */
export type Mentions = { events: number; event_ids: string[] }

export const MAX_MENTIONS = 100

export function addMentions(some: Mentions, more: Mentions): Mentions {
  const event_ids = [...some.event_ids, ...more.event_ids].slice(0, MAX_MENTIONS)
  return { events: some.events + more.events, event_ids }
}

type EventSearch = {
  receivedSince?: Date | null
  /** See `PersonScope`. */
  others?: TracedIdentifier[]
  /** Only events received before this time count as mentions. */
  mentionsBefore?: Date | null
}

/** `events` are about the person. `mentions` are not. */
type FoundEvents = { events: EventRow[]; mentions: Mentions }

/**
 * Finds events by the text of the e-mail address that no link leads to: those that name the address as their own, and
 * those that belong to no person and mention it anywhere. Events of other people that only mention it are `mentions`.
 */
async function findEventsNaming(
  { pool, tenantId }: Searched,
  names: SearchedIdentifier[],
  known: Set<string>,
  { receivedSince, mentionsBefore }: EventSearch,
): Promise<FoundEvents> {
  const found: FoundEvents = { events: [], mentions: { events: 0, event_ids: [] } }
  const emails = valuesOfKind(names, 'email')
  if (emails.length === 0) return found
  const index = (emails: string[]) => indexIdentifiers(emails.map(value => ({ kind: 'email', value })))
  const [addresses, ownAddresses] = [index(emails), index(searchableEmails(names))]
  const person = indexIdentifiers(searchable(names))
  const mentionsEnd = mentionsBefore ? firstIdAt(mentionsBefore) : null
  const own = new Set(names.flatMap(({ node }) => node ?? []))
  await inTransaction(pool, async client => {
    const filter = { mentioning: candidatePatterns(emails), ...(receivedSince && { receivedSince }) }
    for await (const events of readStored(client, tenantId, filter)) {
      for (const event of events) {
        const { table, row, id, receivedAt, node } = event
        if (known.has(id) || (node !== null && own.has(node))) continue
        const isTheirs =
          node === null
            ? mentionsAny(event.payload, person) || mentionsAny(event.besides!, ownAddresses)
            : eventIdentifiers(parseStoredEvent({ ...event, payload: decodePayload(event.payload) })).some(
                ({ kind, value }) => kind === 'email' && person.emails.has(value),
              )
        if (isTheirs) found.events.push({ table, row, id, receivedAt })
        else if (mentionsEnd !== null && id >= mentionsEnd) continue
        else if (mentionsAny(event.payload, addresses) || mentionsAny(event.besides!, addresses))
          found.mentions = addMentions(found.mentions, { events: 1, event_ids: [id] })
      }
      await turn()
    }
  })
  return found
}

/** Contacts and orders with the address in a field that was not evaluated when they were received. */
export async function findRecordsNaming(
  { pool, tenantId }: Searched,
  names: SearchedIdentifier[],
): Promise<{ contacts: string[]; orders: string[] }> {
  const emails = new Set(searchableEmails(names))
  const found = { contacts: [] as string[], orders: [] as string[] }
  if (emails.size === 0) return found
  for (const { entityType, id, data } of await recordsLike(pool, tenantId, candidatePatterns([...emails]))) {
    const fields = JSON.parse(decodePayload(data))
    const identities = entityType === 'order' ? orderIdentifiers(fields) : contactIdentifiers(id, fields)
    if (identities.some(({ kind, value }) => kind === 'email' && emails.has(value)))
      found[entityType === 'order' ? 'orders' : 'contacts'].push(id)
  }
  return found
}

// Short transactions: an open transaction that writes delays the readers of the log.
const AT_A_TIME = 1_000

// After a larger body there is a pause, so that requests are served in between.
const LARGE = 100_000

export const nodeIds = (names: TracedIdentifier[]) => names.flatMap(({ node }) => node ?? [])

export const valuesOfKind = (names: TracedIdentifier[], wanted: TracedIdentifier['kind']) =>
  names.flatMap(({ kind, value }) => (kind === wanted ? [value] : []))

/** All events about the person, each once, and those that only mention the person. */
export async function findEventsAbout(
  work: Searched,
  names: SearchedIdentifier[],
  search: EventSearch,
): Promise<FoundEvents> {
  const { receivedSince = null, others = [] } = search
  const own = await findEventsOfNodes(work.pool, work.tenantId, nodeIds(names), receivedSince)
  const unlinked = await findUnlinkedEventsAbout(work, names, others)
  const linked = new Map([...own, ...unlinked].map(event => [event.id, event]))
  const { events, mentions } = await findEventsNaming(work, names, new Set(linked.keys()), search)
  return { events: [...linked.values(), ...events], mentions }
}

/** The sales of the person and of these orders, each once. */
export async function findSalesAbout(
  { pool, tenantId }: Searched,
  { nodes, contactIds, orderIds }: { nodes: number[]; contactIds: string[]; orderIds: string[] },
): Promise<TracedSale[]> {
  const sales = await findSales(pool, tenantId, nodes, contactIds)
  const others = orderIds.map(orderId => ({ saleKey: `order:${orderId}`, orderId, isNamed: false }))
  return [...new Map([...sales, ...others].map(sale => [sale.saleKey, sale])).values()]
}

/** The read entries in the log with the address in their body, and the writes of these records. */
export function findReadEntries(
  { log, tenantId }: { log: Pick<Log, 'findRead'>; tenantId: number },
  names: SearchedIdentifier[],
  { contactIds, orderIds }: { contactIds: string[]; orderIds: string[] },
): Promise<EntryName[]> {
  const keysOf = (entityType: EntityType, ids: string[]) =>
    ids.map(value => recordOrderingKey(entityType, { name: 'id', value }))
  const emails = searchableEmails(names)
  return log.findRead(tenantId, {
    orderingKeys: [...keysOf('contact', contactIds), ...keysOf('order', orderIds)],
    patterns: addressPatterns(emails),
    isWanted: body => containsAddress(body, emails),
  })
}

/** The entries that contained these events. */
export function toEntryNames(events: EventRow[]): EntryName[] {
  const entries = new Map(events.map(({ id, receivedAt }) => [toEntryId(id), receivedAt]))
  return [...entries].map(([id, receivedAt]) => ({ id, receivedAt }))
}

/**
 * Events of others that name the person and are not linked. `others`: identifiers of the same profile. Visitor ids do not
 * count: a browser may be shared.
 */
export async function findUnlinkedEventsAbout(
  { pool, tenantId }: Searched,
  names: SearchedIdentifier[],
  others: TracedIdentifier[] = [],
): Promise<EventRow[]> {
  const { wanted } = indexIdentifiers(searchable(names).filter(({ kind }) => kind !== 'visitor'))
  const known = { nodes: nodeIds(names), emails: searchableEmails(names) }
  const nodes = [...nodeIds(others), ...(await findLinkedNodes(pool, tenantId, known))]
  const found: EventRow[] = []
  if (wanted.size === 0 || nodes.length === 0) return found
  await inTransaction(pool, async client => {
    for await (const events of readStored(client, tenantId, { nodes })) {
      for (const event of events) {
        const { table, row, id, receivedAt } = event
        if (eventIdentifiers(parseStoredEvent(event)).some(own => wanted.has(identifierKey(own))))
          found.push({ table, row, id, receivedAt })
      }
      await turn()
    }
  })
  return found
}

export type Items = ReturnType<typeof findItems>

/** Entries about the person that were never applied, compared by content, however it is encoded. */
export async function findEntriesAbout(
  { pool, tenantId }: Searched,
  table: EntryTable,
  names: SearchedIdentifier[],
): Promise<{ row: EntryRow; items: Items }[]> {
  const person = indexIdentifiers(searchable(names))
  const unverified = { ...person, wanted: indexIdentifiers(names).wanted }
  const itemsIn = table === 'dead_letters' ? findLetterItems : findItems
  const found: { row: EntryRow; items: Items }[] = []
  await inTransaction(pool, async client => {
    for await (const rows of readEntries(client, table, tenantId)) {
      for (const row of rows) {
        const items = itemsIn(row.entry, isVerifiedEntry(row.entry) ? person : unverified)
        if (items.about.length > 0 || items.isInRest) found.push({ row: withoutBody(row), items })
        if (row.entry.body.length > LARGE) await turn()
      }
      await turn()
    }
  })
  return found
}

/** Drops the body: it is not needed again, and there may be thousands. */
function withoutBody({ row, entry }: EntryRow): EntryRow {
  return { row, entry: { ...entry, body: '' } }
}

export function* portions<T>(all: T[]): Generator<T[]> {
  for (let from = 0; from < all.length; from += AT_A_TIME) yield all.slice(from, from + AT_A_TIME)
}
