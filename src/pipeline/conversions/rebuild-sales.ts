import {
  conversionOf,
  type EventSale,
  foldSales,
  orderSaleKey,
} from '../../domain/conversions/conversions.ts'
import { eventOfStored } from '../../domain/events/stored.ts'
import { lockSales } from '../../postgres/locks.ts'
import { dropEventFacts, upsertEventSales } from '../../store/conversions/conversions.ts'
import type { StoredNode } from '../../store/events/stored.ts'
import { profilesOf } from '../../store/identity/identities.ts'
import { accountAttribution } from '../billing/attribution.ts'
import { openIdentities } from '../identity/identity.ts'
import type { Transaction } from '../unit.ts'
import { combineSales, joinBuyers, saleOf } from './conversions.ts'

/** What an event says of one of these sales (`order:…`, `invoice:…`); null where it is about none. */
export function saleAmong(
  stored: StoredNode,
  tenantId: number,
  sales: ReadonlySet<string>,
): EventSale | null {
  const event = eventOfStored(stored)
  const conversion = conversionOf(event, new Set([event.eventType]))
  const key = conversion && saleNamed(conversion)
  if (!conversion || !key || !sales.has(key)) return null
  return saleOf({ tenantId, event, node: stored.node, conversion }, key)
}

/** The sale that an event names together with others; null where it is one of its own. */
export function saleNamed({ orderId, saleKey }: { orderId: string | null; saleKey: string | null }) {
  return orderId === null ? saleKey : orderSaleKey(orderId)
}

/**
 * Sales as they are told by what is left: `told` is all that events say of them. The caller has the tenant's people for
 * itself. Returns how many rows are gone.
 */
export async function rebuildSales(
  transaction: Transaction,
  tenantId: number,
  { sales, told }: { sales: string[]; told: EventSale[] },
): Promise<number> {
  const { client } = transaction
  const orders = sales.flatMap(sale => (sale.startsWith('order:') ? [sale.slice('order:'.length)] : []))
  if (orders.length > 0)
    await lockSales(
      client,
      orders.map(orderId => ({ tenantId, orderId })),
    )
  await transaction.beforeSales?.([
    ...sales.map(saleKey => ({ tenantId, saleKey })),
    ...orders.map(orderId => ({ tenantId, orderId })),
  ])
  const { deleted, withRecord } = await dropEventFacts(client, tenantId, { sales, orders })
  const records = new Set(withRecord.map(({ saleKey }) => saleKey))
  const nodes = [...new Set(told.flatMap(({ node }) => node ?? []))].map(node => ({ tenantId, node }))
  const profiles = new Map((await profilesOf(client, nodes)).map(({ node, profile }) => [node, profile]))
  const rowOf = (sale: EventSale) => {
    if (sale.orderId === null || records.has(sale.saleKey)) return sale.saleKey
    return `${sale.saleKey}\n${sale.node === null ? null : profiles.get(sale.node)}`
  }
  const rows = [...Map.groupBy(told, rowOf).values()].map(own => {
    const first = own.reduce((a, b) => (a.eventId < b.eventId ? a : b))
    const isAlone = first.orderId !== null && !records.has(first.saleKey)
    const saleKey = isAlone ? `${first.saleKey}\n${first.eventId}` : first.saleKey
    return { ...foldSales(own), id: first.eventId, saleKey }
  })
  const onPeople = accountAttribution()
  const identities = openIdentities({ onPeople, onMerged: combineSales })
  if (rows.length > 0) await joinBuyers(transaction, identities, await upsertEventSales(client, rows))
  return Math.max(0, deleted - rows.filter(row => !records.has(row.saleKey)).length)
}
