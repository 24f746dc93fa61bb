import { setTimeout as sleep } from 'node:timers/promises'
import { inspect } from 'node:util'

// Slow machines take their time; the run gives a file up after 15 minutes, without a word about what it waited for.
const LIMIT_MS = 300_000
// A tenth of what was waited so far: what takes seconds is not asked for two hundred times a second, and has the processor.
const [MIN_PAUSE_MS, MAX_PAUSE_MS] = [5, 50]

type Options = {
  withinMs?: number
  /** How things stood when the time was over, for the message. */
  state?: () => unknown
}

/**
 * Looks until there is an answer (anything but false, null and undefined) and returns it. `what` completes
 * "waited for …"; an error thrown while looking ends the wait.
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
      throw new Error(`waited ${withinMs / 1000} s in vain for ${what}${stood}`)
    }
    await sleep(Math.min(MAX_PAUSE_MS, Math.max(MIN_PAUSE_MS, waited / 10)))
  }
}
