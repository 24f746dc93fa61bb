import type { Log } from '../log/log.ts'

type Lags = Awaited<ReturnType<Log['lag']>>

/** What is accepted and not yet processed. Counted now and then; in between, what this process appended is added. */
export type Backlog = {
  /** Null until it was counted once. */
  entries(): number | null
  max: number | null
  /** So much that nothing more is taken in, while whoever sends still keeps it. */
  isFull(): boolean
  /** By partition: counted now, or where that takes long, as it was counted last. */
  lags(): Promise<Lags>
  /** So many entries were appended here. */
  appended(entries: number): void
  stop(): void
}

const COUNT_EVERY_MS = 2_000
// Counting reads the index of what waits: 10 million entries take seconds. It is left alone for so many times as long.
const PAUSES = 10
const MIN_PAUSE_MS = 50
// The scrape of the metrics waits no longer than a second.
const SLOW_MS = 500

/**
 * `processes`: how many count beside each other on this machine. What is processed between two counts is not known, and so a
 * limit is never passed by what comes in through one process, and by others' for as long as a pause lasts.
 */
export function watchBacklog(
  lag: Log['lag'],
  { max, processes = 1 }: { max: number | null; processes?: number },
): Backlog {
  let counted: { lags: Lags; entries: number } | null = null
  let appended = 0
  /** Of these, what was appended while it was counted: that may be among what was counted, too. */
  let doubtful = 0
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
      // While the server of a part of the log is away, that part is not empty.
      const lags = await lag({ complete: true })
      counted = { lags, entries: lags.reduce((sum, { entries }) => sum + entries, 0) }
      appended -= before
      doubtful = appended
    } catch {
      // Storage is away: what was counted last holds, and what is appended meanwhile is added to it.
      doubtful = 0
    } finally {
      isCounting = false
      endedAt = performance.now()
      tookMs = endedAt - startedAt
      schedule()
    }
  }

  /** Half of what there was room for has come in since: most of that is processed by now, as a rule. */
  const isNear = () => max !== null && appended * 2 >= max - (counted?.entries ?? 0)

  /** Full, unless something counts twice. While it is full nothing is appended here, and so the next count knows. */
  const isDoubtful = () => max !== null && isFull() && entries()! - doubtful < max

  function pauseMs(): number {
    if (isDoubtful() && tookMs < SLOW_MS) return MIN_PAUSE_MS
    return Math.max(MIN_PAUSE_MS, tookMs * PAUSES * processes, isNear() ? 0 : COUNT_EVERY_MS)
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
    appended(more) {
      const wasNear = isNear()
      appended += more
      if ((!wasNear && isNear()) || isDoubtful()) schedule()
    },
    stop() {
      isStopped = true
      clearTimeout(timer)
    },
  }
}

/** For people. */
export function backlogText({ entries, max, isFull }: Backlog): string {
  const waiting = entries()
  if (waiting === null) return 'unknown'
  const text = `${waiting.toLocaleString('en')} entries wait to be processed`
  return isFull()
    ? `${text}, KONTOR_MAX_BACKLOG is ${max!.toLocaleString('en')}: what comes in is answered 503`
    : text
}
