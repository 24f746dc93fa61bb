import { ENTITY_TYPES, type EntityType, type RecordName, type Version } from '../../domain/records/records.ts'
import { columnsOf } from '../../postgres/columns.ts'
import { type Db, queryPrepared } from '../../postgres/database.ts'
import { TENANT_LOCKS } from '../../postgres/locks.ts'
import { type RecordKey, VERSION_FORMAT } from './records.ts'

/** A name of a record beside its id. */
export type RecordNameKey = { tenantId: number; entityType: EntityType; name: RecordName; value: string }

/**
 * A delete by name must see every record of that name, also one that another worker is writing at this moment.
 * Writers share the tenant's lock for a type, deleters by name have it alone.
 */
export async function lockRecordTypes(
  db: Db,
  locks: { tenantId: number; entityType: EntityType; exclusive: boolean }[],
): Promise<void> {
  const sorted = locks
    .map(lock => ({ ...lock, type: ENTITY_TYPES.indexOf(lock.entityType) }))
    .sort((a, b) => a.tenantId - b.tenantId || a.type - b.type)
  await queryPrepared(
    db,
    `select case when exclusive then pg_advisory_xact_lock(class, tenant) else pg_advisory_xact_lock_shared(class, tenant) end
     from unnest($1::int[], $2::int[], $3::bool[]) with ordinality as l (class, tenant, exclusive, n) order by n`,
    [
      sorted.map(lock => TENANT_LOCKS.records + lock.type),
      sorted.map(lock => lock.tenantId),
      sorted.map(lock => lock.exclusive),
    ],
  )
}

export async function loadTombstones(db: Db, names: RecordNameKey[]): Promise<(RecordNameKey & Version)[]> {
  const { rows } = await queryPrepared<RecordNameKey & Version>(
    db,
    `select t.* from unnest($1::int[], $2::text[], $3::text[], $4::text[]) as k (tenant_id, entity_type, name, value)
     cross join lateral (
       select tenant_id as "tenantId", entity_type as "entityType", name, value,
              to_char(source_updated_at at time zone 'UTC', ${VERSION_FORMAT}) as "sourceUpdatedAt", entry_id as "entryId"
       from record_tombstones
       where tenant_id = k.tenant_id and entity_type = k.entity_type and name = k.name and value = k.value limit 1
     ) t`,
    columnsOf(names, 'tenantId', 'entityType', 'name', 'value'),
  )
  return rows
}

type NameDelete = RecordNameKey & Version

const DELETE_COLUMNS = ['tenantId', 'entityType', 'name', 'value', 'sourceUpdatedAt', 'entryId'] as const
/** Deletes by other names than the id; at most one for each name. */
const DELETES = `unnest($1::int[], $2::text[], $3::text[], $4::text[], $5::timestamptz[], $6::uuid[])
  as d (tenant_id, entity_type, name, value, source_updated_at, entry_id)`

/**
 * The records that go by the name of a delete. Each branch leaves one index to choose, that of the name; hence the odd
 * spelling of the type. Without statistics the planner took others for as good, and read all records of the tenant.
 */
const NAMED = `cross join lateral (
  select id, source_updated_at, entry_id from records
  where d.name = 'external_id' and tenant_id = d.tenant_id and external_id = d.value and not deleted
    and '' || entity_type = d.entity_type
  union all
  select id, source_updated_at, entry_id from records
  where d.name = 'sku' and tenant_id = d.tenant_id and sku = d.value and not deleted
  union all
  select id, source_updated_at, entry_id from records
  where d.name = 'code' and tenant_id = d.tenant_id and code = d.value and not deleted
) r`

/** Keeps the newest tombstone of each name. Returns the entry ids of those that are the newest. */
export async function keepTombstones(db: Db, deletes: NameDelete[]): Promise<Set<string>> {
  const { rows } = await db.query<{ entryId: string }>(
    `insert into record_tombstones as t (tenant_id, entity_type, name, value, source_updated_at, entry_id)
     select * from ${DELETES} order by tenant_id, entity_type, name, value
     on conflict (tenant_id, entity_type, name, value) do update
       set source_updated_at = excluded.source_updated_at, entry_id = excluded.entry_id
       where (t.source_updated_at, t.entry_id) < (excluded.source_updated_at, excluded.entry_id)
     returning entry_id as "entryId"`,
    columnsOf(deletes, ...DELETE_COLUMNS),
  )
  return new Set(rows.map(row => row.entryId))
}

/** Deletes the records which are older than the delete of a name they go by. `by` is the entry of that delete. */
export async function deleteByNames(
  db: Db,
  deletes: NameDelete[],
): Promise<(RecordKey & { sourceUpdatedAt: string; by: string })[]> {
  const { rows } = await db.query<RecordKey & { sourceUpdatedAt: string; by: string }>(
    `with older as materialized (
       select d.tenant_id, d.entity_type, r.id, d.source_updated_at, d.entry_id from ${DELETES} ${NAMED}
       where (r.source_updated_at, r.entry_id) < (d.source_updated_at, d.entry_id)
     )
     update records set deleted = true, data = null, updated_at = now()
     from older
     where records.tenant_id = older.tenant_id and records.entity_type = older.entity_type and records.id = older.id
     returning records.tenant_id as "tenantId", records.entity_type as "entityType", records.id,
       to_char(older.source_updated_at at time zone 'UTC', ${VERSION_FORMAT}) as "sourceUpdatedAt", older.entry_id as by`,
    columnsOf(deletes, ...DELETE_COLUMNS),
  )
  return rows
}

/** Entry ids of the deletes that a newer record of that name survived. */
export async function deletesSurvived(db: Db, deletes: NameDelete[]): Promise<Set<string>> {
  const { rows } = await db.query<{ entryId: string }>(
    `select distinct d.entry_id as "entryId" from ${DELETES} ${NAMED}
     where (r.source_updated_at, r.entry_id) > (d.source_updated_at, d.entry_id)`,
    columnsOf(deletes, ...DELETE_COLUMNS),
  )
  return new Set(rows.map(row => row.entryId))
}
