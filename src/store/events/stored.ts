import type pg from 'pg'
import type { StoredEvent } from '../../domain/events/stored.ts'
import { queryLong } from '../../postgres/database.ts'

/** `table` and `row`: where it lies. */
export type StoredNode = StoredEvent & {
  inboundEventId: string | null
  node: number | null
  conversion: boolean
  table: number
  row: string
}

export type StoredFilter = {
  /** Only events of these nodes. */
  nodes?: number[]
  receivedSince?: Date
  receivedUntil?: Date | null
  keyId?: string
  conversionsOnly?: boolean
  /** Only events whose payload is like one of these patterns. */
  mentioning?: string[]
}

const AT_A_TIME = 1_000

/**
 * Kept events of a tenant, in the order in which they came in, by portions. Reads all of the tenant's: no index leads from
 * people or orders to events, because every event would pay for it. In the caller's transaction, which should not have
 * written yet: one that has holds the readers of the log back for as long as this takes.
 */
export async function* readStored(
  client: pg.PoolClient,
  tenantId: number,
  { nodes, receivedSince, receivedUntil, keyId, conversionsOnly = false, mentioning }: StoredFilter,
): AsyncGenerator<StoredNode[]> {
  await client.query(
    `declare stored_events no scroll cursor for
     select e.tableoid::int8 as table, e.ctid::text as row, e.id, e.event_type as "eventType", e.occurred_at as "occurredAt", e.received_at as "receivedAt", e.source,
       e.source_config_id as "sourceConfigId", e.inbound_event_id as "inboundEventId", e.key_id as "keyId", e.visitor, e.user_id as "userId", e.node, e.conversion, e.payload, e.meta,
       e.source_config_id is not null
         or exists (select from api_keys k where k.id = e.key_id and k.tenant_id = e.tenant_id and k.server) as trusted
     from events e
     where e.tenant_id = $1 and ($2::bigint[] is null or e.node = any($2)) and (not $3 or e.conversion)
       and ($4::timestamptz is null or e.received_at >= $4) and ($5::timestamptz is null or e.received_at < $5)
       and ($6::text is null or e.key_id = $6) and ($7::text[] is null or e.payload ilike any($7))
     order by e.received_at, e.id`,
    [
      tenantId,
      nodes ?? null,
      conversionsOnly,
      receivedSince ?? null,
      receivedUntil ?? null,
      keyId ?? null,
      mentioning ?? null,
    ],
  )
  try {
    for (;;) {
      const { rows } = await queryLong<StoredNode>(client, `fetch ${AT_A_TIME} from stored_events`)
      if (rows.length > 0) yield rows
      if (rows.length < AT_A_TIME) return
    }
  } finally {
    await client.query('close stored_events')
  }
}
