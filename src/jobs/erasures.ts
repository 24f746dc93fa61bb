import type pg from 'pg'
import { resumeErasures } from '../admin/erasure-run.ts'
import type { Job } from './jobs.ts'

/** Goes on with erasures whose process ended. */
export function leftErasures(pool: pg.Pool): Job {
  return { name: 'erasures', everyMs: 10_000, run: () => resumeErasures(pool) }
}
