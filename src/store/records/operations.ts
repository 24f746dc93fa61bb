import { timeOfId } from '../../domain/ids.ts'
import type { EntityType, OperationOutcome } from '../../domain/records/records.ts'
import { type Db, queryPrepared } from '../../postgres/database.ts'

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
