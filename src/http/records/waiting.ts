import type pg from 'pg'
import type { OperationOutcome } from '../../domain/records/records.ts'
import { findOperations } from '../../store/records/operations.ts'

// Looking this often costs one small query for everyone who waits.
const LOOK_MS = 15
const MAX_WAIT_S = 10

/** `Prefer: wait=N`: seconds, at most ten; null when not asked for. */
export function waitSeconds(prefer: string | string[] | undefined): number | null {
  if (prefer === undefined) return null
  const seconds = /(?:^|[,;\s])wait\s*=\s*"?(\d{1,9})"?(?:$|[,;\s])/i.exec(String(prefer))?.[1]
  return seconds === undefined ? null : Math.min(Number(seconds), MAX_WAIT_S)
}

export type Waiting = (
  tenantId: number,
  operationIds: string[],
  seconds: number,
) => Promise<Map<string, OperationOutcome>>

/** Waits until writes took effect, or until their time is up. One query at a time serves all who wait. */
export function openWaiting({ pool }: { pool: pg.Pool }): Waiting {
  type Waiter = {
    tenantId: number
    ids: Set<string>
    done: Map<string, OperationOutcome>
    until: number
    finish(): void
  }
  const waiters = new Set<Waiter>()
  let looking = false

  async function look(): Promise<void> {
    looking = true
    while (waiters.size > 0) {
      const asked = [...waiters].flatMap(waiter =>
        [...waiter.ids].map(id => ({ tenantId: waiter.tenantId, id })),
      )
      try {
        const found = await findOperations(
          pool,
          asked.map(one => one.tenantId),
          asked.map(one => one.id),
        )
        for (const { id, status } of found) {
          for (const waiter of waiters) if (waiter.ids.delete(id)) waiter.done.set(id, status)
        }
      } catch {
        // The write is safe whatever happens to this look; the waiters hear "queued" when their time is up.
      }
      const now = performance.now()
      for (const waiter of waiters) {
        if (waiter.ids.size > 0 && now < waiter.until) continue
        waiters.delete(waiter)
        waiter.finish()
      }
      if (waiters.size > 0) await new Promise(resolve => setTimeout(resolve, LOOK_MS))
    }
    looking = false
  }

  return (tenantId, operationIds, seconds) =>
    new Promise(resolve => {
      const done = new Map<string, OperationOutcome>()
      const until = performance.now() + seconds * 1000
      waiters.add({ tenantId, ids: new Set(operationIds), done, until, finish: () => resolve(done) })
      if (!looking) look()
    })
}
