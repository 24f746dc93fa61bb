import { setTimeout as pause } from 'node:timers/promises'

const INTERVAL_MS = 1_000
const MAX_SEEN = 2_000 // twice the largest number of rows that a caller requests

/**
 * Yields the newest rows, oldest first, and then every second the new ones among them, which may be none. There is no gap
 * between the first rows and the new ones. If more rows arrive in a second than `newest` returns, some are left out: this is
 * for display.
 */
export async function* followNewest<Row extends { id: string }>({
  newest,
  signal,
}: {
  newest(): Promise<Row[]>
  signal: AbortSignal
}): AsyncGenerator<Row[]> {
  const first = (await newest()).reverse()
  const seen = new Set(first.map(({ id }) => id))
  yield first
  while (await pause(INTERVAL_MS, true, { signal }).catch(() => false)) {
    const fresh = (await newest()).filter(({ id }) => !seen.has(id)).reverse()
    for (const { id } of fresh) seen.add(id)
    for (const id of seen) if (seen.size > MAX_SEEN) seen.delete(id)
    yield fresh
  }
}
