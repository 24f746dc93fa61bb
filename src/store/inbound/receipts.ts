import { idToTime } from '../../domain/ids.ts'
import { eventResult, type ReceiptOutcome } from '../../domain/inbound/receipts.ts'
import { copyTable, int4, text, timestamp, uuid } from '../../postgres/copy.ts'
import type { Db } from '../../postgres/database.ts'
import { findEvents } from '../events/events.ts'

export type Receipt = {
  tenantId: number
  sourceId: string
  id: string
  receivedAt: Date
  inboundEventId: string | null
  eventType: string | null
  outcome: ReceiptOutcome
  detail: string | null
  /** For a duplicate detected on arrival: the first event. */
  firstId: string | null
}

export const insertReceipts = copyTable<Receipt>('receipts', {
  tenant_id: int4(receipt => receipt.tenantId),
  source_id: text(receipt => receipt.sourceId),
  id: uuid(receipt => receipt.id),
  received_at: timestamp(receipt => receipt.receivedAt),
  inbound_event_id: text(receipt => receipt.inboundEventId),
  event_type: text(receipt => receipt.eventType),
  outcome: text(receipt => receipt.outcome),
  detail: text(receipt => receipt.detail),
  first_id: uuid(receipt => receipt.firstId),
})

export type Archived = {
  tenantId: number
  id: string
  receivedAt: Date
  sourceId: string
  /** JSON text, or RESULT_IN_EVENT */
  result: string
}

/** The result is read from the event. A copy of each event took an eighth of the CPU time of inbound events and a quarter of their WAL. */
export const RESULT_IN_EVENT = ''

/** The result of an inbound event at the time of processing. */
export const insertArchive = copyTable<Archived>('archive', {
  tenant_id: int4(archived => archived.tenantId),
  id: uuid(archived => archived.id),
  received_at: timestamp(archived => archived.receivedAt),
  source_id: text(archived => archived.sourceId),
  result: text(archived => archived.result),
})

/** `isArchived`: its result can be shown. */
export type StoredReceipt = Receipt & { writtenAt: Date; isArchived: boolean }

const STORED_COLUMNS = `r.tenant_id as "tenantId", r.source_id as "sourceId", r.id, r.received_at as "receivedAt",
  r.inbound_event_id as "inboundEventId", r.event_type as "eventType", r.outcome, r.detail,
  r.first_id as "firstId", r.written_at as "writtenAt", exists (
    select from archive a where a.tenant_id = r.tenant_id and a.received_at = r.received_at and a.id = r.id
  ) as "isArchived"`

type ReceiptFilter = {
  tenantId: number | null
  sourceId: string | null
  outcome: ReceiptOutcome | null
  inboundEventId: string | null
  since: Date | null
  until: Date | null
  limit: number
  /** The last row of the previous page. */
  before: { receivedAt: Date; id: string } | null
}

/** Newest first. Scans the index per source, so that a quiet source is as fast as a busy one. */
export async function listReceipts(db: Db, filter: ReceiptFilter): Promise<StoredReceipt[]> {
  const { rows } = await db.query<StoredReceipt>(
    `select ${STORED_COLUMNS} from sources s cross join lateral (
       select * from receipts r
       where r.tenant_id = s.tenant_id and r.source_id = s.id
         and ($3::text is null or r.outcome = $3) and ($4::text is null or r.inbound_event_id = $4)
         and ($5::timestamptz is null or r.received_at >= $5) and ($6::timestamptz is null or r.received_at <= $6)
         and ($7::timestamptz is null or (r.received_at <= $7 and (r.received_at, r.id) < ($7, $8::uuid)))
       order by r.received_at desc, r.id desc limit $9
     ) r
     where ($1::int is null or s.tenant_id = $1) and ($2::text is null or s.id = $2)
     order by r.received_at desc, r.id desc limit $9`,
    [
      filter.tenantId,
      filter.sourceId,
      filter.outcome,
      filter.inboundEventId,
      filter.since,
      filter.until,
      filter.before?.receivedAt ?? null,
      filter.before?.id ?? null,
      filter.limit,
    ],
  )
  return rows
}

/** The receipts of one event: several if it was retried. */
export async function findReceipts(db: Db, sourceId: string, id: string): Promise<StoredReceipt[]> {
  const { rows } = await db.query<StoredReceipt>(
    `select ${STORED_COLUMNS} from sources s
     join receipts r on r.tenant_id = s.tenant_id and r.source_id = s.id and r.received_at = $2 and r.id = $3
     where s.id = $1 order by r.written_at`,
    [sourceId, idToTime(id), id],
  )
  return rows
}

/** The event id contains its time, which selects the partition. */
export async function findArchived(db: Db, tenantId: number | null, id: string): Promise<Archived | null> {
  const { rows } = await db.query<Archived>(
    `select a.tenant_id as "tenantId", a.id, a.received_at as "receivedAt", a.source_id as "sourceId", a.result
     from tenants t
     join archive a on a.tenant_id = t.id and a.received_at = $2 and a.id = $3
     where $1::int is null or t.id = $1`,
    [tenantId, idToTime(id), id],
  )
  const [found] = rows
  if (found?.result !== RESULT_IN_EVENT) return found ?? null
  const [event] = await findEvents(db, found.tenantId, [id])
  return event ? { ...found, result: eventResult(event) } : null
}
