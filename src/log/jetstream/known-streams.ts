import type pg from 'pg'
import { type Db, inTransaction } from '../../postgres/database.ts'
import { LOCKS, lock } from '../../postgres/locks.ts'

/** A stream that this installation has written to and has not left. */
export type KnownStream = {
  name: string
  created: string
  servers: string
  unread: number
  isDrained: boolean
}

export async function listStreams(db: Db): Promise<KnownStream[]> {
  const { rows } = await db.query<KnownStream>(
    `select name, created, servers, unread, is_drained as "isDrained" from jetstream_streams where left_at is null order by name`,
  )
  return rows
}

/** As somebody who writes to it, or may, has just counted. */
export async function noteUnread(db: Db, stream: string, unread: number): Promise<void> {
  await db.query(
    `update jetstream_streams set unread = $2::bigint, seen_at = now(),
       unread_since = case when $2::bigint > 0 then coalesce(unread_since, now()) end where name = $1`,
    [stream, unread],
  )
}

/** It holds nothing that is not read. Its positions stay: whoever comes back goes on from them. Returns who writes to it after all. */
export function leaveStream(pool: pg.Pool, stream: string): Promise<SeenWriter[]> {
  return inTransaction(pool, async client => {
    await lock(client, LOCKS.streamWriters)
    const writers = (await listWriters(client)).filter(writer => writer.stream === stream)
    if (writers.length === 0)
      await client.query(
        `update jetstream_streams set left_at = now(), is_drained = true, unread = 0, unread_since = null where name = $1`,
        [stream],
      )
    return writers
  })
}

/** For a restored backup, which was made once the streams had been read: it asks nobody for what may be in them by now. */
export async function markDrained(db: Db): Promise<void> {
  await db.query('update jetstream_streams set is_drained = true, unread = 0, unread_since = null')
  await db.query('delete from jetstream_writers')
  // The streams are the original's, which may go on.
  await db.query('update installation set id = gen_random_uuid()')
}

/** A process that writes to a stream. */
export type Writer = { stream: string; process: string; name: string; created: string | null }
export type SeenWriter = Writer & { secondsAgo: number }

// Whoever is killed says nothing: it counts as gone after so long. By PostgreSQL's clock, as all of this.
const SEEN_LATELY = `w.seen_at > clock_timestamp() - interval '30 seconds'`
const AGO = `greatest(0, round(extract(epoch from clock_timestamp() - w.seen_at)))::int`

/** All that were seen lately, the last first. */
export async function listWriters(db: Db): Promise<SeenWriter[]> {
  const { rows } = await db.query<SeenWriter>(
    `select stream, process, created, name, ${AGO} as "secondsAgo" from jetstream_writers w
     where ${SEEN_LATELY} order by seen_at desc`,
  )
  return rows
}

/** Says that it writes from now on, unless others write elsewhere: returns those, and then it may not. `wasDrained`: the stream, up to now. */
export function beginWriting(
  pool: pg.Pool,
  writer: Writer,
): Promise<{ elsewhere: SeenWriter[]; wasDrained: boolean }> {
  return inTransaction(pool, async client => {
    await lock(client, LOCKS.streamWriters)
    const elsewhere = (await listWriters(client)).filter(({ stream }) => stream !== writer.stream)
    const wasDrained = elsewhere.length === 0 && (await noteWriter(client, writer))
    return { elsewhere, wasDrained }
  })
}

export function goOnWriting(pool: pg.Pool, writer: Writer): Promise<boolean> {
  return inTransaction(pool, async client => {
    await lock(client, LOCKS.streamWriters)
    return noteWriter(client, writer)
  })
}

/** Returns whether the stream was drained. */
async function noteWriter(db: Db, { stream, process, name, created }: Writer): Promise<boolean> {
  await db.query(
    `insert into jetstream_writers (stream, process, name, created, seen_at) values ($1, $2, $3, $4, clock_timestamp())
     on conflict (stream, process) do update set created = $4, seen_at = clock_timestamp()`,
    [stream, process, name, created],
  )
  const { rowCount } = await db.query(
    `update jetstream_streams set is_drained = false, left_at = null
     where name = $1 and (is_drained or left_at is not null)`,
    [stream],
  )
  return rowCount === 1
}

/** It has written its last; those that were killed and not seen for a day go with it. */
export async function endWriting(db: Db, { stream, process }: Writer): Promise<void> {
  await db.query(
    `delete from jetstream_writers
     where stream = $1 and process = $2 or seen_at < clock_timestamp() - interval '1 day'`,
    [stream, process],
  )
}

/** Counted after `endWriting`: where nobody else writes and nothing is unread, that stays so. */
export function noteLastUnread(pool: pg.Pool, stream: string, unread: number): Promise<void> {
  return inTransaction(pool, async client => {
    await lock(client, LOCKS.streamWriters)
    await noteUnread(client, stream, unread)
    await client.query(
      `update jetstream_streams set is_drained = true
       where name = $1 and unread = 0 and not exists (select from jetstream_writers w where stream = $1 and ${SEEN_LATELY})`,
      [stream],
    )
  })
}

/** A stream as PostgreSQL knows of it, whether this process uses it or not: for people. */
export type SeenStream = {
  name: string
  servers: string
  /** As of `seenAt`. */
  unread: number
  seenAt: Date
  unreadSince: Date | null
  /** When a position last moved. */
  readAt: Date
  /** When it was last left; null: it is in use. */
  leftAt: Date | null
  /** Those of the last 30 s. */
  writers: { name: string; secondsAgo: number }[]
}

export async function streamsSeen(db: Db): Promise<SeenStream[]> {
  // JSON comes as text.
  const { rows } = await db.query<Omit<SeenStream, 'writers'> & { writers: string }>(
    `select name, servers, unread, seen_at as "seenAt", unread_since as "unreadSince", left_at as "leftAt",
       (select coalesce(max(updated_at), s.seen_at) from jetstream_cursors c where c.stream = s.name) as "readAt",
       (select coalesce(json_agg(json_build_object('name', w.name, 'secondsAgo', ${AGO}) order by w.seen_at desc), '[]')
        from jetstream_writers w where w.stream = s.name and ${SEEN_LATELY}) as writers
     from jetstream_streams s order by name`,
  )
  return rows.map(row => ({ ...row, writers: JSON.parse(row.writers) }))
}
