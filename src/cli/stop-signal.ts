import { isRunByNpm } from '../config/config.ts'
import type { Output } from './output.ts'

// A terminal's Ctrl-C reaches this process directly and again through npm, within milliseconds.
const ECHO_MS = 500
const POLL_PARENT_MS = 500

/** Of a server that was told to stop and had to cut something off. */
export const STUCK_EXIT_CODE = 3

/**
 * Closes what runs: requests have `drainMs`, and everything else as long again. False: something hangs, a statement in a PostgreSQL
 * that does not answer, say, and is better cut off than waited for; nothing that was acknowledged depends on it.
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
      `Not everything ended within ${(2 * drainMs) / 1_000} s (KONTOR_DRAIN_TIMEOUT, twice): the rest is cut off. ` +
        'What was acknowledged is safe; the next start goes on with it.',
    )
  return isClosed
}

/** Resolves with the first signal to stop; a later one ends the process where it stands. */
export function stopSignal(out: Output): Promise<void> {
  return new Promise(resolve => {
    let first: number | null = null
    const stop = (why: string) => {
      const now = Date.now()
      if (first === null) {
        first = now
        out.say(`\nStopping (${why}): answering what is in flight. A second signal stops at once.`)
        resolve()
      } else if (now - first > ECHO_MS) {
        out.say('Stopped at once. What was acknowledged is safe; the next start recovers it.')
        process.exit(1)
      }
    }
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, stop)
    // After a signal npm ends before this process does: no reason to hurry.
    if (isRunByNpm()) onceOrphaned(() => first ?? stop('npm has ended'))
    // Of bin/kontor.mjs, whose process id is the one that its caller knows: nobody could stop this one any more.
    process.once('disconnect', () => first ?? stop('the kontor command has ended'))
    process.channel?.unref()
  })
}

/** npm passes a signal on to the shell it started, which dies of it and tells nobody. */
function onceOrphaned(tell: () => void): void {
  const parent = process.ppid
  const polling = setInterval(() => {
    if (process.ppid === parent) return
    clearInterval(polling)
    tell()
  }, POLL_PARENT_MS)
  polling.unref()
}
