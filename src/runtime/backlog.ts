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
  let tookMs = 0
  let isCounting = false
  let isStopped = false
  let endedAt = -Infinity
  let timer: NodeJS.Timeout | undefined

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
    } catch {
      // Storage is away: what was counted last holds, and what is appended meanwhile is added to it.
    } finally {
      isCounting = false
      endedAt = performance.now()
      tookMs = endedAt - startedAt
      schedule()
    }
  }

  /** Half of what there was room for has come in since: most of that is processed by now, as a rule. */
  const isNear = () => max !== null && appended * 2 >= max - (counted?.entries ?? 0)

  function schedule(): void {
    if (isStopped || isCounting) return
    const pauseMs = Math.max(MIN_PAUSE_MS, tookMs * PAUSES * processes, isNear() ? 0 : COUNT_EVERY_MS)
    clearTimeout(timer)
    timer = setTimeout(count, Math.max(0, endedAt + pauseMs - performance.now())).unref()
  }

  const entries = () => (counted === null ? null : counted.entries + appended)
  void count()
  return {
    entries,
    max,
    isFull: () => max !== null && (entries() ?? 0) >= max,
    async lags() {
      return counted !== null && tookMs > SLOW_MS ? counted.lags : lag()
    },
    appended(more) {
      const wasNear = isNear()
      appended += more
      if (!wasNear && isNear()) schedule()
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
