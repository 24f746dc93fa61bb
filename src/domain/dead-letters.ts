/** rejected: never valid; failed: could not be applied */
export const DEAD_LETTER_REASONS = ['rejected', 'failed'] as const
export type DeadLetterReason = (typeof DEAD_LETTER_REASONS)[number]
