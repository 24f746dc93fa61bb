import type pg from 'pg'
import { foldSeries } from '../store/sums/fold.ts'
import type { Job } from './jobs.ts'

/** Keeps series quick: they are right without it, but add up every transaction by itself. */
export function seriesUpkeep(pool: pg.Pool): Job {
  return {
    name: 'sums of series',
    everyMs: 2_000,
    async run() {
      while (await foldSeries(pool));
    },
  }
}
