import type { Entry, EntryKind } from '../../domain/entry.ts'

/** An entry of the log, wherever it lies: in the log, parked, deferred or among the dead letters. */
export type EntryRow = {
  id: string
  tenant_id: number
  kind: EntryKind
  ordering_key: string
  received_at: Date
  context: string
  body: string
}

export const ENTRY_COLUMNS = 'id, tenant_id, kind, ordering_key, received_at, context, body'

export function toEntry(row: EntryRow): Entry {
  return {
    id: row.id,
    tenantId: row.tenant_id,
    kind: row.kind,
    orderingKey: row.ordering_key,
    receivedAt: row.received_at,
    context: row.context,
    body: row.body,
  }
}
