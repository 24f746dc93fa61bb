import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import type { Entry } from '../../domain/entries/entry.ts'
import {
  type Append,
  type Appended,
  choosePartition,
  type EntryQuery,
  type FlushGroup,
  type Log,
  LogRefused,
  LogUnavailable,
  type OutsideLog,
  totalUnread,
  type Unread,
} from '../log.ts'
import type { PostgresLog } from '../postgres/log.ts'
import { type Connection, openConnection, ownerReader } from './connection.ts'
import { enterStream, listCursors } from './cursors.ts'
import {
  addToLoss,
  countSkippedMessages,
  dropSkippedMessages,
  eraseSkippedPayloads,
  findLosses,
  type LastPublished,
  noteLastUnread,
  noteUnread,
  openWriter,
  readLosses,
  reportLoss,
  type UnreadRange,
} from './known-streams.ts'
import { type Packed, pack, writeFacts } from './messages.ts'
import {
  errorReason,
  isFull,
  type LogLogger,
  type NatsSettings,
  partitionSubject,
  partSubject,
  StreamFull,
  StreamInUse,
  StreamRefused,
  StreamTaken,
} from './nats.ts'
import { openReader, partitionName } from './reader.ts'
import {
  confirmedUnread,
  findEntry,
  firstAfter,
  hasUnread,
  purgeRead,
  readLag,
  unreadEntries,
  withCount,
} from './scan.ts'
import {
  confirmedLastSeq,
  type OpenStream,
  partitionsDiffer,
  readMessageId,
  readStreamInfo,
  refuseChanged,
} from './stream.ts'
import { openUnrecorded } from './unrecorded.ts'

/** Events are on NATS, everything else is in the PostgreSQL log. */
type JetStreamLog = Log & { outside: OutsideLog; close(): Promise<void> }

type JetStreamOptions = {
  pool: pg.Pool
  settings: NatsSettings
  /** For entries that commit together with something else in PostgreSQL. */
  postgres: PostgresLog
  name: string
  /** This process appends events. When it closes, it records how much is unread. */
  isWriter?: boolean
  /** Where the number of acknowledged entries survives a kill; null: nowhere. */
  directory?: string | null
  logger?: LogLogger | undefined
}

// A flush is a message, and NATS syncs message by message, about 500 times a second. Appends that arrive while a message of their
// partition is in flight share the next one. A message is limited to 1 MiB by default. Each costs its writer, the server and its
// reader about 300 µs together; gathering for 8 ms doubles the size of the messages of busy partitions.
const FLUSHES = { maxInFlight: 1, maxItems: 2_000, maxBytes: 700_000, gatherMs: 8 }
const PURGE_FROM = 0.5
const NOT_A_WRITER = '00000000-0000-0000-0000-000000000000'
const PURGE_EVERY_MS = 1_000
const CHECK_OWNER_EVERY_MS = 2_000
const MAX_FOUND = 50
const POLL_MS = 20
const LAG_WITHIN_MS = 2_000
const PARTLY_READ_MS = 10_000
// The backlog is counted about as often: its count is reused.
const RECENT_MS = 2_500

export function openJetStreamLog(options: JetStreamOptions): JetStreamLog {
  const { pool, settings, postgres, name, logger, isWriter = false, directory = null } = options
  const { stream } = settings
  const servers = settings.access.servers.join(',')
  const owner = ownerReader(pool)
  const takesOver = settings.takesOver && isWriter
  const writer = isWriter ? openWriter(pool, stream) : null
  const connection = openConnection({ ...settings, takesOver }, { name, owner, enter, logger })
  const publisher = openPublisher(connection, stream, (partition, { seq, id, entries }) => {
    published.set(partition, { partition, seq, id })
    acknowledged += entries
    unrecorded.set(acknowledged - recorded, entered)
  })
  const reader = openReader(stream, { readable: connection.readable, logger })
  const findHeld = openHeldPartitions(postgres)
  const listeners = new Set<() => void>()
  let purgedAt = -Infinity
  let ownerCheckedAt = -Infinity
  /** The stream was changed while this process runs: nothing is written to it, and what is in it is read. */
  let refusal: StreamRefused | null = null
  let inUse: StreamInUse | null = null
  const published = new Map<number, LastPublished>()
  const unrecorded = openUnrecorded(isWriter ? directory : null, stream)
  /** The stream that `acknowledged` is about: the one that this process, or a killed one before it, entered last. */
  let entered = unrecorded.found.created
  let acknowledged = unrecorded.found.entries
  /** `acknowledged`, `published`, `at`: as of before the count. */
  let counted = {
    unread: 0,
    at: -Infinity,
    ranges: [] as UnreadRange[],
    acknowledged: 0,
    published: [] as LastPublished[],
  }
  /** How many entries were acknowledged before the count that was last recorded. */
  let recorded = 0
  let recordedAt = performance.now() - unrecorded.found.agoMs
  const uncounted = () => ({
    acknowledged: acknowledged - recorded,
    sinceMs: performance.now() - recordedAt,
    process: writer?.process ?? NOT_A_WRITER,
  })

  /** Brings the cursors of the stream into PostgreSQL. Until then, nothing is written to a stream that may be the wrong one. */
  async function enter(opened: OpenStream): Promise<void> {
    try {
      await enterCursors(opened)
      inUse = null
    } catch (error) {
      if (error instanceof StreamInUse) inUse = error
      throw error
    }
  }

  async function enterCursors(opened: OpenStream): Promise<void> {
    const { created, partitions, lastSeq } = opened.stream
    writer?.found(created, opened.stream.promise)
    const own = { servers, process: writer?.process ?? null, takesOver, acknowledged: acknowledged - recorded }
    const { movedBack, replaced, lost } = await enterStream(
      pool,
      { name: stream, created, partitions, lastSeq, ...own },
      {
        async state() {
          const info = await readStreamInfo(opened, stream)
          if (info === null) throw new Error(`The stream ${stream} no longer exists`)
          return { created: info.created, lastSeq: await confirmedLastSeq(opened, stream, info) }
        },
        messageId: seq => readMessageId(opened, stream, seq),
        firstAfter: (partition, at) => firstAfter(opened, stream, partition, at),
      },
    )
    if (movedBack.length > 0)
      logger?.warn(
        { stream, positions: movedBack },
        'NATS has lost messages that it had acknowledged: the stream is shorter than before, and reading continues there',
      )
    // In a stream that was created again, these numbers belong to other messages.
    if (created !== entered) published.clear()
    const isLate = !replaced && entered !== null && entered !== created && own.acknowledged > 0
    reportLoss(isLate ? await addToLoss(pool, stream, uncounted()) : lost, { stream, logger })
    if (replaced || isLate) recorded += own.acknowledged
    entered = created
    unrecorded.set(acknowledged - recorded, created)
  }

  const groups = new Map<number, FlushGroup>()
  function groupFor(partition: number): FlushGroup {
    let group = groups.get(partition)
    if (!group) {
      group = { name: partitionName(partition), ...FLUSHES }
      groups.set(partition, group)
    }
    return group
  }
  /** Before the stream was seen, the number that it would be created with. Publishing computes partitions again. */
  const partitions = () => connection.writable()?.stream.partitions ?? settings.partitions
  const partitionFor = ({ tenantId, orderingKey }: Entry) => choosePartition(tenantId, orderingKey, partitions())

  async function publish(appends: Append[]): Promise<void> {
    const invalid = appends.find(({ entry }) => entry.body.includes('\0') || entry.context.includes('\0'))
    if (invalid)
      throw new Error(`The entry ${invalid.entry.id} contains a NUL character, which PostgreSQL cannot store`)
    const obstacle = refusal ?? inUse
    if (obstacle !== null) throw obstacle
    await publisher.reach()
    const byPartition = Map.groupBy(appends, ({ entry }) => partitionFor(entry))
    try {
      await Promise.all([...byPartition].map(([partition, some]) => publisher.publish(partition, some)))
      writer?.wrote(null)
    } catch (error) {
      writer?.wrote(error instanceof StreamFull ? 'full' : 'silent')
      if (error instanceof StreamFull) void freeSpace().catch(() => {})
      throw error
    }
  }

  async function freeSpace(): Promise<void> {
    if (performance.now() - purgedAt < PURGE_EVERY_MS) return
    purgedAt = performance.now()
    await purgeRead(await connection.waitReadable(), stream, await listCursors(pool, stream))
  }

  function setRefusal(now: StreamRefused | null): void {
    if (now !== null && now.message !== refusal?.message)
      logger?.error({ stream, reason: now.message }, 'the stream is refused: events are answered with 503')
    if (now === null && refusal !== null) logger?.info({ stream }, 'the stream is accepted again')
    refusal = now
  }

  /** Another database may take over the stream while this process runs. Or an operator changes the stream. Or this database is replaced, and keeps the stream. */
  function checkOwner(): void {
    const opened = connection.found()
    if (opened === null || performance.now() - ownerCheckedAt < CHECK_OWNER_EVERY_MS) return
    ownerCheckedAt = performance.now()
    const isOwner = async () => {
      if ((await owner()) !== opened.stream.owner) return false
      await refuseChanged(opened, settings)
      setRefusal(null)
      return true
    }
    isOwner()
      .catch(error => {
        if (error instanceof StreamTaken) return false
        if (error instanceof StreamRefused) setRefusal(error)
        return true
      })
      .then(isStill => isStill || connection.renew())
  }

  /** Waits until no message is partly read, or a timeout: a message can only be purged as a whole. */
  async function untilMessagesWhole(): Promise<void> {
    const deadline = performance.now() + PARTLY_READ_MS
    const isPartlyRead = async () => (await listCursors(pool, stream)).some(({ ord }) => ord > 0)
    while ((await isPartlyRead()) && performance.now() < deadline) await sleep(POLL_MS)
  }

  async function readLags(withinMs?: number) {
    const opened = await connection.waitReadable(withinMs)
    const before = { acknowledged, published: [...published.values()], at: performance.now() }
    const cursors = await listCursors(pool, stream)
    const found = await Promise.all(
      cursors.map(async cursor => ({
        partition: cursor.partition,
        ...(await readLag(opened, stream, cursor).catch(error => {
          // Unknown is not zero.
          const reason = `Unread entries on NATS cannot be counted: ${errorReason(error)}`
          throw new LogUnavailable(reason, { cause: error })
        })),
      })),
    )
    const unread = found.reduce((sum, { entries }) => sum + entries, 0)
    counted = { unread, ranges: found, ...before }
    return found.map(({ partition, entries, oldestAt }) => ({
      ...{ partition: partitionName(partition), entries, oldestAt },
    }))
  }
  async function countUnread(): Promise<number> {
    await readLags()
    return counted.unread
  }

  async function upkeep(): Promise<void> {
    checkOwner()
    const opened = connection.found()
    if (opened === null) return
    const info = await readStreamInfo(opened, stream)
    // Another process created the stream again: what this one acknowledged before is counted when it enters the new one.
    if (info && info.created !== opened.stream.created) return connection.renew()
    if (info && info.config.max_bytes > 0 && info.state.bytes > info.config.max_bytes * PURGE_FROM) await freeSpace()
    const isRecent = performance.now() - counted.at < RECENT_MS
    await noteUnread(pool, stream, isRecent ? counted.unread : await countUnread())
    const count = counted
    const lost = await findLosses(pool, opened, stream, {
      ...{ ranges: count.ranges, agoMs: performance.now() - count.at, published: [...published.values()] },
      ...uncounted(),
    })
    // A stream that was replaced meanwhile is entered again, with what was acknowledged in the one before it.
    if (entered !== opened.stream.created) return
    recorded = Math.max(recorded, lost === null ? count.acknowledged : acknowledged)
    recordedAt = count.at
    unrecorded.set(acknowledged - recorded, entered)
    // What was counted is in PostgreSQL now.
    for (const message of lost === null ? count.published : published.values())
      if (published.get(message.partition) === message) published.delete(message.partition)
    reportLoss(lost, { stream, logger })
    await dropSkippedMessages(pool, stream, settings.maxAgeMs)
  }

  /** A later start without NATS relies on what is recorded here. */
  async function endWriting(): Promise<void> {
    // Later, no one knows what this process wrote, and whether it was before or after a loss.
    if (acknowledged > recorded && writer?.failing() === null) await upkeep().catch(() => {})
    const hasWritten = await writer?.end()
    if (!hasWritten || connection.found() === null) return
    const opened = await connection.waitReadable()
    const unread = await confirmedUnread(opened, stream, await listCursors(pool, stream))
    await noteLastUnread(pool, stream, unread)
  }

  async function* unreadOnNats(tenantId: number): AsyncGenerator<Entry[]> {
    const opened = await connection.waitReadable()
    for (const cursor of await listCursors(pool, stream)) yield* unreadEntries(opened, stream, cursor, tenantId)
  }
  async function countUnreadOnNats(tenantId: number, receivedBy: Date | null): Promise<Unread> {
    let entries = 0
    let oldest = Number.POSITIVE_INFINITY
    for await (const some of unreadOnNats(tenantId))
      for (const { receivedAt } of some) {
        if (receivedBy !== null && receivedAt > receivedBy) continue
        entries++
        oldest = Math.min(oldest, receivedAt.getTime())
      }
    return { entries, oldestAt: entries === 0 ? null : new Date(oldest) }
  }
  async function findUnreadOnNats(tenantId: number, { text, isWanted }: EntryQuery): Promise<Entry[]> {
    const found: Entry[] = []
    for await (const some of unreadOnNats(tenantId)) {
      for (const entry of some)
        if ((entry.body.includes(text) || entry.context.includes(text)) && isWanted(entry)) found.push(entry)
      if (found.length >= MAX_FOUND) break
    }
    return found
  }

  return {
    async append(batch, { client } = {}) {
      if (client) return postgres.append(batch, { client })
      const events = batch.filter(goesToNats)
      if (events.length === 0) return postgres.append(batch)
      const others = batch.filter(append => !goesToNats(append))
      const [appended] = await Promise.all([others.length > 0 ? postgres.append(others) : [], publish(events)])
      for (const listener of listeners) listener()
      return mergeResults(batch, appended)
    },
    flushGroup: append => (goesToNats(append) ? groupFor(partitionFor(append.entry)) : postgres.flushGroup(append)),
    onAppend(listener) {
      listeners.add(listener)
      const stop = postgres.onAppend(listener)
      return () => {
        listeners.delete(listener)
        stop()
      }
    },
    async take(client, wanted) {
      checkOwner()
      const isHeld = await findHeld(client, partitions())
      const fromNats = (maxPartitions: number) => reader.take(client, { ...wanted, maxPartitions }, isHeld)
      const fromPostgres = (maxPartitions: number) => postgres.take(client, { ...wanted, maxPartitions })
      // In random order, so that neither starves.
      const [first, second] = Math.random() < 0.5 ? [fromNats, fromPostgres] : [fromPostgres, fromNats]
      const taken = await first(wanted.maxPartitions)
      const left = wanted.maxPartitions - taken.length
      return left > 0 ? [...taken, ...(await second(left))] : taken
    },
    async advance(client, taken) {
      const { inPostgres = [], onNats = [] } = Object.groupBy(taken, ({ partition }) =>
        partition.startsWith('postgres/') ? 'inPostgres' : 'onNats',
      )
      await postgres.advance(client, inPostgres)
      await reader.advance(client, onNats)
    },
    async lag(wanted) {
      if (wanted?.withinPostgres) return postgres.lag()
      const onNats = await readLags(LAG_WITHIN_MS).catch(error => {
        if (error instanceof LogUnavailable && !wanted?.complete) return []
        throw error
      })
      return [...(await postgres.lag()), ...onNats]
    },
    async find(tenantId, id, kind) {
      const found = await postgres.find(tenantId, id)
      if (found !== null || kind === 'record') return found
      return findEntry(await connection.waitReadable(), stream, tenantId, id)
    },
    async unread(tenantId, receivedBy) {
      const onNats = await countUnreadOnNats(tenantId, receivedBy)
      return totalUnread([onNats, await postgres.unread(tenantId, receivedBy)])
    },
    async unreadWith(tenantId, query) {
      const onNats = await findUnreadOnNats(tenantId, query).catch(error => {
        if (error instanceof LogUnavailable) return error
        throw error
      })
      const { entries } = await postgres.unreadWith(tenantId, query)
      return onNats instanceof LogUnavailable
        ? { entries, unavailable: onNats }
        : { entries: [...onNats, ...entries], unavailable: null }
    },
    findRead: postgres.findRead,
    forget: postgres.forget,
    outside: {
      stream,
      async start(withinMs) {
        await writer?.begin()
        await connection.waitReadable(withinMs)
      },
      async status() {
        const result = await connection.waitReadable(LAG_WITHIN_MS).catch(error => error as Error)
        const opened = result instanceof Error ? null : result
        const info = opened && (await readStreamInfo(opened, stream).catch(() => null))
        return {
          ...{ stream, servers, maxBytes: settings.maxBytes },
          refused: result instanceof LogRefused ? result.message : (refusal?.message ?? null),
          differs: opened && partitionsDiffer(settings, opened.stream.partitions),
          reachable: info !== null,
          promise: opened?.stream.promise ?? null,
          replicas: info?.config.num_replicas ?? null,
          partitions: opened?.stream.partitions ?? null,
          bytes: info?.state.bytes ?? null,
          unread: info && (await countUnread().catch(nullIfUnavailable)),
          skippedMessages: await countSkippedMessages(pool, stream),
          lost: await readLosses(pool, stream, settings.maxAgeMs),
        }
      },
      promise: () => (refusal === null ? (connection.writable()?.stream.promise ?? null) : null),
      failing: () => writer?.failing() ?? null,
      writers: () => writer?.count() ?? 1,
      upkeep,
      async untilRead(withinMs) {
        const deadline = performance.now() + withinMs
        const opened = await connection.waitReadable()
        return withCount(opened, stream, async count => {
          for (;;) {
            const cursors = await listCursors(pool, stream)
            const isOver = performance.now() >= deadline
            // Counting reads everything that is unread; hasUnread reads one message.
            if (isOver || !(await hasUnread(opened, stream, cursors))) {
              const unread = await count(cursors)
              if (unread === 0 || isOver) return unread
            }
            await sleep(POLL_MS)
          }
        })
      },
      async forgetRead() {
        await untilMessagesWhole()
        await purgeRead(await connection.waitReadable(), stream, await listCursors(pool, stream))
        await eraseSkippedPayloads(pool, stream)
      },
    },
    async close() {
      await endWriting().catch(error =>
        logger?.warn({ stream, reason: errorReason(error) }, 'how much is unread on NATS could not be recorded'),
      )
      await connection.close()
      unrecorded.close()
    },
  }
}

function nullIfUnavailable(error: unknown): null {
  if (error instanceof LogUnavailable) return null
  throw error
}

/** Events go to NATS. An entry with a claim commits together with its key. */
function goesToNats({ entry, claim }: Append): boolean {
  return entry.kind === 'events' && claim === null
}

/** `appended`: the results of those that went to PostgreSQL. */
function mergeResults(batch: Append[], appended: Appended[]): Appended[] {
  let next = 0
  return batch.map(append => (goesToNats(append) ? { duplicateOf: null } : appended[next++]!))
}

// Appends of other processes to the PostgreSQL log are noticed within this time.
const FIND_HELD_EVERY_MS = 250

/**
 * Partitions whose earlier events are still unread in the PostgreSQL log: after an installation changed to NATS, or after the
 * overflow queue was drained. They must be processed first.
 */
function openHeldPartitions(postgres: PostgresLog) {
  let lookedAt = -Infinity
  let held = new Set<number>()
  let postgresPartitions = 0
  return async (client: pg.PoolClient, partitions: number): Promise<(partition: number) => boolean> => {
    if (performance.now() - lookedAt > FIND_HELD_EVERY_MS || held.size > 0) {
      lookedAt = performance.now()
      const found = await postgres.partitionsWithEvents(client)
      held = new Set(found.held)
      postgresPartitions = found.partitions
    }
    if (held.size === 0) return () => false
    // Both logs use the same hash: if one number divides the other, a partition here corresponds to certain partitions there.
    if (postgresPartitions % partitions !== 0) return () => true
    const ours = new Set([...held].map(theirs => theirs % partitions))
    return partition => ours.has(partition)
  }
}

// A cluster replaces a failed server within two to four seconds.
const DEADLINE_MS = 5_000
// After a publish without an answer, the next one waits less: requests would pile up.
const DEADLINE_WHEN_SILENT_MS = 1_000
const ATTEMPT_MS = 2_000
const RETRY_MS = 100

type Publisher = {
  /** Waits until the stream can be written to, no longer than for an acknowledgement. */
  reach(): Promise<OpenStream>
  /** Resolves when the stream has acknowledged everything. */
  publish(partition: number, appends: Append[]): Promise<void>
}

type BuildHeaders = (opened: OpenStream) => ReturnType<OpenStream['packages']['headers']> | null

type OnPublished = (partition: number, message: { seq: number; id: string; entries: number }) => void

export function openPublisher(connection: Connection, stream: string, onPublished: OnPublished = () => {}): Publisher {
  let isSilent = false
  const deadlineMs = () => (isSilent ? DEADLINE_WHEN_SILENT_MS : DEADLINE_MS)

  async function reach(): Promise<OpenStream> {
    try {
      return connection.writable() ?? (await connection.waitWritable(deadlineMs()))
    } catch (error) {
      isSilent = true
      throw error
    }
  }

  /** If the outcome is unknown, it publishes again with the same id: NATS does not add a message twice. */
  async function send(subject: string, payload: Uint8Array, id: string, build: BuildHeaders): Promise<number> {
    const deadline = performance.now() + deadlineMs()
    for (;;) {
      const left = deadline - performance.now()
      try {
        const opened = connection.writable() ?? (await connection.waitWritable(Math.max(1, left)))
        const timeout = Math.max(1, Math.min(ATTEMPT_MS, deadline - performance.now()))
        const headers = build(opened)
        const options = { msgID: id, timeout, retries: 0, expect: { streamName: stream } }
        const ack = await opened.js.publish(subject, payload, { ...options, ...(headers && { headers }) })
        // Around a leader change a server may remember an id whose message was never stored. A message that was read and
        // purged meanwhile is not there either: then the outcome stays unknown.
        if (ack.duplicate && (await readMessageId(opened, stream, ack.seq)) !== id)
          throw new Error(`message ${ack.seq} is not the duplicate that NATS reported`)
        isSilent = false
        return ack.seq
      } catch (error) {
        if (isFull(error)) throw new StreamFull(`The stream ${stream} is full`, { cause: error })
        connection.renew()
        if (performance.now() + RETRY_MS < deadline) {
          await sleep(RETRY_MS)
          continue
        }
        isSilent = true
        throw new LogUnavailable(`NATS did not acknowledge: ${errorReason(error)}`, { cause: error })
      }
    }
  }

  async function sendPacked(partition: number, { payload, facts, parts }: Packed): Promise<void> {
    // The parts are stored before the message that names them, so that a reader finds all of them.
    for (const [i, part] of parts.entries())
      await send(partSubject(stream, partition, facts.id, i), part, `${facts.id}.${i}`, () => null)
    const seq = await send(partitionSubject(stream, partition), payload, facts.id, ({ packages }) => {
      const headers = packages.headers()
      writeFacts(headers, facts)
      return headers
    })
    onPublished(partition, { seq, id: facts.id, entries: facts.entries })
  }

  return {
    reach,
    async publish(partition, appends) {
      const { connection: nats, stream: known } = await reach()
      // Right after a disconnect the client has no information about its server.
      const maxPayload = nats.info?.max_payload ?? known.maxPayload
      for (const packed of pack(appends, maxPayload)) await sendPacked(partition, packed)
    },
  }
}
