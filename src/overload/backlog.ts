import type { Log } from '../log/log.ts'

type Lags = Awaited<ReturnType<Log['lag']>>

/** Entries that are accepted and not yet processed: counted periodically, plus what this process has appended since. */
export type Backlog = {
  /** Null before the first count. */
  entries(): number | null
  max: number | null
  /** Writes are rejected while their senders still have the data. */
  isFull(): boolean
  /** By partition: current, or the last count if counting is slow. */
  lags(): Promise<Lags>
  recordAppended(entries: number): void
  stop(): void
}

const COUNT_EVERY_MS = 2_000
// Counting scans the index of unprocessed entries: seconds for 10 million. The pause is this many times as long.
const PAUSE_FACTOR = 10
const MIN_PAUSE_MS = 50
// A metrics scrape waits at most one second.
const SLOW_MS = 500

/**
 * `processes`: how many processes on this machine count. What is processed between two counts is unknown, so one process
 * alone never exceeds the limit, and several exceed it at most by what the others append during one pause.
 */
export function watchBacklog(
  lag: Log['lag'],
  { max, processes = 1 }: { max: number | null; processes?: number },
): Backlog {
  let counted: { lags: Lags; entries: number } | null = null
  let appended = 0
  /** The part of `appended` that was appended during the last count and may be included in it as well. */
  let maybeCounted = 0
  let tookMs = 0
  let isCounting = false
  let isStopped = false
  let endedAt = -Infinity
  let timer: NodeJS.Timeout | undefined

  const entries = () => (counted === null ? null : counted.entries + appended)
  const isFull = () => max !== null && (entries() ?? 0) >= max

  async function count(): Promise<void> {
    if (isCounting || isStopped) return
    isCounting = true
    clearTimeout(timer)
    const startedAt = performance.now()
    const before = appended
    try {
      // While the server of one part of the log is unreachable, the count fails: that part is not empty.
      const lags = await lag({ complete: true })
      counted = { lags, entries: lags.reduce((sum, { entries }) => sum + entries, 0) }
      appended -= before
      maybeCounted = appended
    } catch {
      // Storage is unavailable: the last count stays valid, and appended entries are added to it.
      maybeCounted = 0
    } finally {
      isCounting = false
      endedAt = performance.now()
      tookMs = endedAt - startedAt
      schedule()
    }
  }

  /** Half of the remaining capacity was appended since the count; most of that is usually processed by now. */
  const isNear = () => max !== null && appended * 2 >= max - (counted?.entries ?? 0)

  /** Full only if entries were counted twice. This process then appends nothing, so the next count is exact. */
  const isUncertain = () => max !== null && isFull() && entries()! - maybeCounted < max

  function pauseMs(): number {
    if (isUncertain() && tookMs < SLOW_MS) return MIN_PAUSE_MS
    return Math.max(MIN_PAUSE_MS, tookMs * PAUSE_FACTOR * processes, isNear() ? 0 : COUNT_EVERY_MS)
  }

  function schedule(): void {
    if (isStopped || isCounting) return
    clearTimeout(timer)
    timer = setTimeout(count, Math.max(0, endedAt + pauseMs() - performance.now())).unref()
  }

  void count()
  return {
    entries,
    max,
    isFull,
    async lags() {
      return counted !== null && tookMs > SLOW_MS ? counted.lags : lag()
    },
    recordAppended(more) {
      const wasNear = isNear()
      appended += more
      if ((!wasNear && isNear()) || isUncertain()) schedule()
    },
    stop() {
      isStopped = true
      clearTimeout(timer)
    },
  }
}

export function describeBacklog({ entries, max, isFull }: Backlog): string {
  const waiting = entries()
  if (waiting === null) return 'unknown'
  const text = `${waiting.toLocaleString('en')} entries waiting to be processed`
  return isFull() ? `${text}, KONTOR_MAX_BACKLOG is ${max!.toLocaleString('en')}: writes are answered with 503` : text
}
