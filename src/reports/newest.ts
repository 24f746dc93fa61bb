import { setTimeout as pause } from 'node:timers/promises'

const EVERY_MS = 1_000
const REMEMBERED = 1_000

/**
 * Looks at the newest rows every second and gives those that were not among them before, oldest first; also when there
 * are none. What comes faster than `newest` shows is left out: this is for people who look on.
 */
export async function* followNewest<Row extends { id: string }>({
  newest,
  signal,
}: {
  newest(): Promise<Row[]>
  signal: AbortSignal
}): AsyncGenerator<Row[]> {
  const seen = new Set((await newest()).map(({ id }) => id))
  yield []
  while (await pause(EVERY_MS, true, { signal }).catch(() => false)) {
    const fresh = (await newest()).filter(({ id }) => !seen.has(id)).reverse()
    for (const { id } of fresh) seen.add(id)
    for (const id of seen) if (seen.size > REMEMBERED) seen.delete(id)
    yield fresh
  }
}
