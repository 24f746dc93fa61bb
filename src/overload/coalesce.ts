import { openByteLimit } from './limits.ts'

type CoalesceOptions<Item, Result> = {
  /** Processes many items at once: one result for each, in order. */
  run(items: Item[]): Promise<Result[]>
  /** A run takes no more submissions once it has this many items or bytes. */
  maxItems: number
  maxBytes?: number
  maxInFlight: number
  /** Minimum time between the starts of two runs, for work that is not urgent. */
  minIntervalMs?: number
  /** The same, but only after a run that several submissions shared: for work whose cost is per run. */
  gatherMs?: number
  /** Beyond it, submissions are rejected as `Overloaded`, unless nothing else is pending. */
  maxPendingBytes?: number
}

export type Coalesced<Item, Result> = {
  /** Resolves with the results of these items, or rejects with the error of their run. */
  submit(items: Item[], bytes?: number): Promise<Result[]>
  /** Resolves when nothing is pending. */
  drained(): Promise<void>
}

type Submission<Item, Result> = {
  items: Item[]
  bytes: number
  resolve(results: Result[]): void
  reject(error: unknown): void
}

/**
 * Combines many small pieces of work into few large ones: submissions that arrive while `maxInFlight` runs are in progress
 * share the next run. A single submission runs immediately; under load, more submissions share each run.
 */
export function coalesce<Item, Result>(options: CoalesceOptions<Item, Result>): Coalesced<Item, Result> {
  const {
    maxItems,
    maxBytes = Infinity,
    maxInFlight,
    minIntervalMs = 0,
    gatherMs = 0,
    maxPendingBytes = Infinity,
  } = options
  let queue: Submission<Item, Result>[] = []
  const pending = openByteLimit(maxPendingBytes)
  let inFlight = 0
  let isScheduled = false
  let lastStartAt = -Infinity
  let intervalMs = minIntervalMs
  let onDrained: (() => void)[] = []

  function nextSubmissions(): Submission<Item, Result>[] {
    let items = 0
    let bytes = 0
    let count = 0
    while (count < queue.length && items < maxItems && bytes < maxBytes) {
      items += queue[count]!.items.length
      bytes += queue[count]!.bytes
      count++
    }
    const next = queue.slice(0, count)
    queue = queue.slice(count)
    return next
  }

  async function runNext(): Promise<void> {
    const submissions = nextSubmissions()
    inFlight++
    lastStartAt = performance.now()
    intervalMs = submissions.length > 1 ? Math.max(minIntervalMs, gatherMs) : minIntervalMs
    try {
      const results = await options.run(submissions.flatMap(({ items }) => items))
      let from = 0
      for (const { items, resolve } of submissions) {
        resolve(results.slice(from, from + items.length))
        from += items.length
      }
    } catch (error) {
      for (const { reject } of submissions) reject(error)
    } finally {
      inFlight--
      for (const { bytes } of submissions) pending.release(bytes)
      start()
    }
  }

  function start(): void {
    while (queue.length > 0 && inFlight < maxInFlight) {
      const waitMs = intervalMs > 0 ? lastStartAt + intervalMs - performance.now() : 0
      if (waitMs > 0) {
        schedule(waitMs)
        return
      }
      runNext()
    }
    if (queue.length > 0 || inFlight > 0) return
    for (const resolve of onDrained) resolve()
    onDrained = []
  }

  function schedule(waitMs: number): void {
    if (isScheduled) return
    isScheduled = true
    const startNow = () => {
      isScheduled = false
      start()
    }
    if (waitMs > 0) setTimeout(startNow, waitMs)
    else setImmediate(startNow)
  }

  return {
    submit: (items, bytes = 0) =>
      new Promise((resolve, reject) => {
        pending.acquire(bytes)
        queue.push({ items, bytes, resolve, reject })
        // Requests read from the sockets in the same event loop iteration share a run.
        if (inFlight < maxInFlight) schedule(0)
      }),
    drained() {
      if (inFlight === 0 && queue.length === 0) return Promise.resolve()
      return new Promise(resolve => onDrained.push(resolve))
    },
  }
}
