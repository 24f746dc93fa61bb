import { HOUR_MS } from '../../domain/time.ts'
import type { Db } from '../../postgres/database.ts'

/** Budgets of periods that are over; the next event of the source begins a new one. */
export async function deleteExpiredBudgets(db: Db, now: Date): Promise<void> {
  await db.query('delete from volume_budgets where expire < $1', [now.getTime() - HOUR_MS])
}
