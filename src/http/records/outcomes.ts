import type pg from 'pg'
import type { OperationOutcome } from '../../domain/records/records.ts'
import { coalesce } from '../../overload/coalesce.ts'
import { findOperations } from '../../store/records/records.ts'

// One query at a time serves all requests that wait, so that polling this often costs little.
const POLLS = { maxItems: 10_000, maxInFlight: 1, minIntervalMs: 15 }
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

type OperationKey = { tenantId: number; id: string }

export function openOutcomes({ pool }: { pool: pg.Pool }): AwaitOutcomes {
  const polls = coalesce({ run: (keys: OperationKey[]) => outcomesOf(pool, keys), ...POLLS })

  return async (tenantId, operationIds, seconds) => {
    const until = performance.now() + seconds * 1000
    const outcomes = new Map<string, OperationOutcome>()
    let pending = [...new Set(operationIds)]
    while (pending.length > 0) {
      // The write is safe whatever happens to this query: whoever waits is told "queued" when the time is up.
      const found = await polls.submit(pending.map(id => ({ tenantId, id }))).catch(() => [])
      for (const [i, outcome] of found.entries()) if (outcome) outcomes.set(pending[i]!, outcome)
      if (performance.now() >= until) break
      pending = pending.filter(id => !outcomes.has(id))
    }
    return outcomes
  }
}

/** Null for each that is not known yet. */
async function outcomesOf(pool: pg.Pool, keys: OperationKey[]): Promise<(OperationOutcome | null)[]> {
  const found = await findOperations(
    pool,
    keys.map(({ tenantId }) => tenantId),
    keys.map(({ id }) => id),
  )
  const outcomes = new Map(found.map(({ id, status }) => [id, status]))
  return keys.map(({ id }) => outcomes.get(id) ?? null)
}
