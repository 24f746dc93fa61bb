import type { Entry } from '../domain/entries/entry.ts'

/** The columns of an entry in the log, the parked entries, the overflow queue and the dead letters. */
export const ENTRY_COLUMNS =
  'id, tenant_id as "tenantId", kind, ordering_key as "orderingKey", received_at as "receivedAt", context, body'

/** Picks the entry out of a row with more columns. */
export function toEntry({ id, tenantId, kind, orderingKey, receivedAt, context, body }: Entry): Entry {
  return { id, tenantId, kind, orderingKey, receivedAt, context, body }
}
