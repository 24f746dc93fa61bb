import { hash } from 'node:crypto'
import type pg from 'pg'
import { hexArray, int4Array } from '../../postgres/binary.ts'
import { copyTable, hex, int4, uuid } from '../../postgres/copy.ts'
import { type Db, queryPrepared, queryRows, RestartTransaction } from '../../postgres/database.ts'
import { computePeriod, isNearPeriodStart } from '../../postgres/partitions.ts'

/** The scope of ids that public tracking keys send. The id of a source has a prefix, so no source has this one. */
export const UNVERIFIED = 'unverified'

/**
 * Where the sender's id of an event is unique: within its source, or within the tenant for tracking and CDP events. There,
 * unverified events have a scope of their own, so that a visitor cannot use up the id of a server's event.
 */
export function idScope(event: { sourceConfigId: string | null; trusted: boolean }): string | null {
  return event.sourceConfigId ?? (event.trusted ? null : UNVERIFIED)
}

/** An unverified and a verified event with the same id have keys that differ in the last digit: neighbors in the index. */
export function processedKey(scope: string | null, inboundEventId: string): string {
  const isUnverified = scope === UNVERIFIED
  const digits = hash('sha256', `${isUnverified ? '' : (scope ?? '')}\n${inboundEventId}`, 'hex')
  return `${digits.slice(0, 31)}${isUnverified ? 1 : 0}`
}

/** The key of a verified event with the same id. Undefined for the key of a verified event. */
export function verifiedKeyOf(key: string): string | undefined {
  return key.endsWith('1') ? `${key.slice(0, 31)}0` : undefined
}

/** `key`: a uuid, written as 32 digits. */
export type ProcessedKey = { tenantId: number; key: string }

export type EventClaim = ProcessedKey & { eventId: string }

/**
 * Marks events as processed and returns the ids of those that already were. If two workers claim one key at the same time, the
 * primary key makes the second wait for the first and then restart. In the first minutes of a period the previous period is
 * claimed too, because the clocks of two machines may be on different sides of midnight.
 */
export async function claimEvents(client: pg.PoolClient, claims: EventClaim[], now: Date): Promise<Set<string>> {
  const period = computePeriod('processed_events', now)
  // Sorted, so that two workers that claim the same keys do not deadlock. PostgreSQL also finds sorted keys faster.
  const sorted = claims.toSorted((a, b) => a.tenantId - b.tenantId || (a.key < b.key ? -1 : 1))
  const known = await knownClaims(client, sorted)
  const fresh = known.size > 0 ? sorted.filter(claim => !known.has(claim)) : sorted
  const periods = isNearPeriodStart('processed_events', now) ? [period - 1, period] : [period]
  for (const each of periods) if (fresh.length > 0) await insertClaims(client, fresh, each)
  return new Set([...known].map(claim => claim.eventId))
}

/**
 * The claims whose event was processed. An unverified event is also a duplicate of a verified one. Searches all periods,
 * because claims made while the clock was ahead still count after it was corrected.
 */
async function knownClaims(client: pg.PoolClient, claims: EventClaim[]): Promise<Set<EventClaim>> {
  const wanted: { claim: EventClaim; key: string }[] = []
  for (const claim of claims) {
    const verifiedKey = verifiedKeyOf(claim.key)
    if (verifiedKey !== undefined) wanted.push({ claim, key: verifiedKey })
    wanted.push({ claim, key: claim.key })
  }
  const keys = hexArray(wanted.map(({ key }) => key))
  const { tenantId } = claims[0]!
  if (claims.every(claim => claim.tenantId === tenantId)) {
    const { rows } = await queryPrepared<{ key: string }>(client, KNOWN_OF_ONE, [tenantId, keys])
    const known = new Set(rows.map(row => row.key.replaceAll('-', '')))
    return new Set(known.size > 0 ? wanted.flatMap(({ claim, key }) => (known.has(key) ? claim : [])) : [])
  }
  const tenantIds = int4Array(wanted.map(({ claim }) => claim.tenantId))
  const { rows } = await queryPrepared<{ position: number }>(client, KNOWN, [tenantIds, keys])
  return new Set(rows.map(row => wanted[row.position - 1]!.claim))
}

// One index scan for all keys costs half as much as a look-up per key.
const KNOWN_OF_ONE = `
select key from processed_events where tenant_id = $1 and key = any($2::uuid[])`

// Forces a look-up per key, even if the statistics still describe an empty table.
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
  const wanted = hexArray(keys.map(({ key }) => key))
  const tenantId = keys[0]?.tenantId
  return keys.every(key => key.tenantId === tenantId)
    ? queryRows<EventClaim>(db, PROCESSED_OF_ONE, [tenantId, wanted])
    : queryRows<EventClaim>(db, PROCESSED, [int4Array(keys.map(key => key.tenantId)), wanted])
}

const PROCESSED_COLUMNS = `p.tenant_id as "tenantId", replace(p.key::text, '-', '') as key, p.event_id as "eventId"`

// For the same reason as KNOWN_OF_ONE.
const PROCESSED_OF_ONE = `
select ${PROCESSED_COLUMNS} from processed_events p where p.tenant_id = $1 and p.key = any($2::uuid[])`

const PROCESSED = `
select ${PROCESSED_COLUMNS} from processed_events p
join unnest($1::int[], $2::uuid[]) as k (tenant_id, key) on k.tenant_id = p.tenant_id and k.key = p.key`

/** Releases the ids of these events: the next event with such an id is not a duplicate. */
export async function releaseClaims(db: Db, claims: EventClaim[]): Promise<void> {
  await db.query(
    `delete from processed_events p using unnest($1::int[], $2::uuid[], $3::uuid[]) as c (tenant_id, key, event_id)
     where p.tenant_id = c.tenant_id and p.key = c.key and p.event_id = c.event_id`,
    [claims.map(claim => claim.tenantId), claims.map(claim => claim.key), claims.map(claim => claim.eventId)],
  )
}
