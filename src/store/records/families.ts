import { type Db, queryPrepared, queryRows } from '../../postgres/database.ts'
import { VERSION_FORMAT } from './records.ts'
/** A product of a shop: its own record, and those of its variants (`<id>/<variant>`). */
export type Family = { tenantId: number; id: string }

type FamilyMember = Family & {
  memberId: string
  sourceUpdatedAt: string
  deleted: boolean
  /** JSON text, of a product of WooCommerce, which lists its variations. */
  variations: string | null
}

/** Ids are compared by their bytes, so every id that starts with `<id>/` sorts before `<id>0`. */
export async function loadFamilies(db: Db, families: Family[]): Promise<FamilyMember[]> {
  return queryRows<FamilyMember>(
    db,
    `select f.tenant_id as "tenantId", f.id, r.id as "memberId", r.deleted, r.variations,
       to_char(r.source_updated_at at time zone 'UTC', ${VERSION_FORMAT}) as "sourceUpdatedAt"
     from unnest($1::int[], $2::text[]) as f (tenant_id, id)
     cross join lateral (
       select id, source_updated_at, deleted, data -> 'source' -> 'variations' as variations from records
       where tenant_id = f.tenant_id and entity_type = 'product' and id = f.id
       union all
       select id, source_updated_at, deleted, null from records
       where tenant_id = f.tenant_id and entity_type = 'product' and id > f.id || '/' and id < f.id || '0'
     ) r`,
    [families.map(({ tenantId }) => tenantId), families.map(({ id }) => id)],
  )
}

/** The records of products that were imported from a shop's file, by handle. */
export async function recordsOfHandles(db: Db, handles: Handle[]): Promise<(Handle & { id: string })[]> {
  return queryRows<Handle & { id: string }>(
    db,
    `select h.tenant_id as "tenantId", h.handle, r.id
     from unnest($1::int[], $2::text[]) as h (tenant_id, handle)
     cross join lateral (
       select id, data from records
       where tenant_id = h.tenant_id and entity_type = 'product' and id = h.handle and not deleted
       union all
       select id, data from records
       where tenant_id = h.tenant_id and entity_type = 'product' and id > h.handle || '/' and id < h.handle || '0' and not deleted
     ) r
     where r.data ->> 'handle' = h.handle and r.data -> 'source' is null`,
    [handles.map(({ tenantId }) => tenantId), handles.map(({ handle }) => handle)],
  )
}

/** The data of existing orders. */
export async function loadOrderData(
  db: Db,
  orders: { tenantId: number; id: string }[],
): Promise<{ tenantId: number; id: string; sourceUpdatedAt: string; data: string }[]> {
  return queryRows<{ tenantId: number; id: string; sourceUpdatedAt: string; data: string }>(
    db,
    `select r.* from unnest($1::int[], $2::text[]) as k (tenant_id, id)
     cross join lateral (
       select tenant_id as "tenantId", id, data,
              to_char(source_updated_at at time zone 'UTC', ${VERSION_FORMAT}) as "sourceUpdatedAt"
       from records where tenant_id = k.tenant_id and entity_type = 'order' and id = k.id and not deleted limit 1
     ) r`,
    [orders.map(({ tenantId }) => tenantId), orders.map(({ id }) => id)],
  )
}

/** The handle by which a shop's file, which has no ids, identifies a product. */
export type Handle = { tenantId: number; handle: string }

/** Stores the product of each handle. If several products had it, the latest one counts. */
export async function keepHandles(db: Db, handles: (Handle & { productId: string; sentAt: string })[]): Promise<void> {
  await queryPrepared(
    db,
    `insert into shop_handles as n (tenant_id, handle, product_id, source_updated_at)
     select distinct on (tenant_id, handle) * from unnest($1::int[], $2::text[], $3::text[], $4::timestamptz[])
       as t (tenant_id, handle, product_id, source_updated_at)
     order by tenant_id, handle, source_updated_at desc
     on conflict (tenant_id, handle) do update set product_id = excluded.product_id, source_updated_at = excluded.source_updated_at
       where n.source_updated_at < excluded.source_updated_at`,
    [
      handles.map(({ tenantId }) => tenantId),
      handles.map(({ handle }) => handle),
      handles.map(({ productId }) => productId),
      handles.map(({ sentAt }) => sentAt),
    ],
  )
}

/** The known products of these handles: whether any of their records exists, and when the shop last sent them. */
export async function productsOfHandles(
  db: Db,
  handles: Handle[],
): Promise<(Handle & { isLive: boolean; sentAt: string })[]> {
  return queryRows<Handle & { isLive: boolean; sentAt: string }>(
    db,
    `select n.tenant_id as "tenantId", n.handle, r.live as "isLive", to_char(r.updated_at at time zone 'UTC', ${VERSION_FORMAT}) as "sentAt"
     from unnest($1::int[], $2::text[]) as k (tenant_id, handle)
     cross join lateral (
       select tenant_id, handle, product_id from shop_handles where tenant_id = k.tenant_id and handle = k.handle limit 1
     ) n
     cross join lateral (
       select bool_or(not deleted) as live, max(source_updated_at) as updated_at
       from (
         select deleted, source_updated_at from records
         where tenant_id = n.tenant_id and entity_type = 'product' and id = n.product_id
         union all
         select deleted, source_updated_at from records
         where tenant_id = n.tenant_id and entity_type = 'product' and id > n.product_id || '/' and id < n.product_id || '0'
       ) members
     ) r
     where r.updated_at is not null`,
    [handles.map(({ tenantId }) => tenantId), handles.map(({ handle }) => handle)],
  )
}
