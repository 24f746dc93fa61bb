import type { DatedTouch } from '../../domain/identity/attribution.ts'
import type { Identifier } from '../../domain/identity/identity.ts'
import type { Cause } from '../../domain/identity/linking.ts'
import { type Db, queryPrepared, toColumns } from '../../postgres/database.ts'
export type IdentifierKey = Identifier & { tenantId: number }
/** `isNew`: created by this transaction, so no other transaction can see it yet. */
export type StoredIdentifier = IdentifierKey & {
  node: number
  profile: number
  trusted: boolean
  isNew: boolean
}
type NodeProfile = { tenantId: number; node: number; profile: number }
export type ProfileKey = { tenantId: number; profile: number }
type ProfileFacts = ProfileKey & { identifiers: number; hasUser: boolean; hasContact: boolean }

/** Loads these identifiers. An unknown one is inserted with a profile of its own. */
export async function ensureIdentifiers(
  db: Db,
  identities: (IdentifierKey & { trusted: boolean })[],
): Promise<StoredIdentifier[]> {
  const columns = toColumns(identities, 'tenantId', 'kind', 'value', 'trusted')
  const found = await queryPrepared<StoredIdentifier>(db, ENSURE, columns)
  if (found.rows.length === identities.length) return found.rows
  // Another worker inserted the rest concurrently. Its rows are committed now, and visible to a new statement.
  const { rows } = await queryPrepared<StoredIdentifier>(db, `select ${KNOWN} from (${FOUND}) known`, columns)
  const created = new Set(found.rows.flatMap(({ isNew, node }) => (isNew ? node : [])))
  return rows.map(row => ({ ...row, isNew: created.has(row.node) }))
}

const KNOWN = `tenant_id as "tenantId", kind, value, node, profile, trusted, is_new as "isNew"`

const FOUND = `
select i.tenant_id, i.kind, i.value, i.node, i.profile, i.trusted, false as is_new
from unnest($1::int[], $2::text[], $3::text[], $4::boolean[]) as input (tenant_id, kind, value, trusted)
join identities i on i.tenant_id = input.tenant_id and i.kind = input.kind and i.value = input.value and i.retired_at is null`

// Sorted, so that two workers that insert the same identifiers cannot deadlock.
const ENSURE = `
with found as materialized (${FOUND}), added as (
  insert into identities (tenant_id, kind, value, trusted, node, profile)
  select tenant_id, kind, value, trusted, node, node
  from (
    select i.*, nextval('identity_nodes') as node
    from (
      select * from unnest($1::int[], $2::text[], $3::text[], $4::boolean[]) as input (tenant_id, kind, value, trusted)
      where (tenant_id, kind, value) not in (select tenant_id, kind, value from found) order by 1, 2, 3
    ) i
  ) unseen
  on conflict do nothing returning tenant_id, kind, value, node, profile, trusted, true as is_new
)
select ${KNOWN} from (select * from found union all select * from added) known`

/**
 * How many identifiers these profiles have, and whether they are identified. Retired identifiers are filtered after
 * reading. With `retired_at is null` as a condition, a plan created while the table was small reads all identifiers of the
 * tenant for each profile (35 s instead of 30 ms for 5,000 profiles).
 */
export async function loadProfileFacts(db: Db, profiles: ProfileKey[]): Promise<ProfileFacts[]> {
  const { rows } = await queryPrepared<ProfileFacts>(
    db,
    `select f.* from unnest($1::int[], $2::bigint[]) as p (tenant_id, profile)
     cross join lateral (
       select p.tenant_id as "tenantId", p.profile, count(*) filter (where i.retired_at is null) as identifiers,
         coalesce(bool_or(kind = 'user') filter (where i.retired_at is null), false) as "hasUser",
         coalesce(bool_or(kind = 'contact') filter (where i.retired_at is null), false) as "hasContact"
       from identities i
       where i.tenant_id = p.tenant_id and i.profile = p.profile
     ) f`,
    [profiles.map(({ tenantId }) => tenantId), profiles.map(({ profile }) => profile)],
  )
  return rows
}

export async function findProfiles(db: Db, nodes: { tenantId: number; node: number }[]): Promise<NodeProfile[]> {
  const { rows } = await queryPrepared<NodeProfile>(
    db,
    `select i.tenant_id as "tenantId", i.node, i.profile from identities i
     join unnest($1::int[], $2::bigint[]) as n (tenant_id, node) on n.tenant_id = i.tenant_id and n.node = i.node`,
    [nodes.map(node => node.tenantId), nodes.map(node => node.node)],
  )
  return rows
}

/** The active identifiers of these nodes. Selects by node alone, as in `loadProfileFacts`. */
export async function loadIdentifiers(
  db: Db,
  nodes: { tenantId: number; node: number }[],
): Promise<(IdentifierKey & NodeProfile)[]> {
  const { rows } = await queryPrepared<IdentifierKey & NodeProfile>(
    db,
    `select i.tenant_id as "tenantId", i.node, i.profile, i.kind, i.value
     from unnest($1::int[], $2::bigint[]) as n (tenant_id, node)
     join identities i on i.tenant_id = n.tenant_id and i.node = n.node
       and coalesce(i.retired_at, 'infinity') = 'infinity'`,
    [nodes.map(node => node.tenantId), nodes.map(node => node.node)],
  )
  return rows
}

/** Moves every node of the profile `from` to `into`. No event is changed. Returns the moved nodes. */
export async function mergeProfiles(
  db: Db,
  merges: { tenantId: number; from: number; into: number }[],
): Promise<{ tenantId: number; from: number; node: number }[]> {
  const { rows } = await queryPrepared<{ tenantId: number; from: number; node: number }>(
    db,
    `update identities i set profile = m.into_profile
     from unnest($1::int[], $2::bigint[], $3::bigint[]) as m (tenant_id, from_profile, into_profile)
     where i.tenant_id = m.tenant_id and i.profile = m.from_profile
     returning i.tenant_id as "tenantId", m.from_profile as "from", i.node`,
    [merges.map(m => m.tenantId), merges.map(m => m.from), merges.map(m => m.into)],
  )
  return rows
}

type NewLink = {
  tenantId: number
  profile: number
  fromProfile: number
  nodes: number[]
  /** The nodes that appeared together: `node` on the merged side, `other` on the surviving side. */
  node: number
  other: number
  cause: Cause
}

export async function insertLinks(db: Db, joins: NewLink[]): Promise<void> {
  await queryPrepared(
    db,
    `insert into identity_merges (tenant_id, profile, from_profile, nodes, node, other, cause, cause_id)
     select "tenantId", profile, "fromProfile", array(select json_array_elements_text(nodes)::bigint), node, other,
       cause ->> 'kind', cause ->> 'id'
     from json_to_recordset($1) as j ("tenantId" int, profile bigint, "fromProfile" bigint, nodes json, node bigint,
       other bigint, cause json)`,
    [JSON.stringify(joins)],
  )
}

/** Undoes the links that these orders caused, unless a later link builds on them. The nodes return to their profiles. */
export async function undoSaleLinks(db: Db, orders: { tenantId: number; orderId: string }[]): Promise<void> {
  const { rows } = await queryPrepared<{ tenantId: number }>(
    db,
    `with undone as (
       update identity_merges j set undone_at = now()
       from unnest($1::int[], $2::text[]) as o (tenant_id, order_id)
       where j.tenant_id = o.tenant_id and j.cause = 'sale' and j.cause_id = o.order_id and j.undone_at is null
       returning j.tenant_id, j.from_profile, j.nodes
     ), parted as (
       update identities i set profile = u.from_profile
       from undone u where i.tenant_id = u.tenant_id and i.node = any(u.nodes) and i.profile <> u.from_profile
     )
     select distinct tenant_id as "tenantId" from undone`,
    [orders.map(({ tenantId }) => tenantId), orders.map(({ orderId }) => orderId)],
  )
  if (rows.length > 0)
    await bumpIdentityVersions(
      db,
      rows.map(({ tenantId }) => tenantId),
    )
}

/** `first`: the node before the first move. `to`: a node from `allocateNodes`. */
type IdentifierMove = {
  tenantId: number
  first: number
  from: number
  to: number
  profile: number
  isLast: boolean
}

export async function allocateNodes(db: Db, count: number): Promise<number[]> {
  const { rows } = await queryPrepared<{ node: number }>(
    db,
    `select nextval('identity_nodes') as node from generate_series(1, $1)`,
    [count],
  )
  return rows.map(({ node }) => node)
}

/**
 * Gives identifiers a new node in another profile. The old node is retired and stays in its profile. If an identifier
 * moves more than once, only its last node is active.
 */
export async function moveIdentifiers(db: Db, moves: IdentifierMove[]): Promise<void> {
  // Before the inserts, because an identifier may be active only once. Selects by node alone, as in `loadProfileFacts`.
  await queryPrepared(
    db,
    `update identities i set retired_at = now() from unnest($1::int[], $2::bigint[]) as m (tenant_id, node)
     where i.tenant_id = m.tenant_id and i.node = m.node and coalesce(i.retired_at, 'infinity') = 'infinity'`,
    [moves.map(({ tenantId }) => tenantId), moves.map(({ from }) => from)],
  )
  await queryPrepared(
    db,
    `insert into identities (tenant_id, kind, value, node, profile, retired_at)
     select m.tenant_id, i.kind, i.value, m.node, m.profile, case when not m.is_last then now() end
     from unnest($1::int[], $2::bigint[], $3::bigint[], $4::bigint[], $5::boolean[])
       as m (tenant_id, first, node, profile, is_last)
     join identities i on i.tenant_id = m.tenant_id and i.node = m.first`,
    [
      moves.map(({ tenantId }) => tenantId),
      moves.map(({ first }) => first),
      moves.map(({ to }) => to),
      moves.map(({ profile }) => profile),
      moves.map(({ isLast }) => isLast),
    ],
  )
}

export async function trustIdentifiers(db: Db, nodes: { tenantId: number; node: number }[]): Promise<void> {
  await queryPrepared(
    db,
    `update identities i set trusted = true from unnest($1::int[], $2::bigint[]) as n (tenant_id, node)
     where i.tenant_id = n.tenant_id and i.node = n.node and not i.trusted`,
    [nodes.map(({ tenantId }) => tenantId), nodes.map(({ node }) => node)],
  )
}

export async function insertUnlinked(
  db: Db,
  pairs: { tenantId: number; node: number; other: number; causeId: string | null }[],
): Promise<void> {
  await queryPrepared(
    db,
    `insert into identity_unmerged (tenant_id, node, other, cause_id)
     select * from unnest($1::int[], $2::bigint[], $3::bigint[], $4::text[]) order by 1, 3, 2 on conflict do nothing`,
    [
      pairs.map(({ tenantId }) => tenantId),
      pairs.map(({ node }) => node),
      pairs.map(({ other }) => other),
      pairs.map(({ causeId }) => causeId),
    ],
  )
}

/** The version changes when an identifier gets another node or a link is undone. Workers then drop their memory. */
export async function loadIdentityVersions(db: Db, tenantIds: number[]): Promise<Map<number, number>> {
  const { rows } = await queryPrepared<{ tenantId: number; version: number }>(
    db,
    'select tenant_id as "tenantId", version from identity_versions where tenant_id = any($1::int[])',
    [tenantIds],
  )
  return new Map(rows.map(({ tenantId, version }) => [tenantId, version]))
}

export async function bumpIdentityVersions(db: Db, tenantIds: number[]): Promise<void> {
  await queryPrepared(
    db,
    `insert into identity_versions as v (tenant_id, version) select t, 1 from unnest($1::int[]) as t order by t
     on conflict (tenant_id) do update set version = v.version + 1`,
    [tenantIds],
  )
}

export type NewTouch = DatedTouch & { tenantId: number; node: number }

/** Keeps the first touch of each node, in any order of arrival (see `isEarlierTouch`). Returns the changed nodes. */
export async function upsertTouches(db: Db, touches: NewTouch[]): Promise<{ tenantId: number; node: number }[]> {
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

/** Tenants with a touch that precedes the stored one. */
export async function findTenantsWithTouches(db: Db, touches: NewTouch[]): Promise<number[]> {
  const { rows } = await queryPrepared<{ tenantId: number }>(
    db,
    `select distinct tenant_id as "tenantId" from ${EARLIER}`,
    touchColumns(touches),
  )
  return rows.map(row => row.tenantId)
}

// Most touches are not the first. Reading is cheap; a conflict would lock, and therefore write, a row for each.
const EARLIER = `(
  select * from unnest($1::int[], $2::bigint[], $3::boolean[], $4::timestamptz[], $5::uuid[], $6::text[],
    $7::text[], $8::text[]) as n (tenant_id, node, direct, occurred_at, event_id, source, medium, campaign)
  where not exists (
    select 1 from touches t where t.tenant_id = n.tenant_id and t.node = n.node
      and (t.direct, t.occurred_at, t.event_id) <= (n.direct, n.occurred_at, n.event_id))) earlier`

function touchColumns(touches: NewTouch[]): unknown[][] {
  return toColumns(
    touches,
    ...(['tenantId', 'node', 'direct', 'occurredAt', 'eventId', 'source', 'medium', 'campaign'] as const),
  )
}
