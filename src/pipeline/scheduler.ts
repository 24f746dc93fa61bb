import { availableParallelism } from 'node:os'
import { HEAVY_ENTRIES } from '../log/log.ts'
import { isConflict, isUnavailable, RestartTransaction } from '../postgres/database.ts'
import type { RunTransaction } from './transaction.ts'

// After a failure, this many transactions isolate failing units. Partitions are taken at random, so one of these
// transactions is likely to take the failing entry again.
const CAREFUL_RUNS = 8
// If isolation does not help, this many transactions take one partition each, so that a failing one affects no others.
const ALONE_RUNS = 64
// While entries arrive, a pause lets the next transaction take more of them. It is as long as the transaction before: if transactions take
// long, requests need the processors. On two busy processors, a maximum of 50 ms saves 15% of the cost of processing single events,
// compared with 20 ms. With 100 ms, requests at half of the load take longer.
const MIN_GATHER_MS = 20
const MAX_GATHER_MS = 50
// Like HEAVY_ENTRIES: after a transaction of this size there is no pause, and another worker starts beside it.
const HEAVY_LENGTH = 250_000
// While this many heavy transactions run, new entries wake no other worker: PostgreSQL works on one while Node works on another. More of
// them use more memory, and are not faster. If they take long, one of the idle workers polls.
const MAX_HEAVY = availableParallelism() > 2 ? 3 : 2
// Without a wake-up (another process appended, a retry came due) one of the workers polls this often.
const POLL_EVERY_MS = 250
// A conflict is usually gone on retry. A warning is logged after every 20 consecutive conflicts of a worker.
const WARN_EVERY_CONFLICTS = 20
const FIRST_BACKOFF_MS = 200
const MAX_BACKOFF_MS = 5_000

type SchedulerOptions = {
  runTransaction: RunTransaction
  workers: number
  /** Calls `listener` when there are new entries. Returns a function that unsubscribes. */
  onAppend(listener: () => void): () => void
  logger: { error(facts: object, message: string): void; warn(facts: object, message: string): void }
}

export type Scheduler = { start(): void; stop(): Promise<void> }

/** Decides which workers are awake, and when each of them runs its next transaction. */
export function openScheduler({ runTransaction, workers, onAppend, logger }: SchedulerOptions): Scheduler {
  /** Wakes an idle worker. One function per idle worker. */
  const idle = new Set<() => void>()
  // The number of polling workers. While there is one, the others stay idle, because the same work costs more in several
  // transactions.
  let polling = 0
  let heavy = 0
  let lastPollAt = Number.NEGATIVE_INFINITY
  let hasNews = false
  /** Of the last transaction of any worker. */
  let load: 'light' | 'heavy' = 'light'
  let stopping = false
  let isOutageReported = false

  const unsubscribe = onAppend(() => {
    hasNews = true
    wakeOne()
  })

  function wakeOne(): void {
    const [wake] = idle
    if (polling === 0 && heavy < MAX_HEAVY) wake?.()
  }

  async function work(): Promise<void> {
    let isPolling = false
    function setPolling(now: boolean): void {
      if (now !== isPolling) polling += now ? 1 : -1
      isPolling = now
    }
    let careful = 0
    let alone = 0
    let failures = 0
    let conflicts = 0
    while (!stopping) {
      try {
        setPolling(true)
        const startedAt = performance.now()
        lastPollAt = startedAt
        hasNews = false
        let isHeavy = false
        const took = await runTransaction({
          careful: careful > 0 || alone > 0,
          alone: alone > 0,
          load,
          onTaken({ entries, length, isFull }) {
            isHeavy = isFull || entries >= HEAVY_ENTRIES || length >= HEAVY_LENGTH
            // Nothing is left if another worker owns all partitions.
            if (entries > 0) load = isHeavy ? 'heavy' : 'light'
            if (!isHeavy) return
            heavy++
            setPolling(false)
            wakeOne()
          },
        }).finally(() => {
          if (isHeavy) heavy--
        })
        careful = Math.max(0, careful - 1)
        alone = Math.max(0, alone - 1)
        failures = 0
        conflicts = 0
        isOutageReported = false
        if (took === 0 && !hasNews) {
          setPolling(false)
          await untilNextPoll()
        } else if (hasNews && !isHeavy) {
          const durationMs = performance.now() - startedAt
          await pause(Math.min(MAX_GATHER_MS, Math.max(MIN_GATHER_MS, durationMs)))
        }
      } catch (error) {
        setPolling(false)
        const failure = error instanceof RestartTransaction ? await catchFailure(error.prepare) : error
        if (failure === null || isConflict(failure)) {
          if (++conflicts % WARN_EVERY_CONFLICTS === 0)
            logger.warn({ err: error, conflicts }, 'a worker restarts its transaction repeatedly because of conflicts')
          continue
        }
        const isOutage = isUnavailable(failure)
        if (!isOutage && careful === 0 && alone === 0) {
          careful = CAREFUL_RUNS
          continue
        }
        if (isOutage) reportOutage(failure as Error)
        else {
          alone = ALONE_RUNS
          logger.error({ err: failure }, 'the pipeline failed outside of any entry')
        }
        await idleFor(Math.min(MAX_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** failures++))
      }
    }
  }

  /** Logs an outage once for all workers, until a transaction succeeds. */
  function reportOutage({ message }: Error): void {
    if (!isOutageReported) logger.warn({ reason: message }, 'the pipeline waits for the database')
    isOutageReported = true
  }

  /** Resolves when the worker is woken or no worker has polled for a while. One idle worker polls for all of them. */
  async function untilNextPoll(): Promise<void> {
    do {
      if (await idleFor(POLL_EVERY_MS)) return
    } while (performance.now() - lastPollAt < POLL_EVERY_MS)
  }

  /** Resolves to true if the worker was woken before the time was up. */
  function idleFor(ms: number): Promise<boolean> {
    return new Promise(resolve => {
      function end(isWoken: boolean) {
        clearTimeout(timer)
        idle.delete(wake)
        resolve(isWoken)
      }
      const wake = () => end(true)
      const timer = setTimeout(end, ms, false)
      idle.add(wake)
      if (stopping) wake()
    })
  }

  /** Not ended by a wake-up. Returns at once when stopping. */
  function pause(ms: number): Promise<void> {
    return stopping ? Promise.resolve() : new Promise(resolve => setTimeout(resolve, ms))
  }

  let running: Promise<unknown> = Promise.resolve()
  return {
    start() {
      running = Promise.all(Array.from({ length: workers }, () => work()))
    },
    /** Waits until the running transactions end. */
    async stop() {
      stopping = true
      unsubscribe()
      for (const wake of idle) wake()
      await running
    },
  }
}

async function catchFailure(work: () => Promise<void>): Promise<unknown> {
  try {
    await work()
    return null
  } catch (error) {
    return error
  }
}
