import type { DatedTouch } from '../../domain/identity/attribution.ts'
import type { Identity } from '../../domain/identity/identity.ts'
import { type Db, queryPrepared } from '../../postgres/database.ts'

export type IdentityKey = Identity & { tenantId: number }
/** `isNew`: this transaction made it, and nobody else can see it yet. */
export type KnownIdentity = IdentityKey & { node: number; isNew: boolean }
export type IdentityNode = { tenantId: number; node: number; profile: number }

/** The nodes of these identities; what was never seen becomes a profile of its own. */
export async function ensureIdentities(db: Db, identities: IdentityKey[]): Promise<KnownIdentity[]> {
  const columns = [
    identities.map(identity => identity.tenantId),
    identities.map(identity => identity.kind),
    identities.map(identity => identity.value),
  ]
  const found = await queryPrepared<KnownIdentity>(db, ENSURE, columns)
  if (found.rows.length === identities.length) return found.rows
  // Another worker added the rest at the same moment: it is committed now, and visible to a new statement.
  const { rows } = await queryPrepared<Omit<KnownIdentity, 'isNew'>>(
    db,
    `select tenant_id as "tenantId", kind, value, node from identities
     join unnest($1::int[], $2::text[], $3::text[]) as i (tenant_id, kind, value) using (tenant_id, kind, value)`,
    columns,
  )
  const made = new Set(found.rows.flatMap(({ isNew, node }) => (isNew ? node : [])))
  return rows.map(row => ({ ...row, isNew: made.has(row.node) }))
}

// Sorted, so that two workers that add the same identities wait for each other and never in a circle.
const ENSURE = `
with input as materialized (
  select * from unnest($1::int[], $2::text[], $3::text[]) as i (tenant_id, kind, value)
), found as (
  select tenant_id, kind, value, node from identities join input using (tenant_id, kind, value)
), added as (
  insert into identities (tenant_id, kind, value, node, profile)
  select tenant_id, kind, value, node, node
  from (
    select i.*, nextval('identity_nodes') as node
    from (select * from input except select tenant_id, kind, value from found order by 1, 2, 3) i
  ) fresh
  on conflict do nothing returning tenant_id, kind, value, node
)
select tenant_id as "tenantId", kind, value, node, false as "isNew" from found
union all
select tenant_id, kind, value, node, true from added`

export async function profilesOf(
  db: Db,
  nodes: { tenantId: number; node: number }[],
): Promise<IdentityNode[]> {
  const { rows } = await queryPrepared<IdentityNode>(
    db,
    `select i.tenant_id as "tenantId", i.node, i.profile from identities i
     join unnest($1::int[], $2::bigint[]) as n (tenant_id, node) on n.tenant_id = i.tenant_id and n.node = i.node`,
    [nodes.map(node => node.tenantId), nodes.map(node => node.node)],
  )
  return rows
}

/** Every node of profile `from` belongs to `into` from now on. No event is touched. */
export async function mergeProfiles(
  db: Db,
  merges: { tenantId: number; from: number; into: number }[],
): Promise<void> {
  await queryPrepared(
    db,
    `update identities i set profile = m.into_profile
     from unnest($1::int[], $2::bigint[], $3::bigint[]) as m (tenant_id, from_profile, into_profile)
     where i.tenant_id = m.tenant_id and i.profile = m.from_profile`,
    [merges.map(m => m.tenantId), merges.map(m => m.from), merges.map(m => m.into)],
  )
}

export type NewTouch = DatedTouch & { tenantId: number; node: number }

/** The first touch under each node stays, whatever arrives when (see `isEarlierTouch`); one a node. Returns what changed. */
export async function upsertTouches(
  db: Db,
  touches: NewTouch[],
): Promise<{ tenantId: number; node: number }[]> {
  const { rows } = await queryPrepared<{ tenantId: number; node: number }>(
    db,
    `insert into touches as t (tenant_id, node, direct, occurred_at, event_id, source, medium, campaign)
     select tenant_id, node, direct, occurred_at, event_id, source, medium, campaign from ${EARLIER}
     order by tenant_id, node
     on conflict (tenant_id, node) do update set
       direct = excluded.direct, occurred_at = excluded.occurred_at, event_id = excluded.event_id,
       source = excluded.source, medium = excluded.medium, campaign = excluded.campaign
     where (excluded.direct, excluded.occurred_at, excluded.event_id) < (t.direct, t.occurred_at, t.event_id)
     returning tenant_id as "tenantId", node`,
    touchColumns(touches),
  )
  return rows
}

/** Tenants of those touches that come before what is known. */
export async function tenantsWithEarlierTouches(db: Db, touches: NewTouch[]): Promise<number[]> {
  const { rows } = await queryPrepared<{ tenantId: number }>(
    db,
    `select distinct tenant_id as "tenantId" from ${EARLIER}`,
    touchColumns(touches),
  )
  return rows.map(row => row.tenantId)
}

// Most are not the first. Looking is cheap; a conflict would lock, and so write, a row for each of them.
const EARLIER = `(
  select * from unnest($1::int[], $2::bigint[], $3::boolean[], $4::timestamptz[], $5::uuid[], $6::text[],
    $7::text[], $8::text[]) as n (tenant_id, node, direct, occurred_at, event_id, source, medium, campaign)
  where not exists (
    select 1 from touches t where t.tenant_id = n.tenant_id and t.node = n.node
      and (t.direct, t.occurred_at, t.event_id) <= (n.direct, n.occurred_at, n.event_id))) earlier`

function touchColumns(touches: NewTouch[]): unknown[][] {
  return [
    touches.map(touch => touch.tenantId),
    touches.map(touch => touch.node),
    touches.map(touch => touch.direct),
    touches.map(touch => touch.occurredAt),
    touches.map(touch => touch.eventId),
    touches.map(touch => touch.source),
    touches.map(touch => touch.medium),
    touches.map(touch => touch.campaign),
  ]
}
