import { ENTITY_TYPES, type EntityType, type RecordName, type Version } from '../../domain/records/records.ts'
import { type Db, queryPrepared } from '../../postgres/database.ts'

// Class of the advisory locks below, so that they meet no other use of a tenant's number.
const RECORD_LOCK = 4_911_100

export type RecordKey = { tenantId: number; entityType: EntityType; id: string }
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
      sorted.map(lock => RECORD_LOCK + lock.type),
      sorted.map(lock => lock.tenantId),
      sorted.map(lock => lock.exclusive),
    ],
  )
}

function versionOf(table: string): string {
  return `to_char(${table}.source_updated_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as source_updated_at, ${table}.entry_id`
}

export async function loadVersions(db: Db, keys: RecordKey[]): Promise<(RecordKey & Version)[]> {
  const { rows } = await queryPrepared<{
    tenant_id: number
    entity_type: EntityType
    id: string
    source_updated_at: string
    entry_id: string
  }>(
    db,
    // A look-up for each key, whatever the planner thinks of a table that it has no statistics of.
    `select r.* from unnest($1::int[], $2::text[], $3::text[]) as k (tenant_id, entity_type, id)
     cross join lateral (
       select tenant_id, entity_type, id, ${versionOf('records')} from records
       where tenant_id = k.tenant_id and entity_type = k.entity_type and id = k.id limit 1
     ) r`,
    [keys.map(key => key.tenantId), keys.map(key => key.entityType), keys.map(key => key.id)],
  )
  return rows.map(row => ({
    tenantId: row.tenant_id,
    entityType: row.entity_type,
    id: row.id,
    sourceUpdatedAt: row.source_updated_at,
    entryId: row.entry_id,
  }))
}

export async function loadTombstones(db: Db, names: RecordNameKey[]): Promise<(RecordNameKey & Version)[]> {
  const { rows } = await queryPrepared<{
    tenant_id: number
    entity_type: EntityType
    name: RecordName
    value: string
    source_updated_at: string
    entry_id: string
  }>(
    db,
    `select t.* from unnest($1::int[], $2::text[], $3::text[], $4::text[]) as k (tenant_id, entity_type, name, value)
     cross join lateral (
       select tenant_id, entity_type, name, value, ${versionOf('record_tombstones')} from record_tombstones
       where tenant_id = k.tenant_id and entity_type = k.entity_type and name = k.name and value = k.value limit 1
     ) t`,
    [
      names.map(name => name.tenantId),
      names.map(name => name.entityType),
      names.map(name => name.name),
      names.map(name => name.value),
    ],
  )
  return rows.map(row => ({
    tenantId: row.tenant_id,
    entityType: row.entity_type,
    name: row.name,
    value: row.value,
    sourceUpdatedAt: row.source_updated_at,
    entryId: row.entry_id,
  }))
}

export type RecordRow = RecordKey &
  Version & { externalId: string | null; deleted: boolean; dataText: string | null }

/** Writes the newest versions; the caller has compared them with what was there. */
export async function upsertRecords(db: Db, rows: RecordRow[]): Promise<void> {
  // The data is JSON already: it goes into the parameter as it came, without a second round of quoting.
  const text = rows.map(
    row =>
      `{"tenant_id":${row.tenantId},"entity_type":"${row.entityType}","id":${JSON.stringify(row.id)},"external_id":${JSON.stringify(row.externalId)},"source_updated_at":"${row.sourceUpdatedAt}","entry_id":"${row.entryId}","deleted":${row.deleted},"data":${row.dataText ?? 'null'}}`,
  )
  await queryPrepared(
    db,
    `insert into records (tenant_id, entity_type, id, external_id, source_updated_at, entry_id, deleted, data, created_at, updated_at)
     select tenant_id, entity_type, id, external_id, source_updated_at, entry_id, deleted,
            case when not deleted then data end, now(), now()
     from json_to_recordset($1) as r (tenant_id int, entity_type text, id text, external_id text,
       source_updated_at timestamptz, entry_id uuid, deleted boolean, data jsonb)
     order by tenant_id, entity_type, id
     on conflict (tenant_id, entity_type, id) do update set
       external_id = excluded.external_id, source_updated_at = excluded.source_updated_at,
       entry_id = excluded.entry_id, deleted = excluded.deleted, data = excluded.data, updated_at = now(),
       created_at = case when records.deleted then now() else records.created_at end`,
    [`[${text.join(',')}]`],
  )
}

export type NameDelete = RecordNameKey & Version

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

function columnsOf(deletes: NameDelete[]): unknown[] {
  return [
    deletes.map(one => one.tenantId),
    deletes.map(one => one.entityType),
    deletes.map(one => one.name),
    deletes.map(one => one.value),
    deletes.map(one => one.sourceUpdatedAt),
    deletes.map(one => one.entryId),
  ]
}

/** Keeps the newest tombstone of each name. Returns the entry ids of those that are the newest. */
export async function keepTombstones(db: Db, deletes: NameDelete[]): Promise<Set<string>> {
  const { rows } = await db.query<{ entry_id: string }>(
    `insert into record_tombstones as t (tenant_id, entity_type, name, value, source_updated_at, entry_id)
     select * from ${DELETES} order by tenant_id, entity_type, name, value
     on conflict (tenant_id, entity_type, name, value) do update
       set source_updated_at = excluded.source_updated_at, entry_id = excluded.entry_id
       where (t.source_updated_at, t.entry_id) < (excluded.source_updated_at, excluded.entry_id)
     returning entry_id`,
    columnsOf(deletes),
  )
  return new Set(rows.map(row => row.entry_id))
}

/** Deletes the records which are older than the delete of a name they go by. `by` is the entry of that delete. */
export async function deleteByNames(
  db: Db,
  deletes: NameDelete[],
): Promise<(RecordKey & { sourceUpdatedAt: string; by: string })[]> {
  const { rows } = await db.query<{
    tenant_id: number
    entity_type: EntityType
    id: string
    source_updated_at: string
    entry_id: string
  }>(
    `with older as materialized (
       select d.tenant_id, d.entity_type, r.id, ${versionOf('d')} from ${DELETES} ${NAMED}
       where (r.source_updated_at, r.entry_id) < (d.source_updated_at, d.entry_id)
     )
     update records set deleted = true, data = null, updated_at = now()
     from older
     where records.tenant_id = older.tenant_id and records.entity_type = older.entity_type and records.id = older.id
     returning records.tenant_id, records.entity_type, records.id, older.source_updated_at, older.entry_id`,
    columnsOf(deletes),
  )
  return rows.map(row => ({
    tenantId: row.tenant_id,
    entityType: row.entity_type,
    id: row.id,
    sourceUpdatedAt: row.source_updated_at,
    by: row.entry_id,
  }))
}

/** Entry ids of the deletes that a newer record of that name survived. */
export async function deletesSurvived(db: Db, deletes: NameDelete[]): Promise<Set<string>> {
  const { rows } = await db.query<{ entry_id: string }>(
    `select distinct d.entry_id from ${DELETES} ${NAMED}
     where (r.source_updated_at, r.entry_id) > (d.source_updated_at, d.entry_id)`,
    columnsOf(deletes),
  )
  return new Set(rows.map(row => row.entry_id))
}

export type StoredRecord = {
  entityType: EntityType
  id: string
  externalId: string | null
  sourceUpdatedAt: Date
  /** JSON text; null when deleted */
  data: string | null
  deleted: boolean
  createdAt: Date
  updatedAt: Date
}

type Row = {
  entity_type: EntityType
  id: string
  external_id: string | null
  source_updated_at: Date
  data: string | null
  deleted: boolean
  created_at: Date
  updated_at: Date
}

const COLUMNS = 'entity_type, id, external_id, source_updated_at, data, deleted, created_at, updated_at'

export async function findRecord(
  db: Db,
  tenantId: number,
  entityType: EntityType,
  id: string,
): Promise<StoredRecord | null> {
  const { rows } = await queryPrepared<Row>(
    db,
    `select ${COLUMNS} from records where tenant_id = $1 and entity_type = $2 and id = $3 and not deleted`,
    [tenantId, entityType, id],
  )
  return rows[0] ? toRecord(rows[0]) : null
}

/** By SKU, and by id where no product has that SKU. Of several with one SKU, the one that changed last. */
export async function findProduct(db: Db, tenantId: number, skuOrId: string): Promise<StoredRecord | null> {
  const { rows } = await queryPrepared<Row>(
    db,
    `select * from (
       (select ${COLUMNS}, 0 as rank from records where tenant_id = $1 and sku = $2 and not deleted
        order by source_updated_at desc, id limit 1)
       union all
       select ${COLUMNS}, 1 from records where tenant_id = $1 and entity_type = 'product' and id = $2 and not deleted
     ) found order by rank limit 1`,
    [tenantId, skuOrId],
  )
  return rows[0] ? toRecord(rows[0]) : null
}

type Place = { updatedAt: string; id: string }

/** In the order of their last change here; `after` is the last row of the page before. */
export async function listRecords(
  db: Db,
  tenantId: number,
  entityType: EntityType,
  page: {
    limit: number
    updatedSince: Date | null
    includeDeleted: boolean
    after: Place | null
  },
): Promise<(StoredRecord & { cursor: Place })[]> {
  const { rows } = await queryPrepared<Row & { exact_updated_at: string }>(
    db,
    `select ${COLUMNS}, to_char(updated_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as exact_updated_at
     from records
     where tenant_id::bigint = $1 and entity_type || '' = $2 and (updated_at, id) > ($3::timestamptz, $4) and (not deleted or $5)
     order by updated_at, id limit $6`,
    [tenantId, entityType, ...beginOf(page), page.includeDeleted, page.limit],
  )
  return rows.map(row => ({ ...toRecord(row), cursor: { updatedAt: row.exact_updated_at, id: row.id } }))
}

/** Where a page begins, as one bound that the index can use. Ids are never empty: with '' all of an instant is in. */
function beginOf({
  after,
  updatedSince,
}: {
  after: Place | null
  updatedSince: Date | null
}): [string, string] {
  if (after && (!updatedSince || new Date(after.updatedAt) >= updatedSince))
    return [after.updatedAt, after.id]
  return [updatedSince?.toISOString() ?? '-infinity', '']
}

function toRecord(row: Row): StoredRecord {
  return {
    entityType: row.entity_type,
    id: row.id,
    externalId: row.external_id,
    sourceUpdatedAt: row.source_updated_at,
    data: row.data,
    deleted: row.deleted,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  }
}
