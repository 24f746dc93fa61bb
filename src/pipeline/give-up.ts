import { suppressedReceipt } from '../domain/inbound/receipts.ts'
import { insertDeadLetters, type NewDeadLetter } from '../store/entries/dead-letters.ts'
import { insertReceipts, type Receipt } from '../store/inbound/receipts.ts'
import type { Suppressions } from './identity/suppressions.ts'
import { attempt } from './isolate.ts'
import type { Kind, Transaction, Unit } from './unit.ts'

// What fails here would fail the partition for ever. So what is told of a failure beside the dead letter is written in a
// savepoint of its own and may be missing, with a line in the log; the dead letter needs nothing but its own table.

type Logger = { warn(facts: object, message: string): void }

type GivingUp = { logger: Logger; suppressions?: Pick<Suppressions, 'letters'> | undefined }

/** What can never take effect is kept as dead letters; if it came from an inbound source, with a receipt. */
export async function keepRejected(
  transaction: Transaction,
  letters: NewDeadLetter[],
  { logger, suppressions }: GivingUp,
): Promise<void> {
  if (letters.length === 0) return
  const { client } = transaction
  const { kept, suppressed } = (await suppressions?.letters(transaction, letters)) ?? sorted(letters)
  if (kept.length > 0) await insertDeadLetters(client, kept)
  const receipts = [...kept.flatMap(receiptsOf), ...suppressed.flatMap(suppressedReceiptsOf)]
  if (receipts.length === 0) return
  const failed = await attempt(client, () => insertReceipts(client, receipts))
  if (failed)
    logger.warn(
      { err: failed.error, deadLetters: receipts.map(({ id }) => id) },
      'receipts of rejected events could not be written',
    )
}

const sorted = (letters: NewDeadLetter[]) => ({ kept: letters, suppressed: [] as NewDeadLetter[] })

/** None where it came from no inbound source. */
function receiptsOf({ id, entry, sourceId, inboundEventId, error }: NewDeadLetter): Receipt[] {
  if (sourceId === null) return []
  const { tenantId, receivedAt } = entry
  const facts = { eventType: null, outcome: 'dead_letter' as const, detail: error, firstId: null }
  return [{ id, tenantId, sourceId, receivedAt, inboundEventId, ...facts }]
}

function suppressedReceiptsOf(letter: NewDeadLetter): Receipt[] {
  return receiptsOf(letter).map(receipt => ({ ...receipt, ...suppressedReceipt(receipt) }))
}

export async function giveUp(
  transaction: Transaction,
  kind: Kind,
  unit: Unit,
  failure: { message: string; attempts: number } & GivingUp,
): Promise<void> {
  const { client } = transaction
  const letter = letterOf(kind, unit, failure)
  const { kept, suppressed } =
    (await failure.suppressions?.letters(transaction, [letter])) ?? sorted([letter])
  if (kept.length > 0) await insertDeadLetters(client, kept)
  // An error may quote what was sent.
  const isQuiet = suppressed.length > 0 && unit.entry.kind === 'events'
  const receipts = suppressed.flatMap(suppressedReceiptsOf)
  const failed = await attempt(client, async () => {
    if (!isQuiet) await kind.recordFailure(transaction, unit, failure.message)
    else if (receipts.length > 0) await insertReceipts(client, receipts)
  })
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
