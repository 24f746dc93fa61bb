import type { NormalizedEvent } from '../events/types.ts'

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

/** `payload`, `headers` and `meta` are JSON text. */
export type EventOfResult = Pick<
  NormalizedEvent,
  'inboundEventId' | 'sourceConfigId' | 'providerEventId' | 'eventType' | 'occurredAt' | 'receivedAt' | 'payload'
> & { source: string; headers: string; meta: string }

/** The result of an inbound event, as JSON text: the normalized event as it was processed. */
export function eventResult(event: EventOfResult): string {
  const facts = JSON.stringify({
    inbound_event_id: event.inboundEventId,
    source_config_id: event.sourceConfigId,
    source_type: event.source,
    provider_event_id: event.providerEventId,
    event_type: event.eventType,
    occurred_at: event.occurredAt,
    received_at: event.receivedAt,
  })
  return `${facts.slice(0, -1)},"headers":${event.headers},"meta":${event.meta},"payload":${event.payload}}`
}
