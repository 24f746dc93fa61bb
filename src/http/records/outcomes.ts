import type pg from 'pg'
import type { OperationOutcome } from '../../domain/records/records.ts'
import { findOperations } from '../../store/records/operations.ts'

// Polling this often costs one small query for all requests that wait.
const POLL_INTERVAL_MS = 15
const MAX_WAIT_S = 10

/** `Prefer: wait=N`: seconds, at most ten; null when not asked for. */
export function waitSeconds(prefer: string | string[] | undefined): number | null {
  if (prefer === undefined) return null
  const seconds = /(?:^|[,;\s])wait\s*=\s*"?(\d{1,9})"?(?:$|[,;\s])/i.exec(String(prefer))?.[1]
  return seconds === undefined ? null : Math.min(Number(seconds), MAX_WAIT_S)
}

/** The outcomes of operations that are known when the time is up, or as soon as all are. */
export type AwaitOutcomes = (
  tenantId: number,
  operationIds: string[],
  seconds: number,
) => Promise<Map<string, OperationOutcome>>

type Waiter = {
  tenantId: number
  pending: Set<string>
  outcomes: Map<string, OperationOutcome>
  until: number
  finish(): void
}

/** One query at a time serves all requests that wait. */
export function openOutcomes({ pool }: { pool: pg.Pool }): AwaitOutcomes {
  const waiters = new Set<Waiter>()
  let isPolling = false

  async function poll(): Promise<void> {
    isPolling = true
    while (waiters.size > 0) {
      const pending = [...waiters].flatMap(waiter =>
        [...waiter.pending].map(id => ({ tenantId: waiter.tenantId, id })),
      )
      try {
        const found = await findOperations(
          pool,
          pending.map(operation => operation.tenantId),
          pending.map(operation => operation.id),
        )
        for (const { id, status } of found) {
          for (const waiter of waiters) if (waiter.pending.delete(id)) waiter.outcomes.set(id, status)
        }
      } catch {
        // The write is safe whatever happens to this query; the waiters are told "queued" when their time is up.
      }
      const now = performance.now()
      for (const waiter of waiters) {
        if (waiter.pending.size > 0 && now < waiter.until) continue
        waiters.delete(waiter)
        waiter.finish()
      }
      if (waiters.size > 0) await new Promise(resolve => setTimeout(resolve, POLL_INTERVAL_MS))
    }
    isPolling = false
  }

  return (tenantId, operationIds, seconds) =>
    new Promise(resolve => {
      const outcomes = new Map<string, OperationOutcome>()
      const until = performance.now() + seconds * 1000
      const pending = new Set(operationIds)
      waiters.add({ tenantId, pending, outcomes, until, finish: () => resolve(outcomes) })
      if (!isPolling) poll()
    })
}
