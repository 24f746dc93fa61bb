import type { Postmaster } from './postmaster.ts'
import { isAlive } from './processes.ts'

const LOOK_EVERY_MS = 1_000
const TRY_AGAIN_MS = 10_000

/**
 * Looks after a PostgreSQL whose main process may die alone (memory ran out, a stray kill) while the server that owns it
 * lives. `revive` brings it up again; what fails is tried again.
 */
export function lookAfter(
  postmaster: Postmaster,
  revive: () => Promise<Postmaster>,
  log: (message: string) => void,
): { stop(): Promise<void> } {
  let current = postmaster
  let stopping = false
  let reviving: Promise<unknown> = Promise.resolve()
  let timer = setTimeout(look, LOOK_EVERY_MS).unref()

  async function look(): Promise<void> {
    let nextMs = LOOK_EVERY_MS
    if (!isAlive(current)) {
      const revived = bringBack()
      reviving = revived
      if (!(await revived)) nextMs = TRY_AGAIN_MS
    }
    if (!stopping) timer = setTimeout(look, nextMs).unref()
  }

  async function bringBack(): Promise<boolean> {
    log('PostgreSQL has ended by itself. Starting it again.')
    try {
      current = await revive()
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
      await reviving
    },
  }
}
