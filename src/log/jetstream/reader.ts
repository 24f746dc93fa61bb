import type { Db } from '../../postgres/database.ts'
import { HEAVY_BYTES, HEAVY_ENTRIES, type PartitionName, type Taken, type TakeOptions } from '../log.ts'
import { type Cursor, moveCursors, ownCursors, type Position, type Step } from './cursors.ts'
import { recordSkippedMessages, type SkippedMessage } from './known-streams.ts'
import { getNext, type Message } from './messages.ts'
import { errorReason, type LogLogger, partSubject } from './nats.ts'
import { type OpenStream, refuseTaken } from './stream.ts'

// Fetched ahead of each partition, or one message if it is larger.
const AHEAD_BYTES = 1_000_000
// A stream has a quarter of the partitions of the PostgreSQL log: a transaction takes as much from half as many, and leaves the rest to other workers.
const MAX_BYTES_OF_ONE = HEAVY_BYTES / 2
// How long a take waits for new messages. Records continue while NATS is slow.
const WAIT_MS = 300
// How often a failure to read is logged.
const WARN_EVERY_MS = 10_000

/** Messages fetched of a partition. They stay until the cursor, read while it is locked, has passed them. */
type Buffered = {
  /** All messages of the partition from `from` up to `next`. */
  messages: Message[]
  from: number
  next: number
  bytes: number
  /** The end of what was last taken here, whether it took effect or not. */
  takenTo: number
  filling: Promise<void> | null
}

type Reader = {
  /** `isHeld`: partitions that have to wait for the PostgreSQL log. */
  take(db: Db, options: TakeOptions, isHeld: (partition: number) => boolean): Promise<Taken[]>
  advance(db: Db, taken: Taken[]): Promise<void>
}

/** `readable`: the stream, once its cursors are in PostgreSQL; else null. */
export function openReader(
  stream: string,
  { readable, logger }: { readable: () => OpenStream | null; logger?: LogLogger | undefined },
): Reader {
  const buffers = new Map<number, Buffered>()
  const reportSkipped = openSkippedReporter(logger)
  let source: OpenStream | null = null
  let warnedAt = -Infinity

  function warn(partition: number, error: unknown): void {
    if (performance.now() - warnedAt < WARN_EVERY_MS) return
    warnedAt = performance.now()
    logger?.warn(
      { partition: partitionName(partition), reason: errorReason(error) },
      'messages of the stream on NATS cannot be read',
    )
  }

  function bufferFor(partition: number): Buffered {
    let buffer = buffers.get(partition)
    if (!buffer) {
      buffer = { messages: [], from: 0, next: 0, bytes: 0, takenTo: 0, filling: null }
      buffers.set(partition, buffer)
    }
    return buffer
  }

  function fill(partition: number, current: OpenStream): Promise<void> {
    const buffer = bufferFor(partition)
    buffer.filling ??= fetchAhead(current, partition, buffer)
      .catch(error => warn(partition, error))
      .finally(() => {
        buffer.filling = null
      })
    return buffer.filling
  }

  async function fetchAhead(current: OpenStream, partition: number, buffer: Buffered): Promise<void> {
    while (buffer.bytes < AHEAD_BYTES) {
      const from = buffer.next
      const message = await getNext(current, stream, partition, from)
      // Meanwhile the cursor was found elsewhere, or the connection was lost and the answer may be of another stream.
      if (message === null || buffer.next !== from || readable() !== current) return
      buffer.messages.push(message)
      buffer.bytes += sum(message.storedBytes)
      buffer.next = message.seq + 1
    }
  }

  /** Fetches ahead. Waits a moment for the empty partitions, or not at all if there is enough to do. */
  async function refresh(current: OpenStream): Promise<void> {
    const fills: Promise<unknown>[] = []
    let entries = 0
    for (let partition = 0; partition < current.stream.partitions; partition++) {
      const fresh = freshIn(bufferFor(partition))
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
   * Partitions with messages, in random order, which spreads several workers over them. Last those of which everything was taken before:
   * that transaction may have failed.
   */
  function candidates(limit: TakeOptions, isHeld: (partition: number) => boolean): number[] {
    const chosen: number[] = []
    let entries = 0
    let bytes = 0
    const filled = shuffled([...buffers])
      .filter(([partition, { messages }]) => messages.length > 0 && !isHeld(partition))
      .map(([partition, buffer]) => ({ partition, buffer, fresh: freshIn(buffer) }))
    for (const { partition, buffer, fresh } of filled.sort((a, b) => Math.sign(b.fresh) - Math.sign(a.fresh))) {
      if (chosen.length >= limit.maxPartitions || entries >= HEAVY_ENTRIES || bytes >= HEAVY_BYTES) break
      chosen.push(partition)
      entries += fresh
      bytes += Math.min(buffer.bytes, MAX_BYTES_OF_ONE)
    }
    return chosen
  }

  /** Removes the messages before the cursor. */
  function drop(partition: number, { seq }: Position): Buffered {
    const buffer = bufferFor(partition)
    const first = buffer.messages.findIndex(message => message.seq >= seq)
    const read = buffer.messages.splice(0, first === -1 ? buffer.messages.length : first)
    for (const { storedBytes, facts } of read) {
      buffer.bytes -= sum(storedBytes)
      if (facts.parts > 0 && source) void purgeParts(source, stream, partition, facts.id).catch(() => {})
    }
    const isIncomplete = buffer.messages[0]?.isIncomplete
    if (isIncomplete) warn(partition, new Error(`parts of message ${buffer.messages[0]!.seq} are missing`))
    // Another process has read on, or the database was replaced by an older one.
    const isReset = seq < buffer.from || seq > buffer.next || isIncomplete
    if (isReset) Object.assign(buffer, { messages: [], bytes: 0, next: seq })
    buffer.from = seq
    return buffer
  }

  return {
    async take(db, options, isHeld) {
      const current = readable()
      if (current) {
        // After a disconnect the numbers may belong to other messages: everything is fetched again.
        if (current !== source) buffers.clear()
        source = current
        await refresh(current)
      }
      const named = options.alsoPartitions.flatMap(name => partitionNumber(name) ?? [])
      const wanted = [...new Set([...named, ...candidates(options, isHeld)])]
      if (wanted.length === 0) return []
      const cursors = await ownCursors(db, stream, wanted)
      // The connection changed meanwhile: cursors may have been corrected, and the buffers are from before.
      if (readable() !== current) return []
      const taken: Taken[] = []
      for (const cursor of cursors) {
        const buffer = drop(cursor.partition, cursor)
        const cut = takeFrom(buffer.messages, cursor, options.maxEntries)
        if (cut.position) buffer.takenTo = (cut.position as Position).seq
        if (cut.position !== null || named.includes(cursor.partition)) taken.push(cut)
        if (current) void fill(cursor.partition, current)
      }
      return taken
    },
    async advance(db, taken) {
      const steps = taken.flatMap(({ partition, position }) => {
        const number = partitionNumber(partition)
        return number !== null && position !== null ? [{ partition: number, ...(position as NextPosition) }] : []
      })
      if (steps.length === 0) return
      await moveCursors(db, stream, steps)
      const skipped = steps.flatMap(step => step.skipped)
      if (skipped.length === 0) return
      await recordSkippedMessages(db, stream, skipped)
      reportSkipped(skipped)
    },
  }
}

function freshIn({ messages, takenTo }: Buffered): number {
  let entries = 0
  for (const message of messages) if (message.seq >= takenTo) entries += Math.max(1, message.entries.length)
  return entries
}

/** The position after what was taken, and the messages that it skips. */
type NextPosition = Omit<Step, 'partition'> & { skipped: SkippedMessage[] }

/** Logs each of Kontor's own. Of foreign messages it logs one every 10 s with their number: there may be many. */
function openSkippedReporter(logger: LogLogger | undefined): (skipped: SkippedMessage[]) => void {
  let loggedAt = -Infinity
  let unlogged = 0
  return skipped => {
    for (const { seq, subject, reason, payload } of skipped.filter(({ isForeign }) => !isForeign))
      logger?.warn(
        { subject, seq, reason },
        `message ${seq} of ${subject} cannot be read: it is kept ${payload ? 'in jetstream_skipped_messages' : 'as a dead letter'}, and skipped`,
      )
    const foreign = skipped.filter(({ isForeign }) => isForeign)
    unlogged += foreign.length
    if (foreign.length === 0 || performance.now() - loggedAt < WARN_EVERY_MS) return
    const { seq, subject } = foreign[0]!
    logger?.warn({ subject, seq, messages: unlogged }, `message ${seq} of ${subject} is not from Kontor and is skipped`)
    loggedAt = performance.now()
    unlogged = 0
  }
}

/** As much as one transaction takes, starting at the cursor. */
function takeFrom(messages: Message[], cursor: Cursor, maxEntries: number): Taken {
  const taken: Taken = { partition: partitionName(cursor.partition), entries: [], position: null }
  const skippedBefore: SkippedMessage[] = []
  let bytes = 0
  for (const { seq, at, facts, entries, storedBytes, isIncomplete, skipped } of messages) {
    if (isIncomplete) return taken
    const next = (ord: number, isLast: boolean): NextPosition => ({
      ...{ seq: isLast ? seq + 1 : seq, ord: isLast ? 0 : ord + 1 },
      ...{ lastId: facts.id, lastAt: at, skipped: skippedBefore },
    })
    if (skipped) {
      if (skippedBefore.length >= maxEntries) return taken
      skippedBefore.push(skipped)
      taken.position = next(0, true)
    }
    for (let ord = seq === cursor.seq ? cursor.ord : 0; ord < entries.length; ord++) {
      if (taken.entries.length >= maxEntries || bytes >= MAX_BYTES_OF_ONE) return taken
      taken.entries.push(entries[ord]!)
      bytes += storedBytes[ord]!
      taken.position = next(ord, ord === entries.length - 1)
    }
  }
  return taken
}

/** Once their message is read. */
async function purgeParts(opened: OpenStream, stream: string, partition: number, group: string): Promise<void> {
  await refuseTaken(opened, stream)
  await opened.manager.streams.purge(stream, { filter: partSubject(stream, partition, group, '*') })
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
