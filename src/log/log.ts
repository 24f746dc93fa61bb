import type pg from 'pg'
import type { Entry, EntryKind } from '../domain/entries/entry.ts'

/** An idempotency key to be consumed with the entry: both become durable together, or neither. */
export type Claim = { key: string; bodyHash: Buffer; entityType: string; recordId: string | null }

export type Append = {
  entry: Entry
  claim: Claim | null
  /** What it becomes when it is applied, where that may be more than its body: readers take so much at a time. */
  storedBytes?: number
}

/** `duplicateOf` tells the first use of the claimed key; the entry was then not appended. */
export type Appended = { duplicateOf: FirstUse | null }

export type FirstUse = {
  operationId: string
  bodyHash: Buffer
  entityType: string
  recordId: string | null
}

/** The log cannot take or tell anything now. The sender still has it, and is told to come back. */
export class LogUnavailable extends Error {
  override name = 'LogUnavailable'
}

/** It cannot be used as it is set up: whoever runs the service has to decide something first. */
export class LogRefused extends LogUnavailable {
  override name = 'LogRefused'
}

/** What shares a flush: appends of one group become durable together, and wait for no other group. */
export type FlushGroup = {
  name: string
  maxInFlight: number
  maxItems: number
  maxBytes: number
  /** From the start of a flush that several requests share to the next, where a flush costs however little is in it. */
  gatherMs: number
}

export type Unread = { entries: number; oldestAt: Date | null }

/** Names an entry, with the time that its partition is found by. */
export type EntryName = { id: string; receivedAt: Date }

/** A batch is cut by size too: a hundred 1 MiB bodies would hold the other partitions up. */
export const MAX_BYTES_PER_PARTITION = 250_000
/** A transaction with so many entries has enough to do: what else there is, is for other workers. */
export const HEAVY_ENTRIES = 256

/** Names the log and its partition, for example postgres/3. */
export type PartitionName = string

/** Entries of one partition, owned by the transaction that took them. */
export type Taken = {
  partition: PartitionName
  entries: Entry[]
  /** Opaque: where the next reader goes on once these entries took effect. */
  position: unknown
}

export type TakeOptions = {
  maxPartitions: number
  /** of one partition */
  maxEntries: number
  /** Taken whether there is something to read in them or not. */
  alsoPartitions: PartitionName[]
}

/**
 * A durable, partitioned log. Its readers keep their positions in PostgreSQL, beside the effects.
 */
export type Log = {
  /**
   * The only way in. Resolves when all of it is durable; with a client, it becomes durable with the transaction that
   * `inTransaction` has opened on it, or not at all.
   */
  append(batch: Append[], options?: { client?: pg.PoolClient }): Promise<Appended[]>
  /**
   * Takes partitions that have something to read, for the length of the caller's transaction. Those that another
   * transaction owns are passed over.
   */
  take(client: pg.PoolClient, options: TakeOptions): Promise<Taken[]>
  /** Moves the positions on, in the caller's transaction. */
  advance(client: pg.PoolClient, taken: Taken[]): Promise<void>
  /** Calls back after each append through this log, once it is durable; returns what ends it. */
  onAppend(listener: () => void): () => void
  /** Which flush an append shares with others. */
  groupOf(append: Append): FlushGroup
  /**
   * Entries waiting and the age of the oldest, by partition; `withinPostgres`: of those alone. What is outside of PostgreSQL is
   * left out while its server is away, unless it has to be `complete`: then it fails.
   */
  lag(options?: {
    withinPostgres?: true
    complete?: true
  }): Promise<({ partition: PartitionName } & Unread)[]>
  /** The first use of an idempotency key, while it is kept. */
  firstUse(tenantId: number, key: string): Promise<FirstUse | null>
  /** An entry that is still in the log, by its id; looked for where entries of that kind are, if it is given. */
  find(tenantId: number, id: string, kind?: EntryKind): Promise<Entry | null>
  /** Unread entries of a tenant that came in by then; null: whenever they did. */
  unread(tenantId: number, receivedBy: Date | null): Promise<Unread>
  /**
   * Unread entries of a tenant that bring events and have the text in their body: the first few. `away`: why not all of
   * the log could be looked through.
   */
  unreadWith(tenantId: number, text: string): Promise<{ entries: Entry[]; away: LogUnavailable | null }>
  /** How many of these entries were read and would be taken out by `forget`. */
  countRead(tenantId: number, entries: EntryName[]): Promise<number>
  /** Takes these entries out where they were read, in the caller's transaction; returns how many. */
  forget(client: pg.PoolClient, tenantId: number, entries: EntryName[]): Promise<number>
  /** Whether something came in since then; also true of a log without entries. */
  hasEntriesSince(client: pg.PoolClient, moment: Date): Promise<boolean>
  /** When the newest entry came in by the clock of its node, if that is ahead of PostgreSQL's by more than this. */
  newestAhead(seconds: number): Promise<Date | null>
  /** What of it lies outside of PostgreSQL; null: nothing does. */
  outside: OutsideLog | null
}

/** The part of a log that has a server of its own. */
export type OutsideLog = {
  /** Waits for the server, for so long; throws where it refuses. */
  start(withinMs: number): Promise<void>
  status(): Promise<OutsideStatus>
  /** Messages in which no entries can be read. */
  passedOver(): Promise<PassedOver>
  /** What an acknowledged entry survives; null while the server is away. */
  promise(): Promised | null
  /** Makes room where there is little, and writes down how much is unread. */
  upkeep(): Promise<void>
  /** Resolves when all is read that stands in it now; with how much is not, where that takes longer. */
  untilRead(withinMs: number): Promise<number>
  /** Takes out all that was read, because single entries cannot be: what was erased elsewhere is not to stay there. */
  forgetRead(): Promise<void>
}

type OutsideStatus = {
  stream: string
  servers: string
  reachable: boolean
  /** What an operator has to do before it can be reached. */
  refused: string | null
  /** What is otherwise than it is set, and stays so. */
  differs: string | null
  promise: Promised | null
  replicas: number | null
  partitions: number | null
  bytes: number | null
  maxBytes: number
  unread: number | null
  passedOver: PassedOver
  lost: Lost | null
}

/** Entries that were acknowledged and are gone before they were processed: at the most so many, seen for the last time then. */
export type Lost = { entries: number; seenAt: Date; noticedAt: Date }

/** Messages of others, and those of Kontor's own that are broken; null: there were none lately. */
export type PassedOver = { foreign: PassedOverCount | null; unreadable: PassedOverCount | null }

/** How many there were, and the last one. */
type PassedOverCount = { messages: number; seq: number; subject: string; at: Date }

/** What an acknowledged entry survives. */
export type Promised = 'synced' | 'replicated' | 'process-crash only'

/** Of all partitions together. */
export function totalOf(lags: readonly Unread[]): Unread {
  const times = lags.flatMap(({ oldestAt }) => oldestAt?.getTime() ?? [])
  return {
    entries: lags.reduce((sum, { entries }) => sum + entries, 0),
    oldestAt: times.length === 0 ? null : new Date(Math.min(...times)),
  }
}

/** Which partition a key belongs to: FNV-1a, spread by the tenant. */
export function partitionOf(tenantId: number, orderingKey: string, partitions: number): number {
  let hash = 2166136261 ^ tenantId
  for (let i = 0; i < orderingKey.length; i++) {
    hash ^= orderingKey.charCodeAt(i)
    hash = Math.imul(hash, 16777619)
  }
  hash ^= hash >>> 15
  return (hash >>> 0) % partitions
}
