import type pg from 'pg'
import { insertDeadLetters, type NewDeadLetter } from '../store/entries/dead-letters.ts'
import { insertReceipts } from '../store/inbound/receipts.ts'

/** What can never take effect is kept as dead letters; if it came from an inbound source, with a receipt. */
export async function keepRejected(client: pg.PoolClient, letters: NewDeadLetter[]): Promise<void> {
  await insertDeadLetters(client, letters)
  const receipts = letters.flatMap(({ id, entry, sourceId, inboundEventId, error }) =>
    sourceId === null
      ? []
      : [
          {
            ...{ id, sourceId, inboundEventId },
            tenantId: entry.tenantId,
            receivedAt: entry.receivedAt,
            eventType: null,
            outcome: 'dead_letter' as const,
            detail: error,
            firstId: null,
          },
        ],
  )
  if (receipts.length > 0) await insertReceipts(client, receipts)
}
