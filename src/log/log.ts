import type pg from 'pg'
import type { Entry } from '../domain/entry.ts'

/** An idempotency key to be consumed with the entry: both become durable together, or neither. */
export type Claim = { key: string; bodyHash: Buffer; entityType: string; recordId: string | null }

export type Append = { entry: Entry; claim: Claim | null }

/** `duplicateOf` tells the first use of the claimed key; the entry was then not appended. */
export type Appended = { duplicateOf: FirstUse | null }

export type FirstUse = {
  operationId: string
  bodyHash: Buffer
  entityType: string
  recordId: string | null
}

/** Entries of one partition, owned by the transaction that took them. */
export type Taken = {
  /** Names the log and the partition. */
  lane: string
  entries: Entry[]
  /** Opaque: where the next reader goes on once these entries took effect. */
  position: unknown
}

/**
 * A durable, partitioned log. Its readers keep their positions in PostgreSQL, beside the effects.
 */
export type Log = {
  /** Resolves when all of it is durable. */
  append(batch: Append[]): Promise<Appended[]>
  /**
   * Takes up to `maxLanes` partitions that have something to read, or that `alsoLanes` names, for the length of
   * the caller's transaction. Partitions that another transaction owns are passed over.
   */
  take(
    client: pg.PoolClient,
    options: { maxLanes: number; maxEntries: number; alsoLanes: string[] },
  ): Promise<Taken[]>
  /** Moves the positions on, in the caller's transaction. */
  advance(client: pg.PoolClient, taken: Taken[]): Promise<void>
  /** Calls back after each append of this process; returns what ends it. */
  onAppend(listener: () => void): () => void
  /** Entries waiting and the age of the oldest, by partition. */
  lag(): Promise<{ lane: string; entries: number; oldestAt: Date | null }[]>
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
