import { type FailureLogger, openFailures } from './failures.ts'

/** Something done again and again while the service runs. */
export type Job = { name: string; everyMs: number; run(): Promise<void> }

/**
 * Runs each job at once and then again `everyMs` after it ended. A job that fails is logged and tried again at its
 * next time; jobs are written so that several nodes may run them together.
 */
export function startJobs(jobs: Job[], logger: FailureLogger): { stop(): Promise<void> } {
  let stopping = false
  const wakers = new Set<() => void>()
  const running = jobs.map(async job => {
    const failures = openFailures(logger, { job: job.name, failed: 'a job failed and will be tried again' })
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
