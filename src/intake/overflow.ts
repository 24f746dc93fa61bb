import type pg from 'pg'
import { type Deferred, insertOverflow, listBacklogged } from '../store/inbound/overflow.ts'
import { Overloaded } from './accept.ts'
import { grouped } from './grouping.ts'

/** The lane for what comes in over a source's budget, and what a node knows of who waits in it. */
export type Overflow = {
  /** Resolves when it is durable. */
  defer(deferred: Deferred): Promise<void>
  /** Whether something waits: what comes later queues behind it, so the order of a source's events survives. */
  isBacklogged(sourceId: string): Promise<boolean>
  /** Looks who waits; returns them. */
  refresh(): Promise<string[]>
  /**
   * Ends the queueing of a source that is as good as drained. Without it a steady stream would keep its own queue
   * alive for ever: newcomers are held for a moment, the stragglers arrive, `drain` moves the last and says whether
   * nothing is left.
   */
  end(sourceId: string, drain: () => Promise<boolean>): Promise<void>
}

/** What a node knows of a source that waits. */
type Lane = {
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
  const flush = grouped<Deferred, undefined>(async deferred => {
    await insertOverflow(pool, deferred)
    return deferred.map(() => undefined)
  }, FLUSHES)
  const backlogged = new Map<string, Lane>()
  let arrivals = 0
  let pendingBytes = 0

  function laneOf(sourceId: string): Lane {
    let lane = backlogged.get(sourceId)
    if (!lane) {
      lane = { arriving: 0, arrivedAt: 0, gate: null, onQuiet: null }
      backlogged.set(sourceId, lane)
    }
    return lane
  }

  return {
    async defer(deferred) {
      const bytes = deferred.entry.body.length + deferred.entry.context.length
      if (pendingBytes > 0 && pendingBytes + bytes > maxPendingBytes) throw new Overloaded(pendingBytes)
      const lane = laneOf(deferred.sourceId)
      lane.arriving++
      pendingBytes += bytes
      try {
        await flush([deferred])
      } finally {
        lane.arriving--
        lane.arrivedAt = ++arrivals
        pendingBytes -= bytes
        if (lane.arriving === 0) lane.onQuiet?.()
      }
    },
    async isBacklogged(sourceId) {
      for (let lane = backlogged.get(sourceId); lane?.gate; lane = backlogged.get(sourceId)) await lane.gate
      return backlogged.has(sourceId)
    },
    async refresh() {
      const askedAt = arrivals
      const waiting = await listBacklogged(pool)
      const found = new Set(waiting)
      for (const [sourceId, lane] of backlogged) {
        // What was on its way when we asked may have been missed.
        const isKnown = lane.arriving === 0 && lane.arrivedAt <= askedAt
        if (isKnown && !found.has(sourceId)) backlogged.delete(sourceId)
      }
      for (const sourceId of waiting) laneOf(sourceId)
      return waiting
    },
    async end(sourceId, drain) {
      const lane = laneOf(sourceId)
      const { promise, resolve: open } = Promise.withResolvers<void>()
      lane.gate = promise
      try {
        if (lane.arriving > 0)
          await new Promise<void>(resolve => {
            lane.onQuiet = resolve
          })
        if ((await drain()) && lane.arriving === 0) backlogged.delete(sourceId)
      } finally {
        lane.gate = null
        lane.onQuiet = null
        open()
      }
    },
  }
}
