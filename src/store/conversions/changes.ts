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

// Of who has more, the last: a merge must not take for ever.
const MAX_SALES_OF_PERSON = 1_000

/** Sales whose contact depends on who these people are. */
export async function salesOfProfiles(
  db: Db,
  profiles: { tenantId: number; profile: number }[],
): Promise<SaleRef[]> {
  const { rows } = await queryPrepared<SaleRef>(
    db,
    `select c.tenant_id as "tenantId", c.sale_key as "saleKey"
     from (select distinct * from unnest($1::int[], $2::bigint[]) as p (tenant_id, profile)) p
     cross join lateral (
       select s.tenant_id, s.sale_key from identities i
       cross join lateral (
         select tenant_id, sale_key, occurred_at from conversions
         where tenant_id = p.tenant_id and coalesce(event_node, order_node) = i.node and listed and order_contact_id is null
         offset 0
       ) s
       where i.tenant_id = p.tenant_id and i.profile = p.profile
       order by s.occurred_at desc limit ${MAX_SALES_OF_PERSON}
     ) c`,
    [profiles.map(({ tenantId }) => tenantId), profiles.map(({ profile }) => profile)],
  )
  return rows
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
