import { HEAVY_ENTRIES } from '../log/log.ts'
import { isConflict, isUnavailable, RestartTransaction } from '../postgres/database.ts'
import type { RunTransaction } from './transaction.ts'

// A transaction after a failure is careful, and so are the next few: partitions are taken at random, and one of them
// is to meet the poisonous entry again.
const CAREFUL_RUNS = 8
// Where being careful does not help, each partition is tried by itself: one that fails drags no others along.
const ALONE_RUNS = 64
// While more is arriving, a short pause lets the next transaction take more along: a tracked event then costs half.
const GATHER_MS = 10
// As HEAVY_ENTRIES: a transaction with this much to do is worth no pause, and another worker beside it.
const HEAVY_LENGTH = 250_000
// Without a wake-up (another process appended, a retry came due) one of the workers polls this often.
const POLL_EVERY_MS = 250
// A conflict is over when it is tried again; a worker that does so many times in a row gets nowhere.
const CONFLICTS_TOLD = 20
const FIRST_BACKOFF_MS = 200
const MAX_BACKOFF_MS = 5_000

type SchedulerOptions = {
  runTransaction: RunTransaction
  workers: number
  /** Calls back when there is something new to read; returns what ends it. */
  onAppend(listener: () => void): () => void
  logger: { error(facts: object, message: string): void; warn(facts: object, message: string): void }
}

export type Scheduler = { start(): void; stop(): Promise<void> }

/** Which workers are awake, and when each of them runs its next transaction. */
export function openScheduler({ runTransaction, workers, onAppend, logger }: SchedulerOptions): Scheduler {
  /** Ends the idling of each worker that is idle. */
  const idle = new Set<() => void>()
  // Workers that are about to poll. While there is one, the others stay idle: what one transaction can do costs more
  // in several.
  let polling = 0
  let lastPollAt = 0
  let hasNews = false
  let stopping = false
  let isAwayTold = false

  const unsubscribe = onAppend(() => {
    hasNews = true
    wakeOne()
  })

  function wakeOne(): void {
    const [wake] = idle
    if (polling === 0) wake?.()
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
        lastPollAt = Date.now()
        hasNews = false
        let isHeavy = false
        const took = await runTransaction({
          careful: careful > 0 || alone > 0,
          alone: alone > 0,
          onTaken({ entries, length }) {
            isHeavy = entries >= HEAVY_ENTRIES || length >= HEAVY_LENGTH
            if (!isHeavy) return
            setPolling(false)
            wakeOne()
          },
        })
        careful = Math.max(0, careful - 1)
        alone = Math.max(0, alone - 1)
        failures = 0
        conflicts = 0
        isAwayTold = false
        if (took === 0 && !hasNews) {
          setPolling(false)
          await untilNextPoll()
        } else if (hasNews && !isHeavy) await pause(GATHER_MS)
      } catch (error) {
        setPolling(false)
        const failure = error instanceof RestartTransaction ? await failureOf(error.prepare) : error
        if (failure === null || isConflict(failure)) {
          if (++conflicts % CONFLICTS_TOLD === 0)
            logger.warn({ err: error, conflicts }, 'a worker begins again and again')
          continue
        }
        const isAway = isUnavailable(failure)
        if (!isAway && careful === 0 && alone === 0) {
          careful = CAREFUL_RUNS
          continue
        }
        if (isAway) tellAway(failure as Error)
        else {
          alone = ALONE_RUNS
          logger.error({ err: failure }, 'the pipeline failed outside of any entry')
        }
        await idleFor(Math.min(MAX_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** failures++))
      }
    }
  }

  /** Once for all workers, until one of them gets on. */
  function tellAway({ message }: Error): void {
    if (!isAwayTold) logger.warn({ reason: message }, 'the pipeline waits for the database')
    isAwayTold = true
  }

  /** Until a worker is woken, or nobody has polled for a while: of several idle workers one polls for all. */
  async function untilNextPoll(): Promise<void> {
    do {
      if (await idleFor(POLL_EVERY_MS)) return
    } while (Date.now() - lastPollAt < POLL_EVERY_MS)
  }

  /** True when it was woken before its time. */
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

  /** Not ended by a wake-up, only by stopping. */
  function pause(ms: number): Promise<void> {
    return stopping ? Promise.resolve() : new Promise(resolve => setTimeout(resolve, ms))
  }

  let running: Promise<unknown> = Promise.resolve()
  return {
    start() {
      running = Promise.all(Array.from({ length: workers }, () => work()))
    },
    /** Lets the transactions under way finish. */
    async stop() {
      stopping = true
      unsubscribe()
      for (const wake of idle) wake()
      await running
    },
  }
}

async function failureOf(work: () => Promise<void>): Promise<unknown> {
  try {
    await work()
    return null
  } catch (error) {
    return error
  }
}
