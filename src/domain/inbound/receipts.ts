/** What happened to an inbound event. */
export const RECEIPT_OUTCOMES = ['processed', 'duplicate', 'dropped', 'dead_letter', 'suppressed'] as const
export type ReceiptOutcome = (typeof RECEIPT_OUTCOMES)[number]

/** What a receipt says of an event that is not recorded because of whom it is about. */
export const SUPPRESSED = 'about somebody who was erased and is not to be recorded again'
