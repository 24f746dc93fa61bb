import type pg from 'pg'
import type { Entry } from '../../domain/entries/entry.ts'
import { queryPrepared } from '../../postgres/database.ts'
import { ENTRY_COLUMNS, entryOf } from '../../postgres/entries.ts'
import { MAX_BYTES_PER_PARTITION, type PartitionName, type Taken, type TakeOptions } from '../log.ts'

type Position = { partition: number; epoch: number; xid: string; ord: number }

/** Refused where this is not the epoch of the log. */
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
  const { rows } = await queryPrepared<Entry & Position>(client, READ, [
    cursors.map(cursor => cursor.partition),
    cursors.map(cursor => cursor.epoch),
    cursors.map(cursor => cursor.xid),
    cursors.map(cursor => cursor.ord),
    maxEntries,
    MAX_BYTES_PER_PARTITION,
    epoch,
  ])
  const taken = new Map<number, Taken>(
    cursors.map(({ partition }) => [
      partition,
      { partition: partitionName(partition), entries: [], position: null },
    ]),
  )
  for (const row of rows) {
    const own = taken.get(row.partition)!
    own.entries.push(entryOf(row))
    own.position = { partition: row.partition, epoch: row.epoch, xid: row.xid, ord: row.ord }
  }
  return [...taken.values()]
}

// Of a log "l" and a cursor "c", always within a subquery for one partition: PostgreSQL takes a third of the log for unread, and
// joined as a whole it would read all of the log that is kept to find that nothing waits, until statistics tell it how few
// partitions there are.
export const UNREAD = 'l.partition = c.partition and (l.epoch, l.xid, l.ord) > (c.epoch, c.xid, c.ord)'

// Random order spreads several workers over the partitions. All of an earlier epoch is final; of this one, what lies below every
// transaction under way.
const OWN = `
select partition, epoch, xid, ord from log_cursors c
where is_log_epoch($3) and (partition = any($2) or exists (
  select 1 from log l
  where ${UNREAD}
    and (l.epoch, l.xid) < ($3, pg_snapshot_xmin(pg_current_snapshot()))))
order by random() limit $1
for update skip locked`

const READ = `
select l.* from unnest($1::smallint[], $2::int[], $3::xid8[], $4::int[]) as c (partition, epoch, xid, ord)
cross join lateral (
  select * from (
    select partition, epoch, xid, ord, ${ENTRY_COLUMNS},
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
  const positions = taken
    .map(({ position }) => position as Position | null)
    .filter(position => position !== null)
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

const PREFIX = 'postgres/'

export function partitionName(partition: number): PartitionName {
  return `${PREFIX}${partition}`
}
