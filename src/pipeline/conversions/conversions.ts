import { type Conversion, orderConversion, orderSaleKey } from '../../domain/conversions/conversions.ts'
import type { NormalizedEvent } from '../../domain/events/events.ts'
import { identitiesOfOrder } from '../../domain/identity/identity.ts'
import { newEntryId } from '../../domain/ids.ts'
import {
  type EventSale,
  type OrderSale,
  type SalePeople,
  upsertEventSales,
  upsertOrderSales,
} from '../../store/conversions/conversions.ts'
import type { Identities, Link } from '../identity/identity.ts'
import type { RecordListener } from '../records/records.ts'
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
    await linkPeople(transaction, identities, sales, await upsertOrderSales(transaction.client, sales))
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
  // One statement may touch a row once: a second event of the same sale goes into the next one.
  for (let rest = conversions; rest.length > 0; ) {
    const seen = new Set<string>()
    const later: ConversionEvent[] = []
    const sales: EventSale[] = []
    for (const conversion of rest) {
      const sale = saleOf(conversion)
      const key = saleText(sale)
      if (seen.has(key)) later.push(conversion)
      else sales.push(sale)
      seen.add(key)
    }
    await linkPeople(transaction, identities, sales, await upsertEventSales(transaction.client, sales))
    rest = later
  }
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
    visitor: event.visitor,
    node,
  }
}

/** All who are named as the buyer of a sale are one person: they are linked in whatever order they arrive. */
async function linkPeople(
  transaction: Transaction,
  identities: Identities,
  sales: { tenantId: number; saleKey: string; node: number | null }[],
  people: SalePeople[],
): Promise<void> {
  const known = new Map(people.map(sale => [saleText(sale), sale]))
  const links: Link[] = []
  for (const sale of sales) {
    const { eventNode, orderNode } = known.get(saleText(sale))!
    for (const other of [eventNode, orderNode]) {
      if (sale.node !== null && other !== null && other !== sale.node) {
        links.push({ tenantId: sale.tenantId, a: sale.node, b: other })
      }
    }
  }
  await identities.link(transaction, links)
}

function saleText(sale: { tenantId: number; saleKey: string }): string {
  return `${sale.tenantId} ${sale.saleKey}`
}
