import type pg from 'pg'
import { insertDeadLetters, type NewDeadLetter } from '../store/entries/dead-letters.ts'
import { insertReceipts } from '../store/inbound/receipts.ts'
import { attempt } from './isolate.ts'
import type { Kind, Transaction, Unit } from './unit.ts'

// What fails here would fail the partition for ever. So what is told of a failure beside the dead letter is written in a
// savepoint of its own and may be missing, with a line in the log; the dead letter needs nothing but its own table.

type Logger = { warn(facts: object, message: string): void }

/** What can never take effect is kept as dead letters; if it came from an inbound source, with a receipt. */
export async function keepRejected(
  client: pg.PoolClient,
  letters: NewDeadLetter[],
  logger: Logger,
): Promise<void> {
  if (letters.length === 0) return
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
  if (receipts.length === 0) return
  const failed = await attempt(client, () => insertReceipts(client, receipts))
  if (failed)
    logger.warn(
      { err: failed.error, deadLetters: receipts.map(({ id }) => id) },
      'receipts of rejected events could not be written',
    )
}

export async function giveUp(
  transaction: Transaction,
  kind: Kind,
  unit: Unit,
  failure: { message: string; attempts: number; logger: Logger },
): Promise<void> {
  const { client } = transaction
  const letter = letterOf(kind, unit, failure)
  await insertDeadLetters(client, [letter])
  const failed = await attempt(client, () => kind.recordFailure(transaction, unit, failure.message))
  if (failed)
    failure.logger.warn(
      { err: failed.error, entry: unit.entry.id, deadLetter: letter.id },
      'the receipt or operation of an entry that was given up could not be written',
    )
}

/** The unit alone; where it cannot be cut out of its entry, the whole of it. */
function letterOf(
  kind: Kind,
  unit: Unit,
  { message, attempts }: { message: string; attempts: number },
): NewDeadLetter {
  try {
    return kind.deadLetter(unit, message, attempts)
  } catch {
    const { entry } = unit
    return {
      id: entry.id,
      entry,
      sourceId: null,
      inboundEventId: null,
      reason: 'failed',
      error: message,
      attempts,
    }
  }
}

const MAX_MESSAGE = 2_000

/** Why something failed, as text that PostgreSQL can hold: an error may quote what was sent. */
export function messageOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error)
  return message.slice(0, MAX_MESSAGE).toWellFormed().replaceAll('\0', '\uFFFD')
}
