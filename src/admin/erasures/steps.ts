import { setImmediate as turn } from 'node:timers/promises'
import type pg from 'pg'
import { itemsAbout, itemsOfLetter, KEPT_ORDER_FIELDS } from '../../domain/identity/erasure.ts'
import { mentions, personNames } from '../../domain/identity/mentions.ts'
import { entryIdOf, newEntryId } from '../../domain/ids.ts'
import type { EntryName, Log } from '../../log/log.ts'
import { anonymiseBilling } from '../../pipeline/billing/erasure.ts'
import { databaseNow } from '../../postgres/clock.ts'
import { type Db, inTransaction } from '../../postgres/database.ts'
import { anonymiseArchivable } from '../../store/archive/archive.ts'
import {
  anonymiseSaleMessages,
  deleteEventMessages,
  deleteRecordMessages,
} from '../../store/destinations/erasure.ts'
import { deleteRefusalExamples } from '../../store/entries/refusals.ts'
import {
  anonymiseSales,
  buryContacts,
  deleteArchivedOf,
  deleteEntry,
  deleteEventsAt,
  type EntryRow,
  type EntryTable,
  type EventRow,
  findEventsOf,
  findSalesOf,
  type KnownName,
  narrowEntry,
  readEntries,
  readUnjoinedEvents,
  reduceOrders,
} from '../../store/identity/traces.ts'
import { deleteRequestsOf } from '../../store/inbound/requests.ts'
import type { ErasureReceipt } from '../views/erasures.ts'
import { eventsNaming, recordsNaming } from './search.ts'

/** What an erasure works on. Counts are saved in the transaction that they are about, so that a crash falsifies none. */
export type ErasureWork = {
  pool: pg.Pool
  log: Pick<Log, 'forget'>
  tenantId: number
  erased: ErasureReceipt['erased']
  save(db: Db): Promise<void>
}

// Short transactions: an open one that writes holds the readers of the log back.
const AT_A_TIME = 1_000
// A body that is larger is read with a pause after it: requests are served between.
const LARGE = 100_000
const MAX_ROUNDS = 10

export const nodesOf = (names: KnownName[]) => names.flatMap(({ node }) => node ?? [])
export const valuesOf = (names: KnownName[], wanted: KnownName['kind']) =>
  names.flatMap(({ kind, value }) => (kind === wanted ? [value] : []))

/** Everything that stands about these names, but for what waits and the names themselves. */
export async function eraseEffects(
  work: ErasureWork,
  names: KnownName[],
  receivedSince: Date | null,
): Promise<void> {
  const { pool, log, tenantId, erased, save } = work
  const nodes = nodesOf(names)
  const named = await recordsNaming(work, names)
  const contactIds = [...new Set([...valuesOf(names, 'contact'), ...named.contacts])]
  // Bodies as they came, for developers, of the last days: rather all of them than to search in them.
  await deleteRequestsOf(pool, tenantId)
  await deleteRefusalExamples(pool, tenantId)
  for (const events of portions(await eventsOf(work, names, receivedSince))) {
    await inTransaction(pool, async client => {
      erased.archived += await deleteArchivedOf(client, tenantId, events)
      erased.log_entries += await log.forget(client, tenantId, entriesOf(events))
      await deleteEventMessages(
        client,
        tenantId,
        events.map(({ id }) => id),
      )
      erased.events += await deleteEventsAt(client, events)
      await save(client)
    })
  }
  for (const sales of portions(await salesOf(work, { nodes, contactIds, orderIds: named.orders }))) {
    const orderIds = sales.flatMap(({ orderId }) => orderId ?? [])
    await inTransaction(pool, async client => {
      erased.orders += await reduceOrders(client, tenantId, orderIds, KEPT_ORDER_FIELDS)
      const saleKeys = sales.map(({ saleKey }) => saleKey)
      await anonymiseSaleMessages(client, tenantId, saleKeys)
      await anonymiseArchivable(client, tenantId, saleKeys)
      await deleteRecordMessages(
        client,
        tenantId,
        orderIds.map(id => `order/${id}`),
      )
      erased.conversions += await anonymiseSales(client, tenantId, saleKeys)
      await save(client)
    })
  }
  // An account keeps its id, and is found again in the next pass: it is counted once.
  const billing = { customers: contactIds, emails: valuesOf(names, 'email') }
  erased.billing = Math.max(erased.billing, await anonymiseBilling(pool, tenantId, billing))
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

/** All events about the person, each once. */
export async function eventsOf(
  work: Pick<ErasureWork, 'pool' | 'tenantId'>,
  names: KnownName[],
  receivedSince: Date | null,
): Promise<EventRow[]> {
  const own = await findEventsOf(work.pool, work.tenantId, nodesOf(names), receivedSince)
  const others = await unjoinedEventsAbout(work, names)
  const found = [...own, ...others, ...(await eventsNaming(work, names, receivedSince))]
  return [...new Map(found.map(event => [event.id, event])).values()]
}

/** Sales of the person, and these orders, each once. */
export async function salesOf(
  { pool, tenantId }: Pick<ErasureWork, 'pool' | 'tenantId'>,
  { nodes, contactIds, orderIds }: { nodes: number[]; contactIds: string[]; orderIds: string[] },
): Promise<Awaited<ReturnType<typeof findSalesOf>>> {
  const sales = await findSalesOf(pool, tenantId, nodes, contactIds)
  const known = new Set(sales.map(({ saleKey }) => saleKey))
  const others = orderIds.map(orderId => ({ saleKey: `order:${orderId}`, orderId }))
  return [...sales, ...others.filter(({ saleKey }) => !known.has(saleKey))]
}

/** The requests that brought these events. */
export function entriesOf(events: EventRow[]): EntryName[] {
  const entries = new Map(events.map(({ id, receivedAt }) => [entryIdOf(id), receivedAt]))
  return [...entries].map(([id, receivedAt]) => ({ id, receivedAt }))
}

/** Events of others that name the person, and were kept unjoined. A browser is no name here: it may be shared. */
export async function unjoinedEventsAbout(
  { pool, tenantId }: Pick<ErasureWork, 'pool' | 'tenantId'>,
  names: KnownName[],
): Promise<EventRow[]> {
  const person = personNames(names.filter(({ kind }) => kind !== 'visitor'))
  const known = { nodes: nodesOf(names), emails: valuesOf(names, 'email') }
  const about: EventRow[] = []
  await inTransaction(pool, async client => {
    for await (const events of readUnjoinedEvents(client, tenantId, known)) {
      for (const { payload, ...event } of events) if (mentions(payload, person)) about.push(event)
      await turn()
    }
  })
  return about
}

const TABLES: readonly EntryTable[] = ['dead_letters', 'parked_entries', 'overflow']

/** What waits or was given up, and is about the person. */
export async function eraseWaiting(work: ErasureWork, names: KnownName[]): Promise<void> {
  for (const table of TABLES) {
    // An entry that is moved on or cut in two while it is read is read again.
    for (let round = 0; round < MAX_ROUNDS; round++) if (!(await eraseEntries(work, table, names))) break
  }
}

/** Whether an entry about the person moved on meanwhile. */
async function eraseEntries(work: ErasureWork, table: EntryTable, names: KnownName[]): Promise<boolean> {
  const { pool, erased, save } = work
  let hasMoved = false
  for (const some of portions(await entriesAbout(work, table, names)))
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

type Items = ReturnType<typeof itemsAbout>

/** Entries that never took effect and are about the person, compared by what they say, however it is written. */
export async function entriesAbout(
  { pool, tenantId }: Pick<ErasureWork, 'pool' | 'tenantId'>,
  table: EntryTable,
  names: KnownName[],
): Promise<{ row: EntryRow; items: Items }[]> {
  const person = personNames(names)
  const itemsIn = table === 'dead_letters' ? itemsOfLetter : itemsAbout
  const found: { row: EntryRow; items: Items }[] = []
  await inTransaction(pool, async client => {
    for await (const rows of readEntries(client, table, tenantId)) {
      for (const row of rows) {
        const items = itemsIn(row.entry, person)
        if (items.about.length > 0) found.push({ row: withoutBody(row), items })
        if (row.entry.body.length > LARGE) await turn()
      }
      await turn()
    }
  })
  return found
}

/** Its body is not needed again, and there may be thousands. */
function withoutBody({ row, entry }: EntryRow): EntryRow {
  return { row, entry: { ...entry, body: '' } }
}

function withItems(context: string, items: number[]): string {
  return JSON.stringify({ ...JSON.parse(context), items })
}

export function* portions<T>(all: T[]): Generator<T[]> {
  for (let from = 0; from < all.length; from += AT_A_TIME) yield all.slice(from, from + AT_A_TIME)
}
