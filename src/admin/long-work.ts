import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import { earliest } from '../domain/time.ts'
import type { Log } from '../log/log.ts'
import { countParked, findOldestOfTenant } from '../store/entries/parked.ts'

// Shared by erasures and purges: work that is stored first, may take long, and is continued by another process if its own
// process ends.

/** The storage of entries and their effects. */
export type Storage = { pool: pg.Pool; log: Pick<Log, 'unread' | 'findRead' | 'forget' | 'outside'> }

/** How long to wait until earlier entries are applied. */
export const MAX_WAIT_MS = 10_000

const SIGN_OF_LIFE_MS = 5_000
// Several heartbeats: a process that is silent for this long has ended.
const SILENT_S = 30

/** Runs the work and sends heartbeats meanwhile. */
export async function withHeartbeat<T>(sign: () => Promise<void>, work: () => Promise<T>): Promise<T> {
  const alive = setInterval(() => sign().catch(() => {}), SIGN_OF_LIFE_MS)
  return work().finally(() => clearInterval(alive))
}

/** Returns the result, or null if it takes longer. The work then continues; `resume` continues failed work. */
async function resultWithin<T>(running: Promise<T>, patienceMs: number): Promise<T | null> {
  running.catch(() => {})
  const enough = new AbortController()
  const tooLong = sleep(patienceMs, null, { signal: enough.signal })
  tooLong.catch(() => {})
  return Promise.race([running, tooLong]).finally(() => enough.abort())
}

/** Runs stored work, either to its end or in the background. */
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
    /** Runs to the end. */
    finish: async (query: Query): Promise<Receipt> => run(await begin(query)),
    /** Returns the receipt after at most `patienceMs`; the work continues in the background. */
    async start(query: Query, patienceMs: number): Promise<Receipt> {
      const work = await begin(query)
      return (await resultWithin(run(work), patienceMs)) ?? receiptNow(work)
    },
  }
}

/** Continues work whose process ended. */
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

// The clocks of nodes may be ahead of PostgreSQL's clock: their estimate is exact to half a second.
const NODES_AHEAD_MS = 1_000

/** Waits until entries received before `at` (PostgreSQL's clock) are applied. Returns how many are not. */
export async function waitUntilApplied(
  { pool, log }: Storage,
  tenantId: number,
  at: Date,
  waitMs: number,
): Promise<number> {
  const latest = new Date(at.getTime() + NODES_AHEAD_MS)
  const deadline = performance.now() + waitMs
  for (;;) {
    // In the order in which entries move: an entry that is parked meanwhile is found there.
    const { entries } = await log.unread(tenantId, latest)
    const unapplied = entries + (await countParked(pool, tenantId, latest))
    if (unapplied === 0 || performance.now() >= deadline) return unapplied
    await sleep(50)
  }
}

/** The time of receipt of the oldest entry that is not applied; null: there is none. */
export async function findOldestUnapplied({ pool, log }: Storage, tenantId: number): Promise<Date | null> {
  // In the order in which entries move: an entry that leaves one place meanwhile is found in the next.
  return earliest(
    await findOldestOfTenant(pool, 'overflow', tenantId),
    (await log.unread(tenantId, null)).oldestAt,
    await findOldestOfTenant(pool, 'parked_entries', tenantId),
  )
}
