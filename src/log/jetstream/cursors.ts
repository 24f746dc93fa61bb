import type pg from 'pg'
import { type Db, inTransaction, queryPrepared } from '../../postgres/database.ts'
import { LOCKS, lock } from '../../postgres/locks.ts'

/** Everything below `seq` is read, and of the message at `seq` the first `ord` entries. */
export type Position = { seq: number; ord: number }
export type Cursor = Position & { partition: number }

/** As NATS tells of it at this moment. */
type StreamState = { created: string; lastSeq: number }

type FoundStream = StreamState & {
  name: string
  partitions: number
  /** Without credentials. */
  servers: string
}

/**
 * Makes the cursors of a stream that is seen for the first time. Where NATS has made it anew, it is read from its beginning; where
 * its numbers went back, because a server lost what it had not synced, from there: what comes now bears numbers that were read before.
 */
export async function enterStream(
  pool: pg.Pool,
  stream: FoundStream,
  stateNow: () => Promise<StreamState>,
): Promise<void> {
  const { rows } = await pool.query<{ isKnown: boolean; isAhead: boolean }>(
    `select exists (select from jetstream_streams where name = $1 and created = $2 and partitions = $3 and servers = $4
         and not is_drained) as "isKnown",
       exists (select from jetstream_cursors where stream = $1 and seq > $5::bigint + 1) as "isAhead"`,
    [stream.name, stream.created, stream.partitions, stream.servers, stream.lastSeq],
  )
  if (rows[0]!.isKnown && !rows[0]!.isAhead) return
  await inTransaction(pool, async client => {
    await lock(client, LOCKS.era)
    const known = await client.query<{ created: string }>(
      'select created from jetstream_streams where name = $1',
      [stream.name],
    )
    // Held while NATS is asked again: readers may have gone on since.
    await client.query('select from jetstream_cursors where stream = $1 for update', [stream.name])
    const { created, lastSeq } = await stateNow()
    await client.query(
      `insert into jetstream_streams (name, created, partitions, servers) values ($1, $2, $3, $4)
       on conflict (name) do update set created = $2, partitions = $3, servers = $4, is_drained = false`,
      [stream.name, created, stream.partitions, stream.servers],
    )
    await client.query(
      `insert into jetstream_cursors (stream, partition) select $1, generate_series(0, $2::int - 1)
       on conflict do nothing`,
      [stream.name, stream.partitions],
    )
    const isAnother = known.rows[0] !== undefined && known.rows[0].created !== created
    await client.query(
      'update jetstream_cursors set seq = $2::bigint + 1, ord = 0 where stream = $1 and seq > $2::bigint + 1',
      [stream.name, isAnother ? 0 : lastSeq],
    )
  })
}

export async function listCursors(db: Db, stream: string): Promise<Cursor[]> {
  const { rows } = await queryPrepared<Cursor>(
    db,
    'select partition, seq, ord from jetstream_cursors where stream = $1 order by partition',
    [stream],
  )
  return rows
}

/** Owns these partitions until the transaction ends, but for those that another one owns. */
export async function ownCursors(db: Db, stream: string, partitions: number[]): Promise<Cursor[]> {
  const { rows } = await queryPrepared<Cursor>(
    db,
    `select partition, seq, ord from jetstream_cursors where stream = $1 and partition = any($2)
     for update skip locked`,
    [stream, partitions],
  )
  return rows
}

export async function moveCursors(db: Db, stream: string, cursors: Cursor[]): Promise<void> {
  await queryPrepared(
    db,
    `update jetstream_cursors c set seq = p.seq, ord = p.ord, updated_at = now()
     from unnest($2::smallint[], $3::bigint[], $4::int[]) as p (partition, seq, ord)
     where c.stream = $1 and c.partition = p.partition`,
    [stream, cursors.map(c => c.partition), cursors.map(c => c.seq), cursors.map(c => c.ord)],
  )
}

/** A stream that this installation has written to. */
export type KnownStream = { name: string; servers: string; unread: number; isDrained: boolean }

export async function listStreams(db: Db): Promise<KnownStream[]> {
  const { rows } = await db.query<KnownStream>(
    'select name, servers, unread, is_drained as "isDrained" from jetstream_streams order by name',
  )
  return rows
}

/** `isDrained`: nothing is, and whoever says so writes no more. */
export async function noteUnread(
  db: Db,
  stream: string,
  { unread, isDrained }: { unread: number; isDrained: boolean },
): Promise<void> {
  await db.query(
    'update jetstream_streams set unread = $2, is_drained = $3, seen_at = now() where name = $1',
    [stream, unread, isDrained],
  )
}

/** It holds nothing that is not read, and nobody writes to it any more. */
export async function leaveStream(db: Db, stream: string): Promise<void> {
  await db.query(
    `with cursors as (delete from jetstream_cursors where stream = $1)
     delete from jetstream_streams where name = $1`,
    [stream],
  )
}

/** For a restored backup, which was made once the streams had been read: it asks nobody for what may be in them by now. */
export async function markDrained(db: Db): Promise<void> {
  await db.query('update jetstream_streams set is_drained = true, unread = 0')
}
