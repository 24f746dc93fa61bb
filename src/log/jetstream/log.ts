import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import type { Entry } from '../../domain/entries/entry.ts'
import type { Append, Appended, FlushGroup, Log, OutsideLog, Unread } from '../log.ts'
import { LogRefused, LogUnavailable, partitionOf, totalOf } from '../log.ts'
import type { PostgresLog } from '../postgres/log.ts'
import { listCursors } from './cursors.ts'
import { openEntered } from './entered.ts'
import { reasonOf, StreamFull, StreamTaken } from './errors.ts'
import { openHeld } from './held.ts'
import { noteLastUnread, noteUnread } from './known-streams.ts'
import { type LinkLogger, openLink } from './link.ts'
import { findLosses, lossesOf, tellLost, type UnreadRange } from './losses.ts'
import { ownerIn } from './owner.ts'
import { countPassedOver, dropPassedOver, erasePayloads } from './passed-over.ts'
import { openPublisher } from './publisher.ts'
import { purgeRead } from './purge.ts'
import { openReader, partitionName } from './reader.ts'
import { findEntry, hasUnread, lagOf, unreadOf } from './scan.ts'
import type { NatsSettings } from './settings.ts'
import { infoOf, partitionsDiffer, refuseTaken } from './stream.ts'
import { confirmedUnread, withCount } from './unread.ts'
import { openWriter } from './writer.ts'

/** Events on NATS, everything else on the log that stands beside it in PostgreSQL. */
type JetStreamLog = Log & { outside: OutsideLog; close(): Promise<void> }

type JetStreamOptions = {
  pool: pg.Pool
  settings: NatsSettings
  /** Takes what has to commit with something else in PostgreSQL. */
  postgres: PostgresLog
  name: string
  /** Events are appended through it: when it is closed, it says what it leaves behind. */
  isWriter?: boolean
  logger?: LinkLogger | undefined
}

// A flush is a message, and NATS syncs message by message, some 500 times a second: whatever comes while one of a partition
// is under way goes with its next. A message has 1 MiB unless set otherwise. And each costs its writer, the server and its reader some 300 µs together:
// of busy partitions it holds twice as much for waiting a moment.
const FLUSHES = { maxInFlight: 1, maxItems: 2_000, maxBytes: 700_000, gatherMs: 8 }
const PURGE_FROM = 0.5
const PURGE_EVERY_MS = 1_000
const OWNER_EVERY_MS = 2_000
const MAX_CANDIDATES = 50
const POLL_MS = 20
const LAG_WITHIN_MS = 2_000
const HALF_READ_MS = 10_000
// Whoever watches the backlog counts as often: what it found is taken over.
const RECENT_MS = 2_500

export function openJetStreamLog(options: JetStreamOptions): JetStreamLog {
  const { pool, settings, postgres, name, logger, isWriter = false } = options
  const { stream } = settings
  const servers = settings.access.servers.join(',')
  const owner = ownerIn(pool)
  const takesOver = settings.takesOver && isWriter
  const link = openLink({ ...settings, takesOver }, { name, owner, ...(logger && { logger }) })
  const listeners = new Set<() => void>()
  const publisher = openPublisher(link, stream)
  const writer = isWriter ? openWriter(pool, stream) : null
  link.onFound(found => writer?.found(found.stream.created))
  const entered = openEntered(link, options, { servers, process: writer?.process ?? null, takesOver })
  const reader = openReader(stream, { linked: entered.current, logger })
  const heldBy = openHeld(postgres)
  let purgedAt = -Infinity
  let ownerSeenAt = -Infinity
  let counted = { unread: 0, at: -Infinity, ranges: [] as UnreadRange[] }

  const groups = new Map<number, FlushGroup>()
  function groupOf(partition: number): FlushGroup {
    let group = groups.get(partition)
    if (!group) {
      group = { name: partitionName(partition), ...FLUSHES }
      groups.set(partition, group)
    }
    return group
  }
  /** Before the stream was seen, as it would be made: a flush is cut again where it is published. */
  const partitions = () => link.writable()?.stream.partitions ?? settings.partitions
  const partitionFor = ({ tenantId, orderingKey }: Entry) => partitionOf(tenantId, orderingKey, partitions())

  async function publish(appends: Append[]): Promise<void> {
    const impossible = appends.find(({ entry }) => entry.body.includes('\0') || entry.context.includes('\0'))
    if (impossible) throw new Error(`The entry ${impossible.entry.id} holds what PostgreSQL cannot`)
    await publisher.reach()
    const byPartition = Map.groupBy(appends, ({ entry }) => partitionFor(entry))
    try {
      await Promise.all([...byPartition].map(([partition, some]) => publisher.publish(partition, some)))
    } catch (error) {
      if (error instanceof StreamFull) void makeRoom().catch(() => {})
      throw error
    }
  }

  async function makeRoom(): Promise<void> {
    if (performance.now() - purgedAt < PURGE_EVERY_MS) return
    purgedAt = performance.now()
    await purgeRead(await entered.ready(), stream, await listCursors(pool, stream))
  }

  /** Another database may take the stream over while this one runs; or the database itself is exchanged, and takes it along. */
  function watchOwner(): void {
    const linked = link.current()
    if (linked === null || performance.now() - ownerSeenAt < OWNER_EVERY_MS) return
    ownerSeenAt = performance.now()
    const isOwner = async () => {
      if ((await owner()) !== linked.stream.owner) return false
      await refuseTaken(linked, stream)
      return true
    }
    isOwner()
      .catch(error => !(error instanceof StreamTaken))
      .then(isStill => isStill || link.renew())
  }

  /** Returns when no message is read by half, or that takes long: it can only be purged whole. */
  async function wholeMessages(): Promise<void> {
    const deadline = performance.now() + HALF_READ_MS
    const isHalf = async () => (await listCursors(pool, stream)).some(({ ord }) => ord > 0)
    while ((await isHalf()) && performance.now() < deadline) await sleep(POLL_MS)
  }

  async function lags(withinMs?: number) {
    const linked = await entered.ready(withinMs)
    const cursors = await listCursors(pool, stream)
    const found = await Promise.all(
      cursors.map(async ({ partition, ...position }) => ({
        partition,
        ...(await lagOf(linked, stream, { partition, ...position }).catch(untold)),
      })),
    )
    const unread = found.reduce((sum, { entries }) => sum + entries, 0)
    counted = { unread, at: performance.now(), ranges: found }
    return found.map(({ partition, entries, oldestAt }) => ({
      ...{ partition: partitionName(partition), entries, oldestAt },
    }))
  }
  /** What it says now is what a start without NATS goes by. */
  async function endWriting(): Promise<void> {
    const hasWritten = await writer?.end()
    if (!hasWritten || link.current() === null) return
    const linked = await entered.ready()
    const unread = await confirmedUnread(linked, stream, await listCursors(pool, stream))
    await noteLastUnread(pool, stream, unread)
  }
  async function unreadNow(): Promise<number> {
    await lags()
    return counted.unread
  }

  async function unreadOutside(tenantId: number, receivedBy: Date | null): Promise<Unread> {
    const linked = await entered.ready()
    let entries = 0
    let oldest = Number.POSITIVE_INFINITY
    for (const cursor of await listCursors(pool, stream))
      for await (const some of unreadOf(linked, stream, cursor, tenantId))
        for (const { receivedAt } of some) {
          if (receivedBy !== null && receivedAt > receivedBy) continue
          entries++
          oldest = Math.min(oldest, receivedAt.getTime())
        }
    return { entries, oldestAt: entries === 0 ? null : new Date(oldest) }
  }
  async function unreadWithOutside(tenantId: number, text: string): Promise<Entry[]> {
    const linked = await entered.ready()
    const found: Entry[] = []
    for (const cursor of await listCursors(pool, stream))
      for await (const some of unreadOf(linked, stream, cursor, tenantId)) {
        found.push(...some.filter(({ body }) => body.includes(text)))
        if (found.length >= MAX_CANDIDATES) return found
      }
    return found
  }

  return {
    async append(batch, { client } = {}) {
      if (client) return postgres.append(batch, { client })
      const ours = batch.filter(isOurs)
      if (ours.length === 0) return postgres.append(batch)
      const others = batch.filter(append => !isOurs(append))
      const [appended] = await Promise.all([others.length > 0 ? postgres.append(others) : [], publish(ours)])
      for (const listener of listeners) listener()
      return merged(batch, appended)
    },
    groupOf: append => (isOurs(append) ? groupOf(partitionFor(append.entry)) : postgres.groupOf(append)),
    async take(client, wanted) {
      watchOwner()
      const isHeld = await heldBy(client, partitions())
      const takeOurs = (maxPartitions: number) => reader.take(client, { ...wanted, maxPartitions }, isHeld)
      const takeOthers = (maxPartitions: number) => postgres.take(client, { ...wanted, maxPartitions })
      // Neither waits behind the other for ever.
      const [first, second] = Math.random() < 0.5 ? [takeOurs, takeOthers] : [takeOthers, takeOurs]
      const taken = await first(wanted.maxPartitions)
      const left = wanted.maxPartitions - taken.length
      return left > 0 ? [...taken, ...(await second(left))] : taken
    },
    async advance(client, taken) {
      const isTheirs = (partition: string) => partition.startsWith('postgres/')
      await postgres.advance(
        client,
        taken.filter(({ partition }) => isTheirs(partition)),
      )
      await reader.advance(
        client,
        taken.filter(({ partition }) => !isTheirs(partition)),
      )
    },
    onAppend(listener) {
      listeners.add(listener)
      const stop = postgres.onAppend(listener)
      return () => {
        listeners.delete(listener)
        stop()
      }
    },
    async lag(options) {
      if (options?.withinPostgres) return postgres.lag()
      const ours = await lags(LAG_WITHIN_MS).catch(error => {
        // While NATS is away, that is told elsewhere; what waits in PostgreSQL is told all the same.
        if (error instanceof LogUnavailable && !options?.complete) return []
        throw error
      })
      return [...(await postgres.lag()), ...ours]
    },
    firstUse: postgres.firstUse,
    async find(tenantId, id, kind) {
      const found = await postgres.find(tenantId, id)
      if (found !== null || kind === 'record') return found
      return findEntry(await link.ready(), stream, tenantId, id)
    },
    async unread(tenantId, receivedBy) {
      const outside = await unreadOutside(tenantId, receivedBy)
      const within = await postgres.unread(tenantId, receivedBy)
      return totalOf([outside, within])
    },
    async unreadWith(tenantId, text) {
      const outside = await unreadWithOutside(tenantId, text).catch(error => {
        if (error instanceof LogUnavailable) return error
        throw error
      })
      const { entries } = await postgres.unreadWith(tenantId, text)
      return outside instanceof LogUnavailable
        ? { entries, away: outside }
        : { entries: [...outside, ...entries], away: null }
    },
    countRead: postgres.countRead,
    forget: postgres.forget,
    hasEntriesSince: postgres.hasEntriesSince,
    newestAhead: postgres.newestAhead,
    outside: {
      async start(withinMs) {
        await writer?.begin()
        await entered.ready(withinMs)
      },
      async status() {
        const ready = await entered.ready(LAG_WITHIN_MS).catch(error => error as Error)
        const linked = ready instanceof Error ? null : ready
        const info = linked && (await infoOf(linked, stream).catch(() => null))
        return {
          ...{ stream, servers, maxBytes: settings.maxBytes },
          refused: ready instanceof LogRefused ? ready.message : null,
          differs: linked && partitionsDiffer(settings, linked.stream.partitions),
          reachable: info !== null,
          promise: linked?.stream.promise ?? null,
          replicas: info?.config.num_replicas ?? null,
          partitions: linked?.stream.partitions ?? null,
          bytes: info?.state.bytes ?? null,
          unread: info && (await unreadNow().catch(unlessAway)),
          passedOver: await countPassedOver(pool, stream),
          lost: await lossesOf(pool, stream, settings.maxAgeMs),
        }
      },
      passedOver: () => countPassedOver(pool, stream),
      promise: () => link.writable()?.stream.promise ?? null,
      async upkeep() {
        watchOwner()
        const linked = link.current()
        if (linked === null) return
        const info = await infoOf(linked, stream)
        if (info && info.config.max_bytes > 0 && info.state.bytes > info.config.max_bytes * PURGE_FROM)
          await makeRoom()
        const isRecent = performance.now() - counted.at < RECENT_MS
        const unread = isRecent ? counted.unread : await unreadNow()
        await noteUnread(pool, stream, unread)
        const seen = { ranges: counted.ranges, agoMs: performance.now() - counted.at }
        tellLost(await findLosses(pool, linked, stream, seen), { stream, logger })
        await dropPassedOver(pool, stream, settings.maxAgeMs)
      },
      async untilRead(withinMs) {
        const deadline = Date.now() + withinMs
        const linked = await entered.ready()
        return withCount(linked, stream, async count => {
          for (;;) {
            const cursors = await listCursors(pool, stream)
            const isOver = Date.now() >= deadline
            // Counting reads all that waits; that something does, one look tells.
            if (isOver || !(await hasUnread(linked, stream, cursors))) {
              const unread = await count(cursors)
              if (unread === 0 || isOver) return unread
            }
            await sleep(POLL_MS)
          }
        })
      },
      async forgetRead() {
        await wholeMessages()
        await purgeRead(await entered.ready(), stream, await listCursors(pool, stream))
        await erasePayloads(pool, stream)
      },
    },
    async close() {
      await endWriting().catch(error =>
        logger?.warn({ stream, reason: reasonOf(error) }, 'what is unread on NATS could not be written down'),
      )
      await link.close()
    },
  }
}

/** What waits is then not known, which is not nothing. */
function untold(error: unknown): never {
  throw new LogUnavailable(`NATS does not tell what waits: ${reasonOf(error)}`, { cause: error })
}

function unlessAway(error: unknown): null {
  if (error instanceof LogUnavailable) return null
  throw error
}

/** Events go to NATS; what claims a key commits with it. */
function isOurs({ entry, claim }: Append): boolean {
  return entry.kind === 'events' && claim === null
}

function merged(batch: Append[], appended: Appended[]): Appended[] {
  let next = 0
  return batch.map(append => (isOurs(append) ? { duplicateOf: null } : appended[next++]!))
}
