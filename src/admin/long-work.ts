import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import type { Log } from '../log/log.ts'
import { countParked, oldestOfTenantIn } from '../store/entries/parked.ts'

// What erasures and purges share: work that is written down first, goes on however long it takes, and is gone on with by
// another process where the one that did it ended.

/** Where entries and their effects lie. */
export type Storage = { pool: pg.Pool; log: Pick<Log, 'unread' | 'forget' | 'outside'> }

/** How long what came in before may take to be applied. */
export const MAX_WAIT_MS = 10_000

const SIGN_OF_LIFE_MS = 5_000
// Several signs of life long: whoever is silent for so long is gone.
const SILENT_S = 30

/** Does the work, and says from time to time that somebody is at it. */
export async function withHeartbeat<T>(sign: () => Promise<void>, work: () => Promise<T>): Promise<T> {
  const alive = setInterval(() => sign().catch(() => {}), SIGN_OF_LIFE_MS)
  return work().finally(() => clearInterval(alive))
}

/** Its result, or null where it takes longer; then it goes on, and what fails is gone on with by `resume`. */
async function resultWithin<T>(running: Promise<T>, patienceMs: number): Promise<T | null> {
  running.catch(() => {})
  const enough = new AbortController()
  const tooLong = sleep(patienceMs, null, { signal: enough.signal })
  tooLong.catch(() => {})
  return Promise.race([running, tooLong]).finally(() => enough.abort())
}

/** The two ways to have it done. */
export function longWork<Query, Work, Receipt>({
  begin,
  run,
  receiptNow,
}: {
  begin(query: Query): Promise<Work>
  run(work: Work): Promise<Receipt>
  receiptNow(work: Work): Promise<Receipt>
}) {
  return {
    /** To the end, however long it takes. */
    finish: async (query: Query): Promise<Receipt> => run(await begin(query)),
    /** Begins, and hands out how far it is after so long; the rest goes on by itself. */
    async start(query: Query, patienceMs: number): Promise<Receipt> {
      const work = await begin(query)
      return (await resultWithin(run(work), patienceMs)) ?? receiptNow(work)
    },
  }
}

/** Goes on with what a process left behind when it ended. */
export async function resume<Left>({
  take,
  run,
  silentS = SILENT_S,
}: {
  take(silentS: number): Promise<Left | null>
  run(left: Left): Promise<unknown>
  silentS?: number | undefined
}): Promise<void> {
  for (;;) {
    const left = await take(silentS)
    if (left === null) return
    await run(left)
  }
}

// Nodes count on from PostgreSQL's clock, and take half a second's wait for its answer to be exact.
const NODES_AHEAD_MS = 1_000

/** What came in before, by PostgreSQL's clock, is applied first: then it can be found. Returns how much of it is not. */
export async function waitUntilApplied(
  { pool, log }: Storage,
  tenantId: number,
  at: Date,
  waitMs: number,
): Promise<number> {
  const latest = new Date(at.getTime() + NODES_AHEAD_MS)
  const deadline = performance.now() + waitMs
  for (;;) {
    // In the order in which they move: what is parked meanwhile is found there.
    const { entries } = await log.unread(tenantId, latest)
    const unapplied = entries + (await countParked(pool, tenantId, latest))
    if (unapplied === 0 || performance.now() >= deadline) return unapplied
    await sleep(50)
  }
}

/** When the oldest came in of what has not taken effect yet; null where nothing waits. */
export async function findOldestUnapplied({ pool, log }: Storage, tenantId: number): Promise<Date | null> {
  // In the order in which they move: what leaves one place meanwhile is found in the next.
  const times = [
    await oldestOfTenantIn(pool, 'overflow', tenantId),
    (await log.unread(tenantId, null)).oldestAt,
    await oldestOfTenantIn(pool, 'parked_entries', tenantId),
  ].flatMap(at => at?.getTime() ?? [])
  return times.length === 0 ? null : new Date(Math.min(...times))
}
