import type pg from 'pg'
import type { Entry } from '../../domain/entries/entry.ts'
import { idToTime } from '../../domain/ids.ts'
import { type Db, inTransaction, queryLong, queryPrepared, readPortions } from '../../postgres/database.ts'
import { ENTRY_COLUMNS } from '../../postgres/entries.ts'
import {
  type EntryName,
  type EntryQuery,
  HEAVY_BYTES,
  type PartitionName,
  type ReadEntriesQuery,
  type Taken,
  type TakeOptions,
  type Unread,
} from '../log.ts'
import { type StoredBody, unpackBody, unpackEntry } from './bodies.ts'

const LOG_COLUMNS = `${ENTRY_COLUMNS}, packed`

type LogRow = Entry & StoredBody

type Position = { partition: number; epoch: number; xid: string; ord: number }

/** Fails with KT001 if this is not the epoch of the log. */
export async function take(
  client: pg.PoolClient,
  { maxPartitions, maxEntries, alsoPartitions }: TakeOptions,
  epoch: number,
): Promise<Taken[]> {
  const { rows: cursors } = await queryPrepared<Position>(client, OWN, [
    maxPartitions,
    alsoPartitions.filter(name => name.startsWith(PREFIX)).map(name => Number(name.slice(PREFIX.length))),
    epoch,
  ])
  if (cursors.length === 0) return []
  const { rows } = await queryPrepared<LogRow & Position>(client, NEXT_ENTRIES, [
    cursors.map(cursor => cursor.partition),
    cursors.map(cursor => cursor.epoch),
    cursors.map(cursor => cursor.xid),
    cursors.map(cursor => cursor.ord),
    maxEntries,
    Math.ceil(HEAVY_BYTES / cursors.length),
    epoch,
  ])
  const taken = new Map<number, Taken>(
    cursors.map(({ partition }) => [partition, { partition: partitionName(partition), entries: [], position: null }]),
  )
  for (const row of rows) {
    const own = taken.get(row.partition)!
    own.entries.push(unpackEntry(row))
    own.position = { partition: row.partition, epoch: row.epoch, xid: row.xid, ord: row.ord }
  }
  return [...taken.values()]
}

const PREFIX = 'postgres/'
const partitionName = (partition: number): PartitionName => `${PREFIX}${partition}`

// Conditions on the log "l" and a cursor "c". UNREAD is always used in a subquery for one partition: PostgreSQL estimates that a third
// of the log is unread, and with a join over all partitions it would read the whole log to find that nothing waits, until it has
// statistics on how few partitions there are.
const UNREAD = 'l.partition = c.partition and (l.epoch, l.xid, l.ord) > (c.epoch, c.xid, c.ord)'
const READ = 'c.partition = l.partition and (l.epoch, l.xid, l.ord) <= (c.epoch, c.xid, c.ord)'

// Random order spreads several workers over the partitions. Earlier epochs are final; in this one, everything below the oldest open
// transaction is.
const OWN = `
select partition, epoch, xid, ord from log_cursors c
where is_log_epoch($3) and (partition = any($2) or exists (
  select 1 from log l
  where ${UNREAD}
    and (l.epoch, l.xid) < ($3, pg_snapshot_xmin(pg_current_snapshot()))))
order by random() limit $1
for update skip locked`

const NEXT_ENTRIES = `
select l.* from unnest($1::smallint[], $2::int[], $3::xid8[], $4::int[]) as c (partition, epoch, xid, ord)
cross join lateral (
  select * from (
    select partition, epoch, xid, ord, ${LOG_COLUMNS},
      sum(body_bytes) over (order by epoch, xid, ord) - body_bytes as bytes_before
    from (
      select * from log l
      where ${UNREAD}
        and (l.epoch, l.xid) < ($7, pg_snapshot_xmin(pg_current_snapshot()))
      order by l.epoch, l.xid, l.ord limit $5
    ) next_entries
  ) sized where bytes_before < $6
) l
order by l.partition, l.epoch, l.xid, l.ord`

export async function advance(client: pg.PoolClient, taken: Taken[]): Promise<void> {
  const positions = taken.map(({ position }) => position as Position | null).filter(position => position !== null)
  if (positions.length === 0) return
  await queryPrepared(
    client,
    `update log_cursors c set epoch = p.epoch, xid = p.xid, ord = p.ord, updated_at = now()
     from unnest($1::smallint[], $2::int[], $3::xid8[], $4::int[]) as p (partition, epoch, xid, ord)
     where c.partition = p.partition`,
    [
      positions.map(p => p.partition),
      positions.map(p => p.epoch),
      positions.map(p => p.xid),
      positions.map(p => p.ord),
    ],
  )
}

/** As fixed when the log was initialized. */
export async function countPartitions(db: Db): Promise<number> {
  const { rows } = await db.query<{ count: number }>('select count(*) from log_cursors')
  const { count } = rows[0]!
  if (count === 0) throw new Error('The log has no partitions: no server was ever started on this database.')
  return count
}

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

const MAX_FOUND = 50
// Bodies have at most a megabyte each, except in large batches.
const BODIES_AT_A_TIME = 50

/** Searches raw bodies, compressed ones here. This is rare, and bounded by what is unread. */
export async function unreadWith(pool: pg.Pool, tenantId: number, { text, isWanted }: EntryQuery): Promise<Entry[]> {
  return inTransaction(pool, async client => {
    const found: Entry[] = []
    const query = `
      select found.* from log_cursors c cross join lateral (
        select ${LOG_COLUMNS} from log l
        where ${UNREAD} and l.tenant_id = $1 and l.kind = 'events'
          and (l.packed is not null or strpos(l.body, $2) > 0 or strpos(l.context, $2) > 0)
        offset 0 -- keeps it a subquery
      ) found`
    const values = [tenantId, text]
    for await (const rows of readPortions<LogRow>(client, { text: query, values, rowsAtATime: BODIES_AT_A_TIME }))
      for (const row of rows) {
        const entry = unpackEntry(row)
        if (!entry.body.includes(text) && !entry.context.includes(text)) continue
        if (isWanted(entry) && found.push(entry) === MAX_FOUND) return found
      }
    return found
  })
}

// A backlog of records is not searched to its end: events further back are not overtaken by much.
const EXAMINED_ENTRIES = 1_000

/** Partitions whose next entries include events. */
export async function partitionsWithEvents(db: Db): Promise<number[]> {
  const { rows } = await queryPrepared<{ partition: number }>(
    db,
    `select c.partition from log_cursors c
     where exists (
       select from (
         select l.kind from log l where ${UNREAD} order by l.epoch, l.xid, l.ord limit ${EXAMINED_ENTRIES}
       ) next_entries where kind = 'events')`,
  )
  return rows.map(({ partition }) => partition)
}

export async function find(db: Db, tenantId: number, id: string): Promise<Entry | null> {
  const { rows } = await db.query<LogRow>(
    `select ${LOG_COLUMNS} from log where received_at = $1 and tenant_id = $2 and id = $3`,
    [idToTime(id), tenantId, id],
  )
  return rows[0] ? unpackEntry(rows[0]) : null
}

export async function findRead(
  pool: pg.Pool,
  tenantId: number,
  { orderingKeys, patterns, isWanted }: ReadEntriesQuery,
): Promise<EntryName[]> {
  return inTransaction(pool, async client => {
    const found: EntryName[] = []
    const text = `
      select l.id, l.received_at as "receivedAt", l.ordering_key = any($2) as "hasKey", l.body, l.packed
      from log l join log_cursors c on ${READ}
      where l.tenant_id = $1 and (l.ordering_key = any($2) or l.packed is not null or l.body ilike any($3))`
    const query = { text, values: [tenantId, orderingKeys, patterns], rowsAtATime: BODIES_AT_A_TIME }
    for await (const rows of readPortions<EntryName & StoredBody & { hasKey: boolean }>(client, query))
      for (const { id, receivedAt, hasKey, ...stored } of rows)
        if (hasKey || isWanted(unpackBody(stored))) found.push({ id, receivedAt })
    return found
  })
}

export async function forget(db: Db, tenantId: number, entries: EntryName[], { dryRun = false } = {}): Promise<number> {
  const names = [tenantId, entries.map(({ id }) => id), entries.map(({ receivedAt }) => receivedAt)]
  if (!dryRun) {
    const { rowCount } = await db.query(
      `delete from log l using unnest($2::uuid[], $3::timestamptz[]) as e (id, received_at), log_cursors c
       where l.tenant_id = $1 and l.received_at = e.received_at and l.id = e.id and ${READ}`,
      names,
    )
    return rowCount ?? 0
  }
  const { rows } = await db.query<{ count: number }>(
    `select count(*) from log l join unnest($2::uuid[], $3::timestamptz[]) as e (id, received_at)
       on l.received_at = e.received_at and l.id = e.id
     join log_cursors c on ${READ} where l.tenant_id = $1`,
    names,
  )
  return rows[0]!.count
}

/** Whether entries were received since then; also true if the log is empty. Reads only the first row of each day's partition. */
export async function hasEntriesSince(db: Db, moment: Date): Promise<boolean> {
  const { rows } = await db.query<{ has: boolean }>(
    'select exists (select from log where received_at >= $1) or not exists (select from log) as has',
    [moment],
  )
  return rows[0]!.has
}

/**
 * When the newest entry was received, if that is ahead of PostgreSQL's clock by more than this. Once other
 * entries were received after it for an hour, the clock counts as corrected.
 */
export async function newestAhead(db: Db, seconds: number): Promise<Date | null> {
  const { rows } = await db.query<{ newest: Date | null }>(
    `with ahead as materialized (
       select received_at, epoch, xid from log where received_at > now() + make_interval(secs => $1)
       order by epoch desc, xid desc limit 1
     )
     select received_at as newest from ahead
     where not exists (
       select from log l where l.received_at < now() - interval '1 hour' and (l.epoch, l.xid) > (ahead.epoch, ahead.xid)
     )`,
    [seconds],
  )
  return rows[0]?.newest ?? null
}
