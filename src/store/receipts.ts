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
