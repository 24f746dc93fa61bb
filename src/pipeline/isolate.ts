import type pg from 'pg'
import { orderKey } from '../domain/entries/entry.ts'
import { isConflict, isUnavailable } from '../postgres/database.ts'
import { isMissingPartition } from '../postgres/partitions.ts'
import type { Transaction, Unit } from './unit.ts'

/**
 * Runs `work` in a savepoint. If it fails, its writes are undone and the error is returned. An error that `work` did not
 * cause (a conflict, an unavailable database, a missing table partition) is thrown: the whole transaction must restart.
 */
export async function attempt(client: pg.PoolClient, work: () => Promise<void>): Promise<{ error: unknown } | null> {
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

/**
 * Applies every unit that can be applied, and finds those that cannot by bisecting: log₂(n) savepoints per failing unit.
 * A failing unit is retried, or dead after `maxAttempts`. Units behind it with the same ordering key are blocked, so that
 * the retry keeps their order.
 */
export async function applyCarefully(options: {
  transaction: Transaction
  units: Unit[]
  apply: (transaction: Transaction, units: Unit[]) => Promise<void>
  maxAttempts: number
}): Promise<void> {
  const { transaction, apply, maxAttempts } = options
  const { client } = transaction
  const learned = Object.values(transaction.learned ?? {})
  const failedOrders = new Set<string>()

  async function applyPart(part: Unit[]): Promise<void> {
    const units = part.filter(unit => {
      if (!failedOrders.has(orderKey(unit.entry))) return true
      unit.disposition = 'blocked'
      return false
    })
    if (units.length === 0) return
    const lengths = learned.map(list => list.length)
    const failed = await attempt(client, () => apply(transaction, units))
    if (failed === null) return
    for (const [i, list] of learned.entries()) list.length = lengths[i]!
    if (units.length === 1) {
      const unit = units[0]!
      unit.failure = failed
      unit.disposition = (unit.parked?.attempts ?? 0) + 1 >= maxAttempts ? 'dead' : 'retry'
      failedOrders.add(orderKey(unit.entry))
      return
    }
    const middle = units.length >> 1
    await applyPart(units.slice(0, middle))
    await applyPart(units.slice(middle))
  }

  await applyPart(options.units)
}
