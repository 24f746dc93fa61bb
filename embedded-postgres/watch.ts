import type { Postmaster } from './postmaster.ts'
import { isAlive } from './processes.ts'

const CHECK_EVERY_MS = 1_000
const RETRY_MS = 10_000

/**
 * Watches a PostgreSQL whose main process may die alone (memory ran out, a stray kill) while the server that owns it
 * lives. `restart` starts it again, and is tried again when it fails; `upkeep` is done while it runs.
 */
export function keepRunning({
  postmaster,
  restart,
  upkeep,
  log,
}: {
  postmaster: Postmaster
  restart: () => Promise<Postmaster>
  upkeep: () => Promise<void>
  log: (message: string) => void
}): { stop(): Promise<void> } {
  let current = postmaster
  let stopping = false
  let restarting: Promise<unknown> = Promise.resolve()
  let timer = setTimeout(check, CHECK_EVERY_MS).unref()

  async function check(): Promise<void> {
    let nextMs = CHECK_EVERY_MS
    if (!isAlive(current)) {
      const restarted = tryRestart()
      restarting = restarted
      if (!(await restarted)) nextMs = RETRY_MS
    } else await upkeep().catch(() => {})
    if (!stopping) timer = setTimeout(check, nextMs).unref()
  }

  async function tryRestart(): Promise<boolean> {
    log('PostgreSQL has ended by itself. Starting it again.')
    try {
      current = await restart()
      log('PostgreSQL is running again. What was acknowledged is there.')
      return true
    } catch (error) {
      log(`PostgreSQL could not be started; the next try is in 10 seconds. ${(error as Error).message}`)
      return false
    }
  }

  return {
    async stop() {
      stopping = true
      clearTimeout(timer)
      await restarting
    },
  }
}
