import type pg from 'pg'
import type { Entry } from '../domain/entries/entry.ts'
import type { PartitionName } from '../log/log.ts'
import type { SaleRef } from '../store/conversions/changes.ts'
import type { NewDeadLetter } from '../store/entries/dead-letters.ts'
import type { LearnedName, SuppressionCount } from '../store/identity/suppressions.ts'

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
 * Turns at saying who is who in a tenant (TENANT_LOCKS.profiles). Names and sales that a transaction has made, others wait
 * for, also those whose turn it is: so it waits for its own turn only before it has made any. Later it tries, and begins
 * again where the turn is another's, waiting first. (Without this, 113 entries of one tenant in four workers were ten
 * deadlocks of a second each.)
 */
export type Turns = {
  /** To be called before names are made or sales are locked. */
  begin(): Promise<void>
  take(tenantIds: Iterable<number>): Promise<void>
  share(tenantIds: Iterable<number>): Promise<void>
}

/** Where a transaction is traced: what each kind of entry does in it is told apart. */
export type BatchTrace = {
  effects<T>(kind: Entry['kind'], count: number, run: () => Promise<T>): Promise<T>
  end(failure?: unknown): void
}

export type Suppressed = { counts: SuppressionCount[]; learned: LearnedName[] }

export type Transaction = {
  client: pg.PoolClient
  /** By PostgreSQL's clock. */
  now: Date
  /** Of what is remembered between transactions: see memory.ts. */
  configVersion: number
  /** Where several work beside each other; whoever has a tenant's people alone needs none. */
  turns?: Turns
  /** To be called before sales are written, by whoever has locked them: for those who are told what changed. */
  beforeSales?: (sales: SaleRef[]) => Promise<void>
  /** To be called before profiles are joined or parted, where that may change whose contact a person is. */
  beforePeople?: (profiles: { tenantId: number; profile: number }[]) => Promise<void>
  /** What was not recorded because of whom it names: written last, by `Suppressions.settle`. */
  suppressed?: Suppressed[]
  trace?: BatchTrace
  /** Runs once the effects are committed: for what is remembered in memory. */
  afterCommit(action: () => void): void
}

/** What deriving needs of it: jobs derive too. */
export type Deriving = Pick<Transaction, 'client' | 'now'>

/** How entries of one kind take effect. */
export type Kind<Work = unknown> = {
  /** Reads an entry into units; what can never take effect comes back as dead letters. */
  decode(entry: Entry): { works: Work[]; rejected: NewDeadLetter[] }
  /** Takes locks that have to be there before any unit, of whatever kind, takes effect. */
  lock?(transaction: Transaction, units: Unit[]): Promise<void>
  /** Applies units in their order, set-based. Runs in the worker's transaction; throwing undoes all of it. */
  apply(transaction: Transaction, units: Unit<Work>[]): Promise<void>
  /** The entry that holds just these works: what is parked or dead-lettered. */
  narrow(entry: Entry, works: Work[]): Entry
  /** What is kept of a unit that is given up. */
  deadLetter(unit: Unit<Work>, error: string, attempts: number): NewDeadLetter
  /** What else is recorded of it. A failure here costs this record and nothing else. */
  recordFailure(transaction: Transaction, unit: Unit<Work>, error: string): Promise<void>
}
