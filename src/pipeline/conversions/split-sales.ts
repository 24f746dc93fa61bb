import { conversionOf, type EventSale, foldSales } from '../../domain/conversions/conversions.ts'
import { eventOfStored } from '../../domain/events/stored.ts'
import { lockSales } from '../../postgres/locks.ts'
import {
  ordersOfNodes,
  rowsOfOrders,
  takeEventSales,
  upsertEventSales,
} from '../../store/conversions/conversions.ts'
import { readStored } from '../../store/events/stored.ts'
import { profilesOf } from '../../store/identity/identities.ts'
import type { Transaction } from '../unit.ts'
import { saleOf } from './conversions.ts'

/**
 * What a person's events say of orders that have no record, each as a sale of its own: kept rows hold what came of all
 * of them together. Read before a split, in the transaction that will make it.
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
      const event = eventOfStored(stored)
      const conversion = conversionOf(event, new Set([event.eventType]))
      if (!conversion?.orderId || !orders.has(conversion.orderId)) continue
      sales.push(saleOf({ tenantId, event, node: stored.node, conversion }, ''))
    }
  }
  return sales
}

/** After a split: what one person said of an order was said by two. */
export async function partSales(
  { client, beforeSales }: Transaction,
  tenantId: number,
  sales: EventSale[],
): Promise<void> {
  if (sales.length === 0) return
  const orders = [...new Set(sales.map(({ orderId }) => orderId!))].map(orderId => ({ tenantId, orderId }))
  await lockSales(client, orders)
  await beforeSales?.(orders)
  const nodes = [...new Set(sales.map(({ node }) => node!))].map(node => ({ tenantId, node }))
  const profiles = new Map((await profilesOf(client, nodes)).map(({ node, profile }) => [node, profile]))
  const people = new Set(profiles.values())
  const rows = (await rowsOfOrders(client, orders)).filter(
    ({ hasRecord, profile }) => !hasRecord && profile !== null && people.has(profile),
  )
  const known = new Set(sales.map(({ eventId }) => eventId))
  // What is no longer kept as an event has only its row to speak for it.
  const taken = (await takeEventSales(client, rows)).filter(({ eventId }) => !known.has(eventId))
  const all = [...sales, ...taken].filter(({ node }) => node !== null)
  const parted = [
    ...Map.groupBy(all, ({ orderId, node }) => `${profiles.get(node!) ?? node}\n${orderId}`).values(),
  ]
  await upsertEventSales(client, parted.map(saleOfPerson))
}

/** Under the id of what came in first, as if it had been alone from the beginning. */
function saleOfPerson(sales: EventSale[]): EventSale {
  const first = sales.reduce((a, b) => (a.eventId < b.eventId ? a : b))
  return { ...foldSales(sales), id: first.eventId, saleKey: `order:${first.orderId}\n${first.eventId}` }
}
