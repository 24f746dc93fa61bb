import type { Log } from '../log/log.ts'
import type { Job } from './jobs.ts'

const EVERY_MS = 2_000

/** Makes room in what lies outside of PostgreSQL, and writes down what is unread in it. */
export function streamUpkeep({ outside }: Pick<Log, 'outside'>): Job[] {
  return outside ? [{ name: 'stream', everyMs: EVERY_MS, run: outside.upkeep }] : []
}
