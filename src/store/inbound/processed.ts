import { hash } from 'node:crypto'
import type pg from 'pg'
import { hexArray, int4Array } from '../../postgres/binary.ts'
import { copyTable, hex, int4, uuid } from '../../postgres/copy.ts'
import { type Db, queryPrepared, RestartTransaction } from '../../postgres/database.ts'
import { computePeriod, isNearPeriodStart } from '../../postgres/partitions.ts'

/** An event is known by its sender's id within its source; tracking and CDP events by their id within the tenant. */
export function processedKey(sourceId: string | null, inboundEventId: string): string {
  return hash('sha256', `${sourceId ?? ''}\n${inboundEventId}`, 'hex').slice(0, 32)
}

/** `key`: a uuid, written as 32 digits. */
export type ProcessedKey = { tenantId: number; key: string }

export type EventClaim = ProcessedKey & { eventId: string }

/**
 * Marks events as processed and returns the ids of those that were already. Two workers that claim one key at the
 * same time meet in the primary key: the second waits for the first and then has to begin again. In the first minutes
 * of a period the one before is claimed too: two machines on either side of midnight meet there.
 */
export async function claimEvents(
  client: pg.PoolClient,
  claims: EventClaim[],
  now: Date,
): Promise<Set<string>> {
  const period = computePeriod('processed_events', now)
  const known = await knownClaims(client, claims)
  const fresh = known.size > 0 ? claims.filter(claim => !known.has(claim)) : [...claims]
  // Sorted, so that two workers that claim the same keys wait for each other and never in a circle.
  fresh.sort((a, b) => a.tenantId - b.tenantId || (a.key < b.key ? -1 : 1))
  const periods = isNearPeriodStart('processed_events', now) ? [period - 1, period] : [period]
  for (const each of periods) if (fresh.length > 0) await insertClaims(client, fresh, each)
  return new Set([...known].map(claim => claim.eventId))
}

// In all periods: what was claimed while the clock was ahead counts after it is corrected.
async function knownClaims(client: pg.PoolClient, claims: EventClaim[]): Promise<Set<EventClaim>> {
  const keys = hexArray(claims.map(claim => claim.key))
  const { tenantId } = claims[0]!
  if (claims.every(claim => claim.tenantId === tenantId)) {
    const { rows } = await queryPrepared<{ key: string }>(client, KNOWN_OF_ONE, [tenantId, keys])
    const known = new Set(rows.map(row => row.key.replaceAll('-', '')))
    return new Set(known.size > 0 ? claims.filter(claim => known.has(claim.key)) : [])
  }
  const tenantIds = int4Array(claims.map(claim => claim.tenantId))
  const { rows } = await queryPrepared<{ position: number }>(client, KNOWN, [tenantIds, keys])
  return new Set(rows.map(row => claims[row.position - 1]!))
}

// All keys in one go through the index: half of what one look-up for each costs.
const KNOWN_OF_ONE = `
select key from processed_events where tenant_id = $1 and key = any($2::uuid[])`

// A look-up for each, whatever the planner thinks of a table that was empty a moment ago.
const KNOWN = `
select position::int from unnest($1::int[], $2::uuid[]) with ordinality as claim (tenant_id, key, position)
where (select true from processed_events p
       where p.tenant_id = claim.tenant_id and p.key = claim.key limit 1)`

async function insertClaims(client: pg.PoolClient, claims: EventClaim[], period: number): Promise<void> {
  try {
    await copyClaims(client, claims, { period })
  } catch (error) {
    if ((error as { code?: unknown }).code === UNIQUE_VIOLATION)
      throw new RestartTransaction('An event was claimed meanwhile')
    throw error
  }
}

const copyClaims = copyTable<EventClaim, { period: number }>('processed_events', {
  period: int4((_claim, _index, { period }) => period),
  tenant_id: int4(claim => claim.tenantId),
  key: hex(claim => claim.key),
  event_id: uuid(claim => claim.eventId),
})

const UNIQUE_VIOLATION = '23505'

export async function findProcessed(db: Db, keys: ProcessedKey[]): Promise<EventClaim[]> {
  const { rows } = await queryPrepared<EventClaim>(
    db,
    `select p.tenant_id as "tenantId", replace(p.key::text, '-', '') as key, p.event_id as "eventId" from processed_events p
     join unnest($1::int[], $2::uuid[]) as k (tenant_id, key) on k.tenant_id = p.tenant_id and k.key = p.key`,
    [keys.map(key => key.tenantId), keys.map(key => key.key)],
  )
  return rows
}

/** The ids of these events are free again: the next event of such an id is no repeat. */
export async function releaseClaims(db: Db, claims: EventClaim[]): Promise<void> {
  await db.query(
    `delete from processed_events p using unnest($1::int[], $2::uuid[], $3::uuid[]) as c (tenant_id, key, event_id)
     where p.tenant_id = c.tenant_id and p.key = c.key and p.event_id = c.event_id`,
    [claims.map(claim => claim.tenantId), claims.map(claim => claim.key), claims.map(claim => claim.eventId)],
  )
}
