import { type Db, queryPrepared } from '../../postgres/database.ts'

export type VersionKind = 'subscription' | 'invoice' | 'refund'

/** Something of one tenant, by the id it has at its source. */
export type ObjectKey = { tenantId: number; id: string }

/** What one event said about one object. */
export type NewVersion = ObjectKey & {
  kind: VersionKind
  /** of the event's type and what it says */
  hash: string
  sourceAt: number
  eventId: string
  eventType: string
  /** JSON text */
  body: string
}

/** Keeps what was not said before, and returns the objects about which there is news. */
export async function insertVersions(
  db: Db,
  versions: NewVersion[],
): Promise<(ObjectKey & { kind: VersionKind })[]> {
  const { rows } = await queryPrepared<{ tenant_id: number; kind: VersionKind; object_id: string }>(
    db,
    `with added as (
       insert into billing_versions (tenant_id, kind, object_id, hash, source_at, event_id, event_type, body)
       select * from unnest($1::int[], $2::text[], $3::text[], $4::uuid[], $5::timestamptz[], $6::uuid[], $7::text[],
         $8::json[]) as v (tenant_id, kind, object_id, hash, source_at, event_id, event_type, body)
       order by tenant_id, kind, object_id, hash
       on conflict do nothing returning tenant_id, kind, object_id)
     select distinct tenant_id, kind, object_id from added`,
    [
      versions.map(version => version.tenantId),
      versions.map(version => version.kind),
      versions.map(version => version.id),
      versions.map(version => version.hash),
      versions.map(version => timeText(version.sourceAt)),
      versions.map(version => version.eventId),
      versions.map(version => version.eventType),
      versions.map(version => version.body),
    ],
  )
  return rows.map(row => ({ tenantId: row.tenant_id, kind: row.kind, id: row.object_id }))
}

/** Everything that was said about these objects, in no order. */
export async function loadVersions<Version>(
  db: Db,
  kind: VersionKind,
  keys: ObjectKey[],
): Promise<(ObjectKey & { version: Version })[]> {
  const { rows } = await queryPrepared<{ tenant_id: number; object_id: string; body: string }>(
    db,
    `select v.tenant_id, v.object_id, v.body from billing_versions v
     join unnest($2::int[], $3::text[]) as k (tenant_id, id) on v.tenant_id = k.tenant_id and v.object_id = k.id
     where v.kind = $1`,
    [kind, ...keyColumns(keys)],
  )
  return rows.map(row => ({ tenantId: row.tenant_id, id: row.object_id, version: JSON.parse(row.body) }))
}

export function keyColumns(keys: ObjectKey[]): [number[], string[]] {
  return [keys.map(key => key.tenantId), keys.map(key => key.id)]
}

/** In the one order in which rows are locked. */
export function sortedKeys<Key extends ObjectKey>(keys: Key[]): Key[] {
  return [...keys].sort((a, b) => a.tenantId - b.tenantId || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0))
}

export function keyText(key: ObjectKey): string {
  return `${key.tenantId} ${key.id}`
}

export function timeText(at: number): string {
  return new Date(at).toISOString()
}

/** The end of a row: null is until further notice. */
export function endText(at: number | null): string {
  return at === null ? 'infinity' : timeText(at)
}

/** What pg reads from a timestamptz column; an infinite one is null. */
export function instantOf(value: Date | number): number | null {
  return value instanceof Date ? value.getTime() : null
}
