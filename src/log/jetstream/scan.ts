import type { Entry } from '../../domain/entries/entry.ts'
import { timeOfId } from '../../domain/ids.ts'
import { CLOCKS_APART_MS } from '../../domain/time.ts'
import type { Unread } from '../log.ts'
import type { Connected } from './access.ts'
import type { Cursor } from './cursors.ts'
import { type Facts, readFacts } from './messages.ts'
import { getNext, type Message } from './next-message.ts'
import { subjectOf } from './settings.ts'
import type { Marker } from './stream.ts'

// Headers of so many messages are read in a fraction of a second; beyond it, what waits is estimated.
const MAX_COUNTED = 20_000
const FETCH_MS = 5_000

type Head = { seq: number; at: number; subject: string; facts: Facts; left: number }

/** The headers of messages, in their order. */
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

/** Entries behind a cursor, when the oldest of them came in, and the numbers of their first and last message. */
export async function lagOf(
  connected: Connected,
  stream: string,
  cursor: Cursor,
): Promise<Unread & { first: number | null; last: number | null }> {
  const first = await getNext(connected, stream, cursor.partition, cursor.seq)
  if (first === null) return { entries: 0, oldestAt: null, first: null, last: null }
  const unread = restOf(first, cursor)
  // Of one that is incomplete or cannot be read, what its header says.
  let entries = first.isIncomplete || first.passedOver ? first.facts.entries : unread.length
  let oldest = entries === 0 ? Number.POSITIVE_INFINITY : first.facts.to
  for (const { receivedAt } of unread) oldest = Math.min(oldest, receivedAt.getTime())
  let counted = 0
  let last = first.seq
  const subjects = [subjectOf(stream, cursor.partition)]
  for await (const { seq, facts, left } of heads(connected, stream, { subjects, seq: first.seq + 1 })) {
    last = seq
    entries += facts.entries
    if (facts.entries > 0) oldest = Math.min(oldest, facts.from)
    if (++counted < MAX_COUNTED) continue
    entries += Math.round((entries / (counted + 1)) * left)
    break
  }
  return { entries, oldestAt: entries === 0 ? null : new Date(oldest), first: first.seq, last }
}

/** Whether whoever answers has something that is not read. */
export async function hasUnread(connected: Connected, stream: string, cursors: Cursor[]): Promise<boolean> {
  for (const { partition, seq } of cursors)
    if ((await getNext(connected, stream, partition, seq)) !== null) return true
  return false
}

/** Entries between a cursor and a marker; null: whoever answers does not have the marker, and so not all that came before it either. */
export async function unreadBefore(
  connected: Connected,
  stream: string,
  cursor: Cursor,
  marker: Marker,
): Promise<number | null> {
  let entries = 0
  let counted = 0
  const subjects = [subjectOf(stream, cursor.partition), marker.subject]
  for await (const { seq, facts, left } of heads(connected, stream, { subjects, seq: cursor.seq })) {
    if (seq >= marker.seq) return entries
    entries += facts.entries - (seq === cursor.seq ? cursor.ord : 0)
    if (++counted >= MAX_COUNTED) return entries + Math.round((entries / counted) * left)
  }
  return null
}

/** Unread messages of a partition that hold something of the tenant, with what is unread of them. */
export async function* unreadOf(
  connected: Connected,
  stream: string,
  cursor: Cursor,
  tenantId: number,
): AsyncGenerator<Entry[]> {
  const first = await getNext(connected, stream, cursor.partition, cursor.seq)
  if (first === null) return
  const own = (entries: Entry[]) => entries.filter(entry => entry.tenantId === tenantId)
  yield own(restOf(first, cursor))
  const subjects = [subjectOf(stream, cursor.partition)]
  for await (const { facts, seq } of heads(connected, stream, { subjects, seq: first.seq + 1 })) {
    if (!facts.tenants.includes(tenantId)) continue
    const message = await getNext(connected, stream, cursor.partition, seq)
    if (message?.seq === seq) yield own(message.entries)
  }
}

/** The number of the first message of a partition that came in later, by NATS's clock. */
export async function firstAfter(
  connected: Connected,
  stream: string,
  partition: number,
  time: Date,
): Promise<number | null> {
  const range = { subjects: [subjectOf(stream, partition)], since: new Date(time.getTime() + 1) }
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
  const time = timeOfId(id).getTime()
  // Give or take the clocks of NATS and of the nodes, and how long a publish may take.
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

function restOf({ seq, entries }: Message, cursor: Cursor): Entry[] {
  return seq === cursor.seq ? entries.slice(cursor.ord) : entries
}
