import type { Storage } from '../admin/erasures/long-work.ts'
import { resumePurges } from '../admin/erasures/purge-run.ts'
import { resumeErasures } from '../admin/erasures/run.ts'
import type { Job } from './jobs.ts'

const EVERY_MS = 10_000

/** Goes on with erasures and purges whose process ended. */
export function leftBehind(storage: Storage): Job[] {
  return [
    { name: 'erasures', everyMs: EVERY_MS, run: () => resumeErasures(storage) },
    { name: 'purges', everyMs: EVERY_MS, run: () => resumePurges(storage) },
  ]
}
