import { type Db, queryPrepared } from '../../postgres/database.ts'
import { type ConversionRow, SHOWN_COLUMNS, SHOWN_PERSON } from './conversions.ts'

/** Sales under their own key, or all of an order. */
export type SaleRef = { tenantId: number; saleKey?: string; orderId?: string }

/** A conversion as it is shown, and whether it is. */
export type SaleState = ConversionRow & {
  tenantId: number
  saleKey: string
  orderId: string | null
  isListed: boolean
}

export async function saleStates(db: Db, refs: SaleRef[]): Promise<SaleState[]> {
  const keys = refs.filter(ref => ref.saleKey !== undefined)
  const orders = refs.filter(ref => ref.orderId !== undefined)
  const { rows } = await queryPrepared<SaleState>(
    db,
    `select c.tenant_id as "tenantId", c.sale_key as "saleKey", c.order_id as "orderId", c.listed as "isListed",
       ${SHOWN_COLUMNS}
     from (
       select c.* from unnest($1::int[], $2::text[]) as k (tenant_id, sale_key) cross join lateral (
         select * from conversions where tenant_id = k.tenant_id and sale_key = k.sale_key offset 0) c
       union
       select c.* from unnest($3::int[], $4::text[]) as o (tenant_id, order_id) cross join lateral (
         select * from conversions where tenant_id = o.tenant_id and order_id = o.order_id offset 0) c
     ) c ${SHOWN_PERSON}`,
    [
      keys.map(({ tenantId }) => tenantId),
      keys.map(({ saleKey }) => saleKey),
      orders.map(({ tenantId }) => tenantId),
      orders.map(({ orderId }) => orderId),
    ],
  )
  return rows
}
