import type pg from 'pg'
import type { Entry } from '../../domain/entries/entry.ts'
import { isUuid } from '../../domain/ids.ts'
import type { EntityType, RecordContext } from '../../domain/records/records.ts'
import type { Scope } from '../../domain/tenants/keys.ts'
import { Type } from '../../domain/typebox.ts'
import type { Log } from '../../log/log.ts'
import { findParked } from '../../store/entries/parked.ts'
import { findOperations, type Operation } from '../../store/records/records.ts'
import type { App } from '../app.ts'
import { requireScope } from '../auth.ts'
import { problems } from '../problems.ts'
import { OperationBody } from './schemas.ts'

export function operationRoute(app: App, { pool, log }: { pool: pg.Pool; log: Log }): void {
  app.get(
    '/v1/operations/:operationId',
    {
      config: { scope: [] },
      schema: {
        tags: ['Records'],
        summary: 'Get an operation',
        description:
          'The outcome of an accepted write: `queued`, then `applied`, `superseded` by a newer version of the record, or `failed`. Kept for 30 days. Requires the read or write scope of the record’s type.',
        params: Type.Object({ operationId: Type.String({ description: 'operationId of the accepted write' }) }),
        response: { 200: OperationBody },
      },
    },
    async request => {
      const { operationId } = request.params
      const { tenantId } = request.caller
      const notFound = problems.unknown('operation', operationId)
      if (!isUuid(operationId)) throw notFound
      const [done] = await findOperations(pool, [tenantId], [operationId])
      const operation = done ? toBody(done) : queuedBody(await findQueued(pool, log, tenantId, operationId))
      if (!operation) throw notFound
      requireScope(request.caller, listScopes(operation.entityType))
      return operation
    },
  )
}

async function findQueued(pool: pg.Pool, log: Log, tenantId: number, id: string): Promise<Entry | null> {
  const entry = (await log.find(tenantId, id, 'record')) ?? (await findParked(pool, tenantId, id))
  return entry?.kind === 'record' ? entry : null
}

function toBody(operation: Operation) {
  return {
    operationId: operation.id,
    status: operation.status,
    entityType: operation.entityType,
    id: operation.recordId,
    acceptedAt: operation.acceptedAt.toISOString(),
    appliedAt: operation.status === 'failed' ? null : operation.appliedAt.toISOString(),
    error: operation.error,
  }
}

function queuedBody(entry: Entry | null) {
  if (!entry) return null
  const { id } = JSON.parse(entry.body) as { id?: string }
  const { entityType } = JSON.parse(entry.context) as RecordContext
  return {
    operationId: entry.id,
    status: 'queued' as const,
    entityType,
    id: id ?? null,
    acceptedAt: entry.receivedAt.toISOString(),
    appliedAt: null,
    error: null,
  }
}

function listScopes(entityType: EntityType): Scope[] {
  return [`${entityType}s:read`, `${entityType}s:write`]
}
