import type { Db } from '../../postgres/database.ts'
import type { StoredNode } from './events.ts'

export type StoredPurge = {
  id: string
  tenantId: number
  requestedAt: Date
  keyId: string
  receivedSince: Date
  receivedUntil: Date | null
  status: 'running' | 'completed'
  /** JSON text */
  receipt: string
}

type PurgeKey = Pick<StoredPurge, 'tenantId' | 'id'>

const PURGE = `id, tenant_id as "tenantId", requested_at as "requestedAt", key_id as "keyId", received_since as "receivedSince",
  received_until as "receivedUntil", status, receipt::text as receipt`

export async function insertPurge(db: Db, purge: StoredPurge): Promise<void> {
  await db.query(
    `insert into purges (tenant_id, id, requested_at, key_id, received_since, received_until, status, receipt)
     values ($1, $2, $3, $4, $5, $6, $7, $8)`,
    [
      ...[purge.tenantId, purge.id, purge.requestedAt, purge.keyId, purge.receivedSince, purge.receivedUntil],
      ...[purge.status, purge.receipt],
    ],
  )
}

export async function findPurge(db: Db, id: string): Promise<StoredPurge | null> {
  const { rows } = await db.query<StoredPurge>(`select ${PURGE} from purges where id = $1`, [id])
  return rows[0] ?? null
}

/** Saves the progress in the transaction that makes it. */
export async function savePurge(
  db: Db,
  { tenantId, id, status, receipt }: Pick<StoredPurge, 'tenantId' | 'id' | 'status' | 'receipt'>,
): Promise<void> {
  await db.query('update purges set status = $3, receipt = $4, seen_at = now() where tenant_id = $1 and id = $2', [
    tenantId,
    id,
    status,
    receipt,
  ])
}

export async function keepPurge(db: Db, { tenantId, id }: PurgeKey): Promise<void> {
  await db.query('update purges set seen_at = now() where tenant_id = $1 and id = $2', [tenantId, id])
}

/** Claims a purge whose process has not reported for this long. The caller continues it. */
export async function takeLeftPurge(db: Db, silentS: number): Promise<StoredPurge | null> {
  const { rows } = await db.query<StoredPurge>(
    `update purges set seen_at = now()
     where (tenant_id, id) = (
       select tenant_id, id from purges where status = 'running' and seen_at < now() - $1 * interval '1 second'
       order by seen_at limit 1 for update skip locked)
     returning ${PURGE}`,
    [silentS],
  )
  return rows[0] ?? null
}

/** Deletes the sales that consist of only one of these events. */
export async function deleteOwnSales(db: Db, tenantId: number, eventIds: string[]): Promise<number> {
  const { rowCount } = await db.query(
    `delete from conversions where tenant_id = $1 and sale_key = any(array(select 'event:' || id from unnest($2::text[]) as e (id)))`,
    [tenantId, eventIds],
  )
  return rowCount ?? 0
}

/** Stores the nodes and sales that these events affected, until they are derived again. */
export async function keepPurgeWork(
  db: Db,
  { tenantId, id }: PurgeKey,
  { events, sales }: { events: StoredNode[]; sales: string[] },
): Promise<void> {
  await db.query(
    `insert into purge_nodes (tenant_id, purge_id, node)
     select distinct $1::int, $2::uuid, n.node from (
       select unnest($3::bigint[]) as node
       union all
       select unnest(array[l.a, l.b]) from identity_links l
       where l.tenant_id = $1 and l.cause = 'event' and l.cause_id = any($4)
     ) n where n.node is not null
     on conflict do nothing`,
    [tenantId, id, events.map(({ node }) => node), events.map(event => event.id)],
  )
  // People who were linked by a sale of these events.
  await db.query(
    `insert into purge_nodes (tenant_id, purge_id, node)
     select distinct $1::int, $2::uuid, n.node from identity_links l cross join unnest(array[l.a, l.b]) as n (node)
     where l.tenant_id = $1 and l.cause = 'sale'
       and l.cause_id = any(array(select substr(s, 7) from unnest($3::text[]) as s where s like 'order:%'))
     on conflict do nothing`,
    [tenantId, id, sales],
  )
  await keepPurgeSales(db, { tenantId, id }, sales)
}

export async function keepPurgeSales(db: Db, { tenantId, id }: PurgeKey, sales: string[]): Promise<void> {
  await db.query(
    `insert into purge_sales (tenant_id, purge_id, sale) select $1, $2, s from unnest($3::text[]) as s on conflict do nothing`,
    [tenantId, id, sales],
  )
}

export async function nodesToWorkOut(db: Db, { tenantId, id }: PurgeKey, limit: number): Promise<number[]> {
  const { rows } = await db.query<{ node: number }>(
    'select node from purge_nodes where tenant_id = $1 and purge_id = $2 order by node limit $3',
    [tenantId, id, limit],
  )
  return rows.map(({ node }) => node)
}

export async function nodesWorkedOut(db: Db, { tenantId, id }: PurgeKey, nodes: number[]): Promise<void> {
  await db.query('delete from purge_nodes where tenant_id = $1 and purge_id = $2 and node = any($3::bigint[])', [
    tenantId,
    id,
    nodes,
  ])
  // A trigger increments the version of the configuration, so workers drop their memory.
  await db.query('update purges set rounds = rounds + 1 where tenant_id = $1 and id = $2', [tenantId, id])
}

export async function salesToWorkOut(db: Db, { tenantId, id }: PurgeKey): Promise<string[]> {
  const { rows } = await db.query<{ sale: string }>(
    'select sale from purge_sales where tenant_id = $1 and purge_id = $2 order by sale',
    [tenantId, id],
  )
  return rows.map(({ sale }) => sale)
}

export async function salesWorkedOut(db: Db, { tenantId, id }: PurgeKey, sales: string[]): Promise<void> {
  await db.query('delete from purge_sales where tenant_id = $1 and purge_id = $2 and sale = any($3)', [
    tenantId,
    id,
    sales,
  ])
}

/** Deletes entries sent with the key that were never applied. */
export async function deleteEntriesOfKey(
  db: Db,
  table: 'dead_letters' | 'parked_entries',
  { tenantId, keyId, receivedSince, receivedUntil }: StoredPurge,
): Promise<number> {
  const { rowCount } = await db.query(
    `delete from ${table} where tenant_id = $1 and kind = 'events' and context::json ->> 'key' = (select number::text from api_keys where id = $2)
       and received_at >= $3 and ($4::timestamptz is null or received_at < $4)`,
    [tenantId, keyId, receivedSince, receivedUntil],
  )
  return rowCount ?? 0
}

/** The number of links that these events caused. */
export async function countJoins(db: Db, tenantId: number, eventIds: string[]): Promise<number> {
  const { rows } = await db.query<{ count: number }>(
    `select count(*) from identity_links where tenant_id = $1 and cause = 'event' and cause_id = any($2) and undone_at is null`,
    [tenantId, eventIds],
  )
  return rows[0]!.count
}
