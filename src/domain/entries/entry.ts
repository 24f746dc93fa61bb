export type EntryKind = 'record' | 'events'

/** An accepted request: the body as received, and the context of the endpoint that accepted it (JSON text). */
export type Entry = {
  /** UUIDv7 with reserved bits for item numbers (ids.ts). */
  id: string
  tenantId: number
  kind: EntryKind
  /** Entries of one tenant with one ordering key are applied in the order they were appended. */
  orderingKey: string
  receivedAt: Date
  context: string
  body: string
}

/** Entries with the same key are applied in the order in which they were appended. */
export function orderKey(entry: Pick<Entry, 'tenantId' | 'kind' | 'orderingKey'>): string {
  return `${entry.tenantId} ${entry.kind} ${entry.orderingKey}`
}

/** rejected: invalid. failed: could not be applied. */
export const DEAD_LETTER_REASONS = ['rejected', 'failed'] as const
export type DeadLetterReason = (typeof DEAD_LETTER_REASONS)[number]

// An example explains a value to the sender. Without its numbers it is not readable.
const EXAMPLE = /, for example [^;]*/g
// The parts of an error message that vary though the cause is the same: quoted values, ids, numbers.
const QUOTED = /"[^"]*"|'[^']*'/g
const UUID = /[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}/gi
const NUMBER = /\d+/g
const MAX_CAUSE = 300

/** The error without its varying parts. Failures with the same cause have the same text. */
export function failureCause(error: string): string {
  const cause = error.replaceAll(EXAMPLE, '').replaceAll(QUOTED, '…').replaceAll(UUID, '…').replaceAll(NUMBER, '…')
  return cause.slice(0, MAX_CAUSE).toWellFormed()
}
