/** What happened to an inbound event. */
export const RECEIPT_OUTCOMES = ['processed', 'duplicate', 'dropped', 'dead_letter', 'suppressed'] as const
export type ReceiptOutcome = (typeof RECEIPT_OUTCOMES)[number]
