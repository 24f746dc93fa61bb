import type { DatedTouch } from '../../domain/identity/attribution.ts'
import type { Identifier } from '../../domain/identity/identifiers.ts'
import {
  type Cause,
  type GraphNode,
  originOf,
  type PlannedLink,
  type VisitorId,
  type VisitorNode,
} from '../../domain/identity/linking.ts'
import { type Db, queryPrepared, toColumns } from '../../postgres/database.ts'

export type IdentifierKey = Identifier & { tenantId: number }
/** `isNew`: created by this transaction, so no other transaction can see it yet. */
export type StoredIdentifier = IdentifierKey & {
  node: number
  profile: number
  verified: boolean
  verifiedByInput: boolean
  isNew: boolean
  visitor?: VisitorId
}
type NodeProfile = { tenantId: number; node: number; profile: number }
export type ProfileKey = { tenantId: number; profile: number }
type ProfileFacts = ProfileKey & { hasUser: boolean; hasContact: boolean }

/** Loads these identifiers. An unknown one is inserted with a profile of its own. */
export async function ensureIdentifiers(
  db: Db,
  identities: (IdentifierKey & { verified: boolean; verifiedByInput: boolean })[],
): Promise<StoredIdentifier[]> {
  const columns = toColumns(identities, 'tenantId', 'kind', 'value', 'verified', 'verifiedByInput')
  const found = await queryPrepared<StoredIdentifier>(db, ENSURE, columns)
  if (found.rows.length === identities.length) return found.rows
  // Another worker inserted the rest concurrently. Its rows are committed now, and visible to a new statement.
  const { rows } = await queryPrepared<StoredIdentifier>(db, `select ${KNOWN} from (${FOUND}) known`, columns)
  const created = new Set(found.rows.flatMap(({ isNew, node }) => (isNew ? node : [])))
  return rows.map(row => ({ ...row, isNew: created.has(row.node) }))
}

const KNOWN = `tenant_id as "tenantId", kind, value, node, profile, verified, verified_by_input as "verifiedByInput",
  is_new as "isNew"`

const INPUT = `unnest($1::int[], $2::text[], $3::text[], $4::boolean[], $5::boolean[])
  as input (tenant_id, kind, value, verified, verified_by_input)`

const FOUND = `
select i.tenant_id, i.kind, i.value, i.node, i.profile, i.verified, i.verified_by_input, false as is_new
from ${INPUT}
join identities i on i.tenant_id = input.tenant_id and i.kind = input.kind and i.value = input.value and i.retired_at is null`

// Sorted, so that two workers that insert the same identifiers cannot deadlock.
const ENSURE = `
with found as materialized (${FOUND}), added as (
  insert into identities (tenant_id, kind, value, verified, verified_by_input, node, profile)
  select tenant_id, kind, value, verified, verified_by_input, node, node
  from (
    select i.*, nextval('identity_nodes') as node
    from (
      select * from ${INPUT}
      where (tenant_id, kind, value) not in (select tenant_id, kind, value from found) order by 1, 2, 3
    ) i
  ) unseen
  on conflict do nothing returning tenant_id, kind, value, node, profile, verified, verified_by_input, true as is_new
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

/** All nodes of these visitor ids, oldest first. `isVerified` is determined for the active one. */
export async function loadVisitorNodes(
  db: Db,
  visitors: { tenantId: number; value: string }[],
): Promise<(VisitorNode & { tenantId: number; value: string })[]> {
  const nodes = (isActive: boolean) => `select i.* from identities i
    where i.tenant_id = v.tenant_id and i.kind = 'visitor' and i.value = v.value and i.retired_at is ${isActive ? '' : 'not '}null`
  const hasVerifiedLink = (own: 'a' | 'b', other: 'a' | 'b') => `exists (
    select from identity_links l join identities o on o.tenant_id = l.tenant_id and o.node = l.${other} and o.kind <> 'visitor'
    where l.tenant_id = i.tenant_id and l.${own} = i.node and l.undone_at is null and l.verified)`
  const { rows } = await queryPrepared<VisitorNode & { tenantId: number; value: string }>(
    db,
    `select i.tenant_id as "tenantId", i.value, i.node, i.profile, i.seen_with as "seenWith", i.seen_after as "seenAfter",
       coalesce(w.kind <> 'email', false) as "isNamed",
       i.retired_at is null and (${hasVerifiedLink('a', 'b')} or ${hasVerifiedLink('b', 'a')}) as "isVerified"
     from unnest($1::int[], $2::text[]) as v (tenant_id, value)
     cross join lateral (${nodes(true)} union all ${nodes(false)}) i
     left join identities w on w.tenant_id = i.tenant_id and w.node = i.seen_with
     order by i.node`,
    toColumns(visitors, 'tenantId', 'value'),
  )
  return rows
}

/** The identifiers of these nodes. */
export async function loadIdentifiers(
  db: Db,
  nodes: { tenantId: number; node: number }[],
): Promise<(IdentifierKey & NodeProfile)[]> {
  const { rows } = await queryPrepared<IdentifierKey & NodeProfile>(
    db,
    `select i.tenant_id as "tenantId", i.node, i.profile, i.kind, i.value
     from unnest($1::int[], $2::bigint[]) as n (tenant_id, node)
     join identities i on i.tenant_id = n.tenant_id and i.node = n.node`,
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
       select tenant_id as "tenantId", node, kind, value, profile, verified as "isVerified", retired_at is not null as "isRetired",
         seen_after as "seenAfter"
       from identities where tenant_id = p.tenant_id and profile = p.profile
       order by kind = 'visitor', node limit ${MAX_NODES_OF_PROFILE}
     ) n`,
    toColumns(profiles, 'tenantId', 'profile'),
  )
  return rows
}

export type StoredLink = PlannedLink & { tenantId: number }
export type LinkRow = Omit<StoredLink, 'at' | 'cause'> & { linkedAt: Date; causeKind: Cause['kind']; causeId: string }

export const LINK = `l.tenant_id as "tenantId", l.a, l.b, l.verified as "isVerified", l.linked_at as "linkedAt", l.cause as "causeKind",
  l.cause_id as "causeId", l.undone_at is not null as "isUndone", coalesce(l.undone_at <= l.linked_at, false) as "mayReturn"`

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
     join identity_links l on l.tenant_id = p.tenant_id and l.a = p.a and l.b = p.b and l.origin <> 'command'`,
    toColumns(pairs, 'tenantId', 'a', 'b'),
  )
  return rows.map(toLink)
}

/** Writes links. Replaces stored ones, except those that an operator undid. Only an operator links these again. */
export async function upsertLinks(db: Db, links: StoredLink[]): Promise<void> {
  await queryPrepared(
    db,
    `insert into identity_links as l (tenant_id, a, b, verified, cause, cause_id, linked_at, undone_at)
     select "tenantId", a, b, "isVerified", cause ->> 'kind', cause ->> 'id', at, case when "isUndone" then at end
     from json_to_recordset($1) as n ("tenantId" int, a bigint, b bigint, "isVerified" boolean, cause json, at timestamptz,
       "isUndone" boolean)
     order by 1, 2, 3
     on conflict (tenant_id, a, b, origin) do update set
       verified = excluded.verified, cause = excluded.cause, cause_id = excluded.cause_id, linked_at = excluded.linked_at,
       undone_at = excluded.undone_at
     where l.undone_at is null or excluded.cause = 'command' or l.undone_at <= l.linked_at and excluded.verified`,
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

/** An order, and the node of its contact if the order still links its visitor with it. */
export type OrderBuyer = { tenantId: number; orderId: string; buyer: number | null }

/** Deletes the links that these orders caused, except those with the buyer. Returns their nodes. */
export async function deleteSaleLinks(db: Db, orders: OrderBuyer[]): Promise<{ tenantId: number; node: number }[]> {
  const { rows } = await queryPrepared<{ tenantId: number; node: number }>(
    db,
    `with gone as (
       delete from identity_links l using unnest($1::int[], $2::text[], $3::bigint[]) as o (tenant_id, order_id, buyer)
       where l.tenant_id = o.tenant_id and l.cause = 'sale' and l.cause_id = o.order_id
         and (o.buyer is null or o.buyer not in (l.a, l.b))
       returning l.tenant_id, l.a, l.b
     )
     select tenant_id as "tenantId", unnest(array[a, b]) as node from gone`,
    toColumns(orders, 'tenantId', 'orderId', 'buyer'),
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
  for (const table of ['identity_links', 'record_links'])
    for (const end of ['a', 'b'])
      await db.query(`delete from ${table} where tenant_id = $1 and ${end} = any($2::bigint[])`, [tenantId, nodes])
}

/** Marks links as undone. */
export async function undoLinks(db: Db, links: StoredLink[]): Promise<void> {
  await queryPrepared(
    db,
    `update identity_links l set undone_at = now()
     from unnest($1::int[], $2::bigint[], $3::bigint[], $4::text[]) as p (tenant_id, a, b, origin)
     where l.tenant_id = p.tenant_id and l.a = p.a and l.b = p.b and l.origin = p.origin`,
    [...toColumns(links, 'tenantId', 'a', 'b'), links.map(({ cause }) => originOf(cause))],
  )
}

type VisitorChange = {
  tenantId: number
  node: number
  seenWith: number | null
  seenAfter: number | null
  isActive: boolean
}
/** `from`: another node of the visitor id. `node`: one from `allocateNodes`. */
type NewVisitorNode = VisitorChange & { from: number; profile: number; isVerified: boolean }

export async function allocateNodes(db: Db, count: number): Promise<number[]> {
  const { rows } = await queryPrepared<{ node: number }>(
    db,
    `select nextval('identity_nodes') as node from generate_series(1, $1)`,
    [count],
  )
  return rows.map(({ node }) => node)
}

/** Changes and creates nodes of visitor ids. Each visitor id of `changed` has at most one active node afterwards. */
export async function writeVisitorNodes(db: Db, changed: VisitorChange[], created: NewVisitorNode[]): Promise<void> {
  // First, because a visitor id may have only one active node.
  const retired = changed.filter(({ isActive }) => !isActive)
  if (retired.length > 0) await changeVisitorNodes(db, retired)
  const active = changed.filter(({ isActive }) => isActive)
  if (active.length > 0) await changeVisitorNodes(db, active)
  if (created.length === 0) return
  await queryPrepared(
    db,
    `insert into identities (tenant_id, kind, value, node, profile, verified, verified_by_input, seen_with, seen_after, retired_at)
     select c.tenant_id, i.kind, i.value, c.node, c.profile, c.verified, c.verified, c.seen_with, c.seen_after,
       case when not c.is_active then now() end
     from unnest($1::int[], $2::bigint[], $3::bigint[], $4::bigint[], $5::boolean[], $6::bigint[], $7::bigint[], $8::boolean[])
       as c (tenant_id, from_node, node, profile, verified, seen_with, seen_after, is_active)
     join identities i on i.tenant_id = c.tenant_id and i.node = c.from_node`,
    toColumns(created, 'tenantId', 'from', 'node', 'profile', 'isVerified', 'seenWith', 'seenAfter', 'isActive'),
  )
}

async function changeVisitorNodes(db: Db, changed: VisitorChange[]): Promise<void> {
  await queryPrepared(
    db,
    `update identities i set seen_with = c.seen_with, seen_after = c.seen_after,
       retired_at = case when not c.is_active then coalesce(i.retired_at, now()) end
     from unnest($1::int[], $2::bigint[], $3::bigint[], $4::bigint[], $5::boolean[])
       as c (tenant_id, node, seen_with, seen_after, is_active)
     where i.tenant_id = c.tenant_id and i.node = c.node`,
    toColumns(changed, 'tenantId', 'node', 'seenWith', 'seenAfter', 'isActive'),
  )
}

/** `byInput`: by other input than a record. */
export type VerifiedNode = { tenantId: number; node: number; byInput: boolean }

export async function verifyIdentifiers(db: Db, nodes: VerifiedNode[]): Promise<void> {
  await queryPrepared(
    db,
    `update identities i set verified = true, verified_by_input = i.verified_by_input or n.by_input
     from (
       select tenant_id, node, bool_or(by_input) as by_input
       from unnest($1::int[], $2::bigint[], $3::boolean[]) as n (tenant_id, node, by_input) group by 1, 2 order by 1, 2
     ) n
     where i.tenant_id = n.tenant_id and i.node = n.node`,
    toColumns(nodes, 'tenantId', 'node', 'byInput'),
  )
}

/** The pairs of a record's identifiers. `a` is the smaller node. */
export type RecordPairs = { tenantId: number; record: string; at: number; pairs: { a: number; b: number }[] }

/** Waits until no transaction is removing the links of these pairs, and prevents it until this transaction ends. */
export async function shareRecordLinks(db: Db, pairs: NodePair[]): Promise<void> {
  await queryPrepared(
    db,
    `select from identity_links l join unnest($1::int[], $2::bigint[], $3::bigint[]) as p (tenant_id, a, b)
       on l.tenant_id = p.tenant_id and l.a = p.a and l.b = p.b and l.origin = 'record'
     order by l.tenant_id, l.a, l.b for key share of l`,
    toColumns(pairs, 'tenantId', 'a', 'b'),
  )
}

/** Replaces the pairs of these records. Returns the pairs that a record no longer has. */
export async function replaceRecordLinks(db: Db, records: RecordPairs[]): Promise<NodePair[]> {
  const rows = records.flatMap(({ pairs, ...record }) => pairs.map(pair => ({ ...record, ...pair })))
  const found = await queryPrepared<NodePair>(
    db,
    `with current as (
       select * from json_to_recordset($1) as c ("tenantId" int, record text, at bigint, a bigint, b bigint)
     ), added as (
       insert into record_links (tenant_id, a, b, record, linked_at)
       select "tenantId", a, b, record, to_timestamp(at / 1000.0) from current order by 1, 2, 3, 4
       on conflict do nothing
     ), gone as (
       delete from record_links l using unnest($2::int[], $3::text[]) as r (tenant_id, record)
       where l.tenant_id = r.tenant_id and l.record = r.record and not exists (
         select from current c
         where c."tenantId" = l.tenant_id and c.record = l.record and c.a = l.a and c.b = l.b)
       returning l.tenant_id, l.a, l.b
     )
     select distinct tenant_id as "tenantId", a, b from gone`,
    [JSON.stringify(rows), ...toColumns(records, 'tenantId', 'record')],
  )
  return found.rows
}

/**
 * After records no longer have these pairs: their links continue with another record that has them, or end. What
 * only these records named is no longer verified. The caller holds the profile lock.
 */
export async function withdrawRecordLinks(db: Db, pairs: NodePair[]): Promise<void> {
  const columns = toColumns(pairs, 'tenantId', 'a', 'b')
  const stale = `unnest($1::int[], $2::bigint[], $3::bigint[]) as p (tenant_id, a, b)`
  // Waits for transactions that rely on these links (`shareRecordLinks`), and sees their rows in the next statement.
  await queryPrepared(
    db,
    `select from identity_links l join ${stale}
       on l.tenant_id = p.tenant_id and l.a = p.a and l.b = p.b and l.origin = 'record'
     order by l.tenant_id, l.a, l.b for update of l`,
    columns,
  )
  await queryPrepared(
    db,
    `with pairs as (
       select p.*, r.record, r.linked_at from ${stale}
       left join lateral (
         select record, linked_at from record_links r
         where r.tenant_id = p.tenant_id and r.a = p.a and r.b = p.b order by record limit 1
       ) r on true
     ), continued as (
       update identity_links l set cause_id = p.record, linked_at = p.linked_at from pairs p
       where l.tenant_id = p.tenant_id and l.a = p.a and l.b = p.b and l.origin = 'record' and l.undone_at is null
         and not exists (
           select from record_links r where r.tenant_id = l.tenant_id and r.a = l.a and r.b = l.b and r.record = l.cause_id)
         and p.record is not null
     ), withdrawn as (
       update identity_links l set undone_at = '-infinity' from pairs p
       where l.tenant_id = p.tenant_id and l.a = p.a and l.b = p.b and l.origin = 'record' and l.undone_at is null
         and p.record is null
     )
     update identities i set verified = false
     from (select distinct tenant_id, unnest(array[a, b]) as node from pairs) n
     where i.tenant_id = n.tenant_id and i.node = n.node and i.verified and not i.verified_by_input
       and not exists (select from record_links r where r.tenant_id = n.tenant_id and r.a = n.node)
       and not exists (select from record_links r where r.tenant_id = n.tenant_id and r.b = n.node)`,
    columns,
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
