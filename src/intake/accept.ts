import type { Append, Appended } from '../log/log.ts'

/** Why an entry was not taken in: too much is waiting already. The caller is told to come back. */
export class Overloaded extends Error {
  constructor(pendingBytes: number) {
    super(`${pendingBytes} bytes are waiting to become durable`)
  }
}

export type AcceptMetrics = {
  flushed(entries: number, seconds: number): void
  shed(): void
}

/** The one way in. Resolves when the entries are durable; rejects when they are not. */
export type Accept = (entries: Append[]) => Promise<Appended[]>

// Two flushes keep the disk busy while the next one gathers; more would only make each smaller.
const MAX_FLUSHES = 2
const MAX_ENTRIES_PER_FLUSH = 1_000
const MAX_BYTES_PER_FLUSH = 4_000_000
// what an entry costs beside its body
const ENTRY_OVERHEAD_BYTES = 512

/**
 * Group commit: requests that arrive while flushes are under way share the next one. No timers: a lone request is
 * flushed at once, and the more arrive, the more share a commit.
 */
export function openAccept(options: {
  append: (batch: Append[]) => Promise<Appended[]>
  maxPendingBytes: number
  metrics?: AcceptMetrics
}): { accept: Accept; drained(): Promise<void>; pendingBytes(): number } {
  type Waiting = {
    entries: Append[]
    bytes: number
    resolve(appended: Appended[]): void
    reject(error: unknown): void
  }
  let queue: Waiting[] = []
  let pendingBytes = 0
  let flushes = 0
  let scheduled = false
  let onIdle: (() => void)[] = []

  function accept(entries: Append[]): Promise<Appended[]> {
    let bytes = 0
    for (const { entry } of entries) bytes += entry.body.length + entry.context.length + ENTRY_OVERHEAD_BYTES
    if (pendingBytes + bytes > options.maxPendingBytes && pendingBytes > 0) {
      options.metrics?.shed()
      return Promise.reject(new Overloaded(pendingBytes))
    }
    pendingBytes += bytes
    return new Promise((resolve, reject) => {
      queue.push({ entries, bytes, resolve, reject })
      if (!scheduled && flushes < MAX_FLUSHES) {
        // The requests that were read from the sockets in this turn of the event loop go together.
        scheduled = true
        setImmediate(() => {
          scheduled = false
          if (flushes < MAX_FLUSHES) flush()
        })
      }
    })
  }

  function nextBatch(): Waiting[] {
    let entries = 0
    let bytes = 0
    let taken = 0
    while (taken < queue.length && entries < MAX_ENTRIES_PER_FLUSH && bytes < MAX_BYTES_PER_FLUSH) {
      entries += queue[taken]!.entries.length
      bytes += queue[taken]!.bytes
      taken++
    }
    const batch = queue.slice(0, taken)
    queue = queue.slice(taken)
    return batch
  }

  async function flush(): Promise<void> {
    const batch = nextBatch()
    if (batch.length === 0) return
    flushes++
    const entries = batch.flatMap(waiting => waiting.entries)
    const startedAt = performance.now()
    try {
      const appended = await options.append(entries)
      options.metrics?.flushed(entries.length, (performance.now() - startedAt) / 1000)
      let from = 0
      for (const waiting of batch) {
        waiting.resolve(appended.slice(from, from + waiting.entries.length))
        from += waiting.entries.length
      }
    } catch (error) {
      for (const waiting of batch) waiting.reject(error)
    } finally {
      flushes--
      for (const waiting of batch) pendingBytes -= waiting.bytes
      if (queue.length > 0) flush()
      else if (flushes === 0) {
        for (const resolve of onIdle) resolve()
        onIdle = []
      }
    }
  }

  return {
    accept,
    pendingBytes: () => pendingBytes,
    drained() {
      if (flushes === 0 && queue.length === 0) return Promise.resolve()
      return new Promise(resolve => onIdle.push(resolve))
    },
  }
}
