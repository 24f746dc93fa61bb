import {
  DEFAULT_CONVERSION_TYPES,
  type EventSale,
  foldSales,
  orderConversion,
  orderSaleKey,
  readConversion,
} from '../../domain/conversions/conversions.ts'
import { parseStoredEvent } from '../../domain/events/stored.ts'
import { orderIdentifiers } from '../../domain/identity/identity.ts'
import { isKnown } from '../../domain/identity/linking.ts'
import { newEntryId } from '../../domain/ids.ts'
import { lockSales } from '../../postgres/locks.ts'
import {
  dropEventFacts,
  type OrderKey,
  type OrderSale,
  rowsOfOrders,
  type SalePeople,
  takeEventSales,
  upsertEventSales,
  upsertOrderSales,
} from '../../store/conversions/conversions.ts'
import type { StoredNode } from '../../store/events/events.ts'
import { findProfiles, loadIdentifiers, loadProfileFacts } from '../../store/identity/identities.ts'
import { findTenantById } from '../../store/tenants/tenants.ts'
import { rememberSales } from '../deliveries/notify.ts'
import { type Identities, openIdentities, unlinkSales } from '../identity/identity.ts'
import { followProfiles, resolveNodes } from '../identity/resolve.ts'
import { prepareProfileLock } from '../profile-lock.ts'
import type { ChangedRecord } from '../records/records.ts'
import { openMemory, type Transaction } from '../unit.ts'
import { type ConversionEvent, orderText, personText, saleText, toSale } from './profile-sales.ts'

/** The event types that a tenant counts as conversions. */
export type ConversionTypes = (transaction: Transaction, tenantId: number) => Promise<ReadonlySet<string>>

const DEFAULT: ReadonlySet<string> = new Set(DEFAULT_CONVERSION_TYPES)

export function openConversionTypes(): ConversionTypes {
  const memory = openMemory(() => new Map<number, ReadonlySet<string>>())

  return async (transaction, tenantId) => {
    const known = memory(transaction)
    const before = known.get(tenantId)
    if (before) return before
    // Uses the transaction's own connection. A worker that waits for a second connection could wait forever.
    const own = (await findTenantById(transaction.client, tenantId))?.conversionTypes
    const types = own ? new Set(own) : DEFAULT
    known.set(tenantId, types)
    return types
  }
}

/** Order records are conversions. A deleted order deletes its conversion. */
export async function applyOrders(
  identities: Identities,
  transaction: Transaction,
  changed: ChangedRecord[],
): Promise<void> {
  const orders = changed.filter(record => record.entityType === 'order')
  if (orders.length === 0) return
  const nodes = await resolveNodes(
    identities,
    transaction,
    orders.map(order => ({
      tenantId: order.tenantId,
      identifiers: order.data ? orderIdentifiers(order.data) : [],
      verified: true,
      cause: { kind: 'record', id: `order/${order.id}` },
      receivedAt: transaction.now,
    })),
  )
  const { client, now } = transaction
  const keys = orders.map(({ tenantId, id }) => ({ tenantId, orderId: id }))
  await prepareProfileLock(transaction)
  await lockSales(client, keys)
  await rememberSales(transaction, keys)
  const events = await takeSalesOfOrders(client, keys)
  const sales = orders.map((order, i): OrderSale => {
    const facts = order.data ? orderConversion(order.data) : null
    const saleKey = orderSaleKey(order.id)
    return {
      tenantId: order.tenantId,
      saleKey,
      id: events.get(saleText({ tenantId: order.tenantId, saleKey }))?.id ?? newEntryId(now.getTime()),
      state: order.data ? 'live' : 'deleted',
      objectId: order.id,
      placedAt: facts?.placedAt ?? null,
      updatedAt: order.sourceUpdatedAt,
      amount: facts?.amount ?? null,
      currency: facts?.currency ?? null,
      contactId: facts?.contactId ?? null,
      node: nodes[i] ?? null,
    }
  })
  const written = await upsertOrderSales(client, sales)
  const folded = events.size > 0 ? await upsertEventSales(client, [...events.values()]) : []
  await linkBuyers(identities, transaction, [
    ...new Map([...written, ...folded].map(sale => [saleText(sale), sale])).values(),
  ])
}

/** Takes the event sales of these orders, folded into one per order under the key of its record. */
async function takeSalesOfOrders(client: Transaction['client'], orders: OrderKey[]): Promise<Map<string, EventSale>> {
  const rows = (await rowsOfOrders(client, orders)).filter(({ hasRecord }) => !hasRecord)
  const sales = rows.length > 0 ? await takeEventSales(client, rows) : []
  const renamed = sales.map(sale => ({ ...sale, saleKey: orderSaleKey(sale.orderId!) }))
  return new Map([...Map.groupBy(renamed, saleText)].map(([key, own]) => [key, foldSales(own)]))
}

/** Writes the sales of events in one statement. Events of one sale are folded first. */
export async function applyConversions(
  identities: Identities,
  transaction: Transaction,
  conversions: ConversionEvent[],
): Promise<void> {
  const { client } = transaction
  const orders = distinctOrders(conversions)
  if (orders.length > 0) {
    await prepareProfileLock(transaction)
    await lockSales(client, orders)
  }
  const keyByEvent = await saleKeys(client, conversions, orders)
  const folded = [
    ...Map.groupBy(
      conversions.map(conversion => toSale(conversion, keyByEvent(conversion))),
      saleText,
    ).values(),
  ].map(foldSales)
  await rememberSales(
    transaction,
    folded.map(({ tenantId, saleKey }) => ({ tenantId, saleKey })),
  )
  await linkBuyers(identities, transaction, await upsertEventSales(client, folded))
}

function distinctOrders(conversions: ConversionEvent[]): OrderKey[] {
  const orders = new Map<string, OrderKey>()
  for (const { tenantId, conversion } of conversions)
    if (conversion.orderId !== null)
      orders.set(`${tenantId} ${conversion.orderId}`, { tenantId, orderId: conversion.orderId })
  return [...orders.values()]
}

/**
 * The key of an event's sale: the order's key if the order has a record. Until then, events of one order are one sale per
 * profile only, because any visitor can send any order id.
 */
async function saleKeys(
  client: Transaction['client'],
  conversions: ConversionEvent[],
  orders: OrderKey[],
): Promise<(conversion: ConversionEvent) => string> {
  if (orders.length === 0) return ({ event, conversion }) => conversion.saleKey ?? `event:${event.id}`
  const rows = Map.groupBy(await rowsOfOrders(client, orders), orderText)
  const profiles = await profileMap(client, conversions)
  const known = new Map<string, string>()
  for (const own of rows.values())
    for (const row of own) if (!row.hasRecord) known.set(personText(row, row.profile), row.saleKey)
  return ({ tenantId, event, node, conversion }) => {
    const { orderId } = conversion
    if (orderId === null) return conversion.saleKey ?? `event:${event.id}`
    const order = { tenantId, orderId }
    if (rows.get(orderText(order))?.some(({ hasRecord }) => hasRecord)) return orderSaleKey(orderId)
    const profile = node === null ? null : (profiles.get(`${tenantId} ${node}`) ?? null)
    const person = personText(order, profile)
    const key = known.get(person) ?? `${orderSaleKey(orderId)}\n${event.id}`
    known.set(person, key)
    return key
  }
}

async function profileMap(client: Transaction['client'], conversions: ConversionEvent[]): Promise<Map<string, number>> {
  const nodes = conversions.flatMap(({ tenantId, node }) => (node === null ? [] : [{ tenantId, node }]))
  const rows = nodes.length > 0 ? await findProfiles(client, nodes) : []
  return new Map(rows.map(({ tenantId, node, profile }) => [`${tenantId} ${node}`, profile]))
}

/**
 * A sale links the contact of its order's record with the visitor of the only event that names the order, if that visitor
 * is still anonymous. An order that several visitors named links none of them, because any visitor can send any order id.
 */
async function linkBuyers(identities: Identities, transaction: Transaction, sales: SalePeople[]): Promise<void> {
  const { client } = transaction
  const disputed = sales.flatMap(({ tenantId, orderId, orderState, severalVisitors }) =>
    severalVisitors && orderState !== null && orderId !== null ? [{ tenantId, orderId }] : [],
  )
  if (disputed.length > 0) {
    await prepareProfileLock(transaction)
    await followProfiles(transaction, await unlinkSales(transaction, disputed))
  }
  const open = sales.filter(
    ({ orderState, severalVisitors, eventNode, orderNode }) =>
      orderState === 'live' && !severalVisitors && eventNode !== null && orderNode !== null,
  )
  if (open.length === 0) return
  const nodes = open.flatMap(({ tenantId, eventNode, orderNode }) =>
    [eventNode!, orderNode!].map(node => ({ tenantId, node })),
  )
  const names = new Map((await loadIdentifiers(client, nodes)).map(name => [`${name.tenantId} ${name.node}`, name]))
  const meeting = open.flatMap(sale => {
    const visitor = names.get(`${sale.tenantId} ${sale.eventNode}`)
    const buyer = names.get(`${sale.tenantId} ${sale.orderNode}`)
    const isOpen = visitor?.kind === 'visitor' && buyer && visitor.profile !== buyer.profile
    return isOpen ? [{ sale, visitor, buyer }] : []
  })
  if (meeting.length === 0) return
  const facts = await loadProfileFacts(
    client,
    meeting.map(({ visitor }) => visitor),
  )
  const known = new Set(facts.filter(isKnown).map(({ tenantId, profile }) => `${tenantId} ${profile}`))
  await resolveNodes(
    identities,
    transaction,
    meeting
      .filter(({ visitor }) => !known.has(`${visitor.tenantId} ${visitor.profile}`))
      .map(({ sale, visitor, buyer }) => ({
        tenantId: sale.tenantId,
        identifiers: [visitor, buyer].map(({ kind, value }) => ({ kind, value })),
        verified: false,
        cause: { kind: 'sale' as const, id: sale.orderId! },
        receivedAt: transaction.now,
      })),
  )
}

/** The sale of an event, if it is one of these (`order:…`, `invoice:…`). Otherwise null. */
export function saleAmong(stored: StoredNode, tenantId: number, sales: ReadonlySet<string>): EventSale | null {
  const event = parseStoredEvent(stored)
  const conversion = readConversion(event, new Set([event.eventType]))
  const key = conversion && saleNamed(conversion)
  if (!conversion || !key || !sales.has(key)) return null
  return toSale({ tenantId, event, node: stored.node, conversion }, key)
}

/** The key of a sale that several events can name. Null if the event is a sale of its own. */
export function saleNamed({ orderId, saleKey }: { orderId: string | null; saleKey: string | null }) {
  return orderId === null ? saleKey : orderSaleKey(orderId)
}

/**
 * Derives sales again from the events that are left (`left`). The caller holds the profile lock. Returns the number of
 * deleted rows.
 */
export async function rebuildSales(
  transaction: Transaction,
  tenantId: number,
  { sales, left }: { sales: string[]; left: EventSale[] },
): Promise<number> {
  const { client } = transaction
  const orders = sales.flatMap(sale => (sale.startsWith('order:') ? [sale.slice('order:'.length)] : []))
  if (orders.length > 0)
    await lockSales(
      client,
      orders.map(orderId => ({ tenantId, orderId })),
    )
  await rememberSales(transaction, [
    ...sales.map(saleKey => ({ tenantId, saleKey })),
    ...orders.map(orderId => ({ tenantId, orderId })),
  ])
  const { deleted, withRecord } = await dropEventFacts(client, tenantId, { sales, orders })
  const records = new Set(withRecord.map(({ saleKey }) => saleKey))
  const nodes = [...new Set(left.flatMap(({ node }) => node ?? []))].map(node => ({ tenantId, node }))
  const profiles = new Map((await findProfiles(client, nodes)).map(({ node, profile }) => [node, profile]))
  const rowKey = (sale: EventSale) => {
    if (sale.orderId === null || records.has(sale.saleKey)) return sale.saleKey
    return `${sale.saleKey}\n${sale.node === null ? null : profiles.get(sale.node)}`
  }
  const rows = [...Map.groupBy(left, rowKey).values()].map(own => {
    const first = own.reduce((a, b) => (a.eventId < b.eventId ? a : b))
    const isAlone = first.orderId !== null && !records.has(first.saleKey)
    const saleKey = isAlone ? `${first.saleKey}\n${first.eventId}` : first.saleKey
    return { ...foldSales(own), id: first.eventId, saleKey }
  })
  if (rows.length > 0) await linkBuyers(openIdentities(), transaction, await upsertEventSales(client, rows))
  return Math.max(0, deleted - rows.filter(row => !records.has(row.saleKey)).length)
}
