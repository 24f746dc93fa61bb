/** Something done again and again while the service runs. */
export type Job = { name: string; everyMs: number; run(): Promise<void> }

type Logger = { warn(facts: object, message: string): void }

/**
 * Runs each job at once and then again `everyMs` after it ended. A job that fails is logged and tried again at its
 * next time; jobs are written so that several nodes may run them together.
 */
export function startJobs(jobs: Job[], logger: Logger): { stop(): Promise<void> } {
  let stopping = false
  const wakers = new Set<() => void>()
  const running = jobs.map(async job => {
    while (!stopping) {
      try {
        await job.run()
      } catch (error) {
        logger.warn({ err: error, job: job.name }, 'a job failed and will be tried again')
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
