import type { Entry } from '../../domain/entries/entry.ts'
import type { Db } from '../../postgres/database.ts'
import {
  HEAVY_ENTRIES,
  MAX_BYTES_PER_PARTITION,
  type PartitionName,
  type Taken,
  type TakeOptions,
} from '../log.ts'
import type { Connected } from './access.ts'
import { type Cursor, moveCursors, ownCursors, type Position, type Step } from './cursors.ts'
import { reasonOf } from './errors.ts'
import type { Linked, LinkLogger } from './link.ts'
import { type Facts, readFacts, unpack } from './messages.ts'
import { partSubject, subjectOf } from './settings.ts'

/** A message of a partition, read. */
export type Message = {
  seq: number
  at: Date
  facts: Facts
  entries: Entry[]
  storedBytes: number[]
  /** Parts of it are not there: it was read elsewhere meanwhile, or they have not arrived at that server yet. */
  isIncomplete?: true
}

// So much is fetched ahead of each partition, or one message if that has more.
const AHEAD_BYTES = 1_000_000
// Whoever takes waits so long for news, and no longer: records go on while NATS is slow.
const WAIT_MS = 300
// What cannot be read is said so often, and stays where it is.
const WARN_EVERY_MS = 10_000

/** What was fetched of a partition. It stays until its cursor, read while it is owned, is past it. */
type Buffered = {
  /** All there is of the partition from `from` up to `next`. */
  messages: Message[]
  from: number
  next: number
  bytes: number
  /** Up to where it was last taken here, whether that took effect or not. */
  takenTo: number
  filling: Promise<void> | null
}

type Reader = {
  /** `isHeld`: partitions that have to wait. */
  take(db: Db, options: TakeOptions, isHeld: (partition: number) => boolean): Promise<Taken[]>
  advance(db: Db, taken: Taken[]): Promise<void>
}

/** `linked`: the stream whose cursors are there; null while there is none. */
export function openReader(
  stream: string,
  { linked, logger }: { linked: () => Linked | null; logger?: LinkLogger | undefined },
): Reader {
  const buffers = new Map<number, Buffered>()
  let source: Linked | null = null
  let warnedAt = -Infinity

  function warn(partition: number, error: unknown): void {
    if (performance.now() - warnedAt < WARN_EVERY_MS) return
    warnedAt = performance.now()
    logger?.warn(
      { partition: partitionName(partition), reason: reasonOf(error) },
      'the log on NATS cannot be read',
    )
  }

  function bufferOf(partition: number): Buffered {
    let buffer = buffers.get(partition)
    if (!buffer) {
      buffer = { messages: [], from: 0, next: 0, bytes: 0, takenTo: 0, filling: null }
      buffers.set(partition, buffer)
    }
    return buffer
  }

  function fill(partition: number, current: Linked): Promise<void> {
    const buffer = bufferOf(partition)
    buffer.filling ??= fetchAhead(current, partition, buffer)
      .catch(error => warn(partition, error))
      .finally(() => {
        buffer.filling = null
      })
    return buffer.filling
  }

  async function fetchAhead(current: Linked, partition: number, buffer: Buffered): Promise<void> {
    while (buffer.bytes < AHEAD_BYTES) {
      const from = buffer.next
      const message = await getNext(current, stream, partition, from)
      // Its cursor was found elsewhere meanwhile; or NATS was away, and what answered is not what was asked.
      if (message === null || buffer.next !== from || linked() !== current) return
      buffer.messages.push(message)
      if (message.isIncomplete) warn(partition, new Error(`parts of message ${message.seq} are not there`))
      buffer.bytes += sum(message.storedBytes)
      buffer.next = message.seq + 1
    }
  }

  /** Fetches ahead, and waits for where nothing is left: a moment, or not at all where there is enough to do. */
  async function refresh(current: Linked): Promise<void> {
    const fills: Promise<unknown>[] = []
    let entries = 0
    for (let partition = 0; partition < current.stream.partitions; partition++) {
      const fresh = freshIn(bufferOf(partition))
      const filling = fill(partition, current)
      if (fresh === 0) fills.push(filling)
      entries += fresh
    }
    if (entries >= HEAVY_ENTRIES) return
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(resolve, WAIT_MS)
    await Promise.race([Promise.all(fills), promise])
    clearTimeout(timer)
  }

  /**
   * Those with something to read, at random: several workers spread over them. Last those of which all was taken before: that may
   * have come to nothing.
   */
  function candidates(limit: TakeOptions, isHeld: (partition: number) => boolean): number[] {
    const chosen: number[] = []
    let entries = 0
    const filled = shuffled([...buffers])
      .filter(([partition, { messages }]) => messages.length > 0 && !isHeld(partition))
      .map(([partition, buffer]) => ({ partition, fresh: freshIn(buffer) }))
    for (const { partition, fresh } of filled.sort((a, b) => Math.sign(b.fresh) - Math.sign(a.fresh))) {
      if (chosen.length >= limit.maxPartitions || entries >= HEAVY_ENTRIES) break
      chosen.push(partition)
      entries += fresh
    }
    return chosen
  }

  /** Leaves what is not read yet, as the cursor says. */
  function drop(partition: number, { seq }: Position): Buffered {
    const buffer = bufferOf(partition)
    const first = buffer.messages.findIndex(message => message.seq >= seq)
    const read = buffer.messages.splice(0, first === -1 ? buffer.messages.length : first)
    for (const { storedBytes, facts } of read) {
      buffer.bytes -= sum(storedBytes)
      if (facts.parts > 0 && source) void forgetParts(source, stream, partition, facts.id).catch(() => {})
    }
    // Another process has read on, or the database is an older one now.
    const isAnew = seq < buffer.from || seq > buffer.next || buffer.messages[0]?.isIncomplete
    if (isAnew) Object.assign(buffer, { messages: [], bytes: 0, next: seq })
    buffer.from = seq
    return buffer
  }

  return {
    async take(db, options, isHeld) {
      const current = linked()
      if (current) {
        // After NATS was away, its numbers may mean something else: what was fetched before is fetched again.
        if (current !== source) buffers.clear()
        source = current
        await refresh(current)
      }
      const named = options.alsoPartitions.flatMap(name => partitionNumber(name) ?? [])
      const wanted = [...new Set([...named, ...candidates(options, isHeld)])]
      if (wanted.length === 0) return []
      const cursors = await ownCursors(db, stream, wanted)
      // NATS went or came back meanwhile: positions may have been put right for what is there now, and this is of before.
      if (linked() !== current) return []
      const taken: Taken[] = []
      for (const cursor of cursors) {
        const buffer = drop(cursor.partition, cursor)
        const cut = cutOf(buffer.messages, cursor, options.maxEntries)
        if (cut.position) buffer.takenTo = (cut.position as Position).seq
        if (cut.entries.length > 0 || named.includes(cursor.partition)) taken.push(cut)
        if (current) void fill(cursor.partition, current)
      }
      return taken
    },
    async advance(db, taken) {
      const steps = taken.flatMap(({ partition, position }) => {
        const number = partitionNumber(partition)
        return number !== null && position !== null
          ? [{ partition: number, ...(position as Omit<Step, 'partition'>) }]
          : []
      })
      if (steps.length > 0) await moveCursors(db, stream, steps)
    },
  }
}

function freshIn({ messages, takenTo }: Buffered): number {
  let entries = 0
  for (const message of messages) if (message.seq >= takenTo) entries += Math.max(1, message.entries.length)
  return entries
}

/** From the cursor on, as much as one transaction takes. */
function cutOf(messages: Message[], cursor: Cursor, maxEntries: number): Taken {
  const taken: Taken = { partition: partitionName(cursor.partition), entries: [], position: null }
  let bytes = 0
  for (const { seq, at, facts, entries, storedBytes, isIncomplete } of messages) {
    if (isIncomplete) return taken
    const from = seq === cursor.seq ? cursor.ord : 0
    for (let ord = from; ord < entries.length; ord++) {
      if (taken.entries.length >= maxEntries || bytes >= MAX_BYTES_PER_PARTITION) return taken
      taken.entries.push(entries[ord]!)
      bytes += storedBytes[ord]!
      const isLast = ord === entries.length - 1
      taken.position = {
        seq: isLast ? seq + 1 : seq,
        ord: isLast ? 0 : ord + 1,
        lastId: facts.id,
        lastAt: at,
      } satisfies Omit<Step, 'partition'>
    }
  }
  return taken
}

/** The first message of a partition at or after a number; null: there is none yet. */
export async function getNext(
  connected: Connected,
  stream: string,
  partition: number,
  from: number,
): Promise<Message | null> {
  const found = await connected.manager.direct.getMessage(stream, {
    next_by_subj: subjectOf(stream, partition),
    seq: Math.max(1, from),
  })
  if (found === null) return null
  const facts = readFacts(found.header)
  const head = { seq: found.seq, at: found.time, facts }
  const payload = facts.parts > 0 ? await readParts(connected, stream, partition, facts) : found.data
  if (payload === null) return { ...head, entries: [], storedBytes: [], isIncomplete: true }
  return { ...head, ...unpack(payload, facts) }
}

async function readParts(
  { manager }: Connected,
  stream: string,
  partition: number,
  { id, parts }: Facts,
): Promise<Uint8Array | null> {
  const found: Uint8Array[] = []
  for (let part = 0; part < parts; part++) {
    const message = await manager.direct.getMessage(stream, {
      last_by_subj: partSubject(stream, partition, id, part),
    })
    if (message === null) return null
    found.push(message.data)
  }
  return Buffer.concat(found)
}

/** Once what they are parts of is read. */
async function forgetParts(
  { manager }: Connected,
  stream: string,
  partition: number,
  group: string,
): Promise<void> {
  await manager.streams.purge(stream, { filter: partSubject(stream, partition, group, '*') })
}

const PREFIX = 'jetstream/'

export const partitionName = (partition: number): PartitionName => `${PREFIX}${partition}`

function partitionNumber(name: PartitionName): number | null {
  return name.startsWith(PREFIX) ? Number(name.slice(PREFIX.length)) : null
}

function sum(numbers: number[]): number {
  let total = 0
  for (const number of numbers) total += number
  return total
}

function shuffled<T>(items: T[]): T[] {
  for (let i = items.length - 1; i > 0; i--) {
    const j = Math.floor(Math.random() * (i + 1))
    ;[items[i], items[j]] = [items[j]!, items[i]!]
  }
  return items
}
