import { timeOfId } from '../../domain/ids.ts'
import type { EntityType } from '../../domain/records/records.ts'
import { type Db, queryPrepared } from '../../postgres/database.ts'

export type OperationStatus = 'applied' | 'superseded' | 'failed'

export type Operation = {
  id: string
  status: OperationStatus
  entityType: EntityType
  recordId: string | null
  acceptedAt: Date
  appliedAt: Date
  error: string | null
}

export async function insertOperations(
  db: Db,
  operations: {
    tenantId: number
    id: string
    status: OperationStatus
    entityType: EntityType
    recordId: string | null
    error: string | null
  }[],
): Promise<void> {
  await queryPrepared(
    db, // A replayed dead letter has an outcome already: the new one takes its place.
    `insert into operations (tenant_id, id, received_at, status, entity_type, record_id, error)
     select * from json_to_recordset($1) as r (
       tenant_id int, id uuid, received_at timestamptz, status text, entity_type text, record_id text, error text)
     on conflict (tenant_id, id, received_at) do update
       set status = excluded.status, applied_at = now(), error = excluded.error, record_id = excluded.record_id`,
    [
      JSON.stringify(
        operations.map(operation => ({
          tenant_id: operation.tenantId,
          id: operation.id,
          received_at: timeOfId(operation.id),
          status: operation.status,
          entity_type: operation.entityType,
          record_id: operation.recordId,
          error: operation.error,
        })),
      ),
    ],
  )
}

export async function findOperations(
  db: Db,
  tenantIds: number[],
  ids: string[],
): Promise<(Operation & { tenantId: number })[]> {
  const { rows } = await queryPrepared<{
    tenant_id: number
    id: string
    status: OperationStatus
    entity_type: EntityType
    record_id: string | null
    received_at: Date
    applied_at: Date
    error: string | null
  }>(
    db,
    `select o.tenant_id, o.id, o.status, o.entity_type, o.record_id, o.received_at, o.applied_at, o.error
     from unnest($1::int[], $2::uuid[], $3::timestamptz[]) as k (tenant_id, id, received_at)
     join operations o on o.tenant_id = k.tenant_id and o.id = k.id and o.received_at = k.received_at`,
    [tenantIds, ids, ids.map(timeOfId)],
  )
  return rows.map(row => ({
    tenantId: row.tenant_id,
    id: row.id,
    status: row.status,
    entityType: row.entity_type,
    recordId: row.record_id,
    acceptedAt: row.received_at,
    appliedAt: row.applied_at,
    error: row.error,
  }))
}
