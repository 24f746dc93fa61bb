import type pg from 'pg'
import type { Entry } from '../domain/entries/entry.ts'
import type { TouchKind } from '../domain/identity/attribution.ts'
import type { PartitionName } from '../log/log.ts'
import type { SaleKey, SaleState } from '../store/conversions/conversions.ts'
import type { SeenNode } from '../store/customers/refresh.ts'
import type { NewDeadLetter } from '../store/entries/dead-letters.ts'
import type { NewTouch } from '../store/identity/identities.ts'
import type { LearnedIdentifier, SuppressionCount } from '../store/identity/suppressions.ts'

/** The smallest thing that is applied or fails alone: a record write, or one event of a batch. */
export type Unit<Work = unknown> = {
  entry: Entry
  partition: PartitionName
  /** The parked row it came from, and the number of attempts so far. Null for a new entry. */
  parked: { parkedId: number; attempts: number } | null
  /** undefined if the entry was not decoded: it is blocked, or `failure` says why it cannot be decoded */
  work: Work
  disposition: Disposition
  /** Set if it cannot be decoded or applied. */
  failure?: { error: unknown }
}

/**
 * What a transaction does with a unit. Items that can never be applied are rejected when their entry is decoded: they
 * become dead letters and not units.
 */
type Disposition =
  /** Its effects commit with the cursor. Every unit to apply starts with this disposition. */
  | 'applied'
  /** It failed and is parked until its next attempt. */
  | 'retry'
  /** It failed for the last time and becomes a dead letter. */
  | 'dead'
  /** It is parked behind an earlier unit with the same ordering key. */
  | 'blocked'
  /** Its entry is larger than one transaction applies. It is parked and due immediately. */
  | 'deferred'

/**
 * The profile lock of a tenant (TENANT_LOCKS.profiles): its holder changes which profile a node belongs to. Other
 * transactions, also the holder, wait for identifiers and sales that a transaction has written. So a transaction waits
 * for the profile lock only before it writes any. Later it only tries, and restarts if the lock is held. (Without this,
 * 113 entries of one tenant in four workers caused ten deadlocks of one second each.)
 */
export type ProfileLock = {
  /** Call before writing identifiers or locking sales. Waits for the lock of contended tenants. */
  prepare(): Promise<void>
  take(tenantIds: Iterable<number>): Promise<void>
  share(tenantIds: Iterable<number>): Promise<void>
}

/** The trace of a transaction, with one span per kind of entry. */
export type BatchTrace = {
  effects<T>(kind: Entry['kind'], count: number, run: () => Promise<T>): Promise<T>
  end(failure?: unknown): void
}

type Suppressed = { counts: SuppressionCount[]; learned: LearnedIdentifier[] }

/**
 * What a worker remembers about a tenant's identifiers, valid for one version (see `identityVersions`): the node of each
 * group of identifiers that changes nothing any more.
 */
export type IdentifierMemory = { version: number; nodes: Map<string, number> }

/** The first touches of nodes. Nodes of different tenants have different numbers. */
export type FirstTouches = Record<TouchKind, Map<number, NewTouch>>

/** What a transaction has learned so far. Isolation cuts the lists back when it undoes a part. */
export type Learned = {
  /** Remembered after the commit: see `rememberNodes`. */
  nodes: { memory: IdentifierMemory; group: string; node: number }[]
  /** Remembered after the commit: see `rememberTouches`. */
  touches: { memory: FirstTouches; touches: NewTouch[] }[]
  /** Remembered after the commit: see `rememberSeen`. */
  seen: { memory: Map<number, number>; seen: SeenNode[] }[]
  /** Written before the commit: see `writeSuppressed`. */
  suppressed: Suppressed[]
}

/** The sales that a transaction is about to change, as they were before: see deliveries/notify.ts. */
type SalesBefore = {
  isWanted(tenantId: number): boolean
  keys: Map<string, SaleKey>
  states: Map<string, SaleState>
}

export type Transaction = {
  client: pg.PoolClient
  /** PostgreSQL's clock. */
  now: Date
  /** The version of the configuration: see `openMemory`. */
  configVersion: number
  /** Absent if the transaction already holds the lock of its tenant. */
  profileLock?: ProfileLock
  /** Absent if no destination is notified of sales. */
  salesBefore?: SalesBefore
  /** Nodes created by this transaction, as `tenant node`. No other transaction can see them yet. */
  newNodes?: Set<string>
  /** Nodes that this transaction gave another profile, and the nodes that were in one profile with them. */
  movedNodes?: Set<number>
  learned?: Learned
  trace?: BatchTrace
}

/** What deriving needs of a transaction. Jobs derive, too. */
export type Deriving = Pick<Transaction, 'client' | 'now'>

/** How entries of one kind are decoded, parked and dead-lettered. */
export type Kind<Work = unknown> = {
  /** Decodes an entry into units. Items that can never be applied are returned as dead letters. */
  decode(entry: Entry): { works: Work[]; rejected: NewDeadLetter[] }
  /** The entry with only these units, to park or to dead-letter. */
  narrow(entry: Entry, works: Work[]): Entry
  deadLetter(unit: Unit<Work>, error: string, attempts: number): NewDeadLetter
  /** Writes the receipt or operation of a dead letter. A failure here does not affect the dead letter. */
  recordFailure(transaction: Transaction, unit: Unit<Work>, error: string): Promise<void>
}

/**
 * A memory that workers keep between transactions. It is created again when the configuration changes. Ask for it in
 * every transaction, and write only to the one you were given.
 */
export function openMemory<T>(create: () => T): (transaction: Transaction) => T {
  let version = Number.NaN
  let memory: T
  return ({ configVersion }) => {
    if (configVersion !== version) {
      version = configVersion
      memory = create()
    }
    return memory
  }
}
