import type { JetStreamLog } from '../log/jetstream/log.ts'
import type { Job } from './jobs.ts'

const EVERY_MS = 2_000

/** Makes room in the stream on NATS, and writes down what is unread in it. */
export function streamUpkeep(jetstream: JetStreamLog | null): Job[] {
  return jetstream ? [{ name: 'stream', everyMs: EVERY_MS, run: () => jetstream.keepUp() }] : []
}
