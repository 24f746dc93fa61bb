import { setTimeout as sleep } from 'node:timers/promises'
import { inspect } from 'node:util'

// Slow machines take their time; the run gives a file up after 15 minutes, without a word about what it waited for.
const LIMIT_MS = 300_000
const PAUSE_MS = 5

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
  look: () => T | Promise<T>,
  { withinMs = LIMIT_MS, state }: Options = {},
): Promise<Exclude<T, false | null | undefined>> {
  const deadline = performance.now() + withinMs
  for (;;) {
    const answer = await look()
    if (answer !== false && answer !== null && answer !== undefined)
      return answer as Exclude<T, false | null | undefined>
    if (performance.now() > deadline) {
      const stood = state ? `; at the end: ${inspect(await state(), { depth: 5 })}` : ''
      throw new Error(`waited ${withinMs / 1000} s in vain for ${what}${stood}`)
    }
    await sleep(PAUSE_MS)
  }
}
