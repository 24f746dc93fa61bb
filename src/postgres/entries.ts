import type { Entry } from '../domain/entries/entry.ts'

/** The columns of an entry, wherever it lies: in the log, parked, in the overflow or among the dead letters. */
export const ENTRY_COLUMNS =
  'id, tenant_id as "tenantId", kind, ordering_key as "orderingKey", received_at as "receivedAt", context, body'

/** The entry alone, of a row that holds more. */
export function entryOf({ id, tenantId, kind, orderingKey, receivedAt, context, body }: Entry): Entry {
  return { id, tenantId, kind, orderingKey, receivedAt, context, body }
}
