import type pg from 'pg'
import { type Deferred, insertOverflow, listBacklogged } from '../store/overflow.ts'
import { Overloaded } from './accept.ts'
import { grouped } from './grouping.ts'

/** The lane for what comes in over a source's budget, and what a node knows of who waits in it. */
export type Overflow = {
  /** Resolves when it is durable. */
  defer(deferred: Deferred): Promise<void>
  /** While something waits, what comes later queues behind it: the order of a source's events survives. */
  isBacklogged(sourceId: string): boolean
  /** Looks who waits; returns them. */
  refresh(): Promise<string[]>
}

const MAX_ENTRIES_PER_FLUSH = 500
const MAX_FLUSHES = 2

/** It has a queue and a bound of its own: a flood never stands before those who keep to their limit. */
export function openOverflow({
  pool,
  maxPendingBytes,
}: {
  pool: pg.Pool
  maxPendingBytes: number
}): Overflow {
  const flush = grouped<Deferred, undefined>(
    async deferred => {
      await insertOverflow(pool, deferred)
      return deferred.map(() => undefined)
    },
    { maxItems: MAX_ENTRIES_PER_FLUSH, maxInFlight: MAX_FLUSHES },
  )
  /** Of each source that waits: how many of its entries are on their way in, and when the last one arrived. */
  const backlogged = new Map<string, { arriving: number; arrivedAt: number }>()
  let arrivals = 0
  let pendingBytes = 0

  return {
    async defer(deferred) {
      const bytes = deferred.entry.body.length + deferred.entry.context.length
      if (pendingBytes > 0 && pendingBytes + bytes > maxPendingBytes) throw new Overloaded(pendingBytes)
      const lane = backlogged.get(deferred.sourceId) ?? { arriving: 0, arrivedAt: 0 }
      backlogged.set(deferred.sourceId, lane)
      lane.arriving++
      pendingBytes += bytes
      try {
        await flush([deferred])
      } finally {
        lane.arriving--
        lane.arrivedAt = ++arrivals
        pendingBytes -= bytes
      }
    },
    isBacklogged: sourceId => backlogged.has(sourceId),
    async refresh() {
      const askedAt = arrivals
      const waiting = await listBacklogged(pool)
      const found = new Set(waiting)
      for (const [sourceId, lane] of backlogged) {
        // What was on its way when we asked may have been missed.
        const isKnown = lane.arriving === 0 && lane.arrivedAt <= askedAt
        if (isKnown && !found.has(sourceId)) backlogged.delete(sourceId)
      }
      for (const sourceId of waiting)
        if (!backlogged.has(sourceId)) backlogged.set(sourceId, { arriving: 0, arrivedAt: 0 })
      return waiting
    },
  }
}
