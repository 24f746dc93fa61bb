import { type Conversion, orderConversion, orderSaleKey } from '../domain/conversions.ts'
import type { NormalizedEvent } from '../domain/events.ts'
import { identitiesOfOrder } from '../domain/identity.ts'
import { newEntryId } from '../domain/ids.ts'
import {
  type EventSale,
  type OrderSale,
  type SaleLink,
  upsertEventSales,
  upsertOrderSales,
} from '../store/conversions.ts'
import type { Identities } from './identity.ts'
import type { RecordListener } from './records.ts'
import type { Transaction } from './unit.ts'

/** Order records are conversions; a deleted order takes its conversion away. */
export function orderConversions(identities: Identities): RecordListener {
  return async (transaction, changed) => {
    const orders = changed.filter(record => record.entityType === 'order')
    if (orders.length === 0) return
    const nodes = await identities.resolve(
      transaction,
      orders.map(order => ({
        tenantId: order.tenantId,
        identities: order.data ? identitiesOfOrder(order.id, order.data) : [],
      })),
    )
    const sales = orders.map((order, i): OrderSale => {
      const facts = order.data ? orderConversion(order.data) : null
      return {
        tenantId: order.tenantId,
        saleKey: orderSaleKey(order.id),
        id: newEntryId(transaction.now.getTime()),
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
    await linkSales(transaction, identities, await upsertOrderSales(transaction.client, sales))
  }
}

export type ConversionEvent = {
  tenantId: number
  event: NormalizedEvent
  node: number | null
  conversion: Conversion
}

/** Writes what events say of sales; events that name one order meet in one row. */
export async function applyConversions(
  transaction: Transaction,
  identities: Identities,
  conversions: ConversionEvent[],
): Promise<void> {
  const links: SaleLink[] = []
  // One statement may touch a row once: a second event of the same sale goes into the next one.
  for (let rest = conversions; rest.length > 0; ) {
    const seen = new Set<string>()
    const later: ConversionEvent[] = []
    const sales: EventSale[] = []
    for (const one of rest) {
      const sale = saleOf(one)
      const key = `${sale.tenantId} ${sale.saleKey}`
      if (seen.has(key)) later.push(one)
      else sales.push(sale)
      seen.add(key)
    }
    links.push(...(await upsertEventSales(transaction.client, sales)))
    rest = later
  }
  await linkSales(transaction, identities, links)
}

function saleOf({ tenantId, event, node, conversion }: ConversionEvent): EventSale {
  return {
    tenantId,
    saleKey: conversion.saleKey ?? `event:${event.id}`,
    eventId: event.id,
    occurredAt: event.occurredAt,
    eventType: event.eventType,
    conversionType: conversion.conversionType,
    source: conversion.source,
    sourceConfigId: event.sourceConfigId,
    objectId: conversion.sourceObjectId,
    amount: conversion.amount,
    currency: conversion.currency,
    node,
  }
}

async function linkSales(transaction: Transaction, identities: Identities, links: SaleLink[]): Promise<void> {
  await identities.link(
    transaction,
    links.map(({ tenantId, eventNode, orderNode }) => ({ tenantId, a: eventNode, b: orderNode })),
  )
}
