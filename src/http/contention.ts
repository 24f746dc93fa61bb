/**
 * How much is under way at once while tenants share, by whether this thread has a processor when it needs one. With more to
 * do than processors, whatever more is under way is not done sooner: all of it waits, and a tenant with one request waits as
 * long as one with a hundred. Where there are processors enough, or where the disk is waited for, more at once is done
 * sooner, and a flood is not slowed for nothing.
 */
export type Contention = {
  capacity(): number
  /** What `capacity` is where there are processors enough. */
  most: number
  /** Tells that a request has to wait for its turn: only then more or less of it matters. */
  waits(): void
}

// Two dozen fill a flush. Beside a flood on two processors, 24 / 8 / 4 / 2 / 1 made the p99 of a request (6 ms alone) some
// 55 / 28 / 23 / 21 / 20 ms, and took in 14,000 / 12,000 / 10,000 / 8,500 / 7,800 events a second of the flood.
const MOST = 24
const LEAST = 4
const STEP_MS = 20
// Of the time in which it had something to do, a thread by itself ran nine tenths; beside a flood on two processors six.
const ENOUGH = 0.75
// Down within a tenth of a second of the beginning of a flood, up within a third of one.
const DOWN = 0.25
const UP = 1.25

export function openContention({
  processorShare = openProcessorShare(),
  now = () => performance.now(),
} = {}): Contention {
  let capacity = MOST
  let steppedAt = Number.NEGATIVE_INFINITY
  return {
    capacity: () => capacity,
    most: MOST,
    waits() {
      const at = now()
      const sinceMs = at - steppedAt
      if (sinceMs < STEP_MS) return
      steppedAt = at
      const share = processorShare()
      // Over a longer time it tells of something else.
      if (sinceMs > 10 * STEP_MS) return
      capacity = share < ENOUGH ? Math.max(LEAST, capacity * DOWN) : Math.min(MOST, capacity * UP)
    },
  }
}

/** Since the last time: the part of the time in which this thread had something to do that it ran. */
export function openProcessorShare(): () => number {
  const read = () => {
    const { user, system } = process.threadCpuUsage()
    return { activeMs: performance.eventLoopUtilization().active, ranMs: (user + system) / 1_000 }
  }
  let last = read()
  return () => {
    const before = last
    last = read()
    const activeMs = last.activeMs - before.activeMs
    return activeMs > 0 ? Math.min(1, (last.ranMs - before.ranMs) / activeMs) : 1
  }
}
