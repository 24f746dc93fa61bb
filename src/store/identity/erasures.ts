import type { Entry } from '../../domain/entry.ts'
import type { IdentityKind } from '../../domain/identity/identity.ts'
import { entryIdOf } from '../../domain/ids.ts'
import type { Db } from '../../postgres/database.ts'
import { ENTRY_COLUMNS, entryOf } from '../../postgres/entries.ts'

export type KnownName = { node: number; kind: IdentityKind; value: string }

/** Everything a person is known by, found by one e-mail address or by the profile. */
export async function namesOf(
  db: Db,
  tenantId: number,
  subject: { email: string } | { profile: number },
): Promise<KnownName[]> {
  const where =
    'email' in subject
      ? `profile = (select profile from identities where tenant_id = $1 and kind = 'email' and value = $2 and retired_at is null)`
      : 'profile = $2'
  const { rows } = await db.query<KnownName>(
    `select node, kind, value from identities where tenant_id = $1 and ${where} order by node`,
    [tenantId, 'email' in subject ? subject.email : subject.profile],
  )
  return rows
}

/** Entries that came in before a moment and have not taken effect yet. */
export async function countUnapplied(db: Db, tenantId: number, before: Date): Promise<number> {
  const { rows } = await db.query<{ count: number }>(
    `select (select count(*) from log_cursors c
         join log l on l.partition = c.partition and (l.xid, l.ord) > (c.xid, c.ord)
         where l.tenant_id = $1 and l.received_at <= $2)
       + (select count(*) from parked_entries where tenant_id = $1 and received_at <= $2) as count`,
    [tenantId, before],
  )
  return rows[0]!.count
}

/** Where an event lies: its partition and its row there. */
export type EventRow = { table: number; row: string; id: string; receivedAt: Date }

/** Reads all of the tenant's events of the time: no index leads from a person to them, because every event would pay for it. */
export async function findEventsOf(
  db: Db,
  tenantId: number,
  nodes: number[],
  receivedSince: Date | null,
): Promise<EventRow[]> {
  const { rows } = await db.query<EventRow>(
    `select tableoid::int8 as table, ctid::text as row, id, received_at as "receivedAt" from events
     where tenant_id = $1 and node = any($2::bigint[]) and ($3::timestamptz is null or received_at >= $3)`,
    [tenantId, nodes, receivedSince],
  )
  return rows
}

/** Events of others that were seen together with these nodes, but not joined: with what they say, to see of whom. */
export async function findUnjoinedEvents(
  db: Db,
  tenantId: number,
  nodes: number[],
  receivedSince: Date | null,
): Promise<(EventRow & { payload: string })[]> {
  const { rows } = await db.query<EventRow & { payload: string }>(
    `select tableoid::int8 as table, ctid::text as row, id, received_at as "receivedAt", payload from events
     where tenant_id = $1 and ($3::timestamptz is null or received_at >= $3)
       and node = any(array(select node from identity_unjoined where tenant_id = $1 and other = any($2::bigint[])))`,
    [tenantId, nodes, receivedSince],
  )
  return rows
}

export async function deleteEventsAt(db: Db, events: EventRow[]): Promise<number> {
  const { rowCount } = await db.query(
    `delete from events e using unnest($1::oid[], $2::tid[], $3::uuid[]) as d (table_id, row_id, id)
     where e.tableoid = d.table_id and e.ctid = d.row_id and e.id = d.id`,
    [events.map(event => event.table), events.map(event => event.row), events.map(event => event.id)],
  )
  return rowCount ?? 0
}

/** What sources' archives hold of these events. */
export async function deleteArchivedOf(db: Db, tenantId: number, events: EventRow[]): Promise<number> {
  const { rowCount } = await db.query(
    `delete from archive a using unnest($2::uuid[], $3::timestamptz[]) as e (id, received_at)
     where a.tenant_id = $1 and a.id = e.id and a.received_at = e.received_at`,
    [tenantId, events.map(event => event.id), events.map(event => event.receivedAt)],
  )
  return rowCount ?? 0
}

/** The requests that brought these events, where they are read and still in the log. */
export async function deleteLoggedOf(db: Db, tenantId: number, events: EventRow[]): Promise<number> {
  const entries = new Map(events.map(event => [entryIdOf(event.id), event.receivedAt]))
  const { rowCount } = await db.query(
    `delete from log l using unnest($2::uuid[], $3::timestamptz[]) as e (id, received_at), log_cursors c
     where l.tenant_id = $1 and l.received_at = e.received_at and l.id = e.id
       and c.partition = l.partition and (l.xid, l.ord) <= (c.xid, c.ord)`,
    [tenantId, [...entries.keys()], [...entries.values()]],
  )
  return rowCount ?? 0
}

export async function findSalesOf(
  db: Db,
  tenantId: number,
  nodes: number[],
  contactIds: string[],
): Promise<{ saleKey: string; orderId: string | null }[]> {
  const { rows } = await db.query<{ saleKey: string; orderId: string | null }>(
    `select sale_key as "saleKey",
       case when order_state = 'live' then substr(sale_key, length('order:') + 1) end as "orderId"
     from conversions
     where tenant_id = $1
       and (event_node = any($2::bigint[]) or order_node = any($2::bigint[]) or order_contact_id = any($3))`,
    [tenantId, nodes, contactIds],
  )
  return rows
}

/** The sale stays, nobody's: what reports add up does not change. */
export async function anonymiseSales(db: Db, tenantId: number, saleKeys: string[]): Promise<number> {
  const { rowCount } = await db.query(
    `update conversions set event_node = null, order_node = null, order_contact_id = null, event_visitor = null
     where tenant_id = $1 and sale_key = any($2)`,
    [tenantId, saleKeys],
  )
  return rowCount ?? 0
}

/** Of orders, only these fields stay. */
export async function reduceOrders(
  db: Db,
  tenantId: number,
  ids: string[],
  keptFields: string[],
): Promise<number> {
  const { rowCount } = await db.query(
    `update records set updated_at = now(), data = coalesce(
       (select jsonb_object_agg(f.key, f.value) from jsonb_each(data) f
        where f.key = any($3) and jsonb_typeof(f.value) in ('string', 'number', 'boolean')), '{}')
     where tenant_id = $1 and entity_type = 'order' and id = any($2) and not deleted`,
    [tenantId, ids, keptFields],
  )
  return rowCount ?? 0
}

/** Leaves a tombstone, so that an older write that comes late does not bring the contact back. */
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

export async function deleteNames(
  db: Db,
  tenantId: number,
  nodes: number[],
): Promise<{ names: number; touches: number }> {
  const touches = await db.query('delete from touches where tenant_id = $1 and node = any($2::bigint[])', [
    tenantId,
    nodes,
  ])
  await db.query(
    'delete from identity_unjoined where tenant_id = $1 and (node = any($2::bigint[]) or other = any($2::bigint[]))',
    [tenantId, nodes],
  )
  // What joined them may name them: a contact's id, an order's.
  await db.query('delete from identity_joins where tenant_id = $1 and nodes && $2::bigint[]', [
    tenantId,
    nodes,
  ])
  const names = await db.query('delete from identities where tenant_id = $1 and node = any($2::bigint[])', [
    tenantId,
    nodes,
  ])
  return { names: names.rowCount ?? 0, touches: touches.rowCount ?? 0 }
}

/** Where entries lie that are not, or not yet, applied. */
export type EntryTable = 'dead_letters' | 'parked_entries' | 'overflow'

/** An entry and its row in its table: primary keys differ. */
export type EntryRow = { entry: Entry; row: string }

/** Entries with one of these texts in their body. */
export async function findEntriesWith(
  db: Db,
  table: EntryTable,
  tenantId: number,
  texts: string[],
): Promise<EntryRow[]> {
  const { rows } = await db.query<Entry & { row: string }>(
    `select ctid::text as row, ${ENTRY_COLUMNS} from ${table} s
     where tenant_id = $1
       and exists (select 1 from unnest($2::text[]) as t (text) where strpos(lower(s.body), lower(t.text)) > 0)`,
    [tenantId, texts],
  )
  return rows.map(row => ({ row: row.row, entry: entryOf(row) }))
}

/** False when it has moved on meanwhile. */
export async function deleteEntry(db: Db, table: EntryTable, { row, entry }: EntryRow): Promise<boolean> {
  const { rowCount } = await db.query(
    `delete from ${table} where tenant_id = $1 and ctid = $2::tid and id = $3`,
    [entry.tenantId, row, entry.id],
  )
  return rowCount === 1
}

/** Leaves these items of the request, and takes the others out of its future. False when it has moved on meanwhile. */
export async function narrowEntry(
  db: Db,
  table: 'parked_entries' | 'overflow',
  { row, entry }: EntryRow,
  { context, items }: { context: string; items: number },
): Promise<boolean> {
  const values = [entry.tenantId, row, entry.id, context]
  const { rowCount } =
    table === 'overflow'
      ? await db.query(
          `update overflow set context = $4, items = $5 where tenant_id = $1 and ctid = $2::tid and id = $3`,
          [...values, items],
        )
      : await db.query(
          `update parked_entries set context = $4 where tenant_id = $1 and ctid = $2::tid and id = $3`,
          values,
        )
  return rowCount === 1
}

export type StoredErasure = { id: string; tenantId: number; requestedAt: Date; receipt: string }

/** A trigger moves the version of the configuration: workers forget whom they remember. `subjectHash`: of whom, for who asks again. */
export async function insertErasure(db: Db, erasure: StoredErasure & { subjectHash: Buffer }): Promise<void> {
  await db.query(
    'insert into erasures (tenant_id, id, requested_at, subject_hash, receipt) values ($1, $2, $3, $4, $5)',
    [erasure.tenantId, erasure.id, erasure.requestedAt, erasure.subjectHash, erasure.receipt],
  )
}

export async function finishErasure(db: Db, tenantId: number, id: string, receipt: string): Promise<void> {
  await db.query('update erasures set receipt = $3 where tenant_id = $1 and id = $2', [tenantId, id, receipt])
}

export async function listErasures(db: Db, tenantId: number, limit: number): Promise<StoredErasure[]> {
  const { rows } = await db.query<StoredErasure>(
    `select id, tenant_id as "tenantId", requested_at as "requestedAt", receipt from erasures
     where tenant_id = $1 order by requested_at desc, id desc limit $2`,
    [tenantId, limit],
  )
  return rows
}
