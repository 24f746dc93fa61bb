import type { Entry, EntryKind } from '../log/log.ts'
import { type Db, queryPrepared } from './database.ts'

/** An entry that waits for its next attempt, or behind one that does. */
export type Parked = { place: number; lane: string; entry: Entry; attempts: number; nextAttemptAt: Date }

export async function listParked(db: Db, lanes: string[]): Promise<Parked[]> {
  const { rows } = await queryPrepared<{
    place: number
    lane: string
    id: string
    tenant_id: number
    kind: EntryKind
    ordering_key: string
    received_at: Date
    context: string
    body: string
    attempts: number
    next_attempt_at: Date
  }>(
    db,
    `select place, lane, id, tenant_id, kind, ordering_key, received_at, context, body, attempts, next_attempt_at
     from parked_entries where lane = any($1) order by lane, place limit 1000`,
    [lanes],
  )
  return rows.map(row => ({
    place: row.place,
    lane: row.lane,
    attempts: row.attempts,
    nextAttemptAt: row.next_attempt_at,
    entry: {
      id: row.id,
      tenantId: row.tenant_id,
      kind: row.kind,
      orderingKey: row.ordering_key,
      receivedAt: row.received_at,
      context: row.context,
      body: row.body,
    },
  }))
}

export async function lanesWithDueEntries(db: Db): Promise<string[]> {
  const { rows } = await queryPrepared<{ lane: string }>(
    db,
    'select distinct lane from parked_entries where next_attempt_at <= now()',
  )
  return rows.map(row => row.lane)
}

export async function park(
  db: Db,
  parked: { lane: string; entry: Entry; attempts: number; nextAttemptAt: Date; error: string | null },
): Promise<void> {
  const { entry } = parked
  await db.query(
    `insert into parked_entries
       (lane, id, tenant_id, kind, ordering_key, received_at, context, body, attempts, next_attempt_at, last_error)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
    [
      parked.lane,
      entry.id,
      entry.tenantId,
      entry.kind,
      entry.orderingKey,
      entry.receivedAt,
      entry.context,
      entry.body,
      parked.attempts,
      parked.nextAttemptAt,
      parked.error,
    ],
  )
}

/** Stays in its place, with what is left of the entry. */
export async function postpone(
  db: Db,
  parked: {
    lane: string
    place: number
    entry: Entry
    attempts: number
    nextAttemptAt: Date
    error: string | null
  },
): Promise<void> {
  await db.query(
    `update parked_entries set context = $3, attempts = $4, next_attempt_at = $5, last_error = $6
     where lane = $1 and place = $2`,
    [parked.lane, parked.place, parked.entry.context, parked.attempts, parked.nextAttemptAt, parked.error],
  )
}

export async function unpark(db: Db, parked: { lane: string; place: number }[]): Promise<void> {
  await db.query(
    `delete from parked_entries p using unnest($1::text[], $2::bigint[]) as done (lane, place)
     where p.lane = done.lane and p.place = done.place`,
    [parked.map(row => row.lane), parked.map(row => row.place)],
  )
}

export async function findParked(db: Db, tenantId: number, id: string): Promise<Entry | null> {
  const { rows } = await db.query<{
    kind: EntryKind
    ordering_key: string
    received_at: Date
    context: string
    body: string
  }>(
    'select kind, ordering_key, received_at, context, body from parked_entries where tenant_id = $1 and id = $2 limit 1',
    [tenantId, id],
  )
  const row = rows[0]
  if (!row) return null
  const { kind, context, body } = row
  return { id, tenantId, kind, orderingKey: row.ordering_key, receivedAt: row.received_at, context, body }
}
