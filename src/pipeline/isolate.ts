import { orderOf } from '../domain/entry.ts'
import { isConflict, isUnavailable } from '../postgres/database.ts'
import type { Transaction, Unit } from './unit.ts'

export type Failure = { unit: Unit; error: unknown }

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
  /** What was noted for after the commit; cut back when a part is undone. */
  undoable: unknown[]
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
    const noted = undoable.length
    await client.query('savepoint part')
    try {
      await apply(transaction, units)
      await client.query('release savepoint part')
      return
    } catch (error) {
      if (isUnavailable(error) || isConflict(error)) throw error
      undoable.length = noted
      await client.query('rollback to savepoint part')
      await client.query('release savepoint part')
      if (units.length === 1) {
        failures.push({ unit: units[0]!, error })
        failedOrders.add(orderOf(units[0]!.entry))
        return
      }
    }
    const middle = units.length >> 1
    await applyPart(units.slice(0, middle))
    await applyPart(units.slice(middle))
  }

  await applyPart(options.units)
}
