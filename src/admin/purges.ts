import type pg from 'pg'
import { type EventSale, orderSaleKey, readConversion } from '../domain/conversions/conversions.ts'
import { parseStoredEvent } from '../domain/events/stored.ts'
import { isUuid, newEntryId } from '../domain/ids.ts'
import { Count, NullableTimestamp, Timestamp, Uuid } from '../domain/shapes.ts'
import { quote } from '../domain/tenants/credentials.ts'
import { publicTenantId } from '../domain/tenants/tenants.ts'
import { CLOCKS_APART_MS, parseTimestamp, TIME_FORMAT } from '../domain/time.ts'
import { endIn, UTC } from '../domain/time-zone.ts'
import { type Static, Type } from '../domain/typebox.ts'
import { rebuildSales, saleAmong, saleNamed } from '../pipeline/conversions/conversions.ts'
import { rememberSales } from '../pipeline/deliveries/notify.ts'
import { rebuildPeople } from '../pipeline/identity/rebuild.ts'
import { databaseNow, inTransaction } from '../postgres/database.ts'
import { ordersNamedBy } from '../store/conversions/conversions.ts'
import { deleteEventMessages } from '../store/destinations/outbox.ts'
import { readStored, type StoredFilter, type StoredNode } from '../store/events/events.ts'
import {
  countJoins,
  deleteEntriesOfKey,
  deleteOwnSales,
  findPurge,
  insertPurge,
  keepPurge,
  keepPurgeSales,
  keepPurgeWork,
  nodesToWorkOut,
  nodesWorkedOut,
  type StoredPurge,
  salesToWorkOut,
  salesWorkedOut,
  savePurge,
  takeLeftPurge,
} from '../store/events/purges.ts'
import { loadConnected } from '../store/identity/rebuild.ts'
import { deleteEventsAt } from '../store/identity/traces.ts'
import { type EventClaim, idScope, processedKey, releaseClaims } from '../store/inbound/processed.ts'
import { listKeys } from '../store/tenants/keys.ts'
import { type Actor, canSee, requireTenant } from './actor.ts'
import { recordChange } from './audit.ts'
import { AdminError, notFound, throwIfInvalid } from './error.ts'
import {
  findOldestUnapplied,
  longWork,
  MAX_WAIT_MS,
  resume,
  type Storage,
  waitUntilApplied,
  withHeartbeat,
} from './long-work.ts'
import { changeIdentities, withSaleChanges } from './people.ts'

/** A date without a time includes that day, so the purge ends at the start of the next one. */
function parseExclusiveEnd(text: string | null | undefined): Date | null {
  const [start, end] = [parseTimestamp(text), endIn(UTC, text)]
  return start && end && end > start ? new Date(end.getTime() + 1) : start
}

type PurgeQuery = { tenant: string; key: string; since: string; until?: string | null | undefined }

/** Removes the data that was sent with a leaked tracking key. */
export function purgeAdmin({ pool, log, actor }: Storage & { actor: Actor }) {
  const storage = { pool, log }
  async function purgeOf(query: PurgeQuery): Promise<StoredPurge> {
    const { id: tenantId } = await requireTenant(pool, actor, query.tenant)
    const keys = await listKeys(pool, tenantId)
    if (!keys.some(({ id, kind }) => id === query.key && kind === 'tracking')) throw notFound('key', query.key)
    const since = parseTimestamp(query.since)
    const until = parseExclusiveEnd(query.until)
    const message = `must be ${TIME_FORMAT}`
    throwIfInvalid([
      ...(since ? [] : [{ pointer: '/since', message }]),
      ...(query.until && !until ? [{ pointer: '/until', message }] : []),
      ...(since && until && until <= since ? [{ pointer: '/until', message: 'must be after since' }] : []),
    ])
    const requestedAt = await databaseNow(pool)
    return {
      id: newEntryId(requestedAt.getTime()),
      ...{ tenantId, requestedAt, keyId: query.key, receivedSince: since!, receivedUntil: until ?? null },
      ...{ status: 'running', receipt: '' },
    }
  }

  async function begin(query: PurgeQuery): Promise<StoredPurge> {
    const purge = await purgeOf(query)
    const unapplied = await waitUntilApplied(storage, purge.tenantId, purge.requestedAt, MAX_WAIT_MS)
    const receipt = newReceipt(purge, unapplied)
    purge.receipt = JSON.stringify(receipt)
    await inTransaction(pool, async client => {
      await insertPurge(client, purge)
      const { id, since, until } = receipt
      await recordChange(client, actor, {
        ...{ action: 'events.purge', target: purge.keyId, tenantId: purge.tenantId },
        after: { id, since, until },
      })
    })
    return purge
  }

  const { finish, start } = longWork({
    begin,
    run: purge => runPurge(storage, purge),
    receiptNow: async ({ id }): Promise<PurgeReceipt> => JSON.parse((await findPurge(pool, id))!.receipt),
  })

  return {
    purge: finish,
    start,
    async preview(query: PurgeQuery): Promise<PurgePreview> {
      const purge = await purgeOf(query)
      const would_purge = { events: 0, sales: 0, joins: 0 }
      const sales = new Set<string>()
      await inTransaction(pool, async client => {
        for await (const events of readStored(client, purge.tenantId, purgeFilter(purge))) {
          const ids = events.map(({ id }) => id)
          would_purge.events += events.length
          would_purge.joins += await countJoins(client, purge.tenantId, ids)
          for (const sale of saleKeysIn(events)) sales.add(sale)
        }
      })
      would_purge.sales = sales.size
      const { tenant, key, since, until } = newReceipt(purge, 0)
      return { dry_run: true, tenant, key, since, until, would_purge }
    },
    async show(id: string): Promise<PurgeReceipt> {
      const purge = isUuid(id) ? await findPurge(pool, id) : null
      if (!purge || !canSee(actor, purge.tenantId))
        throw new AdminError('not_found', 'purge_not_found', `No such purge: ${quote(id)}.`)
      return JSON.parse(purge.receipt)
    },
  }
}

function newReceipt(purge: StoredPurge, unapplied: number): PurgeReceipt {
  return {
    id: purge.id,
    tenant: publicTenantId(purge.tenantId),
    key: purge.keyId,
    since: purge.receivedSince.toISOString(),
    until: purge.receivedUntil?.toISOString() ?? null,
    status: 'running',
    requested_at: purge.requestedAt.toISOString(),
    completed_at: null,
    purged: { events: 0, conversions: 0, identities: 0, dead_letters: 0, waiting: 0 },
    not_yet_processed: unapplied,
  }
}

const Purged = Type.Object(
  {
    events: Count,
    conversions: Count,
    identities: Type.Integer({ minimum: 0, description: 'Identifiers without any other event or record' }),
    dead_letters: Count,
    waiting: Count,
  },
  { title: 'Purged', description: 'The number of removed objects' },
)

/** What was removed of the data that a tracking key sent. */
export const PurgeReceipt = Type.Object(
  {
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
      description: 'Entries that were not processed in time. If not 0, repeat the purge when they are processed',
    }),
  },
  { title: 'PurgeReceipt', description: 'What was removed of the data that a tracking key sent' },
)

export type PurgeReceipt = Static<typeof PurgeReceipt>

export const PurgePreview = Type.Object(
  {
    dry_run: Type.Literal(true),
    tenant: Type.String(),
    key: Type.String(),
    since: Timestamp,
    until: NullableTimestamp,
    would_purge: Type.Object(
      {
        events: Count,
        sales: Type.Integer({
          minimum: 0,
          description: 'Sales that its events created or updated. Those that other input reports, too, stay',
        }),
        joins: Type.Integer({ minimum: 0, description: 'Links between people that its events caused' }),
      },
      { description: 'The number of objects that the purge would delete or derive again' },
    ),
  },
  { title: 'PurgePreview', description: 'What a purge would remove' },
)

export type PurgePreview = Static<typeof PurgePreview>

// Together with all nodes of the same profiles. Each round reads the tenant's events once.
const NODES_AT_A_TIME = 2_000
const SALES_AT_A_TIME = 1_000

type Run = Storage & { purge: StoredPurge; receipt: PurgeReceipt; isServerKey: boolean }

/** Runs or continues a purge to its end. Completed steps are not repeated. */
async function runPurge({ pool, log }: Storage, purge: StoredPurge): Promise<PurgeReceipt> {
  const keys = await listKeys(pool, purge.tenantId)
  const isServerKey = keys.some(({ id, server }) => id === purge.keyId && server)
  const receipt = JSON.parse(purge.receipt) as PurgeReceipt
  const run = { pool, log, purge, receipt, isServerKey }
  return withHeartbeat(
    () => keepPurge(pool, purge),
    async () => {
      await removeEvents(run)
      await removeEntries(run)
      while (await rebuildSomePeople(run));
      await rebuildAllSales(run)
      receipt.status = 'completed'
      receipt.completed_at = (await databaseNow(pool)).toISOString()
      await savePurge(pool, { ...purge, status: 'completed', receipt: JSON.stringify(receipt) })
      return receipt
    },
  )
}

const save = (client: pg.PoolClient, { purge, receipt }: Run) =>
  savePurge(client, { ...purge, status: 'running', receipt: JSON.stringify(receipt) })

/** Selects the events of a purge. */
function purgeFilter({ keyId, receivedSince, receivedUntil }: StoredPurge): StoredFilter {
  return { key: keyId, receivedSince, receivedUntil }
}

/** Deletes events in batches. Each batch records the affected people and sales, which are rebuilt later. */
async function removeEvents(run: Run): Promise<void> {
  const { pool, purge, receipt } = run
  await inTransaction(pool, async reader => {
    for await (const events of readStored(reader, purge.tenantId, purgeFilter(purge)))
      await withSaleChanges(pool, async transaction => {
        const { client } = transaction
        const sales = saleKeysIn(events).filter(sale => !sale.startsWith('event:'))
        await keepPurgeWork(client, purge, { events, sales })
        const ids = events.map(({ id }) => id)
        await deleteEventMessages(client, purge.tenantId, ids)
        await rememberSales(
          transaction,
          ids.map(id => ({ tenantId: purge.tenantId, saleKey: `event:${id}` })),
        )
        receipt.purged.conversions += await deleteOwnSales(client, purge.tenantId, ids)
        receipt.purged.events += await deleteEventsAt(client, events)
        await releaseClaims(client, listClaims(purge.tenantId, events))
        await save(client, run)
      })
  })
}

/** Releases event ids, so that the legitimate sender can use an id that an attacker has used. */
function listClaims(tenantId: number, events: StoredNode[]): EventClaim[] {
  return events.flatMap(event =>
    event.inboundEventId === null
      ? []
      : [{ tenantId, key: processedKey(idScope(event), event.inboundEventId), eventId: event.id }],
  )
}

/** The sales of events: their own (`event:…`), or those shared with other events and orders. */
function saleKeysIn(events: StoredNode[]): string[] {
  const sales = new Set<string>()
  for (const stored of events) {
    const event = parseStoredEvent(stored)
    const conversion = readConversion(event, new Set([event.eventType]))
    if (stored.conversion && conversion) sales.add(saleNamed(conversion) ?? `event:${stored.id}`)
  }
  return [...sales]
}

async function removeEntries(run: Run): Promise<void> {
  const { pool, purge, receipt } = run
  await inTransaction(pool, async client => {
    receipt.purged.dead_letters += await deleteEntriesOfKey(client, 'dead_letters', purge)
    receipt.purged.waiting += await deleteEntriesOfKey(client, 'parked_entries', purge)
    await save(client, run)
  })
}

/** Rebuilds a batch of people from the remaining events. Returns false when none is left. */
async function rebuildSomePeople(run: Run): Promise<boolean> {
  const { pool, purge, receipt, isServerKey } = run
  const { tenantId } = purge
  const nodes = await nodesToWorkOut(pool, purge, NODES_AT_A_TIME)
  if (nodes.length === 0) return false
  // Read without a lock. Events that arrive meanwhile are read again under the profile lock.
  const before = new Set((await loadConnected(pool, tenantId, nodes)).map(({ node }) => node))
  const since = await earliestNew(run, tenantId)
  const known = await readAll(pool, tenantId, { nodes: [...before] })
  await changeIdentities(pool, tenantId, async transaction => {
    const { client } = transaction
    const circle = await loadConnected(client, tenantId, nodes)
    const hasGrown = circle.some(({ node }) => !before.has(node))
    const events = new Map(known.map(event => [event.id, event]))
    const filter = hasGrown ? {} : { receivedSince: since }
    for await (const some of readStored(client, tenantId, {
      nodes: circle.map(({ node }) => node),
      ...filter,
    }))
      for (const event of some) events.set(event.id, event)
    const openSales = new Set(await salesToWorkOut(client, purge))
    // The buyers of these orders may have changed.
    const named = await ordersNamedBy(
      client,
      tenantId,
      circle.map(({ node }) => node),
    )
    await keepPurgeSales(client, purge, named.map(orderSaleKey))
    receipt.purged.identities += await rebuildPeople(transaction, {
      ...{ tenantId, circle, since: purge.receivedSince, unverify: isServerKey },
      ...{ events: [...events.values()], openSales },
    })
    await nodesWorkedOut(client, purge, [...nodes, ...circle.map(({ node }) => node)])
    await save(client, run)
  })
  return true
}

async function rebuildAllSales(run: Run): Promise<void> {
  const { pool, purge, receipt } = run
  const { tenantId } = purge
  const all = await salesToWorkOut(pool, purge)
  if (all.length === 0) return
  const wanted = new Set(all)
  const found = new Map<string, EventSale>()
  const collect = (events: StoredNode[]) => {
    for (const event of events) {
      const sale = saleAmong(event, tenantId, wanted)
      if (sale) found.set(sale.id, sale)
    }
  }
  const since = await earliestNew(run, tenantId)
  await inTransaction(pool, async client => {
    for await (const some of readStored(client, tenantId, { conversionsOnly: true })) collect(some)
  })
  for (let from = 0; from < all.length; from += SALES_AT_A_TIME) {
    const sales = all.slice(from, from + SALES_AT_A_TIME)
    await changeIdentities(pool, tenantId, async transaction => {
      const { client } = transaction
      for await (const some of readStored(client, tenantId, { conversionsOnly: true, receivedSince: since }))
        collect(some)
      const own = new Set(sales)
      receipt.purged.conversions += await rebuildSales(transaction, tenantId, {
        sales,
        left: [...found.values()].filter(({ saleKey }) => own.has(saleKey)),
      })
      await salesWorkedOut(client, purge, sales)
      await save(client, run)
    })
  }
}

/** Entries that are applied from now on were received at or after this time. */
async function earliestNew(storage: Storage, tenantId: number): Promise<Date> {
  const waiting = await findOldestUnapplied(storage, tenantId)
  return new Date(Math.min(waiting?.getTime() ?? Number.POSITIVE_INFINITY, Date.now()) - CLOCKS_APART_MS)
}

async function readAll(pool: pg.Pool, tenantId: number, filter: StoredFilter): Promise<StoredNode[]> {
  const all: StoredNode[] = []
  await inTransaction(pool, async client => {
    for await (const some of readStored(client, tenantId, filter)) all.push(...some)
  })
  return all
}

/** Continues purges whose process ended. */
export const resumePurges = (storage: Storage, silentS?: number): Promise<void> =>
  resume({
    take: silent => takeLeftPurge(storage.pool, silent),
    run: left => runPurge(storage, left),
    silentS,
  })
