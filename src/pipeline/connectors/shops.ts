import type { NormalizedEvent } from '../../domain/events/events.ts'
import type { ShopChange } from '../../domain/providers/shops/shop.ts'
import { shopChanges, shopType } from '../../domain/providers/shops.ts'
import type { EntityType } from '../../domain/records/records.ts'
import { timestampText } from '../../domain/time.ts'
import { type Family, loadFamilies, recordsOfHandles } from '../../store/records/families.ts'
import { keepHandles } from '../../store/records/handles.ts'
import { lockRecordTypes } from '../../store/records/tombstones.ts'
import type { EventKindOptions } from '../events/events.ts'
import type { Change } from '../records/change.ts'
import { locksFor, strictest } from '../records/locks.ts'
import type { ApplyRecords } from '../records/records.ts'
import type { Transaction } from '../unit.ts'
import { refundedOrders } from './refunds.ts'
import { entryOf, type ReportedChange, writeOf } from './reported-change.ts'

/**
 * Webhooks of shops change records, in the transaction of their events. What is told of one record comes in several
 * partitions, beside the writes of the data API: so the types are locked as those do who delete by name, alone, and before
 * anything else. (Locked only when an event came to it, two workers that both had written records waited for each other.)
 */
export function shopRecords(applyRecords: ApplyRecords): EventKindOptions['records'] {
  return {
    async lock({ client }, units) {
      const exclusive = units.flatMap(unit => {
        const event = unit.entry.kind === 'events' ? (unit.work as NormalizedEvent | undefined) : undefined
        const entityType = event?.makesRecords ? shopType(event) : null
        return entityType ? [{ tenantId: unit.entry.tenantId, entityType, exclusive: true }] : []
      })
      if (exclusive.length === 0) return
      const writes = units.filter(unit => unit.entry.kind === 'record' && unit.work !== undefined)
      await lockRecordTypes(client, strictest([...locksFor(writes as Change[]), ...exclusive]))
    },
    async apply(transaction, events) {
      const reportedChanges = events.flatMap(({ tenantId, event }) =>
        shopChanges(event).map((change): ReportedChange => ({ tenantId, event, change })),
      )
      const changes = await changesOf(transaction.client, reportedChanges)
      if (changes.length > 0) await applyRecords(transaction, changes)
      const refunds = await refundedOrders(transaction.client, reportedChanges)
      if (refunds.length > 0) await applyRecords(transaction, refunds)
    },
  }
}

/** In the order of what was reported, each on what those before it left. */
async function changesOf(
  client: Transaction['client'],
  reportedChanges: ReportedChange[],
): Promise<Change[]> {
  const families = await knownFamilies(client, reportedChanges)
  const imported = await importedRecords(client, reportedChanges)
  return reportedChanges.flatMap(reported => [
    ...toldChanges(reported, families),
    ...(imported.get(reported) ?? []).map(id => deleteOf(reported, 'product', id, importedUntil(reported))),
  ])
}

function toldChanges(reported: ReportedChange, families: Map<string, KnownFamily>): Change[] {
  const { tenantId, change } = reported
  if (change.op === 'refund') return []
  if (change.op === 'delete') return [deleteOf(reported, change.entityType, change.id)]
  if (change.op === 'product')
    return productChanges(reported, change, families.get(familyText({ tenantId, id: change.id }))!)
  const { id } = change.record
  const parentId = parentOf(change)
  const family = parentId === null ? undefined : families.get(familyText({ tenantId, id: parentId }))
  const parent = parentId === null ? undefined : family?.get(parentId)
  // It went with its product, whichever of the two came first.
  if (parent && !parent.isLive && parent.at >= change.at) return []
  family?.set(id, { at: change.at, isLive: true })
  return [writeOf(reported, change.record)]
}

/** A file's time may be later than the product's: what came before this webhook gives way to it. */
function importedUntil({ event, change }: ReportedChange): string {
  const receivedAt = timestampText(event.receivedAt.toISOString())!
  return change.at > receivedAt ? change.at : receivedAt
}

/** When each record of a product was last told, by id. */
type KnownFamily = Map<string, { at: string; isLive: boolean }>

function productChanges(
  reported: ReportedChange,
  { id, at, records, kept, isSnapshot }: Extract<ShopChange, { op: 'product' }>,
  family: KnownFamily,
): Change[] {
  if (isSnapshot && [...family.values()].some(known => known.at > at)) return []
  const staying = new Set([...records.map(record => record.id), ...kept])
  // Whoever has told of the product later knew better what belongs to it.
  const isStale = (family.get(id)?.at ?? '') > at
  const gone = [...family].flatMap(([member, { isLive }]) =>
    isLive && !isStale && !staying.has(member) ? [member] : [],
  )
  // also where it was never seen: what is older and comes later stays deleted
  const deleted = records.length === 0 ? [...new Set([id, ...gone])] : gone
  for (const member of deleted) family.set(member, { at, isLive: false })
  for (const record of records) family.set(record.id, { at, isLive: true })
  return [
    ...records.map(record => writeOf(reported, record)),
    ...deleted.map(member => deleteOf(reported, 'product', member)),
  ]
}

/** The product that a variation is told of alone; null: it is no variation. */
function parentOf(change: Extract<ShopChange, { op: 'write' }>): string | null {
  const { entityType, id } = change.record
  const end = entityType === 'product' ? id.indexOf('/') : -1
  return end < 0 ? null : id.slice(0, end)
}

async function knownFamilies(
  client: Transaction['client'],
  reportedChanges: ReportedChange[],
): Promise<Map<string, KnownFamily>> {
  const families = new Map<string, Family>()
  for (const { tenantId, change } of reportedChanges) {
    const id = change.op === 'product' ? change.id : change.op === 'write' ? parentOf(change) : null
    if (id !== null) families.set(familyText({ tenantId, id }), { tenantId, id })
  }
  if (families.size === 0) return new Map()
  const known = new Map<string, KnownFamily>([...families.keys()].map(text => [text, new Map()]))
  for (const row of await loadFamilies(client, [...families.values()]))
    known.get(familyText(row))!.set(row.memberId, { at: row.sourceUpdatedAt, isLive: !row.deleted })
  return known
}

/** What came by a file of the products that are told here, which goes by their handles. Those are kept. */
async function importedRecords(
  client: Transaction['client'],
  reportedChanges: ReportedChange[],
): Promise<Map<ReportedChange, string[]>> {
  const named = reportedChanges.flatMap(reported => {
    const { tenantId, change } = reported
    if (change.op !== 'product' || change.handle === null || change.handle === change.id) return []
    return [{ reported, tenantId, handle: change.handle, productId: change.id, toldAt: change.at }]
  })
  if (named.length === 0) return new Map()
  await keepHandles(client, named)
  const distinct = new Map(named.map(entry => [familyText({ ...entry, id: entry.handle }), entry]))
  const rows = await recordsOfHandles(client, [...distinct.values()])
  const found = Map.groupBy(rows, ({ tenantId, handle }) => familyText({ tenantId, id: handle }))
  return new Map(
    named.map(({ reported, tenantId, handle }) => [
      reported,
      (found.get(familyText({ tenantId, id: handle })) ?? []).map(({ id }) => id),
    ]),
  )
}

function familyText({ tenantId, id }: Family): string {
  return `${tenantId} ${id}`
}

function deleteOf(
  reported: ReportedChange,
  entityType: EntityType,
  id: string,
  at = reported.change.at,
): Change {
  return { entry: entryOf(reported), work: { op: 'delete', entityType, id, sourceUpdatedAt: at } }
}
