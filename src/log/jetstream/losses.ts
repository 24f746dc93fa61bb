import type pg from 'pg'
import type { Db } from '../../postgres/database.ts'
import type { Lost } from '../log.ts'
import type { Linked, LinkLogger } from './link.ts'

/** The unread messages of a partition: from one number to another. */
export type UnreadRange = { partition: number; entries: number; first: number | null; last: number | null }

type Seen = { partition: number; seq: number }

/**
 * Whether something that was unread the last time is gone though nobody has read it, and notes what is unread now. Asks NATS only for
 * what was not met on the way.
 */
export async function findLosses(
  pool: pg.Pool,
  { manager, stream: { created } }: Linked,
  stream: string,
  { ranges, agoMs }: { ranges: UnreadRange[]; agoMs: number },
): Promise<Lost | null> {
  const { rows } = await pool.query<Seen>(
    `select s.partition, s.seq from jetstream_unread s join jetstream_cursors c using (stream, partition)
     where s.stream = $1 and s.created = $2 and s.entries > 0 and c.seq <= s.seq`,
    [stream, created],
  )
  const gone: Seen[] = []
  for (const seen of rows) {
    const range = ranges.find(({ partition }) => partition === seen.partition)
    const isMet = (range?.first ?? Infinity) <= seen.seq && seen.seq <= (range?.last ?? -Infinity)
    // Of the stream's leader: others may not have it yet.
    if (!isMet && (await manager.streams.getMessage(stream, { seq: seen.seq })) === null) gone.push(seen)
  }
  const lost = gone.length === 0 ? null : await recordLoss(pool, stream, gone)
  await noteRanges(pool, { stream, created, agoMs }, ranges)
  return lost
}

/** Those whose positions have not passed them; null: all of what was unread. Told by one process, whoever else finds it too. */
export async function recordLoss(db: Db, stream: string, gone: Seen[] | null): Promise<Lost | null> {
  const { rows } = await db.query<Lost>(
    `with gone as (
       delete from jetstream_unread s using jetstream_cursors c
       where s.stream = $1 and c.stream = s.stream and c.partition = s.partition
         and ($2::smallint[] is null or (s.partition, s.seq) in (select * from unnest($2::smallint[], $3::bigint[])))
       returning s.entries, s.seen_at, c.seq <= s.seq as is_unread
     )
     insert into jetstream_losses (stream, entries, seen_at)
     select $1, sum(entries), min(seen_at) from gone where is_unread having sum(entries) > 0
     returning entries, seen_at as "seenAt", noticed_at as "noticedAt"`,
    [stream, gone?.map(({ partition }) => partition), gone?.map(({ seq }) => seq)],
  )
  return rows[0] ?? null
}

// What was counted before a loss is not noted after it: it would be found missing once more. A count takes a second or two at the most.
const COUNTING_MS = 5_000

async function noteRanges(
  pool: pg.Pool,
  { stream, created, agoMs }: { stream: string; created: string; agoMs: number },
  ranges: UnreadRange[],
): Promise<void> {
  await pool.query(
    `insert into jetstream_unread as s (stream, created, partition, seq, entries)
     select $1, $2, * from unnest($3::smallint[], $4::bigint[], $5::bigint[])
     where not exists (
       select from jetstream_losses where stream = $1 and noticed_at > clock_timestamp() - $6 * interval '1 ms')
     on conflict (stream, partition) do update
       set created = excluded.created, seq = excluded.seq, entries = excluded.entries, seen_at = now()
       where s.entries > 0 or excluded.entries > 0`,
    [
      ...[stream, created],
      ranges.map(({ partition }) => partition),
      ranges.map(({ last }) => last ?? 0),
      ranges.map(({ entries }) => entries),
      agoMs + COUNTING_MS,
    ],
  )
}

/** Before positions go back: what they had passed was read. */
export async function forgetPassed(db: Db, stream: string): Promise<void> {
  await db.query(
    `delete from jetstream_unread s using jetstream_cursors c
     where s.stream = $1 and c.stream = s.stream and c.partition = s.partition and c.seq > s.seq`,
    [stream],
  )
}

/** All that was lost within this time. */
export async function lossesOf(db: Db, stream: string, withinMs: number): Promise<Lost | null> {
  const { rows } = await db.query<Lost>(
    `select sum(entries)::bigint as entries, min(seen_at) as "seenAt", max(noticed_at) as "noticedAt"
     from jetstream_losses where stream = $1 and noticed_at > now() - $2 * interval '1 ms' having count(*) > 0`,
    [stream, withinMs],
  )
  return rows[0] ?? null
}

/** Of a restored backup: whatever stream comes now is another one. */
export async function forgetUnread(db: Db): Promise<void> {
  await db.query('delete from jetstream_unread')
}

export function tellLost(
  lost: Lost | null,
  { stream, logger }: { stream: string; logger?: LinkLogger | undefined },
): void {
  if (lost)
    logger?.error(
      { stream, entries: lost.entries, seenAt: lost.seenAt },
      'entries that were acknowledged and not processed are gone from the stream: it was deleted or purged, or is another one',
    )
}
