import type { RateLimit } from './budgets.ts'
import { openByteLimit } from './limits.ts'

/**
 * Delays the requests of a source that exceeds its rate limit. Within its limit a source never waits. Beyond it, only a bounded
 * number of its requests per second is answered, so that a flood slows down its sender and not the other sources.
 */
export type Throttle = {
  /** Resolves when the request may proceed; `null`: immediately. */
  wait(sourceId: string, limit: RateLimit, bytes: number): Promise<void> | null
  isOverLimit(sourceId: string): boolean
  /** Records how many events a request held and whether any of them exceeded the limit. */
  record(sourceId: string, limit: RateLimit, events: number, isOverLimit: boolean): void
}

const LIMIT_FACTOR = 5
// Less than a tenth of what one core accepts: other sources slow down by a fifth at most.
const MIN_REQUESTS_PER_SECOND = 300
// Cost of each further event of a batch, in requests.
const REQUESTS_PER_EVENT = 0.1
const BURST_MS = 100
// Senders give up after 10 s at the earliest.
const MAX_WAIT_MS = 5_000
// A source stays throttled for this long after the last event over its limit.
const THROTTLED_MS = 2_000

type Throttled = { nextAt: number; until: number }

export function openThrottle(options: {
  maxWaitingBytes: number
  now?: () => number
  sleep?: (ms: number) => Promise<void>
}): Throttle {
  const now = options.now ?? (() => performance.now())
  const sleep = options.sleep ?? (ms => new Promise(resolve => setTimeout(resolve, ms)))
  const throttled = new Map<string, Throttled>()
  const waiting = openByteLimit(options.maxWaitingBytes)

  async function waitFor(ms: number, bytes: number): Promise<void> {
    waiting.acquire(bytes)
    try {
      await sleep(Math.min(ms, MAX_WAIT_MS))
    } finally {
      waiting.release(bytes)
    }
  }

  return {
    wait(sourceId, limit, bytes) {
      const source = throttled.get(sourceId)
      if (!source) return null
      const at = now()
      if (source.until < at) {
        throttled.delete(sourceId)
        return null
      }
      const startAt = Math.max(source.nextAt, at - BURST_MS)
      source.nextAt = startAt + msPerRequest(limit)
      return startAt <= at ? null : waitFor(startAt - at, bytes)
    },
    isOverLimit: sourceId => (throttled.get(sourceId)?.until ?? 0) >= now(),
    record(sourceId, limit, events, isOverLimit) {
      const at = now()
      let source = throttled.get(sourceId)
      if (!source) {
        if (!isOverLimit) return
        source = { nextAt: at - BURST_MS, until: 0 }
        throttled.set(sourceId, source)
      }
      if (isOverLimit) source.until = at + THROTTLED_MS
      const nextAt = source.nextAt + (events - 1) * REQUESTS_PER_EVENT * msPerRequest(limit)
      source.nextAt = Math.min(nextAt, at + MAX_WAIT_MS)
    },
  }
}

function msPerRequest({ events, per_seconds }: RateLimit): number {
  return 1000 / Math.max(MIN_REQUESTS_PER_SECOND, (LIMIT_FACTOR * events) / per_seconds)
}
