/** Why something was not taken in: too much is waiting already. The caller is told to come back. */
export class Overloaded extends Error {
  constructor(pendingBytes: number) {
    super(`${pendingBytes} bytes are waiting to become durable`)
  }
}

type CoalesceOptions<Item, Result> = {
  /** Does the work for many at once: one result for each item, in order. */
  run(items: Item[]): Promise<Result[]>
  /** A run takes no more of the queue once it has this much. */
  maxItems: number
  maxBytes?: number
  maxInFlight: number
  /** At least so long from the start of a run to the next: for what is in no hurry. */
  minIntervalMs?: number
  /** The same after a run that several shared: for what costs by the run. Whoever comes alone does not wait. */
  gatherMs?: number
  /** More than this is refused as `Overloaded`, unless nothing else is pending. */
  maxPendingBytes?: number
  onRefused?(): void
}

export type Coalesced<Item, Result> = {
  /** Resolves with the results of these items, or rejects with what their run failed with. */
  submit(items: Item[], bytes?: number): Promise<Result[]>
  pendingBytes(): number
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
 * Many small pieces of work done as few large ones: what is submitted while `maxInFlight` runs are under way shares the
 * next. A lone submission runs at once, and the more arrive, the more share a run.
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
  let pendingBytes = 0
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
      for (const { bytes } of submissions) pendingBytes -= bytes
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
    submit(items, bytes = 0) {
      if (pendingBytes > 0 && pendingBytes + bytes > maxPendingBytes) {
        options.onRefused?.()
        return Promise.reject(new Overloaded(pendingBytes))
      }
      pendingBytes += bytes
      return new Promise((resolve, reject) => {
        queue.push({ items, bytes, resolve, reject })
        // What is read from the sockets in this turn of the event loop goes together.
        if (inFlight < maxInFlight) schedule(0)
      })
    },
    pendingBytes: () => pendingBytes,
    drained() {
      if (inFlight === 0 && queue.length === 0) return Promise.resolve()
      return new Promise(resolve => onDrained.push(resolve))
    },
  }
}
