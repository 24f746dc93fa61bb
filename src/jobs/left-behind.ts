import { resumeErasures } from '../admin/erasure-run.ts'
import type { Storage } from '../admin/long-work.ts'
import { resumePurges } from '../admin/purges.ts'
import type { Job } from './jobs.ts'

const EVERY_MS = 10_000

/** Goes on with erasures and purges whose process ended. */
export function leftBehind(storage: Storage): Job[] {
  return [
    { name: 'erasures', everyMs: EVERY_MS, run: () => resumeErasures(storage) },
    { name: 'purges', everyMs: EVERY_MS, run: () => resumePurges(storage) },
  ]
}
