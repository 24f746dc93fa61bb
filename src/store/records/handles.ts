import { type Db, queryPrepared } from '../../postgres/database.ts'
import { VERSION_FORMAT } from './records.ts'

/** What a shop's file calls a product, whose id it does not know. */
export type Handle = { tenantId: number; handle: string }

/** Keeps whose handle it is; of several, theirs who had it last. */
export async function keepHandles(
  db: Db,
  handles: (Handle & { productId: string; toldAt: string })[],
): Promise<void> {
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
      handles.map(({ toldAt }) => toldAt),
    ],
  )
}

/** Of these handles, those whose products are known: whether anything of the product is there, and when it was last told. */
export async function productsOfHandles(
  db: Db,
  handles: Handle[],
): Promise<(Handle & { isLive: boolean; toldAt: string })[]> {
  const { rows } = await queryPrepared<Handle & { isLive: boolean; toldAt: string }>(
    db,
    `select n.tenant_id as "tenantId", n.handle, r.live as "isLive", to_char(r.updated_at at time zone 'UTC', ${VERSION_FORMAT}) as "toldAt"
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
  return rows
}
