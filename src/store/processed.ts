import { hash } from 'node:crypto'
import { type Db, queryPrepared } from './database.ts'
import { isNearPeriodStart, periodOf } from './partitions.ts'

/** An event is known by its sender's id within its source; tracking and CDP events by their id within the tenant. */
export function processedKey(sourceId: string | null, inboundEventId: string): string {
  const digest = hash('sha256', `${sourceId ?? ''}\n${inboundEventId}`, 'hex')
  return `${digest.slice(0, 8)}-${digest.slice(8, 12)}-${digest.slice(12, 16)}-${digest.slice(16, 20)}-${digest.slice(20, 32)}`
}

export type ProcessedKey = { tenantId: number; key: string }

/**
 * Marks events as processed and returns the ids of those that were already. Older periods are only looked at; the current one
 * decides by its primary key, also between workers. In the first minutes of a period the one before decides too.
 */
export async function claimEvents(
  db: Db,
  events: (ProcessedKey & { eventId: string })[],
  now: Date,
): Promise<Set<string>> {
  const { rows } = await queryPrepared<{ event_id: string }>(db, CLAIM, [
    events.map(event => event.tenantId),
    events.map(event => event.key),
    events.map(event => event.eventId),
    periodOf('processed_events', now),
    isNearPeriodStart('processed_events', now),
  ])
  return new Set(rows.map(row => row.event_id))
}

const CLAIM = `
with input as materialized (
  select * from unnest($1::int[], $2::uuid[], $3::uuid[]) as i (tenant_id, key, event_id)
), fresh as (
  select * from input i where not exists (
    select 1 from processed_events p where p.tenant_id = i.tenant_id and p.key = i.key and p.period < $4)
), before as (
  insert into processed_events (period, tenant_id, key, event_id)
  select $4 - 1, tenant_id, key, event_id from fresh where $5 order by tenant_id, key
  on conflict do nothing returning tenant_id, key
), claimed as (
  insert into processed_events (period, tenant_id, key, event_id)
  select $4, tenant_id, key, event_id from fresh f
  where not $5 or exists (select 1 from before b where b.tenant_id = f.tenant_id and b.key = f.key)
  order by tenant_id, key
  on conflict do nothing returning event_id
)
select event_id from input except select event_id from claimed`

export async function findProcessed(
  db: Db,
  keys: ProcessedKey[],
): Promise<(ProcessedKey & { eventId: string })[]> {
  const { rows } = await queryPrepared<{ tenant_id: number; key: string; event_id: string }>(
    db,
    `select p.tenant_id, p.key, p.event_id from processed_events p
     join unnest($1::int[], $2::uuid[]) as k (tenant_id, key) on k.tenant_id = p.tenant_id and k.key = p.key`,
    [keys.map(key => key.tenantId), keys.map(key => key.key)],
  )
  return rows.map(row => ({ tenantId: row.tenant_id, key: row.key, eventId: row.event_id }))
}
