import { LogUnavailable } from '../log/log.ts'
import { isUnavailable } from '../postgres/database.ts'

/** Work that repeats while the service runs. */
export type Job = { name: string; everyMs: number; run(): Promise<void> }

/**
 * Runs each job immediately, and again `everyMs` after each run has ended. A failed run is logged; the next run is the
 * retry. Several nodes may run the same job at the same time.
 */
export function startJobs(jobs: Job[], logger: FailureLogger): { stop(): Promise<void> } {
  let stopping = false
  const wakers = new Set<() => void>()
  const running = jobs.map(async job => {
    const failures = createFailureLog(logger, { job: job.name, failed: 'a job failed and will be retried' })
    while (!stopping) {
      try {
        await job.run()
        failures.succeeded()
      } catch (error) {
        failures.failed(error)
      }
      if (!stopping) await pause(job.everyMs)
    }
  })

  function pause(ms: number): Promise<void> {
    return new Promise(resolve => {
      function end() {
        clearTimeout(timer)
        wakers.delete(end)
        resolve()
      }
      const timer = setTimeout(end, ms)
      wakers.add(end)
    })
  }

  return {
    async stop() {
      stopping = true
      for (const wake of wakers) wake()
      await Promise.all(running)
    },
  }
}

export type FailureLogger = { warn(facts: object, message: string): void; info(facts: object, message: string): void }

/**
 * Logs the failures of repeated work. While storage is unavailable every run fails, for some jobs four times a second: one
 * message reports that, and one message reports the recovery.
 */
export function createFailureLog(logger: FailureLogger, { job, failed }: { job: string; failed: string }) {
  let isWaiting = false
  return {
    failed(error: unknown): void {
      const isStorageDown = error instanceof LogUnavailable || isUnavailable(error)
      if (!isStorageDown) logger.warn({ err: error, job }, failed)
      else if (!isWaiting) logger.warn({ job, reason: (error as Error).message }, 'a job is waiting for storage')
      isWaiting ||= isStorageDown
    },
    succeeded(): void {
      if (isWaiting) logger.info({ job }, 'a job continues')
      isWaiting = false
    },
  }
}
