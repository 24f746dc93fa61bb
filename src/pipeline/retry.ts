/** How often an entry that cannot be applied is tried, and how long it waits in between, before it is given up. */
export type Retry = { attempts: number; firstDelayMs: number; maxDelayMs: number }

export const DEFAULT_RETRY: Retry = { attempts: 6, firstDelayMs: 1_000, maxDelayMs: 60_000 }

/** Doubling, with jitter so that many failures do not come back together. */
export function delayMs(retry: Retry, attempts: number): number {
  const full = Math.min(retry.maxDelayMs, retry.firstDelayMs * 2 ** (attempts - 1))
  return full / 2 + (Math.random() * full) / 2
}
