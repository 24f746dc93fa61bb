import type pg from 'pg'
import { coalesce } from '../overload/coalesce.ts'
import { type DeferredEntry, insertOverflow, listBacklogged } from '../store/inbound/overflow.ts'

/** Where entries over their source's budget wait, and what a node knows of the sources that have some there. */
export type Overflow = {
  /** Resolves when it is durable. */
  defer(deferred: DeferredEntry): Promise<void>
  /** Whether something waits: what comes later queues behind it, so the order of a source's events survives. */
  isBacklogged(sourceId: string): Promise<boolean>
  /** Finds out which sources have something waiting; returns them. */
  refresh(): Promise<string[]>
  /**
   * Ends the queueing of a source that is as good as drained. Without it a steady stream would keep its own queue
   * alive for ever: newcomers are held for a moment, the stragglers arrive, `drain` moves the last and says whether
   * nothing is left.
   */
  end(sourceId: string, drain: () => Promise<boolean>): Promise<void>
}

/** What a node knows of a source that has something waiting. */
type Backlog = {
  /** How many of its entries are on their way in. */
  arriving: number
  /** When the last one arrived, counted in arrivals. */
  arrivedAt: number
  /** While it is there, newcomers wait to be told whether to queue. */
  gate: Promise<void> | null
  onQuiet: (() => void) | null
}

// Who is over the limit can wait for a fuller flush: a flood of 1,000 events a second makes 100 commits, not 1,000.
const FLUSHES = { maxItems: 500, maxInFlight: 2, minIntervalMs: 10 }

/** It has a queue and a bound of its own: a flood never stands before those who keep to their limit. */
export function openOverflow({
  pool,
  maxPendingBytes,
}: {
  pool: pg.Pool
  maxPendingBytes: number
}): Overflow {
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
      for (let backlog = backlogs.get(sourceId); backlog?.gate; backlog = backlogs.get(sourceId))
        await backlog.gate
      return backlogs.has(sourceId)
    },
    async refresh() {
      const arrivedBefore = arrivals
      const waiting = await listBacklogged(pool)
      const found = new Set(waiting)
      for (const [sourceId, backlog] of backlogs) {
        // What was on its way at the time of the query may have been missed.
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
