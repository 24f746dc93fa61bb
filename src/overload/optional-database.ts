import type pg from 'pg'

/**
 * Work in PostgreSQL that a request can do without, because its events are kept on NATS. While PostgreSQL is unavailable, or does
 * not answer in time, `without` takes the place of `work`. The outcome of work that was too slow stays unknown.
 */
export type WithDatabase = <T>(work: () => Promise<T>, without: () => T | Promise<T>) => Promise<T>

// A webhook needs PostgreSQL at most three times: with its publish it is answered within two seconds.
const WAIT_MS = 500
const PROBE_EVERY_MS = 500
const PROBE_WITHIN_MS = 2_000

const TOO_SLOW = Symbol('too slow')

type OptionalDatabaseOptions = {
  pool: pg.Pool
  /** False if events are kept in PostgreSQL. Then all of its errors reach the caller. */
  isOptional: boolean
  /** The database does not answer. */
  isUnavailable(error: unknown): boolean
  /** Or it answers, and the same work may succeed later. */
  isTransient(error: unknown): boolean
}

export function openOptionalDatabase(options: OptionalDatabaseOptions): { withDatabase: WithDatabase; stop(): void } {
  const { pool, isOptional, isUnavailable, isTransient } = options
  let isSilent = false
  let isStopped = false
  let timer: NodeJS.Timeout | undefined

  /** From now on no request waits, until PostgreSQL answers again. */
  function markSilent(): void {
    if (isSilent || isStopped) return
    isSilent = true
    scheduleProbe()
  }

  function scheduleProbe(): void {
    timer = setTimeout(async () => {
      const probe: pg.QueryConfig & { query_timeout: number } = { text: 'select 1', query_timeout: PROBE_WITHIN_MS }
      isSilent = await pool.query(probe).then(
        () => false,
        () => true,
      )
      if (isSilent && !isStopped) scheduleProbe()
    }, PROBE_EVERY_MS)
    timer.unref()
  }

  async function withDatabase<T>(work: () => Promise<T>, without: () => T | Promise<T>): Promise<T> {
    if (isSilent) return without()
    const working = work()
    let waiting: NodeJS.Timeout | undefined
    const tooSlow = new Promise<typeof TOO_SLOW>(resolve => {
      waiting = setTimeout(resolve, WAIT_MS, TOO_SLOW)
    })
    try {
      const result = await Promise.race([working, tooSlow])
      if (result !== TOO_SLOW) return result
      markSilent()
      working.catch(() => {})
    } catch (error) {
      if (!isTransient(error)) throw error
      if (isUnavailable(error)) markSilent()
    } finally {
      clearTimeout(waiting)
    }
    return without()
  }

  return {
    withDatabase: isOptional ? withDatabase : work => work(),
    stop() {
      isStopped = true
      clearTimeout(timer)
    },
  }
}
