import type pg from 'pg'
import type { Entry } from '../domain/entries/entry.ts'
import type { EventContext } from '../domain/events/types.ts'
import { newEntryId } from '../domain/ids.ts'
import { DEFAULT_SOURCE_CONFIG } from '../domain/inbound/source-config.ts'
import { HOUR_MS } from '../domain/time.ts'
import type { Overflow } from '../intake/overflow.ts'
import type { Log } from '../log/log.ts'
import type { Budgets, RateLimit } from '../overload/budgets.ts'
import { inTransaction } from '../postgres/database.ts'
import { tryLockOverflow } from '../postgres/locks.ts'
import {
  deleteOverflow,
  firstInOverflow,
  hasOverflow,
  type QueuedEntry,
  shrinkOverflow,
} from '../store/inbound/overflow.ts'
import type { Directory } from '../store/tenants/directory.ts'
import type { Job } from './jobs.ts'

const EVERY_MS = 250
// A budget that is refilled at once is used in portions, so that other sources are not delayed.
const MIN_EVENTS_IN_A_RUN = 500
// Per transaction. Sources alternate.
const MAX_EVENTS_AT_A_TIME = 1_000
const MAX_BYTES_AT_A_TIME = 4_000_000
// An entry keeps its time of receipt as long as the log certainly has a partition for that day.
const SAME_ENTRY_MS = 12 * HOUR_MS

type Deps = {
  pool: pg.Pool
  log: Log
  overflow: Overflow
  budgets: Budgets
  directory: Pick<Directory, 'source'>
  now: () => Date
  /** Called with the number of events moved, for metrics. */
  moved(sourceId: string, events: number): void
}

/** Moves events from the overflow queue to the log when their source has budget again, in order for each source. */
export function overflowJob(deps: Deps): Job {
  return {
    name: 'overflow drain',
    everyMs: EVERY_MS,
    async run() {
      let active = (await deps.overflow.refresh()).map(sourceId => ({ sourceId, moved: 0 }))
      while (active.length > 0) {
        const next: typeof active = []
        for (const source of active) if (await drainPortion(deps, source)) next.push(source)
        active = next
      }
    },
  }
}

/** Returns whether this run may move another portion of the source: only the portion's size ended this one. */
async function drainPortion(deps: Deps, source: { sourceId: string; moved: number }): Promise<boolean> {
  const { sourceId } = source
  // Events that were accepted before their source was deleted are still processed.
  const limit = (await deps.directory.source(sourceId))?.config.rate_limit ?? DEFAULT_SOURCE_CONFIG.rate_limit
  const left = maxPerRun(limit) - source.moved
  const { events, isEmpty } = await drain(deps, sourceId, limit, left)
  source.moved += events
  if (isEmpty) await deps.overflow.end(sourceId, async () => (await drain(deps, sourceId, limit, left)).isEmpty)
  return !isEmpty && events > 0 && events < left
}

type Moved = { events: number; isEmpty: boolean }

async function drain(deps: Deps, sourceId: string, limit: RateLimit, wanted: number): Promise<Moved> {
  const budget = await deps.budgets.take(sourceId, limit, Math.min(wanted, MAX_EVENTS_AT_A_TIME))
  if (budget === 0) return { events: 0, isEmpty: false }
  let moved: Moved = { events: 0, isEmpty: false }
  try {
    moved = await inTransaction(deps.pool, client => move(deps, client, sourceId, budget))
  } finally {
    await deps.budgets.giveBack(sourceId, limit, budget - moved.events)
  }
  if (moved.events > 0) deps.moved(sourceId, moved.events)
  return moved
}

/** At least one second of the limit, which is faster than the limit refills. */
function maxPerRun({ events, per_seconds }: RateLimit): number {
  return Math.max(MIN_EVENTS_IN_A_RUN, Math.ceil(events / per_seconds))
}

async function move(deps: Deps, client: pg.PoolClient, sourceId: string, budget: number): Promise<Moved> {
  if (!(await tryLockOverflow(client, sourceId))) return { events: 0, isEmpty: false }
  const first = await firstInOverflow(client, sourceId, { maxRows: budget, maxBytes: MAX_BYTES_AT_A_TIME })
  const entries: Entry[] = []
  const done: number[] = []
  let left = budget
  for (const queued of first) {
    if (left === 0) break
    if (queued.items <= left) {
      entries.push(queued.entry)
      done.push(queued.position)
      left -= queued.items
    } else {
      const { due, later } = split(queued, left)
      entries.push(due)
      await shrinkOverflow(client, later)
      left = 0
    }
  }
  if (entries.length === 0) return { events: 0, isEmpty: true }
  await deps.log.append(
    entries.map(entry => ({ entry: renewEntry(entry, deps.now()), claim: null })),
    { client },
  )
  await deleteOverflow(client, sourceId, done)
  return { events: budget - left, isEmpty: !(await hasOverflow(client, sourceId)) }
}

/** Both parts keep the entry's id: `items` lists the indexes of the events in the body that each part has. */
function split(queued: QueuedEntry, events: number): { due: Entry; later: QueuedEntry } {
  const context = JSON.parse(queued.entry.context) as EventContext
  const items = context.items ?? Array.from({ length: queued.items }, (_, index) => index)
  const part = (some: number[]): Entry => ({ ...queued.entry, context: JSON.stringify({ ...context, items: some }) })
  return {
    due: part(items.slice(0, events)),
    later: { ...queued, entry: part(items.slice(events)), items: queued.items - events },
  }
}

/** An entry that waited long gets a new id and time. `firstReceivedAt` keeps the time that its events count from. */
function renewEntry(entry: Entry, now: Date): Entry {
  if (now.getTime() - entry.receivedAt.getTime() < SAME_ENTRY_MS) return entry
  const context = JSON.parse(entry.context) as EventContext
  const firstReceivedAt = context.firstReceivedAt ?? entry.receivedAt.toISOString()
  return {
    ...entry,
    id: newEntryId(now.getTime()),
    receivedAt: now,
    context: JSON.stringify({ ...context, firstReceivedAt }),
  }
}
