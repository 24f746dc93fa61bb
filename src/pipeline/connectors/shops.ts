import type pg from 'pg'
import type { NormalizedEvent } from '../../domain/events/types.ts'
import { isObject, type JsonObject, parseJson } from '../../domain/json/json.ts'
import { readShopId, type ShopChange, type ShopRecord } from '../../domain/providers/shops/shop.ts'
import { sumRefunds } from '../../domain/providers/shops/shopify.ts'
import { listVariations } from '../../domain/providers/shops/woocommerce.ts'
import { readEntityType, readShopChanges } from '../../domain/providers/shops.ts'
import type { EntityType, RecordChange } from '../../domain/records/records.ts'
import { timestampText } from '../../domain/time.ts'
import {
  type Family,
  keepHandles,
  loadFamilies,
  loadOrderData,
  recordsOfHandles,
} from '../../store/records/families.ts'
import { lockRecordTypes } from '../../store/records/records.ts'
import { type Change, locksFor, strictest } from '../records/records.ts'
import type { Transaction, Unit } from '../unit.ts'

// Webhooks of shops change records, in the transaction of their events.

/** One change of a record that an event reports. */
type ReportedChange = { tenantId: number; event: NormalizedEvent; change: ShopChange }

/**
 * Locks the record types that shop events of this batch change, exclusively. The changes of one record arrive in several
 * partitions, beside the writes of the data API. Call it before anything is applied: when each event took its own lock,
 * two workers that had both written records waited for each other.
 */
export async function lockShopRecords({ client }: Transaction, units: Unit[]): Promise<void> {
  const exclusive = units.flatMap(unit => {
    const event = unit.entry.kind === 'events' ? (unit.work as NormalizedEvent | undefined) : undefined
    const entityType = event?.makesRecords ? readEntityType(event) : null
    return entityType ? [{ tenantId: unit.entry.tenantId, entityType, exclusive: true }] : []
  })
  if (exclusive.length === 0) return
  const writes = units.filter(unit => unit.entry.kind === 'record' && unit.work !== undefined)
  await lockRecordTypes(client, strictest([...locksFor(writes as Change[]), ...exclusive]))
}

export function reportedChanges(units: Unit<NormalizedEvent>[]): ReportedChange[] {
  return units.flatMap(({ entry: { tenantId }, work: event }) =>
    readShopChanges(event).map(change => ({ tenantId, event, change })),
  )
}

/** The record changes of all reported changes but refunds. Each change builds on those before it. */
export async function shopRecordChanges(client: pg.PoolClient, all: ReportedChange[]): Promise<Change[]> {
  const families = await loadKnownFamilies(client, all)
  const imported = await findImported(client, all)
  return all.flatMap(reported => [
    ...recordChanges(reported, families),
    ...(imported.get(reported) ?? []).map(id => buildDelete(reported, 'product', id, importedUntil(reported))),
  ])
}

function recordChanges(reported: ReportedChange, families: Map<string, KnownFamily>): Change[] {
  const { tenantId, change } = reported
  if (change.op === 'refund') return []
  if (change.op === 'delete') return [buildDelete(reported, change.entityType, change.id)]
  if (change.op === 'product')
    return productChanges(reported, change, families.get(familyText({ tenantId, id: change.id }))!)
  const { id } = change.record
  const parentId = findParent(change)
  const family = parentId === null ? undefined : families.get(familyText({ tenantId, id: parentId }))
  const parent = parentId === null ? undefined : family?.get(parentId)
  // The product was deleted at the same time or later, so the variant is deleted with it.
  if (parent && !parent.isLive && parent.at >= change.at) return []
  // A newer version of the product does not list it any more.
  if (parent?.variations && parent.at > change.at && !parent.variations.includes(id)) return []
  family?.set(id, { at: change.at, isLive: true })
  return [buildWrite(reported, change.record)]
}

/** The time in a file may be later than the product's time. Rows imported before this webhook are replaced by it. */
function importedUntil({ event, change }: ReportedChange): string {
  const receivedAt = timestampText(event.receivedAt.toISOString())!
  return change.at > receivedAt ? change.at : receivedAt
}

/** When each record of a product last changed, by id. `variations`: the records of the variations that the product lists. */
type KnownFamily = Map<string, { at: string; isLive: boolean; variations?: string[] | undefined }>

function productChanges(
  reported: ReportedChange,
  { id, at, records, kept, isSnapshot }: Extract<ShopChange, { op: 'product' }>,
  family: KnownFamily,
): Change[] {
  if (isSnapshot && [...family.values()].some(known => known.at > at)) return []
  const staying = new Set([...records.map(record => record.id), ...kept])
  // A later version of the product decides which variants it has.
  const isStale = (family.get(id)?.at ?? '') > at
  const gone = [...family].flatMap(([member, { isLive }]) =>
    isLive && !isStale && !staying.has(member) ? [member] : [],
  )
  // Even if it was never seen: an older version that arrives later stays deleted.
  const deleted = records.length === 0 ? [...new Set([id, ...gone])] : gone
  for (const member of deleted) family.set(member, { at, isLive: false })
  const variations = isSnapshot ? undefined : kept
  for (const record of records) if (!isStale) family.set(record.id, { at, isLive: true, variations })
  return [
    ...records.map(record => buildWrite(reported, record)),
    ...deleted.map(member => buildDelete(reported, 'product', member)),
  ]
}

/** The product of a variant that arrives alone. Null if the record is not a variant. */
function findParent(change: Extract<ShopChange, { op: 'write' }>): string | null {
  const { entityType, id } = change.record
  const end = entityType === 'product' ? id.indexOf('/') : -1
  return end < 0 ? null : id.slice(0, end)
}

async function loadKnownFamilies(client: pg.PoolClient, all: ReportedChange[]): Promise<Map<string, KnownFamily>> {
  const families = new Map<string, Family>()
  for (const { tenantId, change } of all) {
    const id = change.op === 'product' ? change.id : change.op === 'write' ? findParent(change) : null
    if (id !== null) families.set(familyText({ tenantId, id }), { tenantId, id })
  }
  if (families.size === 0) return new Map()
  const known = new Map<string, KnownFamily>([...families.keys()].map(text => [text, new Map()]))
  for (const row of await loadFamilies(client, [...families.values()]))
    known.get(familyText(row))!.set(row.memberId, {
      ...{ at: row.sourceUpdatedAt, isLive: !row.deleted },
      variations: row.variations === null ? undefined : listVariations(row.id, parseJson(row.variations)),
    })
  return known
}

/** Records imported from a file under the handles of these products. Stores the handles. */
async function findImported(client: pg.PoolClient, all: ReportedChange[]): Promise<Map<ReportedChange, string[]>> {
  const named = all.flatMap(reported => {
    const { tenantId, change } = reported
    if (change.op !== 'product' || change.handle === null || change.handle === change.id) return []
    return [{ reported, tenantId, handle: change.handle, productId: change.id, sentAt: change.at }]
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

function buildDelete(reported: ReportedChange, entityType: EntityType, id: string, at = reported.change.at): Change {
  return { entry: toEntry(reported), work: { op: 'delete', entityType, id, sourceUpdatedAt: at } }
}

type RefundOfOrder = { reported: ReportedChange; orderId: string; refund: JsonObject }

/**
 * Refunds that the stored orders of these changes have. A version of an order that was sent before a refund does not contain it, and
 * may arrive after it.
 */
export async function storedRefunds(client: pg.PoolClient, all: ReportedChange[]): Promise<RefundOfOrder[]> {
  const writes = all.flatMap(reported => {
    const { event, change } = reported
    const isOrder = event.preset === 'shopify' && change.op === 'write' && change.record.entityType === 'order'
    return isOrder ? [{ reported, orderId: change.record.id }] : []
  })
  const orders = await loadOrders(client, writes)
  return writes.flatMap(({ reported, orderId }) =>
    listRefunds(orders.get(orderText({ reported, orderId }))?.data).map(refund => ({ reported, orderId, refund })),
  )
}

/** Adds refunds to the stored orders that do not have them. `stored`: those of the orders before the other changes. */
export async function refundedOrders(
  client: pg.PoolClient,
  all: ReportedChange[],
  stored: RefundOfOrder[],
): Promise<Change[]> {
  const refunds = all.flatMap((reported): RefundOfOrder[] =>
    reported.change.op === 'refund'
      ? [{ reported, orderId: reported.change.orderId, refund: reported.change.refund }]
      : [],
  )
  const orders = await loadOrders(client, [...stored, ...refunds])
  const changed = new Map<string, Change>()
  for (const entry of [...stored, ...refunds]) {
    const order = orders.get(orderText(entry))
    const refunded = order && withRefund(order.data, entry.refund)
    if (!refunded) continue
    order.data = refunded
    const { source, ...fields } = refunded
    const record = { ...{ entityType: 'order' as const, id: entry.orderId, fields }, source: JSON.stringify(source) }
    // the time of the order stays, so that a newer version still replaces it
    changed.set(orderText(entry), buildWrite(entry.reported, record, order.sourceUpdatedAt))
  }
  return [...changed.values()]
}

async function loadOrders(client: pg.PoolClient, of: Pick<RefundOfOrder, 'reported' | 'orderId'>[]) {
  const keys = of.map(({ reported: { tenantId }, orderId: id }) => ({ tenantId, id }))
  const distinct = [...new Map(keys.map(key => [familyText(key), key])).values()]
  const rows = distinct.length > 0 ? await loadOrderData(client, distinct) : []
  return new Map(
    rows.map(({ sourceUpdatedAt, data, ...key }) => [
      familyText(key),
      { sourceUpdatedAt, data: parseJson(data) as JsonObject },
    ]),
  )
}

function orderText({ reported: { tenantId }, orderId: id }: Pick<RefundOfOrder, 'reported' | 'orderId'>): string {
  return familyText({ tenantId, id })
}

function listRefunds(order: JsonObject | undefined): JsonObject[] {
  const source = isObject(order?.source) ? order.source : {}
  return Array.isArray(source.refunds) ? source.refunds.filter(isObject) : []
}

/** Null if the order has the refund already. */
function withRefund({ source: given, ...fields }: JsonObject, refund: JsonObject): JsonObject | null {
  const source = isObject(given) ? given : {}
  const known = listRefunds({ source })
  if (known.some(({ id }) => readShopId(id) === readShopId(refund.id))) return null
  const refunds = [...known, refund]
  const amount = sumRefunds(refunds, source)
  return { ...fields, ...(amount !== null && { refunded_amount: amount }), source: { ...source, refunds } }
}

function toEntry({ tenantId, event }: ReportedChange): Change['entry'] {
  return { id: event.id, tenantId, receivedAt: event.receivedAt }
}

function buildWrite(
  reported: ReportedChange,
  { entityType, id, fields, source }: ShopRecord,
  at = reported.change.at,
): Change {
  const own = JSON.stringify(fields)
  const dataText = `${own.slice(0, -1)}${own === '{}' ? '' : ','}"source":${source}}`
  const work: RecordChange = {
    // Shopify's number of an order ("#1001"). The import of its CSV export stores it, too.
    ...{ op: 'write', entityType, id, externalId: entityType === 'order' ? readShopId(fields.name) : null },
    sourceUpdatedAt: at,
    ...{ data: fields, dataText },
  }
  return { entry: toEntry(reported), work }
}
