import type pg from 'pg'
import type { Entry } from '../../domain/entry.ts'
import { queryPrepared } from '../../postgres/database.ts'
import { ENTRY_COLUMNS, entryOf } from '../../postgres/entries.ts'
import type { PartitionName, Taken, TakeOptions } from '../log.ts'

type Position = { partition: number; xid: string; ord: number }

// A batch is cut by size too: a hundred 1 MiB bodies would hold the other partitions up.
const MAX_BYTES_PER_PARTITION = 250_000

export async function take(
  client: pg.PoolClient,
  { maxPartitions, maxEntries, alsoPartitions }: TakeOptions,
): Promise<Taken[]> {
  const { rows: cursors } = await queryPrepared<Position>(client, OWN, [
    maxPartitions,
    alsoPartitions.filter(name => name.startsWith(PREFIX)).map(name => Number(name.slice(PREFIX.length))),
  ])
  if (cursors.length === 0) return []
  const { rows } = await queryPrepared<Entry & Position>(client, READ, [
    cursors.map(cursor => cursor.partition),
    cursors.map(cursor => cursor.xid),
    cursors.map(cursor => cursor.ord),
    maxEntries,
    MAX_BYTES_PER_PARTITION,
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
    own.position = { partition: row.partition, xid: row.xid, ord: row.ord }
  }
  return [...taken.values()]
}

// Random order spreads several workers over the partitions.
const OWN = `
select partition, xid, ord from log_cursors c
where partition = any($2) or exists (
  select 1 from log l
  where l.partition = c.partition and (l.xid, l.ord) > (c.xid, c.ord)
    and l.xid < pg_snapshot_xmin(pg_current_snapshot()))
order by random() limit $1
for update skip locked`

const READ = `
select l.* from unnest($1::smallint[], $2::xid8[], $3::int[]) as c (partition, xid, ord)
cross join lateral (
  select * from (
    select partition, xid, ord, ${ENTRY_COLUMNS}, sum(body_bytes) over (order by xid, ord) - body_bytes as bytes_before
    from (
      select * from log l
      where l.partition = c.partition and (l.xid, l.ord) > (c.xid, c.ord)
        and l.xid < pg_snapshot_xmin(pg_current_snapshot())
      order by l.xid, l.ord limit $4
    ) next_entries
  ) sized where bytes_before < $5
) l
order by l.partition, l.xid, l.ord`

export async function advance(client: pg.PoolClient, taken: Taken[]): Promise<void> {
  const positions = taken
    .map(({ position }) => position as Position | null)
    .filter(position => position !== null)
  if (positions.length === 0) return
  await queryPrepared(
    client,
    `update log_cursors c set xid = p.xid, ord = p.ord, updated_at = now()
     from unnest($1::smallint[], $2::xid8[], $3::int[]) as p (partition, xid, ord) where c.partition = p.partition`,
    [positions.map(p => p.partition), positions.map(p => p.xid), positions.map(p => p.ord)],
  )
}

const PREFIX = 'postgres/'

export function partitionName(partition: number): PartitionName {
  return `${PREFIX}${partition}`
}
