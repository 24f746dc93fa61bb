import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import type { Log } from '../log/log.ts'
import { databaseNow } from '../postgres/clock.ts'
import { replayedOutcomes } from '../store/entries/dead-letters.ts'

/** An entry that went in again. */
export type Replay = { tenantId: number; as: string }

/** What became of what was replayed: `waiting` is not known yet, or failed and is tried again. */
export type ReplayOutcome = { applied: number; failed_again: number; waiting: number }

const LOOK_EVERY_MS = 50
// The log is asked for each; beyond, nobody waits for the answer.
const MOST_TENANTS = 10
// As in erasures: nodes count on from PostgreSQL's clock.
const NODES_AHEAD_MS = 1_000

/** Waits for so long until all of it was processed, and tells how that went. */
export async function outcomeOfReplay(
  { pool, log }: { pool: pg.Pool; log: Pick<Log, 'unread'> },
  replays: Replay[],
  waitMs: number,
): Promise<ReplayOutcome> {
  if (replays.length === 0) return { applied: 0, failed_again: 0, waiting: 0 }
  const tenants = [...new Set(replays.map(({ tenantId }) => tenantId))]
  const until = performance.now() + (tenants.length > MOST_TENANTS ? 0 : waitMs)
  const latest = new Date((await databaseNow(pool)).getTime() + NODES_AHEAD_MS)
  for (;;) {
    let unread = 0
    for (const tenantId of tenants.slice(0, MOST_TENANTS))
      unread += (await log.unread(tenantId, latest)).entries
    if (unread > 0 && performance.now() < until) {
      await sleep(LOOK_EVERY_MS)
      continue
    }
    // After the log: what moves on meanwhile is found where it went.
    const { failed, parked } = await replayedOutcomes(pool, replays)
    const ended = replays.length - failed - parked
    const isTold = tenants.length <= MOST_TENANTS
    const waiting = isTold ? Math.min(ended, unread) : ended
    return { applied: ended - waiting, failed_again: failed, waiting: waiting + parked }
  }
}
