import { HOUR_MS } from '../../domain/time.ts'
import type { Db } from '../../postgres/database.ts'

/** Deletes budgets whose period has ended. The next event of the source starts a new one. */
export async function deleteExpiredBudgets(db: Db, now: Date): Promise<void> {
  await db.query('delete from volume_budgets where expire < $1', [now.getTime() - HOUR_MS])
}
