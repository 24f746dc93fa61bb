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
