import type { Entry } from '../../domain/entries/entry.ts'
import { HOUR_MS } from '../../domain/time.ts'
import { type Db, queryPrepared } from '../../postgres/database.ts'
import { ENTRY_COLUMNS, toEntry } from '../../postgres/entries.ts'

/** An entry over its source's budget. `items`: the budget that it needs. */
export type DeferredEntry = { sourceId: string; entry: Entry; items: number }
/** `position`: its place in the queue of its source. */
export type QueuedEntry = DeferredEntry & { position: number }

export async function insertOverflow(db: Db, deferred: DeferredEntry[]): Promise<void> {
  await queryPrepared(
    db,
    `insert into overflow
       (source_id, id, tenant_id, kind, ordering_key, received_at, items, context, body_bytes, body)
     select * from json_to_recordset($1) as r (source_id text, id uuid, tenant_id int, kind text, ordering_key text,
       received_at timestamptz, items int, context text, body_bytes int, body text)`,
    [
      JSON.stringify(
        deferred.map(({ sourceId, entry, items }) => ({
          source_id: sourceId,
          id: entry.id,
          tenant_id: entry.tenantId,
          kind: entry.kind,
          ordering_key: entry.orderingKey,
          received_at: entry.receivedAt,
          items,
          context: entry.context,
          body_bytes: entry.body.length,
          body: entry.body,
        })),
      ),
    ],
  )
}

/** Sources with waiting entries. Jumps from source to source in the index, so the length of the queues does not matter. */
export async function listBacklogged(db: Db): Promise<string[]> {
  const { rows } = await db.query<{ sourceId: string }>(
    `with recursive found as (
       (select source_id from overflow order by source_id limit 1)
       union all
       select (select o.source_id from overflow o where o.source_id > f.source_id order by o.source_id limit 1)
       from found f where f.source_id is not null
     )
     select source_id as "sourceId" from found where source_id is not null`,
  )
  return rows.map(row => row.sourceId)
}

export async function hasOverflow(db: Db, sourceId: string): Promise<boolean> {
  const { rows } = await db.query<{ found: boolean }>(
    'select exists (select 1 from overflow where source_id = $1) as found',
    [sourceId],
  )
  return rows[0]!.found
}

/** The first entries of the queue: at least one, unless it is empty. */
export async function firstInOverflow(
  db: Db,
  sourceId: string,
  { maxRows, maxBytes }: { maxRows: number; maxBytes: number },
): Promise<QueuedEntry[]> {
  const { rows } = await db.query<Entry & { position: number; items: number }>(
    `select o.position, items, ${ENTRY_COLUMNS}
     from (
       select position, sum(body_bytes) over (order by position) - body_bytes as bytes_before
       from (select position, body_bytes from overflow where source_id = $1 order by position limit $2) first_rows
     ) sized join overflow o on o.source_id = $1 and o.position = sized.position
     where sized.bytes_before < $3 order by o.position`,
    [sourceId, maxRows, maxBytes],
  )
  return rows.map(row => ({ sourceId, position: row.position, items: row.items, entry: toEntry(row) }))
}

export async function deleteOverflow(db: Db, sourceId: string, positions: number[]): Promise<void> {
  await db.query('delete from overflow where source_id = $1 and position = any($2::bigint[])', [sourceId, positions])
}

/** Keeps the items of an entry that are not due yet, in the same place. */
export async function shrinkOverflow(db: Db, { sourceId, position, entry, items }: QueuedEntry): Promise<void> {
  await db.query('update overflow set context = $3, items = $4 where source_id = $1 and position = $2', [
    sourceId,
    position,
    entry.context,
    items,
  ])
}

type Backlog = { sourceId: string; events: number; oldestAt: Date }

export async function countBacklog(db: Db, sourceIds: string[]): Promise<Backlog[]> {
  const { rows } = await db.query<Backlog>(
    `select source_id as "sourceId", sum(items)::bigint as events, min(received_at) as "oldestAt" from overflow
     where source_id = any($1) group by source_id order by source_id`,
    [sourceIds],
  )
  return rows
}

/** Deletes budgets whose period has ended. The next event of the source starts a new one. */
export async function deleteExpiredBudgets(db: Db, now: Date): Promise<void> {
  await db.query('delete from volume_budgets where expire < $1', [now.getTime() - HOUR_MS])
}
