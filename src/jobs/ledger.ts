import type pg from 'pg'
import { HOUR_MS } from '../domain/time.ts'
import { applyPolicy, lookThrough } from '../pipeline/billing/restatement.ts'
import { deriveOutdated, extendAgenda } from '../pipeline/billing/subscriptions.ts'
import { tellDueMovements } from '../pipeline/deliveries/movements.ts'
import { inTransaction } from '../postgres/database.ts'
import { pendingPolicies } from '../store/billing/policies.ts'
import { compactSums } from '../store/billing/sums.ts'
import type { Job } from './jobs.ts'

const SUBSCRIPTIONS_AT_A_TIME = 500
// Few: whoever tells of a coupon waits as long, and so does the log.
const OUTDATED_AT_A_TIME = 200

/** Keeps ready what reports read. They are right without it, but slower. */
export function ledgerUpkeep(pool: pg.Pool, now: () => Date): Job[] {
  return [
    {
      name: 'sums of days',
      everyMs: 2_000,
      async run() {
        while (await compactSums(pool));
      },
    },
    {
      name: 'outdated subscriptions',
      everyMs: 2_000,
      async run() {
        const derive = () =>
          inTransaction(pool, client => deriveOutdated({ client, now: now() }, OUTDATED_AT_A_TIME))
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
      name: 'movements that come due',
      everyMs: 5_000,
      run: () => inTransaction(pool, client => tellDueMovements({ client, now: now() })),
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
