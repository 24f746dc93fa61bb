import { setTimeout as sleep } from 'node:timers/promises'
import { isUnavailable } from '../postgres/database.ts'
import type { Output } from './output.ts'

const AGAIN_MS = 1_000

/**
 * Retries `begin` while PostgreSQL is unavailable: it may be starting, or a standby may be taking over. Throws the last error after
 * `withinMs`. Returns null after a stop signal.
 */
export async function onceReachable<T>(
  begin: () => Promise<T>,
  { withinMs, stopped, out }: { withinMs: number; stopped: Promise<void>; out: Output },
): Promise<T | null> {
  const deadline = performance.now() + withinMs
  let isStopped = false
  void stopped.then(() => {
    isStopped = true
  })
  for (let attempt = 1; ; attempt++) {
    try {
      return await begin()
    } catch (error) {
      if (isStopped) return null
      if (!mayComeBack(error) || performance.now() + AGAIN_MS > deadline) throw error
      if (attempt === 1) out.say(waiting(error as Error, withinMs))
      await Promise.race([stopped, sleep(AGAIN_MS)])
      if (isStopped) return null
    }
  }
}

// At a start, a missing database means a wrong name.
const NO_SUCH_DATABASE = '3D000'

function mayComeBack(error: unknown): boolean {
  if (!isUnavailable(error)) return false
  const { code, syscall } = error as NodeJS.ErrnoException
  const isFile = code === 'ENOENT' && syscall !== 'connect'
  return code !== NO_SUCH_DATABASE && !isFile
}

function waiting({ message }: Error, withinMs: number): string {
  return (
    `PostgreSQL is unreachable: ${message || 'no host responds'}. ` +
    `Waiting up to ${withinMs / 1_000} s for it to start (KONTOR_START_TIMEOUT).`
  )
}
