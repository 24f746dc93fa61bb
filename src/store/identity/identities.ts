import type { DatedTouch } from '../../domain/identity/attribution.ts'
import type { Identifier } from '../../domain/identity/identity.ts'
import type { Cause, GraphLink, GraphNode } from '../../domain/identity/linking.ts'
import { type Db, queryPrepared, toColumns } from '../../postgres/database.ts'

export type IdentifierKey = Identifier & { tenantId: number }
/** `isNew`: created by this transaction, so no other transaction can see it yet. */
export type StoredIdentifier = IdentifierKey & {
  node: number
  profile: number
  verified: boolean
  isNew: boolean
}
type NodeProfile = { tenantId: number; node: number; profile: number }
export type ProfileKey = { tenantId: number; profile: number }
type ProfileFacts = ProfileKey & { hasUser: boolean; hasContact: boolean }

/** Loads these identifiers. An unknown one is inserted with a profile of its own. */
export async function ensureIdentifiers(
  db: Db,
  identities: (IdentifierKey & { verified: boolean })[],
): Promise<StoredIdentifier[]> {
  const columns = toColumns(identities, 'tenantId', 'kind', 'value', 'verified')
  const found = await queryPrepared<StoredIdentifier>(db, ENSURE, columns)
  if (found.rows.length === identities.length) return found.rows
  // Another worker inserted the rest concurrently. Its rows are committed now, and visible to a new statement.
  const { rows } = await queryPrepared<StoredIdentifier>(db, `select ${KNOWN} from (${FOUND}) known`, columns)
  const created = new Set(found.rows.flatMap(({ isNew, node }) => (isNew ? node : [])))
  return rows.map(row => ({ ...row, isNew: created.has(row.node) }))
}

const KNOWN = `tenant_id as "tenantId", kind, value, node, profile, verified, is_new as "isNew"`

const FOUND = `
select i.tenant_id, i.kind, i.value, i.node, i.profile, i.verified, false as is_new
from unnest($1::int[], $2::text[], $3::text[], $4::boolean[]) as input (tenant_id, kind, value, verified)
join identities i on i.tenant_id = input.tenant_id and i.kind = input.kind and i.value = input.value and i.retired_at is null`

// Sorted, so that two workers that insert the same identifiers cannot deadlock.
const ENSURE = `
with found as materialized (${FOUND}), added as (
  insert into identities (tenant_id, kind, value, verified, node, profile)
  select tenant_id, kind, value, verified, node, node
  from (
    select i.*, nextval('identity_nodes') as node
    from (
      select * from unnest($1::int[], $2::text[], $3::text[], $4::boolean[]) as input (tenant_id, kind, value, verified)
      where (tenant_id, kind, value) not in (select tenant_id, kind, value from found) order by 1, 2, 3
    ) i
  ) unseen
  on conflict do nothing returning tenant_id, kind, value, node, profile, verified, true as is_new
)
select ${KNOWN} from (select * from found union all select * from added) known`

/**
 * Whether these profiles are known. Retired identifiers are filtered after reading. With `retired_at is null` as a
 * condition, a plan created while the table was small reads all identifiers of the tenant for each profile (35 s instead
 * of 30 ms for 5,000 profiles).
 */
export async function loadProfileFacts(db: Db, profiles: ProfileKey[]): Promise<ProfileFacts[]> {
  const { rows } = await queryPrepared<ProfileFacts>(
    db,
    `select f.* from unnest($1::int[], $2::bigint[]) as p (tenant_id, profile)
     cross join lateral (
       select p.tenant_id as "tenantId", p.profile,
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

export type StoredNode = GraphNode & { tenantId: number }

// A larger profile is not split. Its visitor ids are read last.
export const MAX_NODES_OF_PROFILE = 2_000

/** The nodes of these profiles. */
export async function loadProfileNodes(db: Db, profiles: ProfileKey[]): Promise<StoredNode[]> {
  const { rows } = await queryPrepared<StoredNode>(
    db,
    `select n.* from (select distinct * from unnest($1::int[], $2::bigint[]) as p (tenant_id, profile)) p
     cross join lateral (
       select tenant_id as "tenantId", node, kind, value, profile, verified as "isVerified", retired_at is not null as "isRetired"
       from identities where tenant_id = p.tenant_id and profile = p.profile
       order by kind = 'visitor', node limit ${MAX_NODES_OF_PROFILE}
     ) n`,
    toColumns(profiles, 'tenantId', 'profile'),
  )
  return rows
}

export type StoredLink = GraphLink & { tenantId: number; isUndone: boolean }
export type LinkRow = Omit<StoredLink, 'at' | 'cause'> & { linkedAt: Date; causeKind: Cause['kind']; causeId: string }

export const LINK = `l.tenant_id as "tenantId", l.a, l.b, l.verified as "isVerified", l.linked_at as "linkedAt", l.cause as "causeKind",
  l.cause_id as "causeId", l.undone_at is not null as "isUndone"`

export function toLink({ linkedAt, causeKind, causeId, ...link }: LinkRow): StoredLink {
  return { ...link, at: linkedAt.getTime(), cause: { kind: causeKind, id: causeId } }
}

// A node has at most 200 unverified links, plus verified ones.
const MAX_LINKS_OF_NODE = 1_000

/** The links of these nodes that are not undone, each once. */
export async function loadNodeLinks(db: Db, nodes: { tenantId: number; node: number }[]): Promise<StoredLink[]> {
  const side = (end: 'a' | 'b') => `(select ${LINK} from identity_links l
      where l.tenant_id = n.tenant_id and l.${end} = n.node and l.undone_at is null limit ${MAX_LINKS_OF_NODE})`
  const { rows } = await queryPrepared<LinkRow>(
    db,
    `select distinct l.* from unnest($1::int[], $2::bigint[]) as n (tenant_id, node)
     cross join lateral (${side('a')} union all ${side('b')}) l`,
    toColumns(nodes, 'tenantId', 'node'),
  )
  return rows.map(toLink)
}

/** A profile's nodes and the links among them. */
export async function loadProfileGraph(
  db: Db,
  tenantId: number,
  profile: number,
): Promise<{ nodes: StoredNode[]; links: StoredLink[] }> {
  const nodes = await loadProfileNodes(db, [{ tenantId, profile }])
  const own = new Set(nodes.map(({ node }) => node))
  const links = (await loadNodeLinks(db, nodes)).filter(({ a, b }) => own.has(a) && own.has(b))
  return { nodes, links }
}

export type NodePair = { tenantId: number; a: number; b: number }

/** The links of exactly these pairs (`a` is the smaller node), undone ones included, those of operators excluded. */
export async function loadLinks(db: Db, pairs: NodePair[]): Promise<StoredLink[]> {
  const { rows } = await queryPrepared<LinkRow>(
    db,
    `select ${LINK} from unnest($1::int[], $2::bigint[], $3::bigint[]) as p (tenant_id, a, b)
     join identity_links l on l.tenant_id = p.tenant_id and l.a = p.a and l.b = p.b and not l.by_command`,
    toColumns(pairs, 'tenantId', 'a', 'b'),
  )
  return rows.map(toLink)
}

/** Writes links. A stored link is replaced by one that takes precedence (`compareLinks`), unless it is undone. */
export async function upsertLinks(db: Db, links: StoredLink[]): Promise<void> {
  await queryPrepared(
    db,
    `insert into identity_links as l (tenant_id, a, b, verified, cause, cause_id, linked_at, undone_at)
     select "tenantId", a, b, "isVerified", cause ->> 'kind', cause ->> 'id', at, case when "isUndone" then at end
     from json_to_recordset($1) as n ("tenantId" int, a bigint, b bigint, "isVerified" boolean, cause json, at timestamptz,
       "isUndone" boolean)
     order by 1, 2, 3
     on conflict (tenant_id, a, b, by_command) do update set
       verified = excluded.verified, cause = excluded.cause, cause_id = excluded.cause_id, linked_at = excluded.linked_at,
       undone_at = excluded.undone_at
     where l.undone_at is null or excluded.cause = 'command'`,
    [JSON.stringify(links.map(({ at, ...link }) => ({ ...link, at: new Date(at).toISOString() })))],
  )
}

/** Assigns nodes to profiles. No event is changed. */
export async function assignProfiles(db: Db, nodes: NodeProfile[]): Promise<void> {
  await queryPrepared(
    db,
    `update identities i set profile = n.profile
     from unnest($1::int[], $2::bigint[], $3::bigint[]) as n (tenant_id, node, profile)
     where i.tenant_id = n.tenant_id and i.node = n.node`,
    toColumns(nodes, 'tenantId', 'node', 'profile'),
  )
}

/** Moves the nodes of very large profiles, which `loadProfileNodes` did not read. */
export async function moveProfiles(db: Db, moves: { tenantId: number; from: number; into: number }[]): Promise<void> {
  await queryPrepared(
    db,
    `update identities i set profile = m.into_profile
     from unnest($1::int[], $2::bigint[], $3::bigint[]) as m (tenant_id, from_profile, into_profile)
     where i.tenant_id = m.tenant_id and i.profile = m.from_profile`,
    toColumns(moves, 'tenantId', 'from', 'into'),
  )
}

/** Deletes the links that these orders caused. Returns their nodes. */
export async function deleteSaleLinks(
  db: Db,
  orders: { tenantId: number; orderId: string }[],
): Promise<{ tenantId: number; node: number }[]> {
  const { rows } = await queryPrepared<{ tenantId: number; node: number }>(
    db,
    `with gone as (
       delete from identity_links l using unnest($1::int[], $2::text[]) as o (tenant_id, order_id)
       where l.tenant_id = o.tenant_id and l.cause = 'sale' and l.cause_id = o.order_id
       returning l.tenant_id, l.a, l.b
     )
     select tenant_id as "tenantId", unnest(array[a, b]) as node from gone`,
    toColumns(orders, 'tenantId', 'orderId'),
  )
  return rows
}

// Counting more would cost every scrape of the metrics.
const MAX_COUNTED = 100_000

/** Unverified identifiers that were not linked because a profile or an identifier had reached its limit, at most 100,000. */
export async function countUnlinked(db: Db): Promise<number> {
  const { rows } = await db.query<{ count: number }>(
    `select count(*) from (select from identity_links where undone_at = linked_at limit ${MAX_COUNTED}) l`,
  )
  return rows[0]!.count
}

/** Deletes all links of these nodes. */
export async function deleteLinks(db: Db, tenantId: number, nodes: number[]): Promise<void> {
  for (const end of ['a', 'b'])
    await db.query(`delete from identity_links where tenant_id = $1 and ${end} = any($2::bigint[])`, [tenantId, nodes])
}

/** Marks links as undone. */
export async function undoLinks(db: Db, links: StoredLink[]): Promise<void> {
  await queryPrepared(
    db,
    `update identity_links l set undone_at = now()
     from unnest($1::int[], $2::bigint[], $3::bigint[], $4::boolean[]) as p (tenant_id, a, b, by_command)
     where l.tenant_id = p.tenant_id and l.a = p.a and l.b = p.b and l.by_command = p.by_command`,
    [...toColumns(links, 'tenantId', 'a', 'b'), links.map(({ cause }) => cause.kind === 'command')],
  )
}

/** `first`: the node before the first move. `to`: a node from `allocateNodes`. */
type IdentifierMove = {
  tenantId: number
  first: number
  from: number
  to: number
  profile: number
  isVerified: boolean
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
    `insert into identities (tenant_id, kind, value, node, profile, verified, retired_at)
     select m.tenant_id, i.kind, i.value, m.node, m.profile, m.verified, case when not m.is_last then now() end
     from unnest($1::int[], $2::bigint[], $3::bigint[], $4::bigint[], $5::boolean[], $6::boolean[])
       as m (tenant_id, first, node, profile, verified, is_last)
     join identities i on i.tenant_id = m.tenant_id and i.node = m.first`,
    toColumns(moves, 'tenantId', 'first', 'to', 'profile', 'isVerified', 'isLast'),
  )
}

export async function verifyIdentifiers(db: Db, nodes: { tenantId: number; node: number }[]): Promise<void> {
  await queryPrepared(
    db,
    `update identities i set verified = true
     from (select distinct * from unnest($1::int[], $2::bigint[]) as n (tenant_id, node) order by 1, 2) n
     where i.tenant_id = n.tenant_id and i.node = n.node and not i.verified`,
    toColumns(nodes, 'tenantId', 'node'),
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

/** Keeps the first touch of each node and kind, in any order of arrival (`isEarlierTouch`). Returns the changed nodes. */
export async function upsertTouches(db: Db, touches: NewTouch[]): Promise<{ tenantId: number; node: number }[]> {
  const { rows } = await queryPrepared<{ tenantId: number; node: number }>(
    db,
    `insert into touches as t (tenant_id, node, kind, direct, occurred_at, received_at, event_id, source, medium, campaign)
     select tenant_id, node, kind, direct, occurred_at, received_at, event_id, source, medium, campaign from ${EARLIER}
     order by tenant_id, node, kind
     on conflict (tenant_id, node, kind) do update set
       direct = excluded.direct, occurred_at = excluded.occurred_at, received_at = excluded.received_at,
       event_id = excluded.event_id, source = excluded.source, medium = excluded.medium, campaign = excluded.campaign
     where ${touchRank('excluded')} < ${touchRank('t')}
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

/** The order of `isEarlierTouch`. */
function touchRank(touch: string): string {
  const time = `case when ${touch}.kind = 'verified' then ${touch}.occurred_at else ${touch}.received_at end`
  return `(${touch}.direct, ${time}, ${touch}.event_id)`
}

// Most touches are not the first. Reading is cheap; a conflict would lock, and therefore write, a row for each.
const EARLIER = `(
  select * from unnest($1::int[], $2::bigint[], $3::text[], $4::boolean[], $5::timestamptz[], $6::timestamptz[], $7::uuid[],
    $8::text[], $9::text[], $10::text[])
    as n (tenant_id, node, kind, direct, occurred_at, received_at, event_id, source, medium, campaign)
  where not exists (
    select 1 from touches t where t.tenant_id = n.tenant_id and t.node = n.node and t.kind = n.kind
      and ${touchRank('t')} <= ${touchRank('n')})) earlier`

function touchColumns(touches: NewTouch[]): unknown[][] {
  return toColumns(
    touches,
    ...(['tenantId', 'node', 'kind', 'direct', 'occurredAt', 'receivedAt', 'eventId'] as const),
    ...(['source', 'medium', 'campaign'] as const),
  )
}
