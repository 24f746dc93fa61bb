import type pg from 'pg'
import { earliest } from '../domain/time.ts'
import { Type } from '../domain/typebox.ts'
import type { Log } from '../log/log.ts'
import { coalesce } from '../overload/coalesce.ts'
import { summarizeParked } from '../store/entries/parked.ts'
import type { App } from './app.ts'

const MAX_WAIT_S = 10

/** The seconds of `Prefer: wait=N`, at most ten; null without the header. */
export function waitSeconds(prefer: string | string[] | undefined): number | null {
  if (prefer === undefined) return null
  const seconds = /(?:^|[,;\s])wait\s*=\s*"?(\d{1,9})"?(?:$|[,;\s])/i.exec(String(prefer))?.[1]
  return seconds === undefined ? null : Math.min(Number(seconds), MAX_WAIT_S)
}

const WaitHeader = Type.Object({
  prefer: Type.Optional(
    Type.String({
      description:
        '`wait=N`: waits up to N seconds (at most 10) until data that the tenant sent before this request is applied, so that the response contains it.',
    }),
  ),
})

// The clocks of nodes differ by up to half a second.
const NODES_AHEAD_MS = 1_000
// One poll at a time serves all requests that wait. A poll counts the unread entries of each waiting tenant: about 1 ms without a
// backlog, and one query at a time with one.
const POLLS = { maxItems: 10_000, maxInFlight: 1, minIntervalMs: 25 }

type WaitOptions = { pool: pg.Pool; log: Log; now: () => Date }

/**
 * Hooks for a surface: a read with `Prefer: wait=N` waits until entries that its tenant sent earlier are applied. It does not hold a
 * slot of the read queue meanwhile. Call it before `queueReads`.
 */
export function waitForEarlierWrites(app: App, { pool, log, now }: WaitOptions): void {
  const polls = coalesce({ run: (tenantIds: number[]) => findOldestUnapplied(pool, log, tenantIds), ...POLLS })

  app.addHook('onRoute', route => {
    if (route.method === 'GET' && route.schema && !route.schema.headers) route.schema.headers = WaitHeader
  })
  app.addHook('preValidation', async (request, reply) => {
    if (request.method !== 'GET') return
    const wait = waitSeconds(request.headers.prefer)
    if (wait === null) return
    reply.header('preference-applied', `wait=${wait}`)
    const latest = now().getTime() + NODES_AHEAD_MS
    const deadline = performance.now() + wait * 1_000
    do {
      // If the poll fails, the read itself reports what is wrong.
      const [oldest] = await polls.submit([request.caller.tenantId]).catch(() => [null])
      if (oldest == null || oldest.getTime() > latest) return
    } while (performance.now() < deadline && !request.raw.socket.destroyed)
  })
}

/** For each tenant, the time of receipt of the oldest entry that is not applied; null: there is none. */
async function findOldestUnapplied(pool: pg.Pool, log: Log, tenantIds: number[]): Promise<(Date | null)[]> {
  const found = new Map<number, Date | null>()
  for (const tenantId of new Set(tenantIds)) {
    // In the order in which entries move: an entry that is parked meanwhile is found there.
    const unread = await log.unread(tenantId, null)
    const parked = await summarizeParked(pool, tenantId)
    found.set(tenantId, earliest(unread.oldestAt, parked.oldestAt))
  }
  return tenantIds.map(tenantId => found.get(tenantId) ?? null)
}
