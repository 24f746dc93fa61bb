import { type Db, queryPrepared } from '../../postgres/database.ts'
import type { Handle } from './handles.ts'
import { VERSION_FORMAT } from './records.ts'

/** A product of a shop: its own record, and those of its variants (`<id>/<variant>`). */
export type Family = { tenantId: number; id: string }

type FamilyMember = Family & { memberId: string; sourceUpdatedAt: string; deleted: boolean }

/** Ids compare by their bytes: what begins with `<id>/` lies before `<id>0`. */
export async function loadFamilies(db: Db, families: Family[]): Promise<FamilyMember[]> {
  const { rows } = await queryPrepared<FamilyMember>(
    db,
    `select f.tenant_id as "tenantId", f.id, r.id as "memberId", r.deleted,
       to_char(r.source_updated_at at time zone 'UTC', ${VERSION_FORMAT}) as "sourceUpdatedAt"
     from unnest($1::int[], $2::text[]) as f (tenant_id, id)
     cross join lateral (
       select id, source_updated_at, deleted from records
       where tenant_id = f.tenant_id and entity_type = 'product' and id = f.id
       union all
       select id, source_updated_at, deleted from records
       where tenant_id = f.tenant_id and entity_type = 'product' and id > f.id || '/' and id < f.id || '0'
     ) r`,
    [families.map(({ tenantId }) => tenantId), families.map(({ id }) => id)],
  )
  return rows
}

/** Of products that were imported from a shop's file: the records that go by the handle. */
export async function recordsOfHandles(db: Db, handles: Handle[]): Promise<(Handle & { id: string })[]> {
  const { rows } = await queryPrepared<Handle & { id: string }>(
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
  return rows
}

/** Of orders that are there. */
export async function loadOrderData(
  db: Db,
  orders: { tenantId: number; id: string }[],
): Promise<{ tenantId: number; id: string; sourceUpdatedAt: string; data: string }[]> {
  const { rows } = await queryPrepared<{
    tenantId: number
    id: string
    sourceUpdatedAt: string
    data: string
  }>(
    db,
    `select r.* from unnest($1::int[], $2::text[]) as k (tenant_id, id)
     cross join lateral (
       select tenant_id as "tenantId", id, data,
              to_char(source_updated_at at time zone 'UTC', ${VERSION_FORMAT}) as "sourceUpdatedAt"
       from records where tenant_id = k.tenant_id and entity_type = 'order' and id = k.id and not deleted limit 1
     ) r`,
    [orders.map(({ tenantId }) => tenantId), orders.map(({ id }) => id)],
  )
  return rows
}
