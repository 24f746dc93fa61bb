import { type Conversion, type EventSale, foldSales, readConversion } from '../../domain/conversions/conversions.ts'
import { parseStoredEvent } from '../../domain/events/stored.ts'
import type { NormalizedEvent } from '../../domain/events/types.ts'
import { lockSales } from '../../postgres/locks.ts'
import {
  findUnverifiedSales,
  type OrderKey,
  ordersOfNodes,
  salesToCombine,
  takeUnverifiedSales,
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
  const orders = await salesToCombine(client, profiles)
  if (orders.length === 0) return
  await lockSales(client, orders)
  // Again under the lock: verified input may have reported some of the orders in the meantime.
  const locked = new Set(orders.map(orderText))
  const doubled = (await salesToCombine(client, profiles)).filter(order => locked.has(orderText(order)))
  const firstKeys = new Map(
    doubled.flatMap(({ tenantId, saleKeys }) =>
      saleKeys.map(saleKey => [saleText({ tenantId, saleKey }), saleKeys[0]!] as const),
    ),
  )
  const rows = doubled.flatMap(({ tenantId, saleKeys }) => saleKeys.map(saleKey => ({ tenantId, saleKey })))
  if (rows.length === 0) return
  await rememberSales(transaction, rows)
  const taken = await takeUnverifiedSales(client, rows)
  const renamed = taken.map(sale => ({ ...sale, saleKey: firstKeys.get(saleText(sale))! }))
  await upsertEventSales(client, [...Map.groupBy(renamed, saleText).values()].map(foldSales))
}

/**
 * The sales of unverified orders, one per event of these nodes. The stored rows combine several events, so they
 * cannot be split. Reads by node, so it can be called before or after the split.
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
  const nodes = [...new Set(sales.map(({ claim }) => claim!.node!))].map(node => ({ tenantId, node }))
  // One node of each profile.
  const people = new Map((await findProfiles(client, nodes)).map(({ node, profile }) => [profile, node])).values()
  const claims = [...people].flatMap(node => orders.map(order => ({ ...order, node })))
  const rows = await findUnverifiedSales(client, claims)
  const taken = [...new Map(rows.map(row => [row.saleKey, row])).values()]
  await rememberSales(transaction, taken)
  const known = new Set(sales.map(({ id }) => id))
  // Of an event that is no longer stored, only the row is left.
  const alone = (await takeUnverifiedSales(client, taken)).filter(({ facts }) => !known.has(facts!.eventId))
  const all = [...sales, ...alone].filter(({ claim }) => claim?.node != null)
  const profiles = new Map(
    (
      await findProfiles(
        client,
        all.map(({ claim }) => ({ tenantId, node: claim!.node! })),
      )
    ).map(({ node, profile }) => [node, profile]),
  )
  const perProfile = Map.groupBy(
    all,
    ({ orderId, claim }) => `${profiles.get(claim!.node!) ?? claim!.node}\n${orderId}`,
  )
  const split = [...perProfile.values()].map(foldUnverified)
  await rememberSales(transaction, split)
  await upsertEventSales(client, split)
}

/** The events of one profile about an unverified order. The row has the id of the first, as if it had always been alone. */
export function foldUnverified(sales: EventSale[]): EventSale {
  const folded = foldSales(sales)
  return { ...folded, saleKey: `order:${folded.orderId}\n${folded.id}` }
}

/** The sale that one event reports. */
export function toSale({ tenantId, event, node, conversion }: ConversionEvent, saleKey: string): EventSale {
  const { id: eventId, visitor, trusted: verified } = event
  return {
    ...{ tenantId, saleKey, id: eventId, orderId: conversion.orderId },
    facts: {
      ...{ eventId, verified, occurredAt: event.occurredAt, eventType: event.eventType },
      ...{ conversionType: conversion.conversionType, source: conversion.source },
      ...{ sourceConfigId: event.sourceConfigId, objectId: conversion.sourceObjectId },
      ...{ amount: conversion.amount, currency: conversion.currency },
    },
    visitor: verified && visitor !== null ? { eventId, visitor } : null,
    person: verified && node !== null ? { eventId, node } : null,
    claim: verified ? null : { eventId, visitor, node },
    claims: verified ? 0 : 1,
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
