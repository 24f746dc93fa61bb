import type pg from 'pg'
import { orderOf } from '../domain/entries/entry.ts'
import { isConflict, isUnavailable } from '../postgres/database.ts'
import { isMissingPartition } from '../postgres/partitions.ts'
import type { Transaction, Unit } from './unit.ts'

export type Failure = { unit: Unit; error: unknown }

/**
 * Does something that may fail without the rest of the transaction: then it is undone, and what it failed with is
 * returned. What is no fault of what was to be done is thrown on: the whole transaction has to begin again.
 */
export async function attempt(client: pg.PoolClient, work: () => Promise<void>): Promise<Failed | null> {
  await client.query('savepoint attempt')
  try {
    await work()
    await client.query('release savepoint attempt')
    return null
  } catch (error) {
    if (isUnavailable(error) || isConflict(error) || isMissingPartition(error)) throw error
    await client.query('rollback to savepoint attempt')
    await client.query('release savepoint attempt')
    return { error }
  }
}

type Failed = { error: unknown }

/**
 * Applies what can be applied and finds what cannot, by halving: log₂(n) savepoints to the poisonous unit. Units
 * behind a failed one of the same order are held back, so that the order survives the retry.
 */
export async function applyCarefully(options: {
  transaction: Transaction
  units: Unit[]
  apply: (transaction: Transaction, units: Unit[]) => Promise<void>
  failures: Failure[]
  heldBack: Unit[]
  /** What was noted for the end and for after the commit; cut back when a part is undone. */
  undoable: unknown[][]
}): Promise<void> {
  const { transaction, apply, failures, heldBack, undoable } = options
  const { client } = transaction
  const failedOrders = new Set<string>()

  async function applyPart(part: Unit[]): Promise<void> {
    const units = part.filter(unit => {
      if (!failedOrders.has(orderOf(unit.entry))) return true
      heldBack.push(unit)
      return false
    })
    if (units.length === 0) return
    const noted = undoable.map(list => list.length)
    const failed = await attempt(client, () => apply(transaction, units))
    if (failed === null) return
    for (const [i, list] of undoable.entries()) list.length = noted[i]!
    if (units.length === 1) {
      failures.push({ unit: units[0]!, error: failed.error })
      failedOrders.add(orderOf(units[0]!.entry))
      return
    }
    const middle = units.length >> 1
    await applyPart(units.slice(0, middle))
    await applyPart(units.slice(middle))
  }

  await applyPart(options.units)
}
