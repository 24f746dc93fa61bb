import type pg from 'pg'
import { resumeErasures } from '../admin/erasure-run.ts'
import { resumePurges } from '../admin/purge-run.ts'
import type { Job } from './jobs.ts'

const EVERY_MS = 10_000

/** Goes on with erasures and purges whose process ended. */
export function leftBehind(pool: pg.Pool): Job[] {
  return [
    { name: 'erasures', everyMs: EVERY_MS, run: () => resumeErasures(pool) },
    { name: 'purges', everyMs: EVERY_MS, run: () => resumePurges(pool) },
  ]
}
