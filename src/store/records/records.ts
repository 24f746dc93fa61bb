import { timeOfId } from '../../domain/ids.ts'
import type { EntityType, OperationOutcome, Version } from '../../domain/records/records.ts'
import { type Db, queryPrepared } from '../../postgres/database.ts'

export type RecordKey = { tenantId: number; entityType: EntityType; id: string }

/** Of to_char: ISO 8601 with microseconds, as `Version` compares it. */
export const VERSION_FORMAT = `'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'`

export async function loadVersions(db: Db, keys: RecordKey[]): Promise<(RecordKey & Version)[]> {
  const { rows } = await queryPrepared<RecordKey & Version>(
    db,
    // A look-up for each key, whatever the planner thinks of a table that it has no statistics of.
    `select r.* from unnest($1::int[], $2::text[], $3::text[]) as k (tenant_id, entity_type, id)
     cross join lateral (
       select tenant_id as "tenantId", entity_type as "entityType", id,
              to_char(source_updated_at at time zone 'UTC', ${VERSION_FORMAT}) as "sourceUpdatedAt", entry_id as "entryId"
       from records
       where tenant_id = k.tenant_id and entity_type = k.entity_type and id = k.id limit 1
     ) r`,
    [keys.map(key => key.tenantId), keys.map(key => key.entityType), keys.map(key => key.id)],
  )
  return rows
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

export const RECORD_COLUMNS = `entity_type as "entityType", id, external_id as "externalId", source_updated_at as "sourceUpdatedAt", data,
  deleted, created_at as "createdAt", updated_at as "updatedAt"`

export async function findRecord(
  db: Db,
  tenantId: number,
  entityType: EntityType,
  id: string,
): Promise<StoredRecord | null> {
  const { rows } = await queryPrepared<StoredRecord>(
    db,
    `select ${RECORD_COLUMNS} from records where tenant_id = $1 and entity_type = $2 and id = $3 and not deleted`,
    [tenantId, entityType, id],
  )
  return rows[0] ?? null
}

/** Records as they are, deleted ones too. */
export async function loadRecords(
  db: Db,
  keys: RecordKey[],
): Promise<(StoredRecord & { tenantId: number })[]> {
  const { rows } = await queryPrepared<StoredRecord & { tenantId: number }>(
    db,
    `select k.tenant_id as "tenantId", r.* from unnest($1::int[], $2::text[], $3::text[]) as k (tenant_id, entity_type, id)
     cross join lateral (
       select ${RECORD_COLUMNS} from records where tenant_id = k.tenant_id and entity_type = k.entity_type and id = k.id offset 0) r`,
    [keys.map(key => key.tenantId), keys.map(key => key.entityType), keys.map(key => key.id)],
  )
  return rows
}

/** By SKU, and by id where no product has that SKU. Of several with one SKU, the one that changed last. */
export async function findProduct(db: Db, tenantId: number, skuOrId: string): Promise<StoredRecord | null> {
  const { rows } = await queryPrepared<StoredRecord>(
    db,
    `select * from (
       (select ${RECORD_COLUMNS}, 0 as rank from records where tenant_id = $1 and sku = $2 and not deleted
        order by source_updated_at desc, id limit 1)
       union all
       select ${RECORD_COLUMNS}, 1 from records where tenant_id = $1 and entity_type = 'product' and id = $2 and not deleted
     ) found order by rank limit 1`,
    [tenantId, skuOrId],
  )
  return rows[0] ?? null
}

/** Where a page of records ends: the moment of the last row's change here, to the microsecond, and its id. */
type RecordCursor = { changedAt: string; id: string }

export type ListedRecord = StoredRecord & RecordCursor

// A hundred records may be a hundred megabytes; a hundred ordinary ones are a tenth of this.
const PORTION_BYTES = 2_097_152

// Only what is stored compressed has to be unpacked for its size; records of less than 2 KB are not.
export const RECORD_BYTES = `case when data is null then 0 when pg_column_compression(data) is null then pg_column_size(data)
  else octet_length(data::text) end`

/**
 * In the order of their last change here; `after` is the last row before. `isCut`: there may be more within the limit, to
 * be read after the last row.
 */
export async function listRecords(
  db: Db,
  tenantId: number,
  entityType: EntityType,
  page: {
    limit: number
    updatedSince: Date | null
    includeDeleted: boolean
    after: RecordCursor | null
  },
): Promise<{ rows: ListedRecord[]; isCut: boolean }> {
  const { rows } = await queryPrepared<ListedRecord & { bytes: number }>(
    db,
    `select ${RECORD_COLUMNS}, to_char(updated_at at time zone 'UTC', ${VERSION_FORMAT}) as "changedAt", bytes
     from (
       select *, sum(size) over (order by updated_at, id rows unbounded preceding) as bytes
       from (
         select *, ${RECORD_BYTES} as size from records
         where tenant_id::bigint = $1 and entity_type || '' = $2 and (updated_at, id) > ($3::timestamptz, $4) and (not deleted or $5)
         order by updated_at, id limit $6
       ) found
     ) summed
     where bytes - size < ${PORTION_BYTES} order by updated_at, id`,
    [tenantId, entityType, ...beginOf(page), page.includeDeleted, page.limit],
  )
  return { rows, isCut: (rows.at(-1)?.bytes ?? 0) >= PORTION_BYTES }
}

/** Where a page begins, as one bound that the index can use. Ids are never empty: with '' all of an instant is in. */
function beginOf({
  after,
  updatedSince,
}: {
  after: RecordCursor | null
  updatedSince: Date | null
}): [string, string] {
  if (after && (!updatedSince || new Date(after.changedAt) >= updatedSince))
    return [after.changedAt, after.id]
  return [updatedSince?.toISOString() ?? '-infinity', '']
}

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
    db, // A replayed dead letter has an outcome already: the new one takes its place.
    `insert into operations (tenant_id, id, received_at, status, entity_type, record_id, error)
     select * from json_to_recordset($1) as r ("tenantId" int, id uuid, "acceptedAt" timestamptz, status text,
       "entityType" text, "recordId" text, error text)
     on conflict (tenant_id, id, received_at) do update
       set status = excluded.status, applied_at = now(), error = excluded.error, record_id = excluded.record_id`,
    [JSON.stringify(operations.map(operation => ({ ...operation, acceptedAt: timeOfId(operation.id) })))],
  )
}

export async function findOperations(
  db: Db,
  tenantIds: number[],
  ids: string[],
): Promise<(Operation & { tenantId: number })[]> {
  const { rows } = await queryPrepared<Operation & { tenantId: number }>(
    db,
    `select o.tenant_id as "tenantId", o.id, o.status, o.entity_type as "entityType", o.record_id as "recordId",
       o.received_at as "acceptedAt", o.applied_at as "appliedAt", o.error
     from unnest($1::int[], $2::uuid[], $3::timestamptz[]) as k (tenant_id, id, received_at)
     join operations o on o.tenant_id = k.tenant_id and o.id = k.id and o.received_at = k.received_at`,
    [tenantIds, ids, ids.map(timeOfId)],
  )
  return rows
}
