import type pg from 'pg'
import { resumeErasures } from '../admin/erasure-run.ts'
import type { Storage } from '../admin/long-work.ts'
import { resumePurges } from '../admin/purges.ts'
import { endMisuse, restoreSqlAccess, setUnseenPasswords } from '../admin/sql-access.ts'
import { PAGE_VIEWS } from '../domain/identity/attribution.ts'
import { DAY_MS, HOUR_MS, toDay } from '../domain/time.ts'
import type { Inbound } from '../intake/inbound.ts'
import type { Rejections } from '../intake/rejections.ts'
import type { Log } from '../log/log.ts'
import { endStuckSessions } from '../postgres/database.ts'
import { ensurePartitions } from '../postgres/partitions.ts'
import { computeEventDay } from '../store/events/days.ts'
import { deleteExpiredBudgets } from '../store/inbound/overflow.ts'
import { pruneKeyRejections, pruneSourceRejections } from '../store/inbound/rejections.ts'
import { deleteRequestsBefore } from '../store/inbound/requests.ts'
import { deleteOldMinutes, foldSeries } from '../store/sums/fold.ts'
import type { Directory } from '../store/tenants/directory.ts'
import type { FailureLogger, Job } from './jobs.ts'

/** Creates partitions ahead of need. */
export function partitionJob(pool: pg.Pool, now: () => Promise<Date>): Job {
  return {
    name: 'partitions',
    everyMs: HOUR_MS,
    async run() {
      await ensurePartitions(pool, await now())
    },
  }
}

/** Stores when each key was last used. */
export function keyUseJob(directory: Directory): Job {
  return { name: 'key use', everyMs: 10_000, run: () => directory.writeUses() }
}

/** Enforces the limits of SQL roles that PostgreSQL does not enforce. A lock that such a role holds delays others by a second. */
export function sqlAccessJobs(pool: pg.Pool, logger: FailureLogger): Job[] {
  return [
    {
      name: 'sessions of SQL roles',
      everyMs: 1_000,
      async run() {
        for (const { role, pid, reason } of await endMisuse(pool))
          logger.warn({ role, pid, reason }, 'ended a session of an SQL role')
      },
    },
    {
      // A job of its own: it waits for a session of the role that holds a lock, which the job above ends.
      name: 'changed SQL roles',
      everyMs: 1_000,
      async run() {
        for (const { role, hasOtherPassword, hasOtherDefaults } of await restoreSqlAccess(pool))
          logger.warn({ role, hasOtherPassword, hasOtherDefaults }, 'restored an SQL role that changed itself')
      },
    },
    { name: 'unseen passwords of SQL roles', everyMs: 60_000, run: () => setUnseenPasswords(pool) },
  ]
}

const REQUESTS_KEPT_MS = 3 * DAY_MS

/** Writes receipts of duplicates; deletes expired budgets and raw requests. */
export function inboundJobs(pool: pg.Pool, inbound: Inbound, now: () => Date): Job[] {
  return [
    { name: 'receipts of duplicates', everyMs: 250, run: () => inbound.writeReceipts() },
    {
      name: 'inbound cleanup',
      everyMs: 5 * 60_000,
      async run() {
        await deleteExpiredBudgets(pool, now())
        await deleteRequestsBefore(pool, new Date(now().getTime() - REQUESTS_KEPT_MS))
      },
    },
  ]
}

const REJECTIONS_KEPT_MS = 14 * DAY_MS
const REJECTIONS_PER_SOURCE = 1_000
const EXAMPLES_PER_CODE = 20

/** Writes and prunes rejected requests. */
export function rejectionJobs(pool: pg.Pool, rejections: Rejections, now: () => Date): Job[] {
  return [
    { name: 'rejected requests', everyMs: 250, run: () => rejections.write() },
    {
      name: 'cleanup of rejected requests',
      everyMs: 5 * 60_000,
      async run() {
        const before = new Date(now().getTime() - REJECTIONS_KEPT_MS)
        await pruneKeyRejections(pool, { before, perCode: EXAMPLES_PER_CODE })
        await pruneSourceRejections(pool, { before, perSource: REJECTIONS_PER_SOURCE })
      },
    },
  ]
}

/** Keeps series, visitors and funnels fast. Without it they are correct, but read every event or the sums of every transaction. */
export function seriesJobs(pool: pg.Pool, now: () => Date): Job[] {
  return [
    {
      name: 'series sums',
      everyMs: 2_000,
      async run() {
        while (await foldSeries(pool));
      },
    },
    {
      name: 'event days',
      everyMs: 60_000,
      async run() {
        while (await computeEventDay(pool, { today: toDay(now()), pageTypes: [...PAGE_VIEWS] }));
      },
    },
    { name: 'old sums by minute', everyMs: HOUR_MS, run: () => deleteOldMinutes(pool) },
  ]
}

const STREAM_EVERY_MS = 2_000

/** Deletes processed messages from a log outside PostgreSQL, and records how much in it is unread. */
export function streamJobs({ outside }: Pick<Log, 'outside'>): Job[] {
  return outside ? [{ name: 'stream', everyMs: STREAM_EVERY_MS, run: outside.upkeep }] : []
}

// Longer than PostgreSQL's own limit for idle transactions, and short enough that a frozen host blocks no one for long.
const STUCK_AFTER_MS = 15_000

/** Every node with workers ends the stuck sessions of other nodes; a frozen node cannot do it itself. */
export function stuckSessionJob(pool: pg.Pool, logger: { warn(facts: object, message: string): void }): Job {
  return {
    name: 'stuck sessions',
    everyMs: 5_000,
    async run() {
      const sessions = await endStuckSessions(pool, STUCK_AFTER_MS)
      if (sessions > 0) logger.warn({ sessions }, 'ended sessions that were idle in a transaction for too long')
    },
  }
}

const RESUME_EVERY_MS = 10_000

/** Continues erasures and purges whose process ended. */
export function resumeInterruptedJobs(storage: Storage): Job[] {
  return [
    { name: 'erasures', everyMs: RESUME_EVERY_MS, run: () => resumeErasures(storage) },
    { name: 'purges', everyMs: RESUME_EVERY_MS, run: () => resumePurges(storage) },
  ]
}
