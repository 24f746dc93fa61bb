import {
  type Conversion,
  type EventSale,
  foldSales,
  readConversion,
  saleRank,
} from '../../domain/conversions/conversions.ts'
import type { NormalizedEvent } from '../../domain/events/events.ts'
import { parseStoredEvent } from '../../domain/events/stored.ts'
import { lockSales } from '../../postgres/locks.ts'
import {
  type OrderKey,
  ordersNamedTwice,
  ordersOfNodes,
  rowsOfOrders,
  takeEventSales,
  upsertEventSales,
} from '../../store/conversions/conversions.ts'
import { readStored } from '../../store/events/events.ts'
import { findProfiles } from '../../store/identity/identities.ts'
import { rememberSales } from '../deliveries/notify.ts'
import type { Transaction } from '../unit.ts'

/** An event that is a sale, with the node of its buyer. */
export type ConversionEvent = {
  tenantId: number
  event: NormalizedEvent
  node: number | null
  conversion: Conversion
}

/** After a merge: sales of one order that belonged to two profiles become one sale. */
export async function combineSales(
  transaction: Transaction,
  profiles: { tenantId: number; profile: number }[],
): Promise<void> {
  const { client } = transaction
  const orders = await ordersNamedTwice(client, profiles)
  if (orders.length === 0) return
  await lockSales(client, orders)
  await rememberSales(transaction, orders)
  const rows = (await rowsOfOrders(client, orders)).filter(({ hasRecord, profile }) => !hasRecord && profile !== null)
  const doubled = [...Map.groupBy(rows, row => personText(row, row.profile)).values()].filter(own => own.length > 1)
  if (doubled.length === 0) return
  const firstKeys = new Map(doubled.flatMap(own => own.map(row => [saleText(row), own[0]!.saleKey] as const)))
  const taken = await takeEventSales(client, doubled.flat())
  const renamed = taken.map(sale => ({ ...sale, saleKey: firstKeys.get(saleText(sale))! }))
  await upsertEventSales(client, [...Map.groupBy(renamed, saleText).values()].map(foldSales))
}

/**
 * The sales of orders without a record, one per event of these nodes. The stored rows combine several events, so they
 * cannot be split. Call it before the split, in the same transaction.
 */
export async function salesOfNodes(
  { client }: Pick<Transaction, 'client'>,
  tenantId: number,
  nodes: number[],
): Promise<EventSale[]> {
  const orders = new Set(await ordersOfNodes(client, tenantId, nodes))
  if (orders.size === 0) return []
  const sales: EventSale[] = []
  for await (const events of readStored(client, tenantId, { nodes, conversionsOnly: true })) {
    for (const stored of events) {
      const event = parseStoredEvent(stored)
      const conversion = readConversion(event, new Set([event.eventType]))
      if (!conversion?.orderId || !orders.has(conversion.orderId)) continue
      sales.push(toSale({ tenantId, event, node: stored.node, conversion }, ''))
    }
  }
  return sales
}

/** After a split: a sale that belonged to one profile becomes one sale per profile. */
export async function splitSales(transaction: Transaction, tenantId: number, sales: EventSale[]): Promise<void> {
  if (sales.length === 0) return
  const { client } = transaction
  const orders = [...new Set(sales.map(({ orderId }) => orderId!))].map(orderId => ({ tenantId, orderId }))
  await lockSales(client, orders)
  await rememberSales(transaction, orders)
  const nodes = [...new Set(sales.map(({ node }) => node!))].map(node => ({ tenantId, node }))
  const profiles = new Map((await findProfiles(client, nodes)).map(({ node, profile }) => [node, profile]))
  const people = new Set(profiles.values())
  const rows = (await rowsOfOrders(client, orders)).filter(
    ({ hasRecord, profile }) => !hasRecord && profile !== null && people.has(profile),
  )
  const known = new Set(sales.map(({ eventId }) => eventId))
  // Of an event that is no longer stored, only the row is left.
  const taken = (await takeEventSales(client, rows)).filter(({ eventId }) => !known.has(eventId))
  const all = [...sales, ...taken].filter(({ node }) => node !== null)
  const perProfile = [...Map.groupBy(all, ({ orderId, node }) => `${profiles.get(node!) ?? node}\n${orderId}`).values()]
  await upsertEventSales(client, perProfile.map(foldProfileSales))
}

/** Has the id of the first event, as if the sale had always been alone. */
function foldProfileSales(sales: EventSale[]): EventSale {
  const first = sales.reduce((a, b) => (a.eventId < b.eventId ? a : b))
  return { ...foldSales(sales), id: first.eventId, saleKey: `order:${first.orderId}\n${first.eventId}` }
}

/** The sale that one event reports. */
export function toSale({ tenantId, event, node, conversion }: ConversionEvent, saleKey: string): EventSale {
  const rank = saleRank({ amount: conversion.amount, occurredAt: event.occurredAt, eventId: event.id })
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

export function saleText(sale: { tenantId: number; saleKey: string }): string {
  return `${sale.tenantId} ${sale.saleKey}`
}

export function orderText({ tenantId, orderId }: OrderKey): string {
  return `${tenantId} ${orderId}`
}

/** Events without a profile count as one buyer. */
export function personText(order: OrderKey, profile: number | null): string {
  return `${orderText(order)}\n${profile}`
}
