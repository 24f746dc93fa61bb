import type pg from 'pg'
import { DAY_MS, HOUR_MS } from '../domain/time.ts'
import { inTransaction } from '../postgres/database.ts'
import { extendAgenda } from '../store/billing/agenda.ts'
import { hintAllAttribution, resolveAttribution } from '../store/billing/attribution.ts'
import { refreshDays } from '../store/billing/days.ts'
import type { Job } from './jobs.ts'

const SUBSCRIPTIONS_AT_A_TIME = 500

/** Keeps ready what reports read. They are right without it, but slower. */
export function ledgerUpkeep(pool: pg.Pool, now: () => Date): Job[] {
  return [
    {
      name: 'sums of days',
      everyMs: 2_000,
      async run() {
        for (const sums of ['accounts', 'cash', 'agenda'] as const) while (await refreshDays(pool, sums));
      },
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
    { name: 'attribution', everyMs: 2_000, run: () => resolveAttribution(pool, null) },
    // A hint can be missed only when three workers learn of one person at the same moment.
    { name: 'attribution review', everyMs: DAY_MS, run: () => hintAllAttribution(pool) },
  ]
}
