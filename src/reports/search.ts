import type pg from 'pg'
import { contactFacts } from '../domain/conversions/conversions.ts'
import { publicProfileId } from '../domain/identity/identifiers.ts'
import { isUuid } from '../domain/ids.ts'
import { isObject } from '../domain/json/json.ts'
import { ENTITY_TYPES, type EntityType } from '../domain/records/records.ts'
import type { Log } from '../log/log.ts'
import { searchContacts, searchProfiles } from '../store/identity/people.ts'
import { findProduct, findRecord, type StoredRecord } from '../store/records/records.ts'
import { eventOutcome, outcomeOfSent } from './event-outcome.ts'

/** A search result. */
export type Found = { kind: EntityType | 'event' | 'person'; id: string; title: string; note: string | null }

type Searched = { text: string; limit: number; may: (what: EntityType | 'event') => boolean }

/** Finds records and events by id, and people by the beginning of a name or identifier. `may`: what the caller may see. */
export async function search(
  { pool, log }: { pool: pg.Pool; log: Log },
  tenantId: number,
  { text, limit, may }: Searched,
): Promise<Found[]> {
  const found: Found[] = []
  for (const type of ENTITY_TYPES.filter(may)) {
    const record =
      type === 'product' ? await findProduct(pool, tenantId, text) : await findRecord(pool, tenantId, type, text)
    if (record) found.push(recordFound(type, record))
  }
  if (may('event')) found.push(...(await eventFound({ pool, log }, tenantId, text)))
  if (may('contact')) found.push(...(await peopleFound(pool, tenantId, text, limit)))
  return found.slice(0, limit)
}

function recordFound(kind: EntityType, { id, data }: StoredRecord): Found {
  const value: unknown = data === null ? null : JSON.parse(data)
  const { name, email } = contactFacts(isObject(value) ? value : {})
  return { kind, id, title: id, note: [name, email].filter(Boolean).join(', ') || null }
}

async function eventFound(deps: { pool: pg.Pool; log: Log }, tenantId: number, text: string): Promise<Found[]> {
  const id = text.toLowerCase()
  const outcome = isUuid(id)
    ? await eventOutcome(deps, tenantId, id)
    : await outcomeOfSent(deps, tenantId, { sentId: text, sourceId: undefined })
  if (!outcome) return []
  const title = outcome.event?.eventType ?? outcome.id
  return [{ kind: 'event', id: outcome.id, title, note: outcome.status }]
}

/** Each person once, matches of contact names first. */
async function peopleFound(pool: pg.Pool, tenantId: number, text: string, limit: number): Promise<Found[]> {
  const people = new Map<number, Found>()
  const add = (profile: number, title: string, note: string | null) => {
    if (!people.has(profile)) people.set(profile, { kind: 'person', id: publicProfileId(profile)!, title, note })
  }
  for (const { id, profile, data } of await searchContacts(pool, tenantId, text, limit)) {
    const { name, email } = contactFacts(JSON.parse(data))
    if (profile !== null) add(profile, name ?? id, email ?? id)
  }
  for (const { kind, value, profile } of await searchProfiles(pool, tenantId, text, limit)) add(profile, value, kind)
  return [...people.values()]
}
