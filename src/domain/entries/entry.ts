export type EntryKind = 'record' | 'events'

/** What comes in: the body as received, and what the surface that took it in knew of it (JSON text). */
export type Entry = {
  /** UUIDv7, with room for item numbers (ids.ts) */
  id: string
  tenantId: number
  kind: EntryKind
  /** Entries of one tenant with one ordering key are applied in the order they were appended. */
  orderingKey: string
  receivedAt: Date
  context: string
  body: string
}

/** Entries with the same order take effect in the order in which they were appended. */
export function orderKey(entry: Pick<Entry, 'tenantId' | 'kind' | 'orderingKey'>): string {
  return `${entry.tenantId} ${entry.kind} ${entry.orderingKey}`
}
