import type pg from 'pg'
import { isObject, type JsonObject, parseJson } from '../../domain/json/json.ts'
import type { ShopChange } from '../../domain/providers/shops/shop.ts'
import { sumText } from '../../domain/providers/shops/shopify.ts'
import { loadOrderData } from '../../store/records/families.ts'
import type { Change } from '../records/change.ts'
import { type ReportedChange, writeOf } from './reported-change.ts'

type Refund = Extract<ShopChange, { op: 'refund' }>

/** A refund that is told without its order is put into the order, unless that knows it already or is newer. */
export async function refundedOrders(
  client: pg.PoolClient,
  reportedChanges: ReportedChange[],
): Promise<Change[]> {
  const refunds = reportedChanges.filter(({ change }) => change.op === 'refund')
  if (refunds.length === 0) return []
  const keys = refunds.map(({ tenantId, change }) => ({ tenantId, id: (change as Refund).orderId }))
  const distinct = [...new Map(keys.map(key => [`${key.tenantId} ${key.id}`, key])).values()]
  const orders = new Map(
    (await loadOrderData(client, distinct)).map(({ tenantId, id, sourceUpdatedAt, data }) => [
      `${tenantId} ${id}`,
      { sourceUpdatedAt, data: parseJson(data) as JsonObject },
    ]),
  )
  return refunds.flatMap(reported => {
    const refund = reported.change as Refund
    const order = orders.get(`${reported.tenantId} ${refund.orderId}`)
    if (!order || order.sourceUpdatedAt > refund.at) return []
    const refunded = withRefund(order.data, refund)
    if (refunded === null) return []
    order.data = { ...refunded.fields, source: refunded.source }
    const { fields, source } = refunded
    return [
      writeOf(reported, {
        ...{ entityType: 'order', id: refund.orderId, fields, source: JSON.stringify(source) },
      }),
    ]
  })
}

/** Null where the order has it. */
function withRefund(
  { source: given, ...fields }: JsonObject,
  { refundId, amount, refund }: Refund,
): { fields: JsonObject; source: JsonObject } | null {
  const source = isObject(given) ? given : {}
  const known = Array.isArray(source.refunds) ? source.refunds : []
  if (known.some(entry => isObject(entry) && String(entry.id) === refundId)) return null
  const refundedAmount = sumText([fields.refunded_amount, amount])
  return {
    fields: { ...fields, ...(refundedAmount !== null && { refunded_amount: refundedAmount }) },
    source: { ...source, refunds: [...known, refund] },
  }
}
