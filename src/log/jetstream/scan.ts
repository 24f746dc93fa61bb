import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import type { Entry } from '../../domain/entries/entry.ts'
import { idToTime } from '../../domain/ids.ts'
import { CLOCKS_APART_MS } from '../../domain/time.ts'
import type { Unread } from '../log.ts'
import { ownerReader } from './connection.ts'
import { type Cursor, listCursors } from './cursors.ts'
import type { KnownStream } from './known-streams.ts'
import { type Facts, getNext, type Message, readFacts } from './messages.ts'
import {
  type Connected,
  connectTo,
  errorReason,
  type NatsAccess,
  type NatsSettings,
  partitionSubject,
  partSubject,
} from './nats.ts'
import {
  CONFIRMED_WITHIN_MS,
  type Marker,
  type OpenStream,
  readStreamInfo,
  readStreamOwner,
  refuseTaken,
  withMarker,
} from './stream.ts'

// The headers of this many messages are read in a fraction of a second. Beyond that, the count is estimated.
const MAX_COUNTED = 20_000
const FETCH_MS = 5_000

type Head = { seq: number; at: number; subject: string; facts: Facts; left: number }

/** The headers of messages, in order. */
async function* heads(
  { js }: Connected,
  stream: string,
  { subjects, seq, since }: { subjects: string[]; seq?: number; since?: Date },
): AsyncGenerator<Head> {
  const consumer = await js.consumers.get(stream, {
    filter_subjects: subjects,
    headers_only: true,
    ...(seq !== undefined && { deliver_policy: 'by_start_sequence', opt_start_seq: seq }),
    ...(since !== undefined && { deliver_policy: 'by_start_time', opt_start_time: since.toISOString() }),
  })
  try {
    let left = (await consumer.info()).num_pending
    while (left > 0) {
      const messages = await consumer.fetch({ max_messages: Math.min(left, 1_000), expires: FETCH_MS })
      let got = 0
      for await (const message of messages) {
        got++
        left = message.info.pending
        const at = Math.floor(message.info.timestampNanos / 1e6)
        const facts = readFacts(message.headers, at)
        yield { seq: message.seq, at, subject: message.subject, facts, left }
      }
      if (got === 0) return
    }
  } finally {
    await consumer.delete().catch(() => {})
  }
}

/** Unread entries after a cursor, the time of the oldest, the numbers of their first and last message, and the id of the last. */
export async function readLag(
  connected: Connected,
  stream: string,
  cursor: Cursor,
): Promise<Unread & { first: number | null; last: number | null; lastId: string | null }> {
  const first = await getNext(connected, stream, cursor.partition, cursor.seq)
  if (first === null) return { entries: 0, oldestAt: null, first: null, last: null, lastId: null }
  const unread = entriesAfter(first, cursor)
  // A message that is incomplete or cannot be read counts as its header says.
  let entries = first.isIncomplete || first.skipped ? first.facts.entries : unread.length
  let oldest = entries === 0 ? Number.POSITIVE_INFINITY : first.facts.to
  for (const { receivedAt } of unread) oldest = Math.min(oldest, receivedAt.getTime())
  let counted = 0
  let [last, lastId] = [first.seq, first.facts.id]
  const subjects = [partitionSubject(stream, cursor.partition)]
  for await (const { seq, facts, left } of heads(connected, stream, { subjects, seq: first.seq + 1 })) {
    ;[last, lastId] = [seq, facts.id]
    entries += facts.entries
    if (facts.entries > 0) oldest = Math.min(oldest, facts.from)
    if (++counted < MAX_COUNTED) continue
    entries += Math.round((entries / (counted + 1)) * left)
    break
  }
  return { entries, oldestAt: entries === 0 ? null : new Date(oldest), first: first.seq, last, lastId }
}

/** Whether the server that answers has unread messages. */
export async function hasUnread(connected: Connected, stream: string, cursors: Cursor[]): Promise<boolean> {
  for (const { partition, seq } of cursors) if ((await getNext(connected, stream, partition, seq)) !== null) return true
  return false
}

/** Entries between a cursor and a marker. Null: the server that answers does not have the marker, and so maybe not everything before it. */
async function unreadBefore(
  connected: Connected,
  stream: string,
  cursor: Cursor,
  marker: Marker,
): Promise<number | null> {
  let entries = 0
  let counted = 0
  const subjects = [partitionSubject(stream, cursor.partition), marker.subject]
  for await (const { seq, facts, left } of heads(connected, stream, { subjects, seq: cursor.seq })) {
    if (seq >= marker.seq) return entries
    entries += facts.entries - (seq === cursor.seq ? cursor.ord : 0)
    if (++counted >= MAX_COUNTED) return entries + Math.round((entries / counted) * left)
  }
  return null
}

/** The tenant's unread entries of a partition, message by message. */
export async function* unreadEntries(
  connected: Connected,
  stream: string,
  cursor: Cursor,
  tenantId: number,
): AsyncGenerator<Entry[]> {
  const first = await getNext(connected, stream, cursor.partition, cursor.seq)
  if (first === null) return
  const own = (entries: Entry[]) => entries.filter(entry => entry.tenantId === tenantId)
  yield own(entriesAfter(first, cursor))
  const subjects = [partitionSubject(stream, cursor.partition)]
  for await (const { facts, seq } of heads(connected, stream, { subjects, seq: first.seq + 1 })) {
    if (!facts.tenants.includes(tenantId)) continue
    const message = await getNext(connected, stream, cursor.partition, seq)
    if (message?.seq === seq) yield own(message.entries)
  }
}

/** The number of the first message of a partition that was stored later, by NATS's clock. */
export async function firstAfter(
  connected: Connected,
  stream: string,
  partition: number,
  time: Date,
): Promise<number | null> {
  const range = { subjects: [partitionSubject(stream, partition)], since: new Date(time.getTime() + 1) }
  for await (const { seq, at } of heads(connected, stream, range)) if (at > time.getTime()) return seq
  return null
}

/** An entry that is still in the stream, read or not. */
export async function findEntry(
  connected: Connected,
  stream: string,
  tenantId: number,
  id: string,
): Promise<Entry | null> {
  const time = idToTime(id).getTime()
  // Allows for differences between the clocks of NATS and the nodes, and for the duration of a publish.
  const range = { subjects: [`${stream}.log.*`], since: new Date(time - CLOCKS_APART_MS) }
  for await (const { facts, seq, at, subject } of heads(connected, stream, range)) {
    if (at > time + CLOCKS_APART_MS) return null
    if (facts.from > time || facts.to < time || !facts.tenants.includes(tenantId)) continue
    const partition = Number(subject.slice(subject.lastIndexOf('.') + 1))
    const message = await getNext(connected, stream, partition, seq)
    const found = message?.entries.find(entry => entry.id === id && entry.tenantId === tenantId)
    if (found) return found
  }
  return null
}

function entriesAfter({ seq, entries }: Message, cursor: Cursor): Entry[] {
  return seq === cursor.seq ? entries.slice(cursor.ord) : entries
}

// Parts are stored before the message that names them, by a few seconds at most.
const PARTS_AHEAD_MS = 600_000

/** Purges what was read. */
export async function purgeRead(opened: OpenStream, stream: string, cursors: Cursor[]): Promise<void> {
  await refuseTaken(opened, stream)
  for (const cursor of cursors) {
    if (cursor.seq > 1)
      await opened.manager.streams.purge(stream, {
        filter: partitionSubject(stream, cursor.partition),
        seq: cursor.seq,
      })
    await purgeParts(opened, stream, cursor)
  }
}

/** Parts that no message names: the process that was to publish the message or to purge the parts ended before. */
async function purgeParts(opened: OpenStream, stream: string, { partition, seq }: Cursor): Promise<void> {
  const { manager } = opened
  const { state } = await manager.streams.info(stream, { subjects_filter: partSubject(stream, partition, '*', '*') })
  const groups = new Set(Object.keys(state.subjects ?? {}).map(subject => subject.split('.').at(-2)!))
  if (groups.size === 0) return
  const unread = await getNext(opened, stream, partition, seq)
  const before = (unread?.at.getTime() ?? Date.now()) - PARTS_AHEAD_MS
  for (const group of groups)
    if (idToTime(group).getTime() < before)
      await manager.streams.purge(stream, { filter: partSubject(stream, partition, group, '*') })
}

const RETRY_MS = 100

/** How many entries of a stream are unprocessed; or why that is unknown; or that the stream belongs to another database now. */
export async function unreadIn(
  pool: pg.Pool,
  known: KnownStream,
  nats: NatsSettings | null,
): Promise<number | { unknown: string } | 'taken'> {
  const connected = await reach(known, nats?.access ?? null)
  if (connected === null) return { unknown: `it is unreachable at ${known.servers}` }
  const cursors = await listCursors(pool, known.name)
  const owner = await ownerReader(pool)()
  try {
    const info = await readStreamInfo(connected, known.name)
    if (info && (readStreamOwner(info.config) ?? owner) !== owner) return 'taken'
    return await confirmedUnread(connected, known.name, cursors)
  } catch (error) {
    return { unknown: `its servers at ${known.servers} do not confirm that everything is read (${errorReason(error)})` }
  } finally {
    await connected.connection.close()
  }
}

type Count = (cursors: Cursor[]) => Promise<number>

export function confirmedUnread(connected: Connected, stream: string, cursors: Cursor[]): Promise<number> {
  return withCount(connected, stream, count => count(cursors))
}

/**
 * Counts the unread messages in the stream, and makes sure that none is missing: any server of a cluster may respond, and one
 * that lags behind the others or is disconnected from them lacks the newest messages.
 */
export async function withCount<T>(
  connected: Connected,
  stream: string,
  work: (count: Count) => Promise<T>,
): Promise<T> {
  const info = await readStreamInfo(connected, stream)
  if (info === null) return work(async () => 0)
  const { config, state } = info
  if (config.num_replicas > 1)
    return withMarker(connected, stream, marker =>
      work(countWith(cursor => confirmedBefore(connected, stream, cursor, marker))),
    )
  return work(
    countWith(async cursor => (cursor.seq > state.last_seq ? 0 : (await readLag(connected, stream, cursor)).entries)),
  )
}

function countWith(unreadBehind: (cursor: Cursor) => Promise<number>): Count {
  return async cursors => {
    let unread = 0
    for (const cursor of cursors) unread += await unreadBehind(cursor)
    return unread
  }
}

/** A server that lags behind has the marker a moment later. */
async function confirmedBefore(connected: Connected, stream: string, cursor: Cursor, marker: Marker): Promise<number> {
  const deadline = performance.now() + CONFIRMED_WITHIN_MS
  for (;;) {
    const unread = await unreadBefore(connected, stream, cursor, marker)
    if (unread !== null) return unread
    if (performance.now() > deadline) throw new Error('the server that answers lags behind the others')
    await sleep(RETRY_MS)
  }
}

/** Connects to its last address, or to the current one if the same stream is there: the servers may have been renamed. */
async function reach(known: KnownStream, now: NatsAccess | null): Promise<Connected | null> {
  const access = { ...(now ?? WITHOUT_CREDENTIALS), servers: known.servers.split(',') }
  const there = await connectTo(access, 'kontor').catch(() => null)
  if (there !== null || now === null) return there
  const here = await connectTo(now, 'kontor').catch(() => null)
  const info = here && (await readStreamInfo(here, known.name).catch(() => null))
  if (info?.created === known.created) return here
  await here?.connection.close()
  return null
}

const WITHOUT_CREDENTIALS = { tls: false, user: null, password: null, token: null, credentialsFile: null }
