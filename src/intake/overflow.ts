import type pg from 'pg'
import { coalesce } from '../overload/coalesce.ts'
import { type DeferredEntry, insertOverflow, listBacklogged } from '../store/inbound/overflow.ts'

/** The overflow queue for entries over their source's budget, and which sources have entries in it. */
export type Overflow = {
  /** Resolves when the entry is durable. */
  defer(deferred: DeferredEntry): Promise<void>
  /** Whether the source has waiting entries. New events then queue behind them, which keeps their order. */
  isBacklogged(sourceId: string): Promise<boolean>
  /** As last known, while PostgreSQL is unavailable. */
  wasBacklogged(sourceId: string): boolean
  /** Reads which sources have waiting entries, and returns them. */
  refresh(): Promise<string[]>
  /**
   * Ends the queueing of a source that is almost drained. Otherwise a steady stream would keep its own queue alive forever.
   * New requests wait, entries in transit arrive, then `drain` moves the last entries and returns whether the queue is empty.
   */
  end(sourceId: string, drain: () => Promise<boolean>): Promise<void>
}

/** The state of a source with waiting entries. */
type Backlog = {
  /** The number of its entries that are being written. */
  arriving: number
  /** The arrival number of its last entry. */
  arrivedAt: number
  /** While set, new requests wait for the decision whether to queue. */
  gate: Promise<void> | null
  onQuiet: (() => void) | null
}

// Events over the limit can wait for a fuller flush: 1,000 events per second make 100 commits, not 1,000.
const FLUSHES = { maxItems: 500, maxInFlight: 2, minIntervalMs: 10 }

/** Has its own writes and limits, so that a flood does not delay sources within their limit. */
export function openOverflow({ pool, maxPendingBytes }: { pool: pg.Pool; maxPendingBytes: number }): Overflow {
  const flushes = coalesce({
    async run(deferred: DeferredEntry[]) {
      await insertOverflow(pool, deferred)
      return deferred
    },
    maxPendingBytes,
    ...FLUSHES,
  })
  const backlogs = new Map<string, Backlog>()
  let arrivals = 0

  function backlogOf(sourceId: string): Backlog {
    let backlog = backlogs.get(sourceId)
    if (!backlog) {
      backlog = { arriving: 0, arrivedAt: 0, gate: null, onQuiet: null }
      backlogs.set(sourceId, backlog)
    }
    return backlog
  }

  return {
    async defer(deferred) {
      const backlog = backlogOf(deferred.sourceId)
      backlog.arriving++
      try {
        await flushes.submit([deferred], deferred.entry.body.length + deferred.entry.context.length)
      } finally {
        backlog.arriving--
        backlog.arrivedAt = ++arrivals
        if (backlog.arriving === 0) backlog.onQuiet?.()
      }
    },
    async isBacklogged(sourceId) {
      for (let backlog = backlogs.get(sourceId); backlog?.gate; backlog = backlogs.get(sourceId)) await backlog.gate
      return backlogs.has(sourceId)
    },
    wasBacklogged: sourceId => backlogs.has(sourceId),
    async refresh() {
      const arrivedBefore = arrivals
      const waiting = await listBacklogged(pool)
      const found = new Set(waiting)
      for (const [sourceId, backlog] of backlogs) {
        // The query may have missed entries that were being written.
        const isKnown = backlog.arriving === 0 && backlog.arrivedAt <= arrivedBefore
        if (isKnown && !found.has(sourceId)) backlogs.delete(sourceId)
      }
      for (const sourceId of waiting) backlogOf(sourceId)
      return waiting
    },
    async end(sourceId, drain) {
      const backlog = backlogOf(sourceId)
      const { promise, resolve: open } = Promise.withResolvers<void>()
      backlog.gate = promise
      try {
        if (backlog.arriving > 0)
          await new Promise<void>(resolve => {
            backlog.onQuiet = resolve
          })
        if ((await drain()) && backlog.arriving === 0) backlogs.delete(sourceId)
      } finally {
        backlog.gate = null
        backlog.onQuiet = null
        open()
      }
    },
  }
}
