import type pg from 'pg'
import { PAGE_VIEWS } from '../../src/domain/identity/attribution.ts'
import { computeEventDay } from '../../src/store/events/days.ts'
import { foldSeries } from '../../src/store/sums/fold.ts'
import { eventually } from '../eventually.ts'

/** Folds the sums of a tenant. A job of the server may hold the lock and be folding the same rows, so it is tried again. */
export async function foldSums(pool: pg.Pool, tenant: { id: string }): Promise<void> {
  await eventually('the sums to be folded', async () => {
    while (await foldSeries(pool));
    const { rows } = await pool.query(
      `select not exists (select from event_sums_added where tenant_id = $1)
         and not exists (select from conversion_sums_added where tenant_id = $1) as "areFolded"`,
      [Number(tenant.id.slice(4))],
    )
    return rows[0].areFolded
  })
}

/** Computes the columns of all days, without waiting until they are over. */
export async function computeDays(pool: pg.Pool): Promise<void> {
  while (await foldSeries(pool));
  while (await computeEventDay(pool, { today: '9999-01-01', pageTypes: [...PAGE_VIEWS], quietMs: 0 }));
}

/** Computes the days of a tenant. A job of the server may hold the lock for a moment, so it is tried again. */
export async function computeDaysOf(pool: pg.Pool, tenant: { id: string }): Promise<void> {
  await eventually('the days to be computed', async () => {
    await computeDays(pool)
    const { rows } = await pool.query(
      'select bool_and(visitors is not null) as "areComputed" from event_days where tenant_id = $1',
      [Number(tenant.id.slice(4))],
    )
    return rows[0].areComputed
  })
}
