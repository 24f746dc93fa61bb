import type pg from 'pg'
import type { Entry } from '../domain/entry.ts'

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
  /** Entries waiting and the age of the oldest, by partition. */
  lag(): Promise<{ partition: PartitionName; entries: number; oldestAt: Date | null }[]>
  /** The first use of an idempotency key, while it is kept. */
  firstUse(tenantId: number, key: string): Promise<FirstUse | null>
  /** An entry that is still in the log, by its id. */
  find(tenantId: number, id: string): Promise<Entry | null>
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
