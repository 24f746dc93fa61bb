import type pg from 'pg'
import { type Db, inTransaction, queryPrepared } from '../../postgres/database.ts'
import { LOCKS, lock } from '../../postgres/locks.ts'
import type { Lost } from '../log.ts'
import { NatsRefused } from './errors.ts'
import { listWriters } from './known-streams.ts'
import { forgetPassed, recordLoss } from './losses.ts'

/** Everything below `seq` is read, and of the message at `seq` the first `ord` entries. */
export type Position = { seq: number; ord: number }
export type Cursor = Position & { partition: number }

/** A position with the message before it, or the one that it stands in. */
export type Step = Cursor & { lastId: string; lastAt: Date }

type Reached = Cursor & { lastId: string | null; lastAt: Date | null }

type FoundStream = {
  name: string
  created: string
  partitions: number
  lastSeq: number
  /** Without credentials. */
  servers: string
  /** Of this process as one that writes; null: it does not. */
  process: string | null
  /** What is unread in the one before is given up. */
  takesOver: boolean
}

/** As NATS tells of it at this moment. */
type StreamNow = {
  state(): Promise<{ created: string; lastSeq: number }>
  /** The id of the message with this number; null: there is none any more. */
  idAt(seq: number): Promise<string | null>
  /** The first message of a partition that came in later. */
  firstAfter(partition: number, at: Date): Promise<number | null>
}

/** Where a position went back from, and to. */
export type WentBack = { partition: number; from: number; to: number }

/** `lost`: what was unread in a stream that is another one now. */
type Entered = { wentBack: WentBack[]; lost: Lost | null }

/**
 * Makes the cursors of a stream that is seen for the first time. Where NATS has made it anew, it is read from its beginning, and the
 * positions in the one before are kept: that may be one at other servers, to which somebody goes back. Where
 * its numbers went back, because a server lost what it had not synced, from there: what comes now bears numbers that were read before.
 */
export async function enterStream(pool: pg.Pool, stream: FoundStream, now: StreamNow): Promise<Entered> {
  const { rows } = await pool.query<{ isKnown: boolean }>(
    `select exists (select from jetstream_streams where name = $1 and created = $2 and partitions = $3
         and servers = $4) as "isKnown"`,
    [stream.name, stream.created, stream.partitions, stream.servers],
  )
  const isKnown = rows[0]!.isKnown
  if (
    isKnown &&
    (await lostFor(await reachedIn(pool, stream.name, 'share'), stream.lastSeq, now)).length === 0
  )
    return { wentBack: [], lost: null }
  return inTransaction(pool, async client => {
    await lock(client, LOCKS.epoch)
    const known = await client.query<Before>(
      'select created, servers, unread from jetstream_streams where name = $1',
      [stream.name],
    )
    // Held while NATS is asked again: readers may have gone on since.
    await reachedIn(client, stream.name, 'update')
    const { created, lastSeq } = await now.state()
    const before = known.rows[0]
    let lost: Lost | null = null
    if (before && before.created !== created) {
      await refuseBesideOthers(client, stream, before.created)
      refuseLeavingUnread(stream, before)
      lost = await recordLoss(client, stream.name, null)
      await exchangeCursors(client, stream.name, { before: before.created, now: created })
    }
    await client.query(
      `insert into jetstream_streams (name, created, partitions, servers) values ($1, $2, $3, $4)
       on conflict (name) do update set created = $2, partitions = $3, servers = $4`,
      [stream.name, created, stream.partitions, stream.servers],
    )
    await client.query(
      `insert into jetstream_cursors (stream, partition) select $1, generate_series(0, $2::int - 1)
       on conflict do nothing`,
      [stream.name, stream.partitions],
    )
    const reached = await reachedIn(client, stream.name, 'update')
    await forgetPassed(client, stream.name)
    const wentBack: WentBack[] = []
    for (const { partition, seq, firstUnread } of await lostFor(reached, lastSeq, now)) {
      const to = await firstUnread()
      await putBack(client, stream.name, { partition, seq: to, lastId: await now.idAt(to - 1) })
      wentBack.push({ partition, from: seq, to })
    }
    return { wentBack, lost }
  })
}

/** Others that go on with the stream as it was before are at other servers than this process: their positions are not to be lost. */
async function refuseBesideOthers(db: Db, { name, servers, process }: FoundStream, before: string) {
  const other = (await listWriters(db)).find(
    writer => writer.stream === name && writer.created === before && writer.process !== process,
  )
  if (!other) return
  throw new NatsRefused(
    `The stream ${name} at ${servers} is not the one of this name that another node (${other.name}) writes to, last seen ${other.secondsAgo} s ago. ` +
      'Give all nodes the same NATS_URL, or stop that one first. (Where the stream was deleted and made anew, this ends by itself within seconds.)',
  )
}

type Before = { created: string; servers: string; unread: number }

/** Another cluster is not another life of the stream: what waits in the first one is still there. */
function refuseLeavingUnread({ name, servers, takesOver }: FoundStream, before: Before): void {
  const isElsewhere = !before.servers.split(',').some(server => servers.split(',').includes(server))
  if (!isElsewhere || before.unread === 0 || takesOver) return
  const unread = before.unread === 1 ? 'one entry that was' : `${before.unread} entries that were`
  throw new NatsRefused(
    `The stream ${name} at ${servers} is not the one at ${before.servers}, which held ${unread} not processed when it was last seen. ` +
      'Set NATS_URL back until they are; where that stream is gone for good, start once with KONTOR_NATS_TAKE_OVER=true.',
  )
}

/** Positions of a life of the stream that is not the present one stand under a name that no stream can have. */
async function exchangeCursors(
  db: Db,
  stream: string,
  { before, now }: { before: string; now: string },
): Promise<void> {
  const rename = `update jetstream_cursors set stream = $2 where stream = $1`
  await db.query(rename, [stream, `${stream}@${before}`])
  await db.query(rename, [`${stream}@${now}`, stream])
}

/** Those whose last message is not in the stream any more, because it is shorter now or has another one there, with where to go on. */
async function lostFor(reached: Reached[], lastSeq: number, { idAt, firstAfter }: StreamNow) {
  const found = await Promise.all(
    reached.map(async ({ partition, seq, ord, lastId, lastAt }) => {
      const last = ord > 0 ? seq : seq - 1
      const isAhead = seq > lastSeq + 1
      const id = isAhead || lastId === null ? null : await idAt(last)
      if (!isAhead && (id === null || id === lastId)) return []
      // All that was read came earlier. From the number on that bears another message now, all is new whatever the clock says.
      const firstUnread = async () => {
        const first = lastAt && (await firstAfter(partition, lastAt))
        return Math.min(first ?? Number.POSITIVE_INFINITY, isAhead ? lastSeq + 1 : last)
      }
      return [{ partition, seq, firstUnread }]
    }),
  )
  return found.flat()
}

/** Waits for whoever owns some of them: what was taken from the stream as it was before has taken effect then, or has not. */
async function reachedIn(db: Db, stream: string, lock: 'share' | 'update'): Promise<Reached[]> {
  const { rows } = await db.query<Reached>(
    `select partition, seq, ord, last_id as "lastId", last_at as "lastAt" from jetstream_cursors where stream = $1
     order by partition for ${lock}`,
    [stream],
  )
  return rows
}

async function putBack(
  db: Db,
  stream: string,
  { partition, seq, lastId }: { partition: number; seq: number; lastId: string | null },
): Promise<void> {
  await db.query(
    'update jetstream_cursors set seq = $3, ord = 0, last_id = $4 where stream = $1 and partition = $2',
    [stream, partition, seq, lastId],
  )
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

export async function moveCursors(db: Db, stream: string, steps: Step[]): Promise<void> {
  await queryPrepared(
    db,
    `update jetstream_cursors c set seq = p.seq, ord = p.ord, last_id = p.last_id, last_at = greatest(c.last_at, p.last_at),
       updated_at = now()
     from unnest($2::smallint[], $3::bigint[], $4::int[], $5::text[], $6::timestamptz[])
       as p (partition, seq, ord, last_id, last_at)
     where c.stream = $1 and c.partition = p.partition`,
    [
      stream,
      steps.map(step => step.partition),
      steps.map(step => step.seq),
      steps.map(step => step.ord),
      steps.map(step => step.lastId),
      steps.map(step => step.lastAt),
    ],
  )
}
