import {
  type Conversion,
  type EventSale,
  foldSales,
  orderConversion,
  orderSaleKey,
  rankOfSale,
} from '../../domain/conversions/conversions.ts'
import type { NormalizedEvent } from '../../domain/events/events.ts'
import { identitiesOfOrder } from '../../domain/identity/identity.ts'
import { isKnown } from '../../domain/identity/joining.ts'
import { newEntryId } from '../../domain/ids.ts'
import { lockSales } from '../../postgres/locks.ts'
import {
  type OrderKey,
  type OrderSale,
  ordersNamedTwice,
  rowsOfOrders,
  type SalePeople,
  takeEventSales,
  upsertEventSales,
  upsertOrderSales,
} from '../../store/conversions/conversions.ts'
import { factsOfProfiles, namesOfNodes, profilesOf, undoSaleJoins } from '../../store/identity/identities.ts'
import type { Identities } from '../identity/identity.ts'
import type { RecordListener } from '../records/records.ts'
import { beginTurn } from '../turns.ts'
import type { Transaction } from '../unit.ts'

/** Order records are conversions; a deleted order takes its conversion away. */
export function orderConversions(identities: Identities): RecordListener {
  return async (transaction, changed) => {
    const orders = changed.filter(record => record.entityType === 'order')
    if (orders.length === 0) return
    const nodes = await identities.resolve(
      transaction,
      orders.map(order => ({
        tenantId: order.tenantId,
        identities: order.data ? identitiesOfOrder(order.data) : [],
        trusted: true,
        cause: { kind: 'record', id: `order/${order.id}` },
      })),
    )
    const { client, now } = transaction
    const keys = orders.map(({ tenantId, id }) => ({ tenantId, orderId: id }))
    await beginTurn(transaction)
    await lockSales(client, keys)
    await transaction.beforeSales?.(keys)
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
    await joinBuyers(transaction, identities, [
      ...new Map([...written, ...folded].map(sale => [saleText(sale), sale])).values(),
    ])
  }
}

/** What events said of these orders before their records came, folded into one each, under the order's own key. */
async function takeSalesOfOrders(
  client: Transaction['client'],
  orders: OrderKey[],
): Promise<Map<string, EventSale>> {
  const rows = (await rowsOfOrders(client, orders)).filter(({ hasRecord }) => !hasRecord)
  const sales = rows.length > 0 ? await takeEventSales(client, rows) : []
  const renamed = sales.map(sale => ({ ...sale, saleKey: orderSaleKey(sale.orderId!) }))
  return new Map([...Map.groupBy(renamed, saleText)].map(([key, own]) => [key, foldSales(own)]))
}

export type ConversionEvent = {
  tenantId: number
  event: NormalizedEvent
  node: number | null
  conversion: Conversion
}

/** Writes what events say of sales, one statement for all: repeats of one sale are folded before. */
export async function applyConversions(
  transaction: Transaction,
  identities: Identities,
  conversions: ConversionEvent[],
): Promise<void> {
  const { client } = transaction
  const orders = distinctOrders(conversions)
  if (orders.length > 0) {
    await beginTurn(transaction)
    await lockSales(client, orders)
  }
  const keyOf = await saleKeys(client, conversions, orders)
  const folded = [
    ...Map.groupBy(
      conversions.map(conversion => saleOf(conversion, keyOf(conversion))),
      saleText,
    ).values(),
  ].map(foldSales)
  await transaction.beforeSales?.(folded.map(({ tenantId, saleKey }) => ({ tenantId, saleKey })))
  await joinBuyers(transaction, identities, await upsertEventSales(client, folded))
}

function distinctOrders(conversions: ConversionEvent[]): OrderKey[] {
  const orders = new Map<string, OrderKey>()
  for (const { tenantId, conversion } of conversions)
    if (conversion.orderId !== null)
      orders.set(`${tenantId} ${conversion.orderId}`, { tenantId, orderId: conversion.orderId })
  return [...orders.values()]
}

/**
 * Which row an event's sale belongs to: the order's where there is a record of it. Before that, events of one order are
 * one sale only within one person: anybody can name an order.
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

async function profileMap(
  client: Transaction['client'],
  conversions: ConversionEvent[],
): Promise<Map<string, number>> {
  const nodes = conversions.flatMap(({ tenantId, node }) => (node === null ? [] : [{ tenantId, node }]))
  const rows = nodes.length > 0 ? await profilesOf(client, nodes) : []
  return new Map(rows.map(({ tenantId, node, profile }) => [`${tenantId} ${node}`, profile]))
}

/**
 * A sale joins the contact of its order's record with the visitor of the one event that names the order, if that visitor
 * is nobody in particular yet. An order that several visitors named joins nobody: anybody can name an order.
 */
export async function joinBuyers(
  transaction: Transaction,
  identities: Identities,
  sales: SalePeople[],
): Promise<void> {
  const { client } = transaction
  const disputed = sales.flatMap(({ tenantId, orderId, orderState, severalVisitors }) =>
    severalVisitors && orderState !== null && orderId !== null ? [{ tenantId, orderId }] : [],
  )
  if (disputed.length > 0) await undoSaleJoins(client, disputed)
  const open = sales.filter(
    ({ orderState, severalVisitors, eventNode, orderNode }) =>
      orderState === 'live' && !severalVisitors && eventNode !== null && orderNode !== null,
  )
  if (open.length === 0) return
  const nodes = open.flatMap(({ tenantId, eventNode, orderNode }) =>
    [eventNode!, orderNode!].map(node => ({ tenantId, node })),
  )
  const names = new Map(
    (await namesOfNodes(client, nodes)).map(name => [`${name.tenantId} ${name.node}`, name]),
  )
  const meeting = open.flatMap(sale => {
    const visitor = names.get(`${sale.tenantId} ${sale.eventNode}`)
    const buyer = names.get(`${sale.tenantId} ${sale.orderNode}`)
    const isOpen = visitor?.kind === 'visitor' && buyer && visitor.profile !== buyer.profile
    return isOpen ? [{ sale, visitor, buyer }] : []
  })
  if (meeting.length === 0) return
  const facts = await factsOfProfiles(
    client,
    meeting.map(({ visitor }) => visitor),
  )
  const known = new Set(facts.filter(isKnown).map(({ tenantId, profile }) => `${tenantId} ${profile}`))
  await identities.resolve(
    transaction,
    meeting
      .filter(({ visitor }) => !known.has(`${visitor.tenantId} ${visitor.profile}`))
      .map(({ sale, visitor, buyer }) => ({
        tenantId: sale.tenantId,
        identities: [visitor, buyer].map(({ kind, value }) => ({ kind, value })),
        trusted: false,
        cause: { kind: 'sale' as const, id: sale.orderId! },
      })),
  )
}

/** After a merge: what two people said of one order was said by one. */
export async function combineSales(
  { client, beforeSales }: Transaction,
  people: { tenantId: number; profile: number }[],
): Promise<void> {
  const orders = await ordersNamedTwice(client, people)
  if (orders.length === 0) return
  await lockSales(client, orders)
  await beforeSales?.(orders)
  const rows = (await rowsOfOrders(client, orders)).filter(
    ({ hasRecord, profile }) => !hasRecord && profile !== null,
  )
  const doubled = [...Map.groupBy(rows, row => personText(row, row.profile)).values()].filter(
    own => own.length > 1,
  )
  if (doubled.length === 0) return
  const firstKeys = new Map(doubled.flatMap(own => own.map(row => [saleText(row), own[0]!.saleKey] as const)))
  const taken = await takeEventSales(client, doubled.flat())
  const renamed = taken.map(sale => ({ ...sale, saleKey: firstKeys.get(saleText(sale))! }))
  await upsertEventSales(client, [...Map.groupBy(renamed, saleText).values()].map(foldSales))
}

/** What one event says of a sale. */
export function saleOf({ tenantId, event, node, conversion }: ConversionEvent, saleKey: string): EventSale {
  const rank = rankOfSale({ amount: conversion.amount, occurredAt: event.occurredAt, eventId: event.id })
  return {
    tenantId,
    saleKey,
    id: event.id,
    orderId: conversion.orderId,
    eventId: event.id,
    occurredAt: event.occurredAt,
    eventType: event.eventType,
    conversionType: conversion.conversionType,
    source: conversion.source,
    sourceConfigId: event.sourceConfigId,
    objectId: conversion.sourceObjectId,
    amount: conversion.amount,
    currency: conversion.currency,
    ...{ priceEventId: event.id, priceAt: event.occurredAt, priceTrusted: event.trusted },
    visitor: event.visitor,
    visitorRank: event.visitor === null ? null : rank,
    node,
    nodeRank: node === null ? null : rank,
    severalVisitors: false,
  }
}

function saleText(sale: { tenantId: number; saleKey: string }): string {
  return `${sale.tenantId} ${sale.saleKey}`
}

function orderText({ tenantId, orderId }: OrderKey): string {
  return `${tenantId} ${orderId}`
}

/** Those who name nobody are one together. */
function personText(order: OrderKey, profile: number | null): string {
  return `${orderText(order)}\n${profile}`
}
