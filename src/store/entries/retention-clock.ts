import type { Db } from '../../postgres/database.ts'

/** When retention last ran, and why it is paused, if it is. */
export type RetentionClock = { trustedAt: Date; heldSince: Date | null; heldReason: string | null }

const COLUMNS = 'trusted_at as "trustedAt", held_since as "heldSince", held_reason as "heldReason"'

/** Only one server node runs retention at a time. The very first run trusts its clock. */
export async function lockRetentionClock(db: Db, now: Date): Promise<RetentionClock> {
  await db.query('insert into retention_clock (trusted_at) values ($1) on conflict do nothing', [now])
  const { rows } = await db.query<RetentionClock>(`select ${COLUMNS} from retention_clock for update`)
  return rows[0]!
}

export async function writeRetentionClock(db: Db, { trustedAt, heldSince, heldReason }: RetentionClock): Promise<void> {
  await db.query('update retention_clock set trusted_at = $1, held_since = $2, held_reason = $3', [
    trustedAt,
    heldSince,
    heldReason,
  ])
}

/** Why retention is paused. Null if it is not. */
export async function retentionHeldBy(db: Db): Promise<string | null> {
  const { rows } = await db.query<RetentionClock>(`select ${COLUMNS} from retention_clock`)
  return rows[0]?.heldReason ?? null
}
