import type pg from 'pg'
import type { Entry } from '../../domain/entries/entry.ts'
import { addressSpellings } from '../../domain/identity/erasure.ts'
import type { IdentifierKind } from '../../domain/identity/identifiers.ts'
import { type Db, queryLong, readPortions } from '../../postgres/database.ts'
import { ENTRY_COLUMNS, toEntry } from '../../postgres/entries.ts'
import { IS_THEIR_SALE } from '../conversions/conversions.ts'
import { SUBTRACT_EVENTS } from '../sums/series.ts'
import { deleteLinks } from './identities.ts'

/** `node` is null for an identifier that was never seen. */
export type TracedIdentifier = { node: number | null; kind: IdentifierKind; value: string }

/** All identifiers of a person. */
export async function loadTracedIdentifiers(db: Db, tenantId: number, profile: number): Promise<TracedIdentifier[]> {
  const { rows } = await db.query<TracedIdentifier>(
    'select node, kind, value from identities where tenant_id = $1 and profile = $2 order by node',
    [tenantId, profile],
  )
  return rows
}

/** Identifiers that records of these nodes had in earlier versions, and that no one else has. */
export async function loadFormerIdentifiers(db: Db, tenantId: number, nodes: number[]): Promise<TracedIdentifier[]> {
  const { rows } = await db.query<TracedIdentifier>(
    `select distinct i.node, i.kind, i.value from (
       select b as node from identity_links
       where tenant_id = $1 and a = any($2::bigint[]) and origin = 'record' and undone_at < linked_at
       union
       select a from identity_links
       where tenant_id = $1 and b = any($2::bigint[]) and origin = 'record' and undone_at < linked_at
     ) l join identities i on i.tenant_id = $1 and i.node = l.node
     where not i.verified and not exists (
       select from identities o where o.tenant_id = $1 and o.profile = i.profile and o.node <> i.node)`,
    [tenantId, nodes],
  )
  return rows
}

// Bodies have at most a megabyte each.
const ROWS_AT_A_TIME = 50

/** The physical position of an event: its table partition and row. */
export type EventRow = { table: number; row: string; id: string; receivedAt: Date }

export async function findEventsOfNodes(
  db: Db,
  tenantId: number,
  nodes: number[],
  receivedSince: Date | null,
): Promise<EventRow[]> {
  const { rows } = await queryLong<EventRow>(
    db,
    `select tableoid::int8 as table, ctid::text as row, id, received_at as "receivedAt" from events
     where tenant_id = $1 and node = any($2::bigint[]) and ($3::timestamptz is null or received_at >= $3)`,
    [tenantId, nodes, receivedSince],
  )
  return rows
}

/** The nodes of other people that appeared with these nodes, or that one of these e-mail addresses was removed from. */
export async function findLinkedNodes(
  db: Db,
  tenantId: number,
  { nodes, emails }: { nodes: number[]; emails: string[] },
): Promise<number[]> {
  const { rows } = await queryLong<{ node: number }>(
    db,
    `select i.node from identities i where i.tenant_id = $1 and not i.node = any($2::bigint[]) and i.profile in (
       select o.profile from identity_links l join identities o on o.tenant_id = l.tenant_id and o.node = l.a
       where l.tenant_id = $1 and l.b = any($2::bigint[])
       union
       select o.profile from identity_links l join identities o on o.tenant_id = l.tenant_id and o.node = l.b
       where l.tenant_id = $1 and l.a = any($2::bigint[])
       union
       select profile from identities
       where tenant_id = $1 and kind = 'email' and value = any($3) and retired_at is not null)`,
    [tenantId, nodes, emails],
  )
  return rows.map(({ node }) => node)
}

export async function deleteEventsAt(db: Db, events: EventRow[]): Promise<number> {
  const { rows } = await db.query<{ count: number }>(
    `with gone as (
       delete from events e using unnest($1::oid[], $2::tid[], $3::uuid[]) as d (table_id, row_id, id)
       where e.tableoid = d.table_id and e.ctid = d.row_id and e.id = d.id
       returning e.tenant_id, e.occurred_at, e.event_type, e.source, e.conversion
     ), subtracted as (${SUBTRACT_EVENTS})
     select count(*) from gone`,
    [events.map(event => event.table), events.map(event => event.row), events.map(event => event.id)],
  )
  return rows[0]!.count
}

/** Deletes these events from the archives of sources. */
export async function deleteArchived(db: Db, tenantId: number, events: EventRow[]): Promise<number> {
  const { rowCount } = await db.query(
    `delete from archive a using unnest($2::uuid[], $3::timestamptz[]) as e (id, received_at)
     where a.tenant_id = $1 and a.id = e.id and a.received_at = e.received_at`,
    [tenantId, events.map(event => event.id), events.map(event => event.receivedAt)],
  )
  return rowCount ?? 0
}

export async function countArchived(db: Db, tenantId: number, events: EventRow[]): Promise<number> {
  const { rows } = await db.query<{ count: number }>(
    `select count(*) from archive a join unnest($2::uuid[], $3::timestamptz[]) as e (id, received_at)
       on a.id = e.id and a.received_at = e.received_at where a.tenant_id = $1`,
    [tenantId, events.map(event => event.id), events.map(event => event.receivedAt)],
  )
  return rows[0]!.count
}

export async function countContacts(db: Db, tenantId: number, ids: string[]): Promise<number> {
  const { rows } = await db.query<{ count: number }>(
    `select count(*) from records where tenant_id = $1 and entity_type = 'contact' and id = any($2) and not deleted`,
    [tenantId, ids],
  )
  return rows[0]!.count
}

export async function countTouches(db: Db, tenantId: number, nodes: number[]): Promise<number> {
  const { rows } = await db.query<{ count: number }>(
    'select count(*) from touches where tenant_id = $1 and node = any($2::bigint[])',
    [tenantId, nodes],
  )
  return rows[0]!.count
}

/**
 * A sale of a person. `orderId`: its order record is about them. `isNamed`: an event of theirs only names it. It belongs to
 * another person, or to no one if the event is unverified.
 */
export type TracedSale = { saleKey: string; orderId: string | null; isNamed: boolean }

export async function findSales(
  db: Db,
  tenantId: number,
  nodes: number[],
  contactIds: string[],
): Promise<TracedSale[]> {
  const { text, values } = tracedSales(tenantId, nodes, contactIds)
  const { rows } = await queryLong<TracedSale>(db, text, values)
  return rows
}

/** The statement. Exported so that a test can check its plan. */
export function tracedSales(tenantId: number, nodes: number[], contactIds: string[]) {
  const text = `
    select sale_key as "saleKey", case when order_state = 'live' and is_theirs then order_id end as "orderId",
      not is_theirs as "isNamed"
    from (
      select *, coalesce(${IS_THEIR_SALE}, false) as is_theirs from conversions
      where tenant_id = $1 and (event_node = any($2::bigint[]) or order_node = any($2::bigint[])
        or order_contact_id = any($3) or claim_node = any($2::bigint[]))
    ) c`
  return { text, values: [tenantId, nodes, contactIds] }
}

/**
 * The sale stays without the person, so that totals in reports do not change. Of a sale that they only named, the rest stays.
 * Returns the number of their own sales.
 */
export async function anonymizeSales(db: Db, tenantId: number, nodes: number[], sales: TracedSale[]): Promise<number> {
  const clear = (column: string, node: string) =>
    `${column} = case when s.is_named and not coalesce(${node} = any($4::bigint[]), false) then ${column} end`
  const { rows } = await db.query<{ isNamed: boolean }>(
    `update conversions c set ${clear('claim_node', 'claim_node')}, ${clear('claim_visitor', 'claim_node')},
       ${clear('event_node', 'event_node')}, ${clear('event_visitor', 'event_node')},
       order_node = case when s.is_named then order_node end,
       order_contact_id = case when s.is_named then order_contact_id end
     from unnest($2::text[], $3::boolean[]) as s (sale_key, is_named)
     where c.tenant_id = $1 and c.sale_key = s.sale_key returning s.is_named as "isNamed"`,
    [tenantId, sales.map(({ saleKey }) => saleKey), sales.map(({ isNamed }) => isNamed), nodes],
  )
  return rows.filter(({ isNamed }) => !isNamed).length
}

/** Keeps only these fields of orders. A repeated write with the same time is superseded and cannot restore the others. */
export async function reduceOrders(db: Db, tenantId: number, ids: string[], keptFields: string[]): Promise<number> {
  const { rowCount } = await db.query(
    `update records set external_id = null, updated_at = now(), source_updated_at = source_updated_at + interval '1 microsecond', data = coalesce(
       (select jsonb_object_agg(f.key, f.value) from jsonb_each(data) f
        where f.key = any($3) and jsonb_typeof(f.value) in ('string', 'number', 'boolean')), '{}')
     where tenant_id = $1 and entity_type = 'order' and id = any($2) and not deleted`,
    [tenantId, ids, keptFields],
  )
  return rowCount ?? 0
}

/** Some senders build ids from e-mail addresses. Removes such ids from receipts and keeps the outcome. */
export async function anonymizeReceipts(db: Db, tenantId: number, emails: string[]): Promise<void> {
  if (emails.length === 0) return
  await queryLong(
    db,
    `update receipts set inbound_event_id = null, detail = null
     where tenant_id = $1 and (inbound_event_id ilike any($2) or detail ilike any($2))`,
    [tenantId, addressPatterns(emails)],
  )
}

/** ILIKE patterns that match text with one of the addresses, however it is encoded. */
export function addressPatterns(emails: string[]): string[] {
  return emails.flatMap(addressSpellings).map(spelling => `%${spelling.replace(/[\\%_]/g, '\\$&')}%`)
}

/** Also matches every encoded word of an e-mail header: its letters may be encoded one by one. The caller decodes it. */
export function candidatePatterns(emails: string[]): string[] {
  return [...addressPatterns(emails), '%=?%?=%']
}

/** Contacts and orders whose data matches one of these patterns. Scans all records of the tenant. */
export async function recordsLike(
  db: Db,
  tenantId: number,
  patterns: string[],
): Promise<{ entityType: 'contact' | 'order'; id: string; data: string }[]> {
  const { rows } = await queryLong<{ entityType: 'contact' | 'order'; id: string; data: string }>(
    db,
    `select entity_type as "entityType", id, data::text as data from records
     where tenant_id = $1 and entity_type in ('contact', 'order') and not deleted and data::text ilike any($2)`,
    [tenantId, patterns],
  )
  return rows
}

/** Leaves a tombstone, so that a late older write does not restore the contact. */
export async function buryContacts(
  db: Db,
  tenantId: number,
  ids: string[],
  at: Date,
  entryId: string,
): Promise<number> {
  const { rowCount } = await db.query(
    `update records set deleted = true, data = null, external_id = null, updated_at = now(), entry_id = $4,
       source_updated_at = greatest(source_updated_at, $3)
     where tenant_id = $1 and entity_type = 'contact' and id = any($2) and not deleted`,
    [tenantId, ids, at, entryId],
  )
  return rowCount ?? 0
}

export async function deleteIdentifiers(
  db: Db,
  tenantId: number,
  nodes: number[],
): Promise<{ names: number; touches: number }> {
  const touches = await db.query('delete from touches where tenant_id = $1 and node = any($2::bigint[])', [
    tenantId,
    nodes,
  ])
  await deleteLinks(db, tenantId, nodes)
  const names = await db.query('delete from identities where tenant_id = $1 and node = any($2::bigint[])', [
    tenantId,
    nodes,
  ])
  return { names: names.rowCount ?? 0, touches: touches.rowCount ?? 0 }
}

/** The tables of entries that are not applied, or not yet. */
export type EntryTable = 'dead_letters' | 'parked_entries' | 'overflow'

/** An entry and its row in its table. The primary keys of the tables differ. */
export type EntryRow = { entry: Entry; row: string }

/** Reads all entries of a tenant in a table, in portions, in a read-only transaction of its own. */
export async function* readEntries(
  client: pg.PoolClient,
  table: EntryTable,
  tenantId: number,
): AsyncGenerator<EntryRow[]> {
  const text = `select ctid::text as row, ${ENTRY_COLUMNS} from ${table} where tenant_id = $1`
  const query = { text, values: [tenantId], rowsAtATime: ROWS_AT_A_TIME }
  for await (const rows of readPortions<Entry & { row: string }>(client, query))
    yield rows.map(row => ({ row: row.row, entry: toEntry(row) }))
}

/** Returns false if the entry has been applied or moved in the meantime. */
export async function deleteEntry(db: Db, table: EntryTable, { row, entry }: EntryRow): Promise<boolean> {
  const { rowCount } = await db.query(`delete from ${table} where tenant_id = $1 and ctid = $2::tid and id = $3`, [
    entry.tenantId,
    row,
    entry.id,
  ])
  return rowCount === 1
}

/** Keeps only these items of the request. Returns false if the entry has been applied or moved in the meantime. */
export async function narrowEntry(
  db: Db,
  table: 'parked_entries' | 'overflow',
  { row, entry }: EntryRow,
  { context, items, narrow }: { context: string; items: number; narrow: (body: string) => string },
): Promise<boolean> {
  const values = [entry.tenantId, row, entry.id]
  const isEntry = 'tenant_id = $1 and ctid = $2::tid and id = $3'
  const { rows } = await db.query<{ body: string }>(`select body from ${table} where ${isEntry} for update`, values)
  if (!rows[0]) return false
  const narrowed = [...values, context, narrow(rows[0].body)]
  const { rowCount } =
    table === 'overflow'
      ? await db.query(`update overflow set context = $4, body = $5, items = $6 where ${isEntry}`, [...narrowed, items])
      : await db.query(`update parked_entries set context = $4, body = $5 where ${isEntry}`, narrowed)
  return rowCount === 1
}
