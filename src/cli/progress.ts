import type { Progress } from '../admin/backup.ts'
import type { Output } from './output.ts'

const EVERY_MS = 3_000

/** Prints a line every three seconds; none for work that is done sooner. */
export function progressOn(out: Output, verb: string): Progress {
  const start = performance.now()
  let last = start
  return ({ bytes, ofBytes, what }) => {
    const now = performance.now()
    if (now - last < EVERY_MS) return
    last = now
    const pace = megabytes(bytes / ((now - start) / 1_000))
    const share = Math.min(99, Math.floor((100 * bytes) / Math.max(1, ofBytes)))
    out.say(
      `${verb} ${share} % (${megabytes(bytes)} MB, ${pace} MB/s)${what === '' ? '' : `, current: ${what}`}.`,
    )
  }
}

function megabytes(bytes: number): string {
  return Math.round(bytes / 1e6).toLocaleString('en')
}
