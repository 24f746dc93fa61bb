import type pg from 'pg'
import { timeOfId } from '../../domain/ids.ts'
import type { ReceiptOutcome } from '../../domain/inbound/receipts.ts'
import { copyRows } from '../../postgres/copy.ts'
import type { Db } from '../../postgres/database.ts'

export type Receipt = {
  tenantId: number
  sourceId: string
  id: string
  receivedAt: Date
  inboundEventId: string | null
  eventType: string | null
  outcome: ReceiptOutcome
  detail: string | null
  /** Of a repeat that was known when it came in: the event that came first. */
  firstId: string | null
}

export async function insertReceipts(client: pg.PoolClient, receipts: Receipt[]): Promise<void> {
  await copyRows(client, 'receipts', RECEIPT_COLUMNS, receipts, (out, receipt) => {
    out.int4(receipt.tenantId)
    out.text(receipt.sourceId)
    out.uuid(receipt.id)
    out.timestamp(receipt.receivedAt)
    out.text(receipt.inboundEventId)
    out.text(receipt.eventType)
    out.text(receipt.outcome)
    out.text(receipt.detail)
    out.uuid(receipt.firstId)
  })
}

const RECEIPT_COLUMNS = [
  'tenant_id',
  'source_id',
  'id',
  'received_at',
  'inbound_event_id',
  'event_type',
  'outcome',
  'detail',
  'first_id',
]

export type Archived = {
  tenantId: number
  id: string
  receivedAt: Date
  sourceId: string
  /** JSON text */
  result: string
}

/** What became of an inbound event, as it was at the time. */
export async function insertArchive(client: pg.PoolClient, archived: Archived[]): Promise<void> {
  await copyRows(client, 'archive', ARCHIVE_COLUMNS, archived, (out, row) => {
    out.int4(row.tenantId)
    out.uuid(row.id)
    out.timestamp(row.receivedAt)
    out.text(row.sourceId)
    out.text(row.result)
  })
}

const ARCHIVE_COLUMNS = ['tenant_id', 'id', 'received_at', 'source_id', 'result']

export type StoredReceipt = Receipt & { writtenAt: Date }

const STORED_COLUMNS = `r.tenant_id as "tenantId", r.source_id as "sourceId", r.id, r.received_at as "receivedAt",
  r.inbound_event_id as "inboundEventId", r.event_type as "eventType", r.outcome, r.detail,
  r.first_id as "firstId", r.written_at as "writtenAt"`

export type ReceiptFilter = {
  tenantId: number | null
  sourceId: string | null
  outcome: ReceiptOutcome | null
  inboundEventId: string | null
  since: Date | null
  until: Date | null
  limit: number
  /** the last row of the page before */
  before: { receivedAt: Date; id: string } | null
}

/** Newest first. Goes from source to source by the index, so that a busy one does not hide a quiet one. */
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

/** What is known of one event: several rows where it was tried again. */
export async function findReceipts(db: Db, sourceId: string, id: string): Promise<StoredReceipt[]> {
  const { rows } = await db.query<StoredReceipt>(
    `select ${STORED_COLUMNS} from sources s
     join receipts r on r.tenant_id = s.tenant_id and r.source_id = s.id and r.received_at = $2 and r.id = $3
     where s.id = $1 order by r.written_at`,
    [sourceId, timeOfId(id), id],
  )
  return rows
}

/** An event's id tells its day, and so the partition to look into. */
export async function findArchived(db: Db, tenantId: number | null, id: string): Promise<Archived | null> {
  const { rows } = await db.query<Archived>(
    `select a.tenant_id as "tenantId", a.id, a.received_at as "receivedAt", a.source_id as "sourceId", a.result
     from tenants t
     join archive a on a.tenant_id = t.id and a.received_at = $2 and a.id = $3
     where $1::int is null or t.id = $1`,
    [tenantId, timeOfId(id), id],
  )
  return rows[0] ?? null
}
