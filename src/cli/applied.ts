import { databaseNow } from '../postgres/clock.ts'
import type { Output } from './output.ts'
import type { Session } from './session.ts'

const PATIENCE_MS = 60_000
const POLL_MS = 100
// Nodes derive the time from PostgreSQL's clock, so their clocks may differ a little.
const CLOCKS_DIFFER_MS = 1_000

/** Waits until every entry accepted so far is applied. Returns false if there is no progress for 60 s. */
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
        `${entries} accepted entries are not processed. Is a process with the surface "worker" running?`,
      )
      return false
    }
    await new Promise(resolve => setTimeout(resolve, POLL_MS))
  }
}
