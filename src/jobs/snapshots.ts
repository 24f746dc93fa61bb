import type pg from 'pg'
import { DAY_MS, type Day, dayOf } from '../domain/time.ts'
import { coverDays, forgetSnapshots, snapshotSize, tenantsToSnapshot } from '../store/billing/snapshots.ts'
import { rebuildSums } from '../store/billing/sums.ts'
import { rebuildSeries } from '../store/sums/fold.ts'
import type { Job } from './jobs.ts'

// Looked at often, done once a day: a day that has ended is covered soon after midnight UTC.
const EVERY_MS = 60_000

type WrittenSnapshot = { tenantId: number; from: Day; to: Day; accounts: number }

/** The days that have ended, for every tenant: those since the last snapshot, or those that were missed. */
export function dailySnapshots(pool: pg.Pool, now: () => Date): Job {
  return {
    name: 'daily snapshots',
    everyMs: EVERY_MS,
    async run() {
      await writeSnapshots(pool, now())
    },
  }
}

/**
 * Writes the snapshots of one day, or of all days that have ended and have none. They are rows that hold for a time,
 * kept up by the pipeline, so what is written is which days they vouch for. `rebuild` forgets that first, and makes the
 * sums of days anew from those rows.
 */
export async function writeSnapshots(
  pool: pg.Pool,
  now: Date,
  { day = null, rebuild = false }: { day?: Day | null; rebuild?: boolean } = {},
): Promise<WrittenSnapshot[]> {
  const today = dayOf(now)
  if (rebuild && day === null) {
    await forgetSnapshots(pool)
    await rebuildSums(pool)
    await rebuildSeries(pool)
  }
  const tenants = await tenantsToSnapshot(pool, today, day)
  const until = day === null ? today : nextDay(day)
  const due = tenants.filter(({ from }) => from < until)
  if (due.length > 0) await coverDays(pool, due, until, now)
  const last = dayBefore(until)
  return Promise.all(
    due.map(async ({ tenantId, from }) => ({
      tenantId,
      from,
      to: last,
      accounts: await snapshotSize(pool, tenantId, last),
    })),
  )
}

function nextDay(day: Day): Day {
  return shifted(day, 1)
}

function dayBefore(day: Day): Day {
  return shifted(day, -1)
}

function shifted(day: Day, days: number): Day {
  return dayOf(Date.parse(day) + days * DAY_MS)
}
