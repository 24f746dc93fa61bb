import { LogUnavailable } from '../log/log.ts'
import { isUnavailable } from '../postgres/database.ts'

export type FailureLogger = {
  warn(facts: object, message: string): void
  info(facts: object, message: string): void
}

/**
 * Tells of what is done again and again and fails. While storage is away everything does, some of it four times a second: that is
 * told once, in words, and once that it goes on.
 */
export function openFailures(logger: FailureLogger, { job, failed }: { job: string; failed: string }) {
  let isWaiting = false
  return {
    failed(error: unknown): void {
      const isAway = error instanceof LogUnavailable || isUnavailable(error)
      if (!isAway) logger.warn({ err: error, job }, failed)
      else if (!isWaiting) logger.warn({ job, reason: (error as Error).message }, 'a job waits for storage')
      isWaiting ||= isAway
    },
    succeeded(): void {
      if (isWaiting) logger.info({ job }, 'a job goes on')
      isWaiting = false
    },
  }
}
