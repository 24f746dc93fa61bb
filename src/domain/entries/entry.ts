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

/** rejected: never valid; failed: could not be applied */
export const DEAD_LETTER_REASONS = ['rejected', 'failed'] as const
export type DeadLetterReason = (typeof DEAD_LETTER_REASONS)[number]

// What differs from one failure to the next though the cause is the same: what was quoted, ids, numbers.
const VARYING = /"[^"]*"|'[^']*'|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d+/gi
const MAX_CAUSE = 300

/** What failures have in common that went wrong for the same reason: the error without what varies. */
export function failureCause(error: string): string {
  return error.replaceAll(VARYING, '…').slice(0, MAX_CAUSE).toWellFormed()
}
