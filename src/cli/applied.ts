import type { Output } from './output.ts'
import type { Session } from './session.ts'

const PATIENCE_MS = 60_000
const POLL_MS = 100

/** Waits until all that was accepted so far has taken effect; false when nothing moves. */
export async function applied({ log }: Session, out: Output): Promise<boolean> {
  const sentBy = Date.now()
  let [fewest, movedAt] = [Number.POSITIVE_INFINITY, sentBy]
  for (;;) {
    const waiting = (await log.lag()).filter(
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
