import type pg from 'pg'
import { withSaleChanges } from '../admin/people.ts'
import { foldNextPortion } from '../pipeline/conversions/conversions.ts'
import { hasFolds } from '../store/conversions/conversions.ts'
import type { Job } from './jobs.ts'

/** Folds unverified sales of orders that verified input reported later, in short transactions. */
export function saleFoldJob(pool: pg.Pool): Job {
  return {
    name: 'sale folds',
    everyMs: 1_000,
    async run() {
      while ((await hasFolds(pool)) && (await withSaleChanges(pool, foldNextPortion)));
    },
  }
}
