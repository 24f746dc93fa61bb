import type pg from 'pg'
import type { Entry, EntryKind } from '../domain/entries/entry.ts'
import { earliest } from '../domain/time.ts'
import type { Db } from '../postgres/database.ts'

/** An idempotency key that is claimed with the entry: both become durable together, or neither. */
export type Claim = { key: string; bodyHash: Buffer; entityType: string; recordId: string | null }

export type Append = {
  entry: Entry
  claim: Claim | null
  /** Its size when it is applied, if that may be larger than its body. Readers bound their batches by it. */
  storedBytes?: number
}

/** `duplicateOf`: the first use of the claimed key. The entry was then not appended. */
export type Appended = { duplicateOf: FirstUse | null }

export type FirstUse = { operationId: string; bodyHash: Buffer; entityType: string; recordId: string | null }

/** The log cannot be written or read now. The sender still has the data and is asked to retry. */
export class LogUnavailable extends Error {
  override name = 'LogUnavailable'
}

/** The log cannot be used with this configuration: an operator has to act first. */
export class LogRefused extends LogUnavailable {
  override name = 'LogRefused'
}

/** Appends of one group share a flush: they become durable together, and wait for no other group. */
export type FlushGroup = {
  name: string
  maxInFlight: number
  maxItems: number
  maxBytes: number
  /** The least time between the starts of two flushes that several requests share, for a log whose flushes have a fixed cost. */
  gatherMs: number
}

export type Unread = { entries: number; oldestAt: Date | null }

/** An entry's id, with the time that its partition is found by. */
export type EntryName = { id: string; receivedAt: Date }

/** A transaction is limited by size too: a hundred bodies of 1 MiB would hold up everything behind them. */
export const HEAVY_BYTES = 1_000_000
/** A transaction with this many entries has enough work. Other workers take the rest. */
export const HEAVY_ENTRIES = 1_000

/** The log and its partition, for example postgres/3. */
export type PartitionName = string

/** Entries of one partition, owned by the transaction that took them. */
export type Taken = {
  partition: PartitionName
  entries: Entry[]
  /** Opaque: the position after these entries. */
  position: unknown
}

export type TakeOptions = {
  maxPartitions: number
  /** of one partition */
  maxEntries: number
  /** Partitions to take even if they have nothing to read. */
  alsoPartitions: PartitionName[]
}

/** A durable, partitioned log. The positions of its readers are in PostgreSQL, next to the effects. */
export type Log = LogContents & {
  /**
   * Resolves when the whole batch is durable. With a client, it becomes durable with the transaction that `inTransaction` has opened
   * on it, or not at all.
   */
  append(batch: Append[], options?: { client?: pg.PoolClient }): Promise<Appended[]>
  /** The flush that an append shares with others. */
  flushGroup(append: Append): FlushGroup
  /** Calls the listener after each append through this log, once it is durable. Returns a function that unsubscribes it. */
  onAppend(listener: () => void): () => void
  /** Takes partitions that have entries to read, for the caller's transaction. Skips those that another transaction owns. */
  take(client: pg.PoolClient, options: TakeOptions): Promise<Taken[]>
  /** Advances the positions, in the caller's transaction. */
  advance(client: pg.PoolClient, taken: Taken[]): Promise<void>
  /** The part of the log that is outside of PostgreSQL, if there is one. */
  outside: OutsideLog | null
}

/** What the log contains: for operators, reports and erasures. Accepting and processing do not need it. */
type LogContents = {
  /**
   * Unread entries and the age of the oldest, by partition. `withinPostgres`: only of the log in PostgreSQL. Partitions outside of
   * PostgreSQL are left out while their server is unavailable, unless the answer has to be `complete`: then it fails.
   */
  lag(options?: { withinPostgres?: true; complete?: true }): Promise<({ partition: PartitionName } & Unread)[]>
  /** An entry that is still in the log, read or not. `kind`: search only where entries of this kind are. */
  find(tenantId: number, id: string, kind?: EntryKind): Promise<Entry | null>
  /** Unread entries of a tenant that were received by then; null: at any time. */
  unread(tenantId: number, receivedBy: Date | null): Promise<Unread>
  /** The first unread event entries of a tenant that match the query. `unavailable`: why a part of the log could not be searched. */
  unreadWith(tenantId: number, query: EntryQuery): Promise<{ entries: Entry[]; unavailable: LogUnavailable | null }>
  /**
   * The read entries of a tenant that match the query. Scans the tenant's entries: an index would make every append slower. Only of
   * the log in PostgreSQL: `forgetRead` deletes the others.
   */
  findRead(tenantId: number, query: ReadEntriesQuery): Promise<EntryName[]>
  /** Deletes those of these entries that were read. Returns how many; with `dryRun` it only counts them. */
  forget(db: Db, tenantId: number, entries: EntryName[], options?: { dryRun?: boolean }): Promise<number>
}

/** Entries with this string in their body or context that are wanted. The string only limits how many are examined. */
export type EntryQuery = { text: string; isWanted: (entry: Entry) => boolean }

/** Entries with one of the ordering keys, and those whose body matches one of the ILIKE patterns and is wanted. */
export type ReadEntriesQuery = { orderingKeys: string[]; patterns: string[]; isWanted: (body: string) => boolean }

/** The part of a log that is on a separate server. */
export type OutsideLog = {
  stream: string
  /** Waits for the server until the timeout. Throws if it refuses. */
  start(withinMs: number): Promise<void>
  /** Asks the server and PostgreSQL. */
  status(): Promise<OutsideStatus>
  /** What an acknowledged entry survives. Null while the server is unavailable. Known without asking. */
  promise(): Promised | null
  /** Why the publishes of the last seconds failed; null: they did not. */
  failing(): 'full' | 'silent' | null
  /** How many processes write to the stream, as last seen in PostgreSQL; at least 1. */
  writers(): number
  /** Frees space if the stream is filling up, and records how much is unread. Called every few seconds. */
  upkeep(): Promise<void>
  /** Resolves with 0 when everything that is in the stream now is read, or at the timeout with how much is not. */
  untilRead(withinMs: number): Promise<number>
  /** Deletes everything that was read, because single entries cannot be deleted. For erasures. */
  forgetRead(): Promise<void>
}

type OutsideStatus = {
  stream: string
  servers: string
  reachable: boolean
  /** What an operator has to do before the stream can be used. */
  refused: string | null
  /** A setting that differs from the stream and has no effect. */
  differs: string | null
  promise: Promised | null
  replicas: number | null
  partitions: number | null
  bytes: number | null
  maxBytes: number
  unread: number | null
  skippedMessages: SkippedMessages
  lost: Lost | null
}

/** Entries that were acknowledged and lost before they were processed: an upper bound, and when they were last seen. */
export type Lost = { entries: number; seenAt: Date; noticedAt: Date }

/** Messages of other programs, and damaged ones of Kontor's own; null: none while messages are kept. */
export type SkippedMessages = { foreign: SkippedCount | null; unreadable: SkippedCount | null }

/** How many, and the latest one. */
type SkippedCount = { messages: number; seq: number; subject: string; at: Date }

/** What an acknowledged entry survives. */
export type Promised = 'synced' | 'replicated' | 'process-crash only'

export function totalUnread(lags: readonly Unread[]): Unread {
  return {
    entries: lags.reduce((sum, { entries }) => sum + entries, 0),
    oldestAt: earliest(...lags.map(({ oldestAt }) => oldestAt)),
  }
}

/** When the oldest accepted entry that is not processed was received; null: there is none. */
export async function oldestUnread(log: Pick<Log, 'lag'>): Promise<Date | null> {
  return totalUnread(await log.lag()).oldestAt
}

/** The partition of an ordering key: FNV-1a, seeded with the tenant. */
export function choosePartition(tenantId: number, orderingKey: string, partitions: number): number {
  let hash = 2166136261 ^ tenantId
  for (let i = 0; i < orderingKey.length; i++) {
    hash ^= orderingKey.charCodeAt(i)
    hash = Math.imul(hash, 16777619)
  }
  hash ^= hash >>> 15
  return (hash >>> 0) % partitions
}
