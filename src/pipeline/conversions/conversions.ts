import {
  asClaim,
  DEFAULT_CONVERSION_TYPES,
  type EventSale,
  foldSales,
  MAX_CLAIMS,
  orderConversion,
  orderSaleKey,
  readConversion,
} from '../../domain/conversions/conversions.ts'
import { parseStoredEvent } from '../../domain/events/stored.ts'
import { orderIdentifiers } from '../../domain/identity/identifiers.ts'
import { isKnown } from '../../domain/identity/linking.ts'
import { newEntryId } from '../../domain/ids.ts'
import { lockSales, sharePeople } from '../../postgres/locks.ts'
import {
  deleteFold,
  dropEventFacts,
  findUnverifiedSales,
  findVerifiedOrders,
  listUnverifiedSales,
  type OrderKey,
  type OrderSale,
  requestFolds,
  type SaleKey,
  type SalePeople,
  takeFold,
  takeUnverifiedSales,
  upsertEventSales,
  upsertOrderSales,
} from '../../store/conversions/conversions.ts'
import type { StoredNode } from '../../store/events/events.ts'
import { findProfiles, loadIdentifiers, loadProfileFacts } from '../../store/identity/identities.ts'
import { findTenantById } from '../../store/tenants/tenants.ts'
import { rememberSales } from '../deliveries/notify.ts'
import { followProfiles, resolveNodes } from '../identity/follow-profiles.ts'
import { type Identities, openIdentities, unlinkSales } from '../identity/linking.ts'
import { prepareProfileLock, takeProfileLock } from '../profile-lock.ts'
import type { ChangedRecord } from '../records/records.ts'
import { openMemory, type Transaction } from '../unit.ts'
import { type ConversionEvent, foldUnverified, orderText, personText, saleText, toSale } from './profile-sales.ts'

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
      receivedAt: order.receivedAt,
    })),
  )
  const { client, now } = transaction
  const keys = orders.map(({ tenantId, id }) => ({ tenantId, orderId: id }))
  await prepareProfileLock(transaction)
  await lockSales(client, keys)
  await rememberSales(transaction, keys.map(orderSale))
  const claims = await takeClaims(transaction, await withoutVerified(client, keys))
  const sales = orders.map((order, i): OrderSale => {
    const facts = order.data ? orderConversion(order.data) : null
    const saleKey = orderSaleKey(order.id)
    return {
      tenantId: order.tenantId,
      saleKey,
      id: claims.get(saleText({ tenantId: order.tenantId, saleKey }))?.id ?? newEntryId(now.getTime()),
      state: order.data ? 'live' : 'deleted',
      orderId: order.id,
      placedAt: facts?.placedAt ?? null,
      updatedAt: order.sourceUpdatedAt,
      amount: facts?.amount ?? null,
      currency: facts?.currency ?? null,
      contactId: facts?.contactId ?? null,
      node: nodes[i] ?? null,
    }
  })
  const written = await upsertOrderSales(client, sales)
  const folded = claims.size > 0 ? await upsertEventSales(client, [...claims.values()]) : []
  await linkBuyers(identities, transaction, [
    ...new Map([...written, ...folded].map(sale => [saleText(sale), sale])).values(),
  ])
}

function orderSale({ tenantId, orderId }: OrderKey): SaleKey {
  return { tenantId, saleKey: orderSaleKey(orderId) }
}

async function withoutVerified(client: Transaction['client'], orders: OrderKey[]): Promise<OrderKey[]> {
  if (orders.length === 0) return []
  const verified = new Set((await findVerifiedOrders(client, orders)).map(orderText))
  return orders.filter(order => !verified.has(orderText(order)))
}

// Any visitor can send any order id, so an order can have thousands of unverified rows when verified input arrives. A
// transaction folds a few of each order. A job folds the others, in portions: 500 rows take a tenth of a second.
const FOLDED_AT_ONCE = { perOrder: MAX_CLAIMS, total: 1_000 }
const FOLDED_PER_PORTION = 500

/**
 * Takes the unverified rows of orders that verified input reports for the first time: one claim per order, under the key
 * of the order. Requests a fold of the rows that are left.
 */
async function takeClaims(transaction: Transaction, orders: OrderKey[]): Promise<Map<string, EventSale>> {
  if (orders.length === 0) return new Map()
  const { client } = transaction
  const found = await listUnverifiedSales(client, orders, FOLDED_AT_ONCE.perOrder + 1)
  const rows: typeof found = []
  const left: OrderKey[] = []
  for (const own of Map.groupBy(found, orderText).values()) {
    const fits = own.slice(0, Math.min(FOLDED_AT_ONCE.perOrder, FOLDED_AT_ONCE.total - rows.length))
    rows.push(...fits)
    if (fits.length < own.length) left.push(own[0]!)
  }
  if (left.length > 0) await requestFolds(client, left)
  return takeRows(transaction, rows)
}

async function takeRows(transaction: Transaction, rows: SaleKey[]): Promise<Map<string, EventSale>> {
  if (rows.length === 0) return new Map()
  await rememberSales(transaction, rows)
  const sales = await takeUnverifiedSales(transaction.client, rows)
  const claims = sales.map(sale => asClaim({ ...sale, saleKey: orderSaleKey(sale.orderId!) }))
  return new Map([...Map.groupBy(claims, saleText)].map(([key, own]) => [key, foldSales(own)]))
}

/** Folds some unverified rows into the sale that verified input reports. Returns false if no fold is requested. */
export async function foldNextPortion(transaction: Transaction): Promise<boolean> {
  const { client } = transaction
  const order = await takeFold(client)
  if (order === null) return false
  // In the order in which workers take these locks.
  await sharePeople(client, [order.tenantId])
  await takeProfileLock(transaction, [order.tenantId])
  await lockSales(client, [order])
  const isVerified = (await findVerifiedOrders(client, [order])).length > 0
  const rows = isVerified ? await listUnverifiedSales(client, [order], FOLDED_PER_PORTION) : []
  if (rows.length > 0) {
    await rememberSales(transaction, [orderSale(order)])
    const claims = await takeRows(transaction, rows)
    await linkBuyers(openIdentities(), transaction, await upsertEventSales(client, [...claims.values()]))
  }
  if (rows.length < FOLDED_PER_PORTION) await deleteFold(client, order)
  return true
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
  const unreported = new Map((await withoutVerified(client, orders)).map(order => [orderText(order), order]))
  const reported = distinctOrders(conversions.filter(({ event }) => event.trusted)).filter(order =>
    unreported.delete(orderText(order)),
  )
  const claims = await takeClaims(transaction, reported)
  const keyOf = await saleKeys(client, conversions, unreported)
  const sales = conversions.map(conversion => {
    const sale = toSale(conversion, keyOf(conversion))
    return unreported.has(`${sale.tenantId} ${sale.orderId}`) ? sale : asOrderClaim(sale)
  })
  const folded = [...Map.groupBy([...claims.values(), ...sales], saleText).values()].map(foldSales)
  await rememberSales(transaction, folded)
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
 * The key of an event's sale: the order's key if verified input reports the order. Until then (`unreported`), events of
 * one order are one sale per profile only, because any visitor can send any order id.
 */
async function saleKeys(
  client: Transaction['client'],
  conversions: ConversionEvent[],
  unreported: ReadonlyMap<string, OrderKey>,
): Promise<(conversion: ConversionEvent) => string> {
  const claims = new Map<string, OrderKey & { node: number | null }>()
  for (const { tenantId, conversion, node } of conversions) {
    const order = conversion.orderId === null ? undefined : unreported.get(`${tenantId} ${conversion.orderId}`)
    if (order) claims.set(personText(order, node), { ...order, node })
  }
  const profiles = claims.size > 0 ? await profileMap(client, conversions) : new Map<string, number>()
  const profileOf = (tenantId: number, node: number | null) =>
    node === null ? null : (profiles.get(`${tenantId} ${node}`) ?? null)
  const known = new Map<string, string>()
  for (const row of claims.size > 0 ? await findUnverifiedSales(client, [...claims.values()]) : []) {
    const person = personText(row, profileOf(row.tenantId, row.node))
    if (!known.has(person)) known.set(person, row.saleKey)
  }
  return ({ tenantId, event, node, conversion }) => {
    const { orderId } = conversion
    if (orderId === null) return conversion.saleKey ?? `event:${event.id}`
    const order = unreported.get(`${tenantId} ${orderId}`)
    if (!order) return orderSaleKey(orderId)
    const person = personText(order, profileOf(tenantId, node))
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
 * is still anonymous. An order that several visitors named links none of them, because any visitor can send any order id. A
 * deleted order links no one, and a new version that names another contact links only that one.
 */
async function linkBuyers(identities: Identities, transaction: Transaction, sales: SalePeople[]): Promise<void> {
  const { client } = transaction
  const named = sales.flatMap(({ tenantId, orderId, orderState, severalVisitors, eventNode, claimNode, orderNode }) => {
    const isLive = orderState === 'live' && !severalVisitors
    if (orderState === null || orderId === null || (isLive && (eventNode ?? claimNode) === null)) return []
    return [{ tenantId, orderId, buyer: isLive ? orderNode : null }]
  })
  if (named.length > 0) {
    await prepareProfileLock(transaction)
    await followProfiles(transaction, await unlinkSales(transaction, named))
  }
  const open = sales.flatMap(sale => {
    const { orderState, severalVisitors, eventNode, claimNode, orderNode } = sale
    if (orderState !== 'live' || severalVisitors || orderNode === null) return []
    return [eventNode, claimNode].flatMap(node => (node === null ? [] : [{ ...sale, node, orderNode }]))
  })
  if (open.length === 0) return
  const nodes = open.flatMap(({ tenantId, node, orderNode }) => [node, orderNode].map(node => ({ tenantId, node })))
  const names = new Map((await loadIdentifiers(client, nodes)).map(name => [`${name.tenantId} ${name.node}`, name]))
  const meeting = open.flatMap(sale => {
    const visitor = names.get(`${sale.tenantId} ${sale.node}`)
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
  const orders = sales.flatMap(sale =>
    sale.startsWith('order:') ? [{ tenantId, orderId: sale.slice('order:'.length) }] : [],
  )
  if (orders.length > 0) await lockSales(client, orders)
  await rememberSales(transaction, [
    ...sales.map(saleKey => ({ tenantId, saleKey })),
    ...(await listUnverifiedSales(client, orders, null)),
  ])
  const orderIds = orders.map(({ orderId }) => orderId)
  const { deleted, withRecord } = await dropEventFacts(client, tenantId, { sales, orders: orderIds })
  const verified = new Set([
    ...withRecord.map(({ saleKey }) => saleKey),
    ...left.flatMap(({ facts, saleKey }) => (facts?.verified ? saleKey : [])),
  ])
  const nodes = [...new Set(left.flatMap(({ claim }) => claim?.node ?? []))].map(node => ({ tenantId, node }))
  const profiles = new Map((await findProfiles(client, nodes)).map(({ node, profile }) => [node, profile]))
  const isUnverified = (sale: EventSale) => sale.orderId !== null && !verified.has(sale.saleKey)
  const rowKey = (sale: EventSale) =>
    isUnverified(sale) ? `${sale.saleKey}\n${profiles.get(sale.claim?.node ?? Number.NaN)}` : sale.saleKey
  const rows = [...Map.groupBy(left, rowKey).values()].map(own =>
    isUnverified(own[0]!) ? foldUnverified(own) : foldSales(own.map(asOrderClaim)),
  )
  if (rows.length > 0) {
    await rememberSales(transaction, rows)
    await linkBuyers(openIdentities(), transaction, await upsertEventSales(client, rows))
  }
  const records = new Set(withRecord.map(({ saleKey }) => saleKey))
  return Math.max(0, deleted - rows.filter(row => !records.has(row.saleKey)).length)
}

/** Unverified events only add a visitor to an order that verified input reports. Other sales have events of their own. */
function asOrderClaim(sale: EventSale): EventSale {
  return sale.orderId === null ? sale : asClaim(sale)
}
