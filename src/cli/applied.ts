import { databaseNow } from '../postgres/clock.ts'
import type { Output } from './output.ts'
import type { Session } from './session.ts'

const PATIENCE_MS = 60_000
const POLL_MS = 100
// Nodes count on from PostgreSQL's clock by their own.
const CLOCKS_DIFFER_MS = 1_000

/** Waits until all that was accepted so far has taken effect; false when nothing moves. */
export async function applied({ pool, log }: Session, out: Output): Promise<boolean> {
  const sentBy = (await databaseNow(pool)).getTime() + CLOCKS_DIFFER_MS
  let [fewest, movedAt] = [Number.POSITIVE_INFINITY, Date.now()]
  for (;;) {
    const waiting = (await log.lag({ complete: true })).filter(
      ({ oldestAt }) => oldestAt !== null && oldestAt.getTime() <= sentBy,
    )
    if (waiting.length === 0) return true
    const entries = waiting.reduce((sum, partition) => sum + partition.entries, 0)
    if (entries < fewest) [fewest, movedAt] = [entries, Date.now()]
    if (Date.now() - movedAt > PATIENCE_MS) {
      out.say(
        `${entries} entries are accepted but not processed. Does a process with the surface worker run?`,
      )
      return false
    }
    await new Promise(resolve => setTimeout(resolve, POLL_MS))
  }
}
