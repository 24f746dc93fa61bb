import type { EntityType } from '../../domain/records/records.ts'
import { type Db, databaseNow, queryPrepared, queryRows } from '../../postgres/database.ts'
import { type ConversionRow, SHOWN_COLUMNS, SHOWN_PERSON } from '../conversions/conversions.ts'
import { EVENT_COLUMNS, EVENT_PERSON, type EventRow, NOT_A_TEST } from '../events/events.ts'
import { listRecords, RECORD_BYTES, RECORD_COLUMNS, type StoredRecord } from '../records/records.ts'
import type { MovementEntry } from '../reports/movements.ts'

/**
 * Reads whole tables in batches, each row once despite concurrent writes: the order uses columns that never change (an
 * event's time and id, a record's id). No transaction stays open between batches, so a slow reader blocks no one.
 */

/** Both bounds are inclusive. */
export type Window = { since: Date | null; until: Date | null }

const ROWS = 2_000
// A webhook payload may have 8 MiB. 2,000 ordinary events have a tenth of this.
const PORTION_BYTES = 8 * 1_048_576
const FIRST_ID = '00000000-0000-0000-0000-000000000000'

/** The start of the next batch; null: there is none. */
async function* portions<Row>(read: (last: Row | null) => Promise<Row[]>): AsyncGenerator<Row[]> {
  let pending = read(null)
  for (;;) {
    const rows = await pending
    const last = rows.at(-1)
    if (last === undefined) return
    // The next batch is read while this one is written.
    pending = read(last)
    pending.catch(() => undefined)
    try {
      yield rows
    } finally {
      // If the reader disconnects, no query keeps running.
      await pending.catch(() => undefined)
    }
  }
}

/** At most 2,000 rows, and only as many as fit. `bytes`: the size of all rows up to this one; `own`: of this row. */
const FITS = `bytes - own < ${PORTION_BYTES}`

/** Events that are not conversions, oldest first. */
export function eventPages(db: Db, tenantId: number, { since, until }: Window): AsyncGenerator<EventRow[]> {
  return portions(async (last: EventRow | null) => {
    return queryRows<EventRow>(
      db,
      `select ${EVENT_COLUMNS} from (
         select *, octet_length(payload) as own,
           sum(octet_length(payload)) over (order by occurred_at, id rows unbounded preceding) as bytes
         from (
           select * from events
           where tenant_id = $1 and not conversion and ${NOT_A_TEST} and occurred_at >= $2 and occurred_at <= $3
             and (occurred_at, id) > ($2, $4::uuid)
           order by occurred_at, id limit ${ROWS}
         ) found
       ) e ${EVENT_PERSON} where ${FITS} order by e.occurred_at, e.id`,
      [tenantId, last?.occurredAt ?? since ?? '-infinity', until ?? 'infinity', last?.id ?? FIRST_ID],
    )
  })
}

/** Sales, oldest first. Without bounds they are ordered by id, because an order may get its time later. */
export function conversionPages(db: Db, tenantId: number, window: Window): AsyncGenerator<ConversionRow[]> {
  const isBounded = window.since !== null || window.until !== null
  return portions(async (last: ConversionRow | null) => {
    const from = last?.id ?? FIRST_ID
    const { rows } = isBounded
      ? await queryPrepared<ConversionRow>(
          db,
          `select ${SHOWN_COLUMNS} from (
             select * from conversions
             where tenant_id = $1 and listed and occurred_at >= $2 and occurred_at <= $3
               and (occurred_at, id) > ($2, $4::uuid)
             order by occurred_at, id limit ${ROWS}
           ) c ${SHOWN_PERSON} order by c.occurred_at, c.id`,
          [tenantId, last?.occurredAt ?? window.since ?? '-infinity', window.until ?? 'infinity', from],
        )
      : await queryPrepared<ConversionRow>(
          db,
          `select ${SHOWN_COLUMNS} from (
             select * from conversions where tenant_id = $1 and id > $2::uuid and listed order by id limit ${ROWS}
           ) c ${SHOWN_PERSON} order by c.id`,
          [tenantId, from],
        )
    return rows
  })
}

/**
 * Current records. With a window by `updatedAt`, a record that changes meanwhile moves to the next window. Without a start
 * they are ordered by id, and none is missed.
 */
export function recordPages(
  db: Db,
  tenantId: number,
  entityType: EntityType,
  { since, until }: Window,
): AsyncGenerator<StoredRecord[]> {
  return since === null
    ? recordsById(db, tenantId, entityType, until)
    : recordsSince(db, tenantId, entityType, since, until)
}

function recordsById(
  db: Db,
  tenantId: number,
  entityType: EntityType,
  until: Date | null,
): AsyncGenerator<StoredRecord[]> {
  return portions(async (last: StoredRecord | null) => {
    return queryRows<StoredRecord>(
      db,
      `select ${RECORD_COLUMNS} from (
         select *, sum(own) over (order by id rows unbounded preceding) as bytes
         from (
           select *, ${RECORD_BYTES} as own from records
           where tenant_id = $1 and entity_type = $2 and id > $3 and not deleted
             and updated_at < $4::timestamptz + interval '1 millisecond'
           order by id limit ${ROWS}
         ) found
       ) summed where ${FITS} order by id`,
      [tenantId, entityType, last?.id ?? '', until ?? 'infinity'],
    )
  })
}

async function* recordsSince(
  db: Db,
  tenantId: number,
  entityType: EntityType,
  since: Date,
  givenUntil: Date | null,
): AsyncGenerator<StoredRecord[]> {
  // Without an end, records that change during the export would be exported again.
  const until = givenUntil ?? (await databaseNow(db))
  const page = { limit: ROWS, updatedSince: since, includeDeleted: false }
  let after: Parameters<typeof listRecords>[3]['after'] = null
  for (;;) {
    const { rows } = await listRecords(db, tenantId, entityType, { ...page, after })
    const inside = rows.filter(({ updatedAt }) => updatedAt <= until)
    if (inside.length > 0) yield inside
    if (rows.length === 0 || inside.length < rows.length) return
    after = rows.at(-1)!
  }
}

export type MovementRow = MovementEntry & { currency: string }

/** MRR movements in all currencies, by account. */
export function movementPages(db: Db, tenantId: number, window: Window): AsyncGenerator<MovementRow[]> {
  return portions(async (last: MovementRow | null) => {
    const rows = await queryRows<Omit<MovementRow, 'changes'> & { changes: string }>(
      db,
      `select currency, account, occurred_at as "occurredAt", type, mrr_before as before, mrr_after as after, changes
       from billing_movements
       where tenant_id = $1 and (account, currency, occurred_at) > ($2, $3, $4::timestamptz)
         and occurred_at >= $5 and occurred_at <= least($6, now())
       order by account, currency, occurred_at limit ${ROWS}`,
      [
        tenantId,
        ...(last ? [last.account, last.currency, last.occurredAt] : ['', '', '-infinity']),
        window.since ?? '-infinity',
        window.until ?? 'infinity',
      ],
    )
    return rows.map(row => ({ ...row, changes: JSON.parse(row.changes) as MovementRow['changes'] }))
  })
}

/** The ids of known subscriptions, in order. */
export function subscriptionIdPages(db: Db, tenantId: number): AsyncGenerator<{ id: string }[]> {
  return portions(async (last: { id: string } | null) => {
    return queryRows<{ id: string }>(
      db,
      `select id from billing_subscriptions where tenant_id = $1 and id > $2 and seen order by id limit 500`,
      [tenantId, last?.id ?? ''],
    )
  })
}
