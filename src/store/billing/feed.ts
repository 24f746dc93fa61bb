import { type Db, queryPrepared } from '../../postgres/database.ts'

/** Notes that the tenant has ids in these namespaces. */
export async function keepNamespaces(
  db: Db,
  namespaces: { tenantId: number; namespace: string }[],
): Promise<void> {
  await queryPrepared(
    db,
    `insert into billing_namespaces (tenant_id, namespace)
     select distinct tenant_id, namespace from unnest($1::int[], $2::text[]) as n (tenant_id, namespace)
     order by 1, 2 on conflict do nothing`,
    [namespaces.map(({ tenantId }) => tenantId), namespaces.map(({ namespace }) => namespace)],
  )
}

export async function namespacesOf(db: Db, tenantId: number): Promise<string[]> {
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

/** How many there were up to `asOf`, by type; the most frequent types. */
export async function unrecognizedTypes(
  db: Db,
  tenantId: number,
  asOf: Date,
): Promise<Record<string, number>> {
  const { rows } = await queryPrepared<{ eventType: string; events: number }>(
    db,
    `select event_type as "eventType", sum(events)::bigint as events from billing_unrecognized
     where tenant_id = $1 and day <= ($2::timestamptz at time zone 'UTC')::date
     group by event_type order by 2 desc, 1 limit 100`,
    [tenantId, asOf],
  )
  return Object.fromEntries(rows.map(({ eventType, events }) => [eventType, events]))
}
