import type pg from 'pg'
import { DAY_MS } from '../domain/time.ts'
import type { Refusals } from '../intake/refusals.ts'
import { pruneRefusals } from '../store/entries/refusals.ts'
import type { Job } from './jobs.ts'

const KEPT_MS = 14 * DAY_MS
const EXAMPLES_PER_CODE = 20

/** What is refused with a known key: written down now and then, and kept within bounds. */
export function refusalUpkeep(pool: pg.Pool, refusals: Refusals, now: () => Date): Job[] {
  return [
    { name: 'refused requests', everyMs: 250, run: () => refusals.write() },
    {
      name: 'upkeep of refused requests',
      everyMs: 5 * 60_000,
      run: () =>
        pruneRefusals(pool, {
          before: new Date(now().getTime() - KEPT_MS),
          perCode: EXAMPLES_PER_CODE,
        }),
    },
  ]
}
