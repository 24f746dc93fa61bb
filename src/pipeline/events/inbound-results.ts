import type { NormalizedEvent } from '../../domain/events/events.ts'
import { suppressedReceipt } from '../../domain/inbound/receipts.ts'
import { insertArchive, insertReceipts } from '../../store/inbound/receipts.ts'
import type { Transaction, Unit } from '../unit.ts'

/** Of events from inbound sources: the result goes into the archive, then the receipt is written. */
export async function keepInboundResults(
  { client }: Transaction,
  { fresh, duplicates, suppressed }: Record<'fresh' | 'duplicates' | 'suppressed', Unit<NormalizedEvent>[]>,
): Promise<void> {
  const processed = fresh.filter(isInbound)
  if (processed.length > 0) {
    await insertArchive(
      client,
      processed.map(({ entry, work }) => ({
        tenantId: entry.tenantId,
        id: work.id,
        receivedAt: work.receivedAt,
        sourceId: work.sourceConfigId!,
        result: resultText(work),
      })),
    )
  }
  const receipts = [
    ...processed.map(unit => ({ ...receiptOf(unit), outcome: 'processed' as const, detail: null })),
    ...duplicates
      .filter(isInbound)
      .map(unit => ({ ...receiptOf(unit), outcome: 'duplicate' as const, detail: null })),
    ...suppressed.filter(isInbound).map(unit => ({ ...receiptOf(unit), ...suppressedReceipt(unit.work) })),
  ]
  if (receipts.length > 0) await insertReceipts(client, receipts)
}

/** The receipt of an event that is given up; none where it came from no inbound source. */
export async function keepFailure(
  { client }: Transaction,
  unit: Unit<NormalizedEvent>,
  error: string,
): Promise<void> {
  if (!isInbound(unit)) return
  await insertReceipts(client, [{ ...receiptOf(unit), outcome: 'dead_letter', detail: error }])
}

/** An entry that could not be read has no event. */
function isInbound({ work }: Unit<NormalizedEvent | undefined>): boolean {
  return work !== undefined && work.sourceConfigId !== null
}

function receiptOf({ entry, work: event }: Unit<NormalizedEvent>) {
  return {
    tenantId: entry.tenantId,
    sourceId: event.sourceConfigId!,
    id: event.id,
    receivedAt: event.receivedAt,
    inboundEventId: event.inboundEventId,
    eventType: event.eventType,
    firstId: null,
  }
}

/** The normalized event as it was processed. */
function resultText(event: NormalizedEvent): string {
  const facts = JSON.stringify({
    inbound_event_id: event.inboundEventId,
    source_config_id: event.sourceConfigId,
    source_type: event.sourceType,
    provider_event_id: event.providerEventId,
    event_type: event.eventType,
    occurred_at: event.occurredAt,
    received_at: event.receivedAt,
    headers: event.headers,
    meta: event.meta,
  })
  return `${facts.slice(0, -1)},"payload":${event.payload}}`
}
