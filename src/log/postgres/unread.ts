import type { Entry } from '../../domain/entries/entry.ts'
import { type Db, queryLong, queryPrepared } from '../../postgres/database.ts'
import { ENTRY_COLUMNS, entryOf } from '../../postgres/entries.ts'
import type { PartitionName, Unread } from '../log.ts'
import { partitionName, UNREAD } from './reader.ts'

export async function lag(db: Db): Promise<({ partition: PartitionName } & Unread)[]> {
  const { rows } = await queryLong<{ partition: number } & Unread>(
    db,
    `select c.partition, waiting.* from log_cursors c cross join lateral (
       select count(*) as entries, min(l.received_at) as "oldestAt" from log l where ${UNREAD}
     ) waiting order by c.partition`,
  )
  return rows.map(({ partition, ...waiting }) => ({ partition: partitionName(partition), ...waiting }))
}

export async function unread(db: Db, tenantId: number, receivedBy: Date | null): Promise<Unread> {
  const { rows } = await db.query<Unread>(
    `select coalesce(sum(entries), 0)::bigint as entries, min("oldestAt") as "oldestAt"
     from log_cursors c cross join lateral (
       select count(*) as entries, min(l.received_at) as "oldestAt" from log l
       where ${UNREAD} and l.tenant_id = $1 and ($2::timestamptz is null or l.received_at <= $2)
     ) waiting`,
    [tenantId, receivedBy],
  )
  return rows[0]!
}

/** The text is looked for in raw bodies: rare, and bounded by what waits. */
export async function unreadWith(db: Db, tenantId: number, text: string, limit: number): Promise<Entry[]> {
  const { rows } = await db.query<Entry>(
    `select found.* from log_cursors c cross join lateral (
       select ${ENTRY_COLUMNS} from log l
       where ${UNREAD} and l.tenant_id = $1 and l.kind = 'events' and strpos(l.body, $2) > 0 limit $3
     ) found limit $3`,
    [tenantId, text, limit],
  )
  return rows.map(entryOf)
}

// A backlog of records is not read to its end to find out: what lies further back is not overtaken by much.
const NEXT_ENTRIES = 1_000

/** Partitions in which events stand among the next to be read. */
export async function partitionsWithEvents(db: Db): Promise<number[]> {
  const { rows } = await queryPrepared<{ partition: number }>(
    db,
    `select c.partition from log_cursors c
     where exists (
       select from (
         select l.kind from log l where ${UNREAD} order by l.epoch, l.xid, l.ord limit ${NEXT_ENTRIES}
       ) next_entries where kind = 'events')`,
  )
  return rows.map(({ partition }) => partition)
}
