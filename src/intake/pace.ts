import { Overloaded } from './coalesce.ts'
import type { RateLimit } from './volume.ts'

/**
 * How fast a source that is over its limit is listened to. Within its limit a source never waits here; beyond, so
 * many of its requests are answered a second and no more: a flood costs its sender time, and the others nothing.
 */
export type Pace = {
  /** Resolves when it is the request's turn; `null` when that is now. */
  turn(sourceId: string, limit: RateLimit, bytes: number): Promise<void> | null
  isOver(sourceId: string): boolean
  /** What the request turned out to hold, and whether that was over the limit. */
  note(sourceId: string, limit: RateLimit, events: number, isOver: boolean): void
}

const TIMES_THE_LIMIT = 5
// Less than a tenth of what one core takes in: others are held up by no more than a fifth.
const LEAST_REQUESTS_PER_SECOND = 300
// What the events of a batch cost, beside the request itself.
const REQUESTS_PER_EVENT = 0.1
// So much may come at once.
const BURST_MS = 100
// Senders give up after 10 s at the earliest.
const LONGEST_WAIT_MS = 5_000
// A source that was not over its limit for so long is not any more.
const REMEMBERED_MS = 2_000

type Over = { nextTurnAt: number; until: number }

export function openPace(options: {
  maxWaitingBytes: number
  now?: () => number
  sleep?: (ms: number) => Promise<void>
}): Pace {
  const now = options.now ?? (() => performance.now())
  const sleep = options.sleep ?? (ms => new Promise(resolve => setTimeout(resolve, ms)))
  const over = new Map<string, Over>()
  let waitingBytes = 0

  async function wait(ms: number, bytes: number): Promise<void> {
    if (waitingBytes > 0 && waitingBytes + bytes > options.maxWaitingBytes) throw new Overloaded(waitingBytes)
    waitingBytes += bytes
    try {
      await sleep(Math.min(ms, LONGEST_WAIT_MS))
    } finally {
      waitingBytes -= bytes
    }
  }

  return {
    turn(sourceId, limit, bytes) {
      const source = over.get(sourceId)
      if (!source) return null
      const at = now()
      if (source.until < at) {
        over.delete(sourceId)
        return null
      }
      const turnAt = Math.max(source.nextTurnAt, at - BURST_MS)
      source.nextTurnAt = turnAt + msPerRequest(limit)
      return turnAt <= at ? null : wait(turnAt - at, bytes)
    },
    isOver: sourceId => (over.get(sourceId)?.until ?? 0) >= now(),
    note(sourceId, limit, events, isOver) {
      const at = now()
      let source = over.get(sourceId)
      if (!source) {
        if (!isOver) return
        source = { nextTurnAt: at - BURST_MS, until: 0 }
        over.set(sourceId, source)
      }
      if (isOver) source.until = at + REMEMBERED_MS
      const nextTurnAt = source.nextTurnAt + (events - 1) * REQUESTS_PER_EVENT * msPerRequest(limit)
      source.nextTurnAt = Math.min(nextTurnAt, at + LONGEST_WAIT_MS)
    },
  }
}

function msPerRequest({ events, per_seconds }: RateLimit): number {
  return 1000 / Math.max(LEAST_REQUESTS_PER_SECOND, (TIMES_THE_LIMIT * events) / per_seconds)
}
