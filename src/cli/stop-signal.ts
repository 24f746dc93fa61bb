import { isRunByNpm } from '../config/config.ts'
import type { Output } from './output.ts'

// Ctrl-C on a terminal reaches this process twice within milliseconds: directly, and through npm.
const ECHO_MS = 500
const POLL_PARENT_MS = 500

/** The exit code of a server that had to abort work when it stopped. */
export const STUCK_EXIT_CODE = 3

/**
 * Closes the server: requests have `drainMs` to complete, and everything else as long again. Returns false if something hangs, for
 * example a statement in an unresponsive PostgreSQL. Aborting it is safe, because acknowledged data is already durable.
 */
export async function closedInTime(
  close: () => Promise<void>,
  drainMs: number,
  out: Output,
): Promise<boolean> {
  const { promise: late, resolve } = Promise.withResolvers<false>()
  const timer = setTimeout(resolve, 2 * drainMs, false as const)
  const isClosed = await Promise.race([close().then(() => true), late])
  clearTimeout(timer)
  if (!isClosed)
    out.say(
      `Shutdown took longer than ${(2 * drainMs) / 1_000} s (twice KONTOR_DRAIN_TIMEOUT). Remaining work is aborted. ` +
        'Acknowledged data is safe, and the next start continues with it.',
    )
  return isClosed
}

/** Resolves with the first stop signal. A later one exits immediately. */
export function stopSignal(out: Output): Promise<void> {
  return new Promise(resolve => {
    let first: number | null = null
    const stop = (why: string) => {
      const now = Date.now()
      if (first === null) {
        first = now
        out.say(`\nStopping (${why}): completing requests in flight. A second signal stops immediately.`)
        resolve()
      } else if (now - first > ECHO_MS) {
        out.say('Stopped immediately. Acknowledged data is safe, and the next start recovers it.')
        process.exit(1)
      }
    }
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, stop)
    // After a signal, npm exits before this process. That is not a second signal.
    if (isRunByNpm()) onceOrphaned(() => first ?? stop('npm has ended'))
    // The caller knows only the process id of bin/kontor.mjs. If that process is gone, the caller cannot stop this one.
    process.once('disconnect', () => first ?? stop('the kontor command has ended'))
    process.channel?.unref()
  })
}

/** npm forwards a signal only to the shell that it started, and the shell exits without forwarding it. */
function onceOrphaned(tell: () => void): void {
  const parent = process.ppid
  const polling = setInterval(() => {
    if (process.ppid === parent) return
    clearInterval(polling)
    tell()
  }, POLL_PARENT_MS)
  polling.unref()
}
