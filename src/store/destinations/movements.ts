import type { Movement, MovementType } from '../../domain/billing/movements.ts'
import { type Db, queryPrepared } from '../../postgres/database.ts'

// A transaction that wrote a movement ahead of its time may commit after that time: it is looked for again for a while.
const OVERLAP_S = 600

/** From when on movements whose time has come are to be looked for; the next call goes on from now. Null: another node is at it. */
export async function lockMovementClock(db: Db, now: Date): Promise<Date | null> {
  const { rows } = await db.query<{ since: Date }>(
    `select until - ${OVERLAP_S} * interval '1 second' as since from movement_notifications for update skip locked`,
  )
  const [clock] = rows
  if (clock) await db.query('update movement_notifications set until = $1', [now])
  return clock?.since ?? null
}

type DueMovement = { tenantId: number; id: string; currency: string; movement: Movement }
type Row = Omit<DueMovement, 'movement'> & {
  at: Date
  type: MovementType
  before: number
  after: number
  changes: string
}

/** Movements of these tenants in (since, until]. */
export async function movementsBetween(
  db: Db,
  tenantIds: number[],
  { since, until }: { since: Date; until: Date },
): Promise<DueMovement[]> {
  const { rows } = await queryPrepared<Row>(
    db,
    `select tenant_id as "tenantId", account as id, currency, occurred_at as at, type, mrr_before as before, mrr_after as after,
       changes
     from billing_movements where tenant_id = any($1) and occurred_at > $2 and occurred_at <= $3`,
    [tenantIds, since, until],
  )
  return rows.map(({ tenantId, id, currency, at, changes, ...movement }) => ({
    ...{ tenantId, id, currency },
    movement: { ...movement, at: at.getTime(), changes: JSON.parse(changes) },
  }))
}
