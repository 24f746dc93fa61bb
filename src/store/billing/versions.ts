import { type Db, queryPrepared } from '../../postgres/database.ts'
import { keyColumns, type ObjectKey, timeText } from './rows.ts'

type VersionKind = 'subscription' | 'invoice' | 'payment' | 'refund'

/** One object as one event described it. */
export type NewVersion = ObjectKey & {
  kind: VersionKind
  /** Of the event type and the body. */
  hash: string
  sourceAt: number
  eventId: string
  eventType: string
  sourceId: string | null
  /** JSON text */
  body: string
}

/** An object with new versions. `sourceAt`: the earliest of them. */
export type ObjectNews = ObjectKey & { kind: VersionKind; sourceAt: Date }

/** Stores new versions, and returns the objects that have some. */
export async function insertVersions(db: Db, versions: NewVersion[]): Promise<ObjectNews[]> {
  const { rows } = await queryPrepared<ObjectNews>(
    db,
    `with added as (
       insert into billing_versions (tenant_id, kind, object_id, hash, source_at, event_id, event_type, body, source_id)
       select * from unnest($1::int[], $2::text[], $3::text[], $4::uuid[], $5::timestamptz[], $6::uuid[], $7::text[],
         $8::json[], $9::text[]) as v (tenant_id, kind, object_id, hash, source_at, event_id, event_type, body, source_id)
       order by tenant_id, kind, object_id, hash
       on conflict do nothing returning tenant_id, kind, object_id, source_at)
     select tenant_id as "tenantId", kind, object_id as id, min(source_at) as "sourceAt" from added group by 1, 2, 3`,
    [
      versions.map(version => version.tenantId),
      versions.map(version => version.kind),
      versions.map(version => version.id),
      versions.map(version => version.hash),
      versions.map(version => timeText(version.sourceAt)),
      versions.map(version => version.eventId),
      versions.map(version => version.eventType),
      versions.map(version => version.body),
      versions.map(version => version.sourceId),
    ],
  )
  return rows
}

/** All versions of these objects in order of arrival: event ids are ascending. */
export async function loadVersions<Version>(
  db: Db,
  kind: VersionKind,
  keys: ObjectKey[],
): Promise<(ObjectKey & { sourceId: string | null; eventId: string; version: Version })[]> {
  const { rows } = await queryPrepared<ObjectKey & { sourceId: string | null; eventId: string; body: string }>(
    db,
    `select k.tenant_id as "tenantId", k.id, v.source_id as "sourceId", v.event_id as "eventId", v.body from unnest($2::int[], $3::text[]) as k (tenant_id, id)
     cross join lateral (
       select source_id, event_id, body from billing_versions
       where tenant_id = k.tenant_id and kind = $1 and object_id = k.id order by event_id offset 0) v`,
    [kind, ...keyColumns(keys)],
  )
  return rows.map(({ body, ...key }) => ({ ...key, version: JSON.parse(body) }))
}

/** Versions of subscriptions with a source time of `from` or later. */
export async function loadVersionsSince<Version>(
  db: Db,
  keys: (ObjectKey & { from: number })[],
): Promise<(ObjectKey & { sourceId: string | null; eventId: string; version: Version })[]> {
  const { rows } = await queryPrepared<ObjectKey & { sourceId: string | null; eventId: string; body: string }>(
    db,
    `select k.tenant_id as "tenantId", k.id, v.source_id as "sourceId", v.event_id as "eventId", v.body
     from unnest($1::int[], $2::text[], $3::timestamptz[]) as k (tenant_id, id, since)
     cross join lateral (
       select source_id, event_id, body from billing_versions
       where tenant_id = k.tenant_id and kind = 'subscription' and object_id = k.id and source_at >= k.since
       order by event_id offset 0) v`,
    [...keyColumns(keys), keys.map(({ from }) => timeText(from))],
  )
  return rows.map(({ body, ...key }) => ({ ...key, version: JSON.parse(body) }))
}

/** Notes that the tenant has ids in these namespaces. */
export async function keepNamespaces(db: Db, namespaces: { tenantId: number; namespace: string }[]): Promise<void> {
  await queryPrepared(
    db,
    `insert into billing_namespaces (tenant_id, namespace)
     select distinct tenant_id, namespace from unnest($1::int[], $2::text[]) as n (tenant_id, namespace)
     order by 1, 2 on conflict do nothing`,
    [namespaces.map(({ tenantId }) => tenantId), namespaces.map(({ namespace }) => namespace)],
  )
}

export async function listNamespaces(db: Db, tenantId: number): Promise<string[]> {
  const { rows } = await queryPrepared<{ namespace: string }>(
    db,
    'select namespace from billing_namespaces where tenant_id = $1 order by namespace',
    [tenantId],
  )
  return rows.map(row => row.namespace)
}

/** Counts events that seem to be about billing and are not understood, by type and day. */
export async function countUnrecognized(
  db: Db,
  events: { tenantId: number; eventType: string; occurredAt: Date }[],
): Promise<void> {
  await queryPrepared(
    db,
    `insert into billing_unrecognized as u (tenant_id, event_type, day, events)
     select tenant_id, event_type, (at at time zone 'UTC')::date, count(*)
     from unnest($1::int[], $2::text[], $3::timestamptz[]) as e (tenant_id, event_type, at)
     group by 1, 2, 3 order by 1, 2, 3
     on conflict (tenant_id, event_type, day) do update set events = u.events + excluded.events`,
    [
      events.map(({ tenantId }) => tenantId),
      events.map(({ eventType }) => eventType),
      events.map(({ occurredAt }) => occurredAt.toISOString()),
    ],
  )
}

/** Counts up to `asOf` of the most frequent types. */
export async function unrecognizedTypes(db: Db, tenantId: number, asOf: Date): Promise<Record<string, number>> {
  const { rows } = await queryPrepared<{ eventType: string; events: number }>(
    db,
    `select event_type as "eventType", sum(events)::bigint as events from billing_unrecognized
     where tenant_id = $1 and day <= ($2::timestamptz at time zone 'UTC')::date
     group by event_type order by 2 desc, 1 limit 100`,
    [tenantId, asOf],
  )
  return Object.fromEntries(rows.map(({ eventType, events }) => [eventType, events]))
}
