import type pg from 'pg'
import { DAY_MS, type Day, HOUR_MS, toDay } from '../domain/time.ts'
import { deriveStaleRevenue } from '../pipeline/billing/cash.ts'
import { applyPolicy, lookThrough } from '../pipeline/billing/restatement.ts'
import { deriveOutdated, extendAgenda } from '../pipeline/billing/subscriptions.ts'
import { notifyDueMovements } from '../pipeline/deliveries/notify.ts'
import { inTransaction } from '../postgres/database.ts'
import { pendingPolicies } from '../store/billing/policies.ts'
import { tenantsWithStaleRevenue } from '../store/billing/revenue.ts'
import { coverDays, forgetSnapshots, snapshotSize, tenantsToSnapshot } from '../store/billing/snapshots.ts'
import { compactSums, rebuildSums } from '../store/billing/sums.ts'
import { rebuildSeries } from '../store/sums/fold.ts'
import type { Job } from './jobs.ts'

const SUBSCRIPTIONS_AT_A_TIME = 500
// Few per transaction: workers that store coupon terms wait for it, and so do the readers of the log.
const OUTDATED_AT_A_TIME = 200
const INVOICES_AT_A_TIME = 200

/** Precomputes what reports read. Reports are correct without these jobs, but slower. */
export function ledgerJobs(pool: pg.Pool, now: () => Date): Job[] {
  return [
    {
      name: 'daily sums',
      everyMs: 2_000,
      async run() {
        while (await compactSums(pool));
      },
    },
    {
      name: 'outdated subscriptions',
      everyMs: 2_000,
      async run() {
        const derive = () => inTransaction(pool, client => deriveOutdated({ client, now: now() }, OUTDATED_AT_A_TIME))
        while ((await derive()) === OUTDATED_AT_A_TIME);
      },
    },
    {
      name: 'policies',
      everyMs: 1_000,
      async run() {
        for (const policy of await pendingPolicies(pool)) {
          while (await inTransaction(pool, client => lookThrough({ client, now: now() }, policy)));
          await inTransaction(pool, client => applyPolicy({ client, now: now() }, policy))
        }
      },
    },
    {
      name: 'revenue in another time zone',
      everyMs: 2_000,
      async run() {
        for (const stale of await tenantsWithStaleRevenue(pool)) {
          let after: string | null = ''
          while (after !== null) {
            const next: { tenantId: number; zone: string; after: string } = { ...stale, after }
            after = await inTransaction(pool, client => deriveStaleRevenue(client, next, INVOICES_AT_A_TIME))
          }
        }
      },
    },
    {
      name: 'due movements',
      everyMs: 5_000,
      run: () => inTransaction(pool, client => notifyDueMovements({ client, now: now() })),
    },
    {
      name: 'agenda',
      everyMs: HOUR_MS,
      async run() {
        const extend = () =>
          inTransaction(pool, client => extendAgenda(client, now().getTime(), SUBSCRIPTIONS_AT_A_TIME))
        while ((await extend()) === SUBSCRIPTIONS_AT_A_TIME);
      },
    },
  ]
}

// Checked every minute, done once a day, so that a day is covered soon after midnight UTC.
const SNAPSHOT_EVERY_MS = 60_000

type WrittenSnapshot = { tenantId: number; from: Day; to: Day; accounts: number }

/** Covers, for every tenant, the days that have ended since its last snapshot. */
export function snapshotJob(pool: pg.Pool, now: () => Date): Job {
  return {
    name: 'daily snapshots',
    everyMs: SNAPSHOT_EVERY_MS,
    async run() {
      await writeSnapshots(pool, now())
    },
  }
}

/**
 * Writes the snapshots of one day, or of all ended days that have none. The pipeline keeps the underlying rows up to date, so
 * a snapshot only records which days they cover. `rebuild` deletes these records first and recomputes the daily sums.
 */
export async function writeSnapshots(
  pool: pg.Pool,
  now: Date,
  { day = null, rebuild = false }: { day?: Day | null; rebuild?: boolean } = {},
): Promise<WrittenSnapshot[]> {
  const today = toDay(now)
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
  return toDay(Date.parse(day) + days * DAY_MS)
}
