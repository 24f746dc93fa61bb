import { setTimeout as sleep } from 'node:timers/promises'
import { inspect } from 'node:util'

// Long enough for slow machines. The test runner aborts a file after 15 minutes without saying what it waited for.
const LIMIT_MS = 300_000
// The pause is a tenth of the time waited so far, so that a long wait does not poll 200 times per second and use the CPU.
const [MIN_PAUSE_MS, MAX_PAUSE_MS] = [5, 50]

type Options = {
  withinMs?: number
  /** Describes the state at the timeout, for the error message. */
  state?: () => unknown
}

/**
 * Calls `look` until it returns a value other than false, null and undefined, and returns that value. `what` completes
 * "waited for …". An error thrown by `look` ends the wait.
 */
export async function eventually<T>(
  what: string,
  probe: () => T | Promise<T>,
  { withinMs = LIMIT_MS, state }: Options = {},
): Promise<Exclude<T, false | null | undefined>> {
  const begin = performance.now()
  for (;;) {
    const answer = await probe()
    if (answer !== false && answer !== null && answer !== undefined)
      return answer as Exclude<T, false | null | undefined>
    const waited = performance.now() - begin
    if (waited > withinMs) {
      const stood = state ? `; at the end: ${inspect(await state(), { depth: 5 })}` : ''
      throw new Error(`waited ${withinMs / 1000} s for ${what}${stood}`)
    }
    await sleep(Math.min(MAX_PAUSE_MS, Math.max(MIN_PAUSE_MS, waited / 10)))
  }
}
