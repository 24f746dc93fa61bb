import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import type pg from 'pg'
import { type Db, inTransaction } from '../../postgres/database.ts'
import { LOCKS, lock } from '../../postgres/locks.ts'
import type { Lost, Promised, SkippedMessages } from '../log.ts'
import { type LogLogger, NatsRefused } from './nats.ts'
import type { OpenStream } from './stream.ts'

/** A stream that this installation has written to and has not left. */
export type KnownStream = { name: string; created: string; servers: string; unread: number; isDrained: boolean }

export async function listStreams(db: Db): Promise<KnownStream[]> {
  const { rows } = await db.query<KnownStream>(
    `select name, created, servers, unread, is_drained as "isDrained" from jetstream_streams where left_at is null order by name`,
  )
  return rows
}

/** Records how many entries are unread. */
export async function noteUnread(db: Db, stream: string, unread: number): Promise<void> {
  await db.query(
    `update jetstream_streams set unread = $2::bigint, seen_at = now(),
       unread_since = case when $2::bigint > 0 then coalesce(unread_since, now()) end where name = $1`,
    [stream, unread],
  )
}

/** Leaves a stream without unread entries. Its cursors stay, for a later return. Returns the processes that still write to it. */
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

/** For a restored backup, which was taken when the streams had been read: what they contain by now belongs to the original. */
export async function forgetStreams(db: Db): Promise<void> {
  await db.query('update jetstream_streams set is_drained = true, unread = 0, unread_since = null')
  await db.query('delete from jetstream_writers')
  await db.query('delete from jetstream_unread')
  // The original may continue with the streams.
  await db.query('update installation set id = gen_random_uuid()')
}

/** A process that writes to a stream. */
type Writer = {
  stream: string
  process: string
  name: string
  created: string | null
  promise: Promised | null
  failing: Failing | null
}

/** Why the last publish of a writer failed: the stream is full, or NATS does not acknowledge. */
type Failing = 'full' | 'silent'

export type SeenWriter = Writer & { secondsAgo: number }

// A process that was killed counts as gone after this time, by PostgreSQL's clock.
const SEEN_LATELY = `w.seen_at > clock_timestamp() - interval '30 seconds'`
const AGO = `greatest(0, round(extract(epoch from clock_timestamp() - w.seen_at)))::int`

/** All that were seen lately, the latest first. */
export async function listWriters(db: Db): Promise<SeenWriter[]> {
  const { rows } = await db.query<SeenWriter>(
    `select stream, process, created, name, promise, failing, ${AGO} as "secondsAgo" from jetstream_writers w
     where ${SEEN_LATELY} order by seen_at desc`,
  )
  return rows
}

/** Registers a writer, unless others write to another stream: returns those. `wasDrained`: whether the stream was drained before. */
function beginWriting(pool: pg.Pool, writer: Writer): Promise<{ elsewhere: SeenWriter[]; wasDrained: boolean }> {
  return inTransaction(pool, async client => {
    await lock(client, LOCKS.streamWriters)
    const elsewhere = (await listWriters(client)).filter(({ stream }) => stream !== writer.stream)
    const wasDrained = elsewhere.length === 0 && (await noteWriter(client, writer))
    return { elsewhere, wasDrained }
  })
}

/** Returns how many processes write to the stream, with this one. */
function keepWriting(pool: pg.Pool, writer: Writer): Promise<number> {
  return inTransaction(pool, async client => {
    await lock(client, LOCKS.streamWriters)
    await noteWriter(client, writer)
    return (await listWriters(client)).filter(({ stream }) => stream === writer.stream).length
  })
}

/** Returns whether the stream was drained. */
async function noteWriter(db: Db, { stream, process, name, created, promise, failing }: Writer): Promise<boolean> {
  await db.query(
    `insert into jetstream_writers (stream, process, name, created, promise, failing, seen_at)
     values ($1, $2, $3, $4, $5, $6, clock_timestamp())
     on conflict (stream, process) do update set created = $4, promise = $5, failing = $6, seen_at = clock_timestamp()`,
    [stream, process, name, created, promise, failing],
  )
  const { rowCount } = await db.query(
    `update jetstream_streams set is_drained = false, left_at = null
     where name = $1 and (is_drained or left_at is not null)`,
    [stream],
  )
  return rowCount === 1
}

/** Removes a writer, and those that were killed and not seen for a day. */
async function endWriting(db: Db, { stream, process }: Writer): Promise<void> {
  await db.query(
    `delete from jetstream_writers
     where stream = $1 and process = $2 or seen_at < clock_timestamp() - interval '1 day'`,
    [stream, process],
  )
}

/** Counted after `endWriting`: if there is no other writer and nothing is unread, the stream is drained. */
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

/** A stream as recorded in PostgreSQL, whether this process uses it or not: for display. */
export type SeenStream = {
  name: string
  servers: string
  /** As of `seenAt`. */
  unread: number
  seenAt: Date
  unreadSince: Date | null
  /** When a cursor last advanced. */
  readAt: Date
  /** When it was left; null: it is in use. */
  leftAt: Date | null
  /** Seen in the last 30 s. */
  writers: { name: string; secondsAgo: number; promise: Promised | null; failing: Failing | null }[]
}

export async function streamsSeen(db: Db): Promise<SeenStream[]> {
  // The client returns JSON as a string.
  const { rows } = await db.query<Omit<SeenStream, 'writers'> & { writers: string }>(
    `select name, servers, unread, seen_at as "seenAt", unread_since as "unreadSince", left_at as "leftAt",
       (select coalesce(max(updated_at), s.seen_at) from jetstream_cursors c where c.stream = s.name) as "readAt",
       (select coalesce(json_agg(json_build_object('name', w.name, 'secondsAgo', ${AGO}, 'promise', w.promise,
          'failing', w.failing) order by w.seen_at desc), '[]')
        from jetstream_writers w where w.stream = s.name and ${SEEN_LATELY}) as writers
     from jetstream_streams s order by name`,
  )
  return rows.map(row => ({ ...row, writers: JSON.parse(row.writers) }))
}

/** The unread messages of a partition: the first and the last number, and the id of the last. */
export type UnreadRange = {
  partition: number
  entries: number
  first: number | null
  last: number | null
  lastId: string | null
}

/** Unread messages as of an earlier look. */
type Seen = { partition: number; first: number; seq: number; id: string | null; entries: number }

/** The last message of a partition that this process published, and was acknowledged. */
export type LastPublished = { partition: number; seq: number; id: string }

/**
 * Finds messages that were unread the last time, or that this process published since, and are gone without having been read.
 * Records what is unread now. `acknowledged`: entries that this process published since it recorded that the last time.
 */
export async function findLosses(
  pool: pg.Pool,
  opened: OpenStream,
  stream: string,
  found: { ranges: UnreadRange[]; agoMs: number; published: LastPublished[] } & Uncounted,
): Promise<Lost | null> {
  const { ranges, acknowledged, process } = found
  const { created } = opened.stream
  const { rows } = await pool.query<Seen>(
    `select partition, first_seq as first, seq, id, entries from jetstream_unread
     where stream = $1 and created = $2 and entries > 0`,
    [stream, created],
  )
  const own = found.published.map(({ partition, seq, id }) => ({ ...{ partition, seq, id }, first: seq, entries: 0 }))
  const missing: { partition: number; seq: number }[] = []
  for (const seen of [...rows, ...own]) {
    const seq = await findMissing(opened, stream, seen, ranges.find(({ partition }) => partition === seen.partition)!)
    if (seq !== null) missing.push({ partition: seen.partition, seq })
  }
  const gone = missing.length === 0 ? [] : await withoutRead(pool, stream, missing)
  const raised = await raiseLoss(pool, stream, found)
  let lost = raised?.lost ?? null
  // The one that found it may have found other partitions.
  if (gone.length > 0 && raised !== null)
    lost = (await recordLoss(pool, stream, { partitions: gone, more: 0, process: null })) ?? lost
  if (gone.length > 0 && raised === null) {
    // What was read since is not subtracted, so this is an upper bound. Nor is what is left if others write too: they may have
    // written it after the loss.
    const others = (await listWriters(pool)).filter(writer => writer.stream === stream && writer.process !== process)
    const left = others.length > 0 ? [] : ranges.filter(({ partition }) => gone.includes(partition))
    const more = left.reduce((sum, { entries }) => sum - entries, acknowledged)
    lost = await recordLoss(pool, stream, { partitions: gone, more, process })
  }
  await noteRanges(pool, { stream, created, agoMs: found.agoMs }, ranges)
  return lost
}

/** The number of a message that is gone: of the last one seen, or of the first, because limits drop the oldest messages first. */
async function findMissing(
  { manager }: OpenStream,
  stream: string,
  { first, seq, id }: Seen,
  range: UnreadRange,
): Promise<number | null> {
  // Asks the stream's leader, because other servers may not have it yet.
  const read = (seq: number) => manager.streams.getMessage(stream, { seq })
  if (range?.last !== seq || range.lastId !== id) {
    const message = await read(seq)
    const idNow = message?.header.get('Nats-Msg-Id') || null
    // A server that lost its newest messages gives their numbers to others.
    if (message === null || (id !== null && idNow !== null && id !== idNow)) return seq
  }
  return range?.first === first || (await read(first)) !== null ? null : first
}

/** The partitions of messages that no cursor has passed: those that one has passed were read, and may be purged. */
async function withoutRead(db: Db, stream: string, missing: { partition: number; seq: number }[]): Promise<number[]> {
  const { rows } = await db.query<{ partition: number; seq: number }>(
    'select partition, seq from jetstream_cursors where stream = $1',
    [stream],
  )
  const cursors = new Map(rows.map(({ partition, seq }) => [partition, seq]))
  const unread = missing.filter(({ partition, seq }) => (cursors.get(partition) ?? 0) <= seq)
  return [...new Set(unread.map(({ partition }) => partition))]
}

type NewLoss = {
  /** Whose unread entries were lost; null: all. */
  partitions: number[] | null
  /** How many more may be lost, at most. Negative: some are still there. */
  more?: number
  process?: string | null
}

/** If several processes find a loss, one records it. What a process has acknowledged is counted once. */
export async function recordLoss(
  db: Db,
  stream: string,
  { partitions, more = 0, process = null }: NewLoss,
): Promise<Lost | null> {
  const { rows } = await db.query<Lost>(
    `with gone as (
       delete from jetstream_unread s using jetstream_cursors c
       where s.stream = $1 and c.stream = s.stream and c.partition = s.partition
         and ($2::smallint[] is null or s.partition = any($2))
       returning s.entries, s.seen_at, c.seq <= s.seq as is_unread
     ), counted as (
       select exists (select from jetstream_losses where stream = $1 and $4::uuid = any(counted_by)
         and noticed_at > clock_timestamp() - interval '5 seconds') as is_counted
     ), lost as (
       select coalesce(sum(entries), 0) + case when (select is_counted from counted) then 0 else $3 end as entries,
         coalesce(min(seen_at), now()) as seen_at from gone where is_unread
     )
     insert into jetstream_losses (stream, entries, seen_at, counted_by)
     select $1, entries, seen_at, array_remove(array[$4::uuid], null) from lost where entries > 0
     returning entries, seen_at as "seenAt", noticed_at as "noticedAt"`,
    [stream, partitions, more, process],
  )
  return rows[0] ?? null
}

/** What a process has acknowledged since it last recorded what is unread, `sinceMs` ago. */
type Uncounted = { acknowledged: number; sinceMs: number; process: string }

// Another process may have noticed a loss a little before this one recorded what is unread.
const NOTICED_BEFORE_MS = 10_000

/** Adds what this process acknowledged lately to a loss that another one has found: that may be lost too. Null: there is no such loss. */
async function raiseLoss(
  db: Db,
  stream: string,
  { acknowledged, sinceMs, process }: Uncounted,
): Promise<{ lost: Lost | null } | null> {
  const { rows } = await db.query<Lost>(
    `with latest as (
       select ctid from jetstream_losses
       where stream = $1 and noticed_at > clock_timestamp() - $4 * interval '1 ms' and not $3::uuid = any(counted_by)
       order by noticed_at desc limit 1 for update
     )
     update jetstream_losses l set entries = entries + $2, counted_by = counted_by || $3::uuid
     from latest where l.ctid = latest.ctid
     returning entries, seen_at as "seenAt", noticed_at as "noticedAt"`,
    [stream, acknowledged, process, sinceMs + NOTICED_BEFORE_MS],
  )
  return rows[0] ? { lost: acknowledged > 0 ? rows[0] : null } : null
}

/** For a stream that was replaced, after another process has recorded that: what this one acknowledged lately is lost with it. */
export async function addToLoss(pool: pg.Pool, stream: string, own: Uncounted): Promise<Lost | null> {
  const raised = await raiseLoss(pool, stream, own)
  return raised?.lost ?? recordLoss(pool, stream, { partitions: [], more: own.acknowledged, process: own.process })
}

// A count from before a loss is not recorded after it: the loss would be found again. A count takes two seconds at most.
const COUNTING_MS = 5_000

/** A count does not replace a later one of another process, which contains more. */
async function noteRanges(
  pool: pg.Pool,
  { stream, created, agoMs }: { stream: string; created: string; agoMs: number },
  ranges: UnreadRange[],
): Promise<void> {
  await pool.query(
    `insert into jetstream_unread as s (stream, created, partition, first_seq, seq, id, entries, seen_at)
     select $1, $2, *, clock_timestamp() - $9 * interval '1 ms'
     from unnest($3::smallint[], $4::bigint[], $5::bigint[], $6::text[], $7::bigint[])
     where not exists (
       select from jetstream_losses where stream = $1 and noticed_at > clock_timestamp() - $8 * interval '1 ms')
     on conflict (stream, partition) do update
       set created = excluded.created, first_seq = excluded.first_seq, seq = excluded.seq, id = excluded.id,
         entries = excluded.entries, seen_at = excluded.seen_at
       where (s.entries > 0 or excluded.entries > 0) and s.seen_at <= excluded.seen_at`,
    [
      ...[stream, created],
      ranges.map(({ partition }) => partition),
      ranges.map(({ first }) => first ?? 0),
      ranges.map(({ last }) => last ?? 0),
      ranges.map(({ lastId }) => lastId),
      ranges.map(({ entries }) => entries),
      ...[agoMs + COUNTING_MS, agoMs],
    ],
  )
}

/** Before cursors move back: what they had passed was read. */
export async function forgetPassed(db: Db, stream: string): Promise<void> {
  await db.query(
    `delete from jetstream_unread s using jetstream_cursors c
     where s.stream = $1 and c.stream = s.stream and c.partition = s.partition and c.seq > s.seq`,
    [stream],
  )
}

/** Everything that was lost within this time. */
export async function readLosses(db: Db, stream: string, withinMs: number): Promise<Lost | null> {
  const { rows } = await db.query<Lost>(
    `select sum(entries)::bigint as entries, min(seen_at) as "seenAt", max(noticed_at) as "noticedAt"
     from jetstream_losses where stream = $1 and noticed_at > now() - $2 * interval '1 ms' having count(*) > 0`,
    [stream, withinMs],
  )
  return rows[0] ?? null
}

export function reportLoss(
  lost: Lost | null,
  { stream, logger }: { stream: string; logger?: LogLogger | undefined },
): void {
  if (lost)
    logger?.error(
      { stream, entries: lost.entries, seenAt: lost.seenAt },
      'acknowledged entries were lost before they were processed: the stream was deleted, purged or replaced',
    )
}

/** A message that was skipped, because no entries can be read from it. */
export type SkippedMessage = {
  seq: number
  at: Date
  subject: string
  reason: string
  /** Not from Kontor. */
  isForeign: boolean
  /** Only of Kontor's own messages that belong to several tenants: they are stored nowhere else. */
  payload: Uint8Array | null
}

/** In the transaction that moves the cursor past them. */
export async function recordSkippedMessages(db: Db, stream: string, messages: SkippedMessage[]): Promise<void> {
  await db.query(
    `insert into jetstream_skipped_messages (stream, seq, stored_at, subject, reason, is_foreign, payload)
     select $1, * from unnest($2::bigint[], $3::timestamptz[], $4::text[], $5::text[], $6::boolean[], $7::bytea[])
     on conflict do nothing`,
    [
      stream,
      messages.map(({ seq }) => seq),
      messages.map(({ at }) => at),
      messages.map(({ subject }) => subject),
      messages.map(({ reason }) => reason),
      messages.map(({ isForeign }) => isForeign),
      messages.map(({ payload }) => payload && Buffer.from(payload)),
    ],
  )
}

export async function countSkippedMessages(db: Db, stream: string): Promise<SkippedMessages> {
  const { rows } = await db.query<NonNullable<SkippedMessages['foreign']> & { isForeign: boolean }>(
    `select distinct on (is_foreign) is_foreign as "isForeign", seq, subject, stored_at as at,
       count(*) over (partition by is_foreign)::int as messages
     from jetstream_skipped_messages where stream = $1 order by is_foreign, stored_at desc, seq desc`,
    [stream],
  )
  const found = (foreign: boolean) => rows.find(({ isForeign }) => isForeign === foreign) ?? null
  return { foreign: found(true), unreadable: found(false) }
}

/** After the time for which the stream keeps its messages. */
export async function dropSkippedMessages(db: Db, stream: string, keptMs: number): Promise<void> {
  await db.query(
    `delete from jetstream_skipped_messages where stream = $1 and skipped_at < now() - $2 * interval '1 ms'`,
    [stream, keptMs],
  )
}

/** They may contain erased data. The rows stay and are still reported. */
export async function eraseSkippedPayloads(db: Db, stream: string): Promise<void> {
  await db.query('update jetstream_skipped_messages set payload = null where stream = $1 and payload is not null', [
    stream,
  ])
}

const EVERY_MS = 5_000
// A node that gets no requests learns nothing new: after this time it is tried again.
const FAILING_MS = 5_000

/** This process as a writer, registered in PostgreSQL as long as it writes. */
type OpenWriter = {
  process: string
  /** Before the first write. Throws if another process writes to another stream. */
  begin(): Promise<void>
  /** `created`: of the stream that it writes to. */
  found(created: string, promise: Promised): void
  /** The outcome of the last publish. */
  wrote(failing: Failing | null): void
  /** Why the publishes of the last seconds failed. */
  failing(): Failing | null
  /** How many processes write to the stream, as last seen; at least 1. */
  count(): number
  /** After the last write. False: it never began. */
  end(): Promise<boolean>
}

export function openWriter(pool: pg.Pool, stream: string): OpenWriter {
  const id = randomUUID()
  const name = `${hostname()}, process ${process.pid}`
  let created: string | null = null
  let promise: Promised | null = null
  let failing: Failing | null = null
  let failedAt = -Infinity
  const now = (): Writer => ({ stream, process: id, name, created, promise, failing })
  let timer: NodeJS.Timeout | null = null
  let noting: Promise<unknown> | null = null
  let wasDrained = false
  let count = 1

  // PostgreSQL may be unavailable: the next attempt follows.
  function note(): void {
    noting ??= keepWriting(pool, now())
      .then(found => {
        count = found
      })
      .catch(() => {})
      .finally(() => {
        noting = null
      })
  }

  return {
    process: id,
    count: () => count,
    async begin() {
      if (timer !== null) return
      const { elsewhere, wasDrained: was } = await beginWriting(pool, now())
      if (elsewhere[0]) throw new NatsRefused(describeOtherWriter(elsewhere[0]))
      wasDrained = was
      timer = setInterval(note, EVERY_MS)
      timer.unref()
    },
    found(now, promised) {
      if (created === now && promise === promised) return
      created = now
      promise = promised
      if (timer !== null) note()
    },
    failing: () => (performance.now() - failedAt < FAILING_MS ? failing : null),
    wrote(outcome) {
      if (outcome !== null) failedAt = performance.now()
      if (failing === outcome) return
      failing = outcome
      if (timer !== null) note()
    },
    async end() {
      if (timer === null) return false
      clearInterval(timer)
      timer = null
      await noting
      await endWriting(pool, now())
      // It never found the stream and wrote nothing: the stream is as drained as before.
      if (created === null && wasDrained) await noteLastUnread(pool, stream, 0)
      return true
    },
  }
}

export function describeOtherWriter({ stream, name, secondsAgo }: SeenWriter): string {
  return (
    `Another node (${name}) writes to the JetStream stream ${stream}, last seen ${secondsAgo} s ago, and this node would not read it. ` +
    `Set the same NATS_URL and KONTOR_NATS_STREAM on all nodes, or stop the other node first. A killed node counts as gone after 30 s.`
  )
}
