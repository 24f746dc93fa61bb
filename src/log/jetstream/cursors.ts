import type pg from 'pg'
import { type Db, inTransaction, queryPrepared, queryRows } from '../../postgres/database.ts'
import { LOCKS, lock } from '../../postgres/locks.ts'
import type { Lost } from '../log.ts'
import { forgetPassed, listWriters, recordLoss } from './known-streams.ts'
import { NatsRefused, StreamInUse } from './nats.ts'

/** Everything below `seq` is read, and the first `ord` entries of the message at `seq`. */
export type Position = { seq: number; ord: number }
export type Cursor = Position & { partition: number }

/** A position with its last message: the one before it, or the one that it is in. */
export type Step = Cursor & { lastId: string; lastAt: Date }

type Reached = Cursor & { lastId: string | null; lastAt: Date | null }

type FoundStream = {
  name: string
  created: string
  partitions: number
  lastSeq: number
  /** Without credentials. */
  servers: string
  /** The id of this process as a writer; null: it does not write. */
  process: string | null
  /** How many entries this process has acknowledged since it last recorded what is unread. */
  acknowledged: number
  /** The unread entries of the stream before it are given up. */
  takesOver: boolean
}

/** The stream as NATS reports it now. */
type StreamNow = {
  state(): Promise<{ created: string; lastSeq: number }>
  /** The id of the message with this number; null: it is gone. */
  messageId(seq: number): Promise<string | null>
  /** The first message of a partition that was stored later. */
  firstAfter(partition: number, at: Date): Promise<number | null>
}

/** A cursor that was moved back. */
type MovedBack = { partition: number; from: number; to: number }

/** `replaced`: this process is the first that entered a new stream of this name. `lost`: what was unread in the one before it. */
type Entered = { movedBack: MovedBack[]; replaced: boolean; lost: Lost | null }

/**
 * Creates the cursors of a stream that is seen for the first time. A stream that was created again is read from its start, and the
 * cursors of the previous one are kept: it may be at other servers, and an operator may return to it. If a server lost messages that
 * it had not synced, reading continues at the loss: new messages get numbers that were read before.
 */
export async function enterStream(pool: pg.Pool, stream: FoundStream, now: StreamNow): Promise<Entered> {
  const { rows } = await pool.query<{ isKnown: boolean }>(
    `select exists (select from jetstream_streams where name = $1 and created = $2 and partitions = $3
         and servers = $4) as "isKnown"`,
    [stream.name, stream.created, stream.partitions, stream.servers],
  )
  const isKnown = rows[0]!.isKnown
  if (isKnown && (await findOutdated(await lockCursors(pool, stream.name, 'share'), stream.lastSeq, now)).length === 0)
    return { movedBack: [], replaced: false, lost: null }
  return inTransaction(pool, async client => {
    await lock(client, LOCKS.epoch)
    const known = await client.query<Before>('select created, servers, unread from jetstream_streams where name = $1', [
      stream.name,
    ])
    // Locked while NATS is asked again: readers may have advanced since.
    await lockCursors(client, stream.name, 'update')
    const { created, lastSeq } = await now.state()
    const before = known.rows[0]
    const replaced = before !== undefined && before.created !== created
    let lost: Lost | null = null
    if (replaced) {
      await refuseOtherServers(client, stream, before.created)
      refuseLeavingUnread(stream, before)
      lost = await recordLoss(client, stream.name, {
        partitions: null,
        more: stream.acknowledged,
        process: stream.process,
      })
      await swapCursors(client, stream.name, { before: before.created, now: created })
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
    const reached = await lockCursors(client, stream.name, 'update')
    await forgetPassed(client, stream.name)
    const movedBack: MovedBack[] = []
    for (const { partition, seq, firstUnread } of await findOutdated(reached, lastSeq, now)) {
      const to = await firstUnread()
      await moveBack(client, stream.name, { partition, seq: to, lastId: await now.messageId(to - 1) })
      movedBack.push({ partition, from: seq, to })
    }
    return { movedBack, replaced, lost }
  })
}

/** Other processes that still use the previous stream are connected to other servers. Their cursors must not be replaced. */
async function refuseOtherServers(db: Db, { name, servers, process }: FoundStream, before: string) {
  const other = (await listWriters(db)).find(
    writer => writer.stream === name && writer.created === before && writer.process !== process,
  )
  if (!other) return
  throw new StreamInUse(
    `The stream ${name} at ${servers} is not the one of this name that another node (${other.name}) writes to, last seen ${other.secondsAgo} s ago. ` +
      'Set the same NATS_URL on all nodes, or stop that node first. (If the stream was deleted and created again, or that node was killed, this resolves itself within 30 s.)',
  )
}

type Before = { created: string; servers: string; unread: number }

/** A stream in another cluster does not replace the first one, whose unread entries are still there. */
function refuseLeavingUnread({ name, servers, takesOver }: FoundStream, before: Before): void {
  const isElsewhere = !before.servers.split(',').some(server => servers.split(',').includes(server))
  if (!isElsewhere || before.unread === 0 || takesOver) return
  const unread = before.unread === 1 ? 'one unprocessed entry' : `${before.unread} unprocessed entries`
  throw new NatsRefused(
    `The stream ${name} at ${servers} is not the one at ${before.servers}, which contained ${unread} when it was last seen. ` +
      'Set NATS_URL back until they are processed. If that stream is permanently lost, start once with KONTOR_NATS_TAKE_OVER=true.',
  )
}

/** Cursors of a previous stream of this name are kept under a name that no stream can have. */
async function swapCursors(db: Db, stream: string, { before, now }: { before: string; now: string }): Promise<void> {
  const rename = `update jetstream_cursors set stream = $2 where stream = $1`
  await db.query(rename, [stream, `${stream}@${before}`])
  await db.query(rename, [`${stream}@${now}`, stream])
}

/** Cursors whose last message is gone, because the stream is shorter or has another message there. `firstUnread`: where to continue. */
async function findOutdated(reached: Reached[], lastSeq: number, { messageId, firstAfter }: StreamNow) {
  const found = await Promise.all(
    reached.map(async ({ partition, seq, ord, lastId, lastAt }) => {
      const last = ord > 0 ? seq : seq - 1
      const isAhead = seq > lastSeq + 1
      const id = isAhead || lastId === null ? null : await messageId(last)
      if (!isAhead && (id === null || id === lastId)) return []
      // Everything read before is older. From the number that another message has now, everything is new, whatever the clock says.
      const firstUnread = async () => {
        const first = lastAt && (await firstAfter(partition, lastAt))
        return Math.min(first ?? Number.POSITIVE_INFINITY, isAhead ? lastSeq + 1 : last)
      }
      return [{ partition, seq, firstUnread }]
    }),
  )
  return found.flat()
}

/** Waits for transactions that own some of them. Their entries are then either applied or not. */
async function lockCursors(db: Db, stream: string, lock: 'share' | 'update'): Promise<Reached[]> {
  const { rows } = await db.query<Reached>(
    `select partition, seq, ord, last_id as "lastId", last_at as "lastAt" from jetstream_cursors where stream = $1
     order by partition for ${lock}`,
    [stream],
  )
  return rows
}

async function moveBack(
  db: Db,
  stream: string,
  { partition, seq, lastId }: { partition: number; seq: number; lastId: string | null },
): Promise<void> {
  await db.query('update jetstream_cursors set seq = $3, ord = 0, last_id = $4 where stream = $1 and partition = $2', [
    stream,
    partition,
    seq,
    lastId,
  ])
}

export async function listCursors(db: Db, stream: string): Promise<Cursor[]> {
  return queryRows<Cursor>(
    db,
    'select partition, seq, ord from jetstream_cursors where stream = $1 order by partition',
    [stream],
  )
}

/** Locks these partitions until the transaction ends, without those that another transaction owns. */
export async function ownCursors(db: Db, stream: string, partitions: number[]): Promise<Cursor[]> {
  return queryRows<Cursor>(
    db,
    `select partition, seq, ord from jetstream_cursors where stream = $1 and partition = any($2)
     for update skip locked`,
    [stream, partitions],
  )
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
