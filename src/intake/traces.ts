import type pg from 'pg'
import { withClient } from '../postgres/database.ts'
import { makingPartitions } from '../postgres/partitions.ts'
import { insertReceipts, type Receipt } from '../store/inbound/receipts.ts'
import { insertRejections, type NewRejection } from '../store/inbound/rejections.ts'

/**
 * What is worth knowing but not worth waiting for: refused requests, and repeats that were known on arrival. Kept in
 * memory and written now and then, many at a time; what is too much is counted or left out.
 */
export type Traces = {
  rejection(rejection: Omit<NewRejection, 'suppressed'>): void
  receipts(receipts: Receipt[]): void
  /** Writes what has gathered. */
  write(): Promise<void>
}

// Of each cause at each source, the first few of a minute tell the story; the others are counted.
const SAMPLE = 10
const WINDOW_MS = 60_000
const MAX_CAUSES = 10_000
const MAX_ROWS = 5_000

type Cause = { windowEnds: number; written: number; suppressed: number; last: NewRejection }

export function openTraces({ pool, now }: { pool: pg.Pool; now: () => Date }): Traces {
  const causes = new Map<string, Cause>()
  let rejections: NewRejection[] = []
  let receipts: Receipt[] = []

  /** The sum of what was only counted, as one row. */
  function closeWindow(key: string, cause: Cause): void {
    causes.delete(key)
    if (cause.suppressed > 0) rejections.push({ ...cause.last, suppressed: cause.suppressed })
  }

  function closeWindowsBefore(moment: number): void {
    for (const [key, cause] of causes) if (cause.windowEnds <= moment) closeWindow(key, cause)
  }

  return {
    rejection(rejection) {
      const at = rejection.rejectedAt.getTime()
      const key = `${rejection.sourceId} ${rejection.code} ${rejection.isAuthenticated}`
      const known = causes.get(key)
      if (known && known.windowEnds <= at) closeWindow(key, known)
      const row = { ...rejection, suppressed: 0 }
      const cause = causes.get(key) ?? { windowEnds: at + WINDOW_MS, written: 0, suppressed: 0, last: row }
      if (!causes.has(key)) {
        if (causes.size >= MAX_CAUSES) return
        causes.set(key, cause)
      }
      if (cause.written < SAMPLE && rejections.length < MAX_ROWS) {
        cause.written++
        rejections.push(row)
      } else {
        cause.suppressed++
        // Without itself: it is the one that is shown.
        cause.last = row
      }
    },
    receipts(added) {
      for (const receipt of added) if (receipts.length < MAX_ROWS) receipts.push(receipt)
    },
    async write() {
      closeWindowsBefore(now().getTime())
      const rejected = rejections
      const received = receipts
      rejections = []
      receipts = []
      await Promise.all([
        rejected.length > 0 && insertRejections(pool, rejected),
        received.length > 0 &&
          makingPartitions(pool, () => withClient(pool, client => insertReceipts(client, received))),
      ])
    },
  }
}
