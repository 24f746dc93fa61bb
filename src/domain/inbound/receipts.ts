/** The outcome of an inbound event. */
export const RECEIPT_OUTCOMES = ['processed', 'duplicate', 'dropped', 'dead_letter', 'suppressed'] as const
export type ReceiptOutcome = (typeof RECEIPT_OUTCOMES)[number]

/** The detail in the receipt of a test event. Counts of received events exclude it. */
export const TEST_RECEIPT = 'test event'

/** The receipt of an event about a suppressed person. Some senders build event ids from e-mail addresses. */
export function suppressedReceipt({ inboundEventId }: { inboundEventId: string | null }) {
  const hasAddress = inboundEventId !== null && /@|%40/.test(inboundEventId)
  return {
    outcome: 'suppressed' as const,
    detail: 'about a person who was erased and is suppressed',
    inboundEventId: hasAddress ? null : inboundEventId,
  }
}
