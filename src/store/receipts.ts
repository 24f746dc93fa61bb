import { timeOfId } from '../domain/ids.ts'
import { type Db, queryPrepared } from './database.ts'

export type ReceiptOutcome = 'processed' | 'duplicate' | 'dropped' | 'dead_letter'

export type Receipt = {
  tenantId: number
  sourceId: string
  id: string
  receivedAt: Date
  inboundEventId: string | null
  eventType: string | null
  outcome: ReceiptOutcome
  detail: string | null
}

export async function insertReceipts(db: Db, receipts: Receipt[]): Promise<void> {
  await queryPrepared(
    db,
    `insert into receipts (tenant_id, source_id, id, received_at, inbound_event_id, event_type, outcome, detail)
     select * from json_to_recordset($1) as r (tenant_id int, source_id text, id uuid, received_at timestamptz,
       inbound_event_id text, event_type text, outcome text, detail text)`,
    [
      JSON.stringify(
        receipts.map(receipt => ({
          tenant_id: receipt.tenantId,
          source_id: receipt.sourceId,
          id: receipt.id,
          received_at: receipt.receivedAt,
          inbound_event_id: receipt.inboundEventId,
          event_type: receipt.eventType,
          outcome: receipt.outcome,
          detail: receipt.detail,
        })),
      ),
    ],
  )
}

/** What became of an inbound event, as it was at the time. `result` is JSON text. */
export async function insertArchive(
  db: Db,
  rows: { tenantId: number; id: string; receivedAt: Date; sourceId: string; result: string }[],
): Promise<void> {
  await queryPrepared(
    db,
    `insert into archive (tenant_id, id, received_at, source_id, result)
     select * from json_to_recordset($1) as r (tenant_id int, id uuid, received_at timestamptz, source_id text, result jsonb)`,
    [
      `[${rows
        .map(
          row =>
            `{"tenant_id":${row.tenantId},"id":"${row.id}","received_at":"${row.receivedAt.toISOString()}","source_id":"${row.sourceId}","result":${row.result}}`,
        )
        .join(',')}]`,
    ],
  )
}

export type StoredReceipt = Receipt & { writtenAt: Date }

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
  const { rows } = await db.query<ReceiptRow>(
    `select r.* from sources s cross join lateral (
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
  return rows.map(toReceipt)
}

/** What is known of one event: several rows where it was tried again. */
export async function findReceipts(db: Db, sourceId: string, id: string): Promise<StoredReceipt[]> {
  const { rows } = await db.query<ReceiptRow>(
    `select r.* from sources s
     join receipts r on r.tenant_id = s.tenant_id and r.source_id = s.id and r.received_at = $2 and r.id = $3
     where s.id = $1 order by r.written_at`,
    [sourceId, timeOfId(id), id],
  )
  return rows.map(toReceipt)
}

type ReceiptRow = {
  tenant_id: number
  source_id: string
  id: string
  received_at: Date
  inbound_event_id: string | null
  event_type: string | null
  outcome: ReceiptOutcome
  detail: string | null
  written_at: Date
}

function toReceipt(row: ReceiptRow): StoredReceipt {
  return {
    tenantId: row.tenant_id,
    sourceId: row.source_id,
    id: row.id,
    receivedAt: row.received_at,
    inboundEventId: row.inbound_event_id,
    eventType: row.event_type,
    outcome: row.outcome,
    detail: row.detail,
    writtenAt: row.written_at,
  }
}

/** `result` is JSON text. */
export type Archived = { tenantId: number; id: string; receivedAt: Date; sourceId: string; result: string }

/** An event's id tells its day, and so the partition to look into. */
export async function findArchived(db: Db, tenantId: number | null, id: string): Promise<Archived | null> {
  const { rows } = await db.query<{
    tenant_id: number
    id: string
    received_at: Date
    source_id: string
    result: string
  }>(
    `select a.tenant_id, a.id, a.received_at, a.source_id, a.result from tenants t
     join archive a on a.tenant_id = t.id and a.received_at = $2 and a.id = $3
     where $1::int is null or t.id = $1`,
    [tenantId, timeOfId(id), id],
  )
  const row = rows[0]
  if (!row) return null
  const { tenant_id: tenantIdOfRow, received_at: receivedAt, source_id: sourceId, result } = row
  return { tenantId: tenantIdOfRow, id: row.id, receivedAt, sourceId, result }
}
