import type { Identifier } from '../../domain/identity/identifiers.ts'
import type { Db } from '../../postgres/database.ts'
import { OUTDATE_MOVED_EVENTS } from '../sums/series.ts'
import { deleteLinks, LINK, type LinkRow, type NewTouch, type StoredLink, toLink } from './identities.ts'

export type NodeIdentifier = Identifier & {
  node: number
  profile: number
  firstSeenAt: Date
  retired: boolean
}

/**
 * These nodes, all nodes of their profiles, all nodes that their identifiers ever had, and the unlinked nodes that
 * appeared with them, recursively. A rebuild of these nodes affects no others.
 */
export async function loadConnected(db: Db, tenantId: number, nodes: number[]): Promise<NodeIdentifier[]> {
  const { rows } = await db.query<NodeIdentifier>(
    `with recursive circle as (
       select node from identities where tenant_id = $1 and node = any($2::bigint[])
       union
       select other.node from circle c
       join identities i on i.tenant_id = $1 and i.node = c.node
       cross join lateral (
         select node from identities where tenant_id = $1 and profile = i.profile
         union all
         select node from identities where tenant_id = $1 and kind = i.kind and value = i.value and retired_at is null
         union all
         select node from identities where tenant_id = $1 and kind = i.kind and value = i.value and retired_at is not null
         union all
         select b from identity_links where tenant_id = $1 and a = c.node
         union all
         select a from identity_links where tenant_id = $1 and b = c.node
       ) other
     )
     select i.node, i.profile, i.kind, i.value, i.first_seen_at as "firstSeenAt", i.retired_at is not null as retired
     from circle join identities i on i.tenant_id = $1 and i.node = circle.node order by i.node`,
    [tenantId, nodes],
  )
  return rows
}

/** The active links among these nodes. */
export async function loadLinksAmong(db: Db, tenantId: number, nodes: number[]): Promise<StoredLink[]> {
  const { rows } = await db.query<LinkRow>(
    `select ${LINK} from identity_links l
     where l.tenant_id = $1 and l.undone_at is null and l.a = any($2::bigint[]) and l.b = any($2::bigint[])
     order by l.linked_at, l.cause_id`,
    [tenantId, nodes],
  )
  return rows.map(toLink)
}

/** Causes of links that an operator has undone. They must not link again. */
export async function loadUndoneCauses(db: Db, tenantId: number, nodes: number[]): Promise<Set<string>> {
  const { rows } = await db.query<{ cause: string }>(
    `select cause || ' ' || cause_id as cause from identity_links
     where tenant_id = $1 and undone_at > linked_at and a = any($2::bigint[]) and b = any($2::bigint[])`,
    [tenantId, nodes],
  )
  return new Set(rows.map(({ cause }) => cause))
}

/** Records of these people: contacts by id, orders by the node of the buyer. */
export async function loadLinkingRecords(
  db: Db,
  tenantId: number,
  nodes: number[],
  contactIds: string[],
): Promise<{ entityType: 'contact' | 'order'; id: string; data: string; updatedAt: Date }[]> {
  const { rows } = await db.query<{
    entityType: 'contact' | 'order'
    id: string
    data: string
    updatedAt: Date
  }>(
    `select entity_type as "entityType", id, data, updated_at as "updatedAt" from records
     where tenant_id = $1 and not deleted
       and (entity_type = 'contact' and id = any($3)
         or entity_type = 'order' and id = any(array(
           select order_id from conversions where tenant_id = $1 and order_state = 'live' and order_node = any($2::bigint[]))))`,
    [tenantId, nodes, contactIds],
  )
  return rows
}

/** Resets each identifier to its first node and a profile of its own. Deletes later nodes and links. */
export async function resetIdentifiers(
  db: Db,
  tenantId: number,
  { nodes, first, unverify }: { nodes: number[]; first: number[]; unverify: boolean },
): Promise<void> {
  // A link that an operator has undone stays undone.
  await db.query(
    `delete from identity_links where tenant_id = $1 and a = any($2::bigint[]) and b = any($2::bigint[])
       and (undone_at is null or undone_at = linked_at)`,
    [tenantId, nodes],
  )
  await db.query('delete from record_links where tenant_id = $1 and a = any($2::bigint[]) and b = any($2::bigint[])', [
    tenantId,
    nodes,
  ])
  await db.query(
    'delete from identities where tenant_id = $1 and node = any($2::bigint[]) and node <> all($3::bigint[])',
    [tenantId, nodes, first],
  )
  await db.query(
    `update identities set profile = node, retired_at = null, last_seen_at = null, seen_with = null, seen_after = null,
       verified = verified and not $3,
       verified_by_input = verified_by_input and not $3
     where tenant_id = $1 and node = any($2::bigint[])`,
    [tenantId, first, unverify],
  )
}

/** Deletes and returns the touches of these nodes. */
export async function takeTouches(db: Db, tenantId: number, nodes: number[]): Promise<NewTouch[]> {
  const { rows } = await db.query<NewTouch>(
    `delete from touches where tenant_id = $1 and node = any($2::bigint[])
     returning tenant_id as "tenantId", node, kind, direct, occurred_at as "occurredAt", received_at as "receivedAt", event_id as "eventId", source, medium, campaign`,
    [tenantId, nodes],
  )
  return rows
}

export async function deleteUnreferenced(db: Db, tenantId: number, nodes: number[]): Promise<number> {
  await deleteLinks(db, tenantId, nodes)
  const { rowCount } = await db.query('delete from identities where tenant_id = $1 and node = any($2::bigint[])', [
    tenantId,
    nodes,
  ])
  return rowCount ?? 0
}

/** Assigns events to other nodes, by their physical position. The caller holds the profile lock. */
export async function moveEvents(
  db: Db,
  moves: { table: number; row: string; id: string; node: number | null }[],
): Promise<void> {
  const { rows } = await db.query<{ count: number }>(
    `with moved as (
       update events e set node = m.node
       from unnest($1::oid[], $2::tid[], $3::uuid[], $4::bigint[]) as m (table_id, row_id, id, node)
       where e.tableoid = m.table_id and e.ctid = m.row_id and e.id = m.id
       returning e.tenant_id, e.occurred_at, e.event_type, e.source
     ), outdated as (${OUTDATE_MOVED_EVENTS})
     select count(*) from moved`,
    [moves.map(m => m.table), moves.map(m => m.row), moves.map(m => m.id), moves.map(m => m.node)],
  )
  // The events were read before the lock was taken, so an erasure may have deleted some. The rebuild is then retried.
  if (rows[0]!.count !== moves.length) throw new Error('Events changed during the rebuild. It will be retried.')
}

/** Updates references to deleted nodes: to the current node of the identifier, or, for sales, of the event. */
export async function updateReferences(
  db: Db,
  tenantId: number,
  { nodes, events }: { nodes: Map<number, number>; events: Map<string, number | null> },
): Promise<void> {
  const pairs = [[...nodes.keys()], [...nodes.values()]]
  await db.query(
    `update conversions c set order_node = n.now from unnest($2::bigint[], $3::bigint[]) as n (before, now)
     where c.tenant_id = $1 and c.order_node = n.before`,
    [tenantId, ...pairs],
  )
  for (const [node, event] of [
    ['event_node', 'event_node_id'],
    ['claim_node', 'claim_id'],
  ])
    await db.query(
      `update conversions c set ${node} = case when e.id is null then n.now else e.node end
       from unnest($2::bigint[], $3::bigint[]) as n (before, now), conversions own
       left join unnest($4::uuid[], $5::bigint[]) as e (id, node) on e.id = own.${event}
       where c.tenant_id = $1 and c.${node} = n.before and own.tenant_id = c.tenant_id and own.sale_key = c.sale_key`,
      [tenantId, ...pairs, [...events.keys()], [...events.values()]],
    )
  await db.query(
    `update billing_accounts a set node = n.now from unnest($2::bigint[], $3::bigint[]) as n (before, now)
     where a.tenant_id = $1 and a.node = n.before`,
    [tenantId, ...pairs],
  )
}
