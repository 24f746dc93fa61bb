/** What happened to an inbound event. */
export const RECEIPT_OUTCOMES = ['processed', 'duplicate', 'dropped', 'dead_letter', 'suppressed'] as const
export type ReceiptOutcome = (typeof RECEIPT_OUTCOMES)[number]

/** What a receipt says of an event that is not recorded because of whom it is about. Some senders make ids of addresses. */
export function suppressedReceipt({ inboundEventId }: { inboundEventId: string | null }) {
  const hasAddress = inboundEventId !== null && /@|%40/.test(inboundEventId)
  return {
    outcome: 'suppressed' as const,
    detail: 'about somebody who was erased and is not to be recorded again',
    inboundEventId: hasAddress ? null : inboundEventId,
  }
}
