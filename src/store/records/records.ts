import { contactFacts } from '../../domain/conversions/conversions.ts'
import { idToTime } from '../../domain/ids.ts'
import {
  ENTITY_TYPES,
  type EntityType,
  type OperationOutcome,
  type RecordName,
  type Version,
} from '../../domain/records/records.ts'
import { type Db, queryPrepared, queryRow, queryRows, toColumns } from '../../postgres/database.ts'
import { TENANT_LOCKS } from '../../postgres/locks.ts'
export type RecordKey = { tenantId: number; entityType: EntityType; id: string }

/** A to_char format: ISO 8601 with microseconds, as `Version` compares it. */
export const VERSION_FORMAT = `'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'`

export async function loadVersions(db: Db, keys: RecordKey[]): Promise<(RecordKey & Version)[]> {
  return queryRows<RecordKey & Version>(
    db,
    // Forces one index look-up per key, also without statistics of the table.
    `select r.* from unnest($1::int[], $2::text[], $3::text[]) as k (tenant_id, entity_type, id)
     cross join lateral (
       select tenant_id as "tenantId", entity_type as "entityType", id,
              to_char(source_updated_at at time zone 'UTC', ${VERSION_FORMAT}) as "sourceUpdatedAt", entry_id as "entryId"
       from records
       where tenant_id = k.tenant_id and entity_type = k.entity_type and id = k.id limit 1
     ) r`,
    [keys.map(key => key.tenantId), keys.map(key => key.entityType), keys.map(key => key.id)],
  )
}

export type RecordRow = RecordKey & Version & { externalId: string | null; deleted: boolean; dataText: string | null }

/** Writes the newest versions. The caller has compared them with the stored ones. */
export async function upsertRecords(db: Db, rows: RecordRow[]): Promise<void> {
  // The data is already JSON. It is inserted into the parameter without quoting it again.
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

export type StoredRecord = {
  entityType: EntityType
  id: string
  externalId: string | null
  sourceUpdatedAt: Date
  /** JSON text. Null if deleted. */
  data: string | null
  deleted: boolean
  createdAt: Date
  updatedAt: Date
}

export const RECORD_COLUMNS = `entity_type as "entityType", id, external_id as "externalId", source_updated_at as "sourceUpdatedAt", data,
  deleted, created_at as "createdAt", updated_at as "updatedAt"`

export async function findRecord(
  db: Db,
  tenantId: number,
  entityType: EntityType,
  id: string,
): Promise<StoredRecord | null> {
  return queryRow<StoredRecord>(
    db,
    `select ${RECORD_COLUMNS} from records where tenant_id = $1 and entity_type = $2 and id = $3 and not deleted`,
    [tenantId, entityType, id],
  )
}

/** The current records, including deleted ones. */
export async function loadRecords(db: Db, keys: RecordKey[]): Promise<(StoredRecord & { tenantId: number })[]> {
  return queryRows<StoredRecord & { tenantId: number }>(
    db,
    `select k.tenant_id as "tenantId", r.* from unnest($1::int[], $2::text[], $3::text[]) as k (tenant_id, entity_type, id)
     cross join lateral (
       select ${RECORD_COLUMNS} from records where tenant_id = k.tenant_id and entity_type = k.entity_type and id = k.id offset 0) r`,
    [keys.map(key => key.tenantId), keys.map(key => key.entityType), keys.map(key => key.id)],
  )
}

/** Finds a product by SKU, or by id if no product has that SKU. If several have it, the last changed one. */
export async function findProduct(db: Db, tenantId: number, skuOrId: string): Promise<StoredRecord | null> {
  return queryRow<StoredRecord>(
    db,
    `select * from (
       (select ${RECORD_COLUMNS}, 0 as rank from records where tenant_id = $1 and sku = $2 and not deleted
        order by source_updated_at desc, id limit 1)
       union all
       select ${RECORD_COLUMNS}, 1 from records where tenant_id = $1 and entity_type = 'product' and id = $2 and not deleted
     ) found order by rank limit 1`,
    [tenantId, skuOrId],
  )
}

/** The end of a page of records: the time of the last row's change, with microseconds, and its id. */
type RecordCursor = { changedAt: string; id: string }

export type ListedRecord = StoredRecord & RecordCursor

// A hundred records may be a hundred megabytes. A hundred ordinary ones are a tenth of this limit.
const PORTION_BYTES = 2_097_152

// Only compressed data must be unpacked to know its size. Records below 2 KB are not compressed.
export const RECORD_BYTES = `case when data is null then 0 when pg_column_compression(data) is null then pg_column_size(data)
  else octet_length(data::text) end`

type RecordPage = {
  limit: number
  newestFirst?: boolean
  updatedSince: Date | null
  includeDeleted: boolean
  after: RecordCursor | null
}

/**
 * Lists records in the order of their last change. `after` is the last row of the previous page. `isCut`: the page ended
 * early; read on after the last row.
 */
export async function listRecords(
  db: Db,
  tenantId: number,
  entityType: EntityType,
  page: RecordPage,
): Promise<{ rows: ListedRecord[]; isCut: boolean }> {
  const order = page.newestFirst ? 'updated_at desc, id desc' : 'updated_at, id'
  const { bound, values } = page.newestFirst ? newestBound(page) : oldestBound(page)
  const { rows } = await queryPrepared<ListedRecord & { bytes: number }>(
    db,
    `select ${RECORD_COLUMNS}, to_char(updated_at at time zone 'UTC', ${VERSION_FORMAT}) as "changedAt", bytes
     from (
       select *, sum(size) over (order by ${order} rows unbounded preceding) as bytes
       from (
         select *, ${RECORD_BYTES} as size from records
         where tenant_id::bigint = $1 and entity_type || '' = $2 and (not deleted or $3) and ${bound}
         order by ${order} limit $4
       ) found
     ) summed
     where bytes - size < ${PORTION_BYTES} order by ${order}`,
    [tenantId, entityType, page.includeDeleted, page.limit, ...values],
  )
  return { rows, isCut: (rows.at(-1)?.bytes ?? 0) >= PORTION_BYTES }
}

type Bound = { bound: string; values: string[] }

/** One bound that the index can use. Ids are never empty, so '' includes all rows of that time. */
function oldestBound({ after, updatedSince }: RecordPage): Bound {
  const isWithin = after && (!updatedSince || new Date(after.changedAt) >= updatedSince)
  const values = isWithin ? [after.changedAt, after.id] : [updatedSince?.toISOString() ?? '-infinity', '']
  return { bound: '(updated_at, id) > ($5::timestamptz, $6)', values }
}

function newestBound({ after, updatedSince }: RecordPage): Bound {
  const values = [after?.changedAt ?? 'infinity', after?.id ?? '', updatedSince?.toISOString() ?? '-infinity']
  return { bound: '(updated_at, id) < ($5::timestamptz, $6) and updated_at >= $7::timestamptz', values }
}

const NAME_FIELDS = ['name', 'firstName', 'first_name', 'lastName', 'last_name', 'email']

/** The names of contacts, else their e-mail addresses, by id. Longer ones are cut, and values that are no name are not read. */
export async function contactNames(db: Db, tenantId: number, ids: string[]): Promise<{ id: string; name: string }[]> {
  const fields = NAME_FIELDS.map(
    field => `'${field}', case when length(data ->> '${field}') < 1000 then data -> '${field}' end`,
  )
  const { rows } = await queryPrepared<{ id: string; facts: string }>(
    db,
    `select id, json_build_object(${fields}) as facts from records
     where tenant_id = $1 and entity_type = 'contact' and id = any($2) and not deleted`,
    [tenantId, ids],
  )
  return rows.flatMap(({ id, facts }) => {
    const { name, email } = contactFacts(JSON.parse(facts))
    return name !== null || email !== null ? [{ id, name: (name ?? email)!.slice(0, MAX_NAME) }] : []
  })
}

const MAX_NAME = 200

export type Operation = {
  id: string
  status: OperationOutcome
  entityType: EntityType
  recordId: string | null
  acceptedAt: Date
  appliedAt: Date
  error: string | null
}

export async function insertOperations(
  db: Db,
  operations: (Omit<Operation, 'acceptedAt' | 'appliedAt'> & { tenantId: number })[],
): Promise<void> {
  await queryPrepared(
    db, // A replayed dead letter already has an outcome. The new one replaces it.
    `insert into operations (tenant_id, id, received_at, status, entity_type, record_id, error)
     select * from json_to_recordset($1) as r ("tenantId" int, id uuid, "acceptedAt" timestamptz, status text,
       "entityType" text, "recordId" text, error text)
     on conflict (tenant_id, id, received_at) do update
       set status = excluded.status, applied_at = now(), error = excluded.error, record_id = excluded.record_id`,
    [JSON.stringify(operations.map(operation => ({ ...operation, acceptedAt: idToTime(operation.id) })))],
  )
}

export async function findOperations(
  db: Db,
  tenantIds: number[],
  ids: string[],
): Promise<(Operation & { tenantId: number })[]> {
  return queryRows<Operation & { tenantId: number }>(
    db,
    `select o.tenant_id as "tenantId", o.id, o.status, o.entity_type as "entityType", o.record_id as "recordId",
       o.received_at as "acceptedAt", o.applied_at as "appliedAt", o.error
     from unnest($1::int[], $2::uuid[], $3::timestamptz[]) as k (tenant_id, id, received_at)
     join operations o on o.tenant_id = k.tenant_id and o.id = k.id and o.received_at = k.received_at`,
    [tenantIds, ids, ids.map(idToTime)],
  )
}

/** A name of a record other than its id. */
export type RecordNameKey = { tenantId: number; entityType: EntityType; name: RecordName; value: string }

/**
 * A delete by name must see every record of that name, including those that another worker is writing. So writers share
 * the tenant's lock of a type, and deletes by name hold it exclusively.
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
  return queryRows<RecordNameKey & Version>(
    db,
    `select t.* from unnest($1::int[], $2::text[], $3::text[], $4::text[]) as k (tenant_id, entity_type, name, value)
     cross join lateral (
       select tenant_id as "tenantId", entity_type as "entityType", name, value,
              to_char(source_updated_at at time zone 'UTC', ${VERSION_FORMAT}) as "sourceUpdatedAt", entry_id as "entryId"
       from record_tombstones
       where tenant_id = k.tenant_id and entity_type = k.entity_type and name = k.name and value = k.value limit 1
     ) t`,
    toColumns(names, 'tenantId', 'entityType', 'name', 'value'),
  )
}

type NameDelete = RecordNameKey & Version

const DELETE_COLUMNS = ['tenantId', 'entityType', 'name', 'value', 'sourceUpdatedAt', 'entryId'] as const
/** Deletes by names other than the id, at most one per name. */
const DELETES = `unnest($1::int[], $2::text[], $3::text[], $4::text[], $5::timestamptz[], $6::uuid[])
  as d (tenant_id, entity_type, name, value, source_updated_at, entry_id)`

/**
 * The records with the name of a delete. The type is written in an unusual way, so that each branch can use only the index
 * of the name. Otherwise, without statistics, the planner used others and read all records of the tenant.
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

/** Stores the newest tombstone of each name. Returns the entry ids of the deletes that are the newest. */
export async function keepTombstones(db: Db, deletes: NameDelete[]): Promise<Set<string>> {
  const { rows } = await db.query<{ entryId: string }>(
    `insert into record_tombstones as t (tenant_id, entity_type, name, value, source_updated_at, entry_id)
     select * from ${DELETES} order by tenant_id, entity_type, name, value
     on conflict (tenant_id, entity_type, name, value) do update
       set source_updated_at = excluded.source_updated_at, entry_id = excluded.entry_id
       where (t.source_updated_at, t.entry_id) < (excluded.source_updated_at, excluded.entry_id)
     returning entry_id as "entryId"`,
    toColumns(deletes, ...DELETE_COLUMNS),
  )
  return new Set(rows.map(row => row.entryId))
}

/** Deletes the records that are older than a delete of their name. `by` is the entry of that delete. */
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
    toColumns(deletes, ...DELETE_COLUMNS),
  )
  return rows
}

/** Entry ids of the deletes that did not apply because a record of that name is newer. */
export async function deletesSurvived(db: Db, deletes: NameDelete[]): Promise<Set<string>> {
  const { rows } = await db.query<{ entryId: string }>(
    `select distinct d.entry_id as "entryId" from ${DELETES} ${NAMED}
     where (r.source_updated_at, r.entry_id) > (d.source_updated_at, d.entry_id)`,
    toColumns(deletes, ...DELETE_COLUMNS),
  )
  return new Set(rows.map(row => row.entryId))
}
