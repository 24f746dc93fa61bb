import type { Db } from '../../postgres/database.ts'
import {
  HEAVY_ENTRIES,
  MAX_BYTES_PER_PARTITION,
  type PartitionName,
  type Taken,
  type TakeOptions,
} from '../log.ts'
import { type Cursor, moveCursors, ownCursors, type Position, type Step } from './cursors.ts'
import { reasonOf } from './errors.ts'
import type { Linked, LinkLogger } from './link.ts'
import { getNext, type Message } from './next-message.ts'
import { keepPassedOver, type PassedMessage } from './passed-over.ts'
import { partSubject } from './settings.ts'
import { refuseTaken } from './stream.ts'

// So much is fetched ahead of each partition, or one message if that has more.
const AHEAD_BYTES = 1_000_000
// A stream has a quarter of the partitions of the log in PostgreSQL: a transaction takes as much, from half as many, and leaves the others to others.
const MAX_BYTES_OF_ONE = 2 * MAX_BYTES_PER_PARTITION
const HEAVY_BYTES = 4 * MAX_BYTES_PER_PARTITION
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
  const tellPassedOver = openTellPassedOver(logger)
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
    let bytes = 0
    const filled = shuffled([...buffers])
      .filter(([partition, { messages }]) => messages.length > 0 && !isHeld(partition))
      .map(([partition, buffer]) => ({ partition, buffer, fresh: freshIn(buffer) }))
    for (const { partition, buffer, fresh } of filled.sort(
      (a, b) => Math.sign(b.fresh) - Math.sign(a.fresh),
    )) {
      if (chosen.length >= limit.maxPartitions || entries >= HEAVY_ENTRIES || bytes >= HEAVY_BYTES) break
      chosen.push(partition)
      entries += fresh
      bytes += Math.min(buffer.bytes, MAX_BYTES_OF_ONE)
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
    const isIncomplete = buffer.messages[0]?.isIncomplete
    if (isIncomplete)
      warn(partition, new Error(`parts of message ${buffer.messages[0]!.seq} are not there yet`))
    // Another process has read on, or the database is an older one now.
    const isAnew = seq < buffer.from || seq > buffer.next || isIncomplete
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
        if (cut.position !== null || named.includes(cursor.partition)) taken.push(cut)
        if (current) void fill(cursor.partition, current)
      }
      return taken
    },
    async advance(db, taken) {
      const steps = taken.flatMap(({ partition, position }) => {
        const number = partitionNumber(partition)
        return number !== null && position !== null
          ? [{ partition: number, ...(position as NextPosition) }]
          : []
      })
      if (steps.length === 0) return
      await moveCursors(db, stream, steps)
      const passedOver = steps.flatMap(step => step.passedOver)
      if (passedOver.length === 0) return
      await keepPassedOver(db, stream, passedOver)
      tellPassedOver(passedOver)
    },
  }
}

function freshIn({ messages, takenTo }: Buffered): number {
  let entries = 0
  for (const message of messages) if (message.seq >= takenTo) entries += Math.max(1, message.entries.length)
  return entries
}

/** Where a reader goes on, and what it leaves behind unread. */
type NextPosition = Omit<Step, 'partition'> & { passedOver: PassedMessage[] }

/** Of Kontor's own each; of others the first, and then one of those that came since: whoever publishes junk may publish much of it. */
function openTellPassedOver(logger: LinkLogger | undefined): (passedOver: PassedMessage[]) => void {
  let toldAt = -Infinity
  let untold = 0
  return passedOver => {
    for (const { seq, subject, reason, payload } of passedOver.filter(({ isForeign }) => !isForeign))
      logger?.warn(
        { subject, seq, reason },
        `message ${seq} of ${subject} cannot be read: it is kept ${payload ? 'in jetstream_skipped_messages' : 'as a dead letter'}, and reading goes on`,
      )
    const foreign = passedOver.filter(({ isForeign }) => isForeign)
    untold += foreign.length
    if (foreign.length === 0 || performance.now() - toldAt < WARN_EVERY_MS) return
    const { seq, subject } = foreign[0]!
    logger?.warn(
      { subject, seq, messages: untold },
      `message ${seq} of ${subject} is not from Kontor, and is passed over`,
    )
    toldAt = performance.now()
    untold = 0
  }
}

/** From the cursor on, as much as one transaction takes. */
function cutOf(messages: Message[], cursor: Cursor, maxEntries: number): Taken {
  const taken: Taken = { partition: partitionName(cursor.partition), entries: [], position: null }
  const passedOver: PassedMessage[] = []
  let bytes = 0
  for (const { seq, at, facts, entries, storedBytes, isIncomplete, passedOver: passed } of messages) {
    if (isIncomplete) return taken
    const next = (ord: number, isLast: boolean): NextPosition => ({
      ...{ seq: isLast ? seq + 1 : seq, ord: isLast ? 0 : ord + 1 },
      ...{ lastId: facts.id, lastAt: at, passedOver },
    })
    if (passed) {
      if (passedOver.length >= maxEntries) return taken
      passedOver.push(passed)
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

/** Once what they are parts of is read. */
async function forgetParts(linked: Linked, stream: string, partition: number, group: string): Promise<void> {
  await refuseTaken(linked, stream)
  await linked.manager.streams.purge(stream, { filter: partSubject(stream, partition, group, '*') })
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
