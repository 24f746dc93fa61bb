import { setTimeout as pause } from 'node:timers/promises'

const EVERY_MS = 1_000
const REMEMBERED = 2_000 // twice what anybody looks at

/**
 * Gives the newest rows, oldest first; then looks at them every second and gives those that were not among them before, also
 * when there are none: nothing falls between what is there and what comes. What comes faster than `newest` shows is left out: this is for people who look on.
 */
export async function* followNewest<Row extends { id: string }>({
  newest,
  signal,
}: {
  newest(): Promise<Row[]>
  signal: AbortSignal
}): AsyncGenerator<Row[]> {
  const there = (await newest()).reverse()
  const seen = new Set(there.map(({ id }) => id))
  yield there
  while (await pause(EVERY_MS, true, { signal }).catch(() => false)) {
    const fresh = (await newest()).filter(({ id }) => !seen.has(id)).reverse()
    for (const { id } of fresh) seen.add(id)
    for (const id of seen) if (seen.size > REMEMBERED) seen.delete(id)
    yield fresh
  }
}
