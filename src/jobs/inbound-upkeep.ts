import type pg from 'pg'
import { DAY_MS } from '../domain/time.ts'
import type { Traces } from '../intake/traces.ts'
import { pruneRejections } from '../store/inbound/rejections.ts'
import { deleteRequestsBefore } from '../store/inbound/requests.ts'
import { deleteExpiredBudgets } from '../store/inbound/volume.ts'
import type { Job } from './jobs.ts'

const REJECTIONS_PER_SOURCE = 1_000
const REJECTIONS_KEPT_MS = 14 * DAY_MS
const REQUESTS_KEPT_MS = 3 * DAY_MS

/** What the inbound route leaves behind: written down now and then, and kept within bounds. */
export function inboundUpkeep(pool: pg.Pool, traces: Traces, now: () => Date): Job[] {
  return [
    { name: 'inbound traces', everyMs: 250, run: () => traces.write() },
    {
      name: 'rejection upkeep',
      everyMs: 5 * 60_000,
      async run() {
        const before = new Date(now().getTime() - REJECTIONS_KEPT_MS)
        await pruneRejections(pool, { before, perSource: REJECTIONS_PER_SOURCE })
        await deleteExpiredBudgets(pool, now())
        await deleteRequestsBefore(pool, new Date(now().getTime() - REQUESTS_KEPT_MS))
      },
    },
  ]
}
