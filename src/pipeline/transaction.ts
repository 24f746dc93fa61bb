import type pg from 'pg'
import { type Entry, type EntryKind, orderKey } from '../domain/entries/entry.ts'
import type { EventContext } from '../domain/events/types.ts'
import { suppressedReceipt } from '../domain/inbound/receipts.ts'
import type { Log, PartitionName, Taken } from '../log/log.ts'
import { inTransaction, isConflict, isDeadlock, isUnavailable, RestartTransaction } from '../postgres/database.ts'
import { createMissingPartition, isMissingPartition } from '../postgres/partitions.ts'
import { insertDeadLetters, type NewDeadLetter } from '../store/entries/dead-letters.ts'
import {
  listParkedOrders,
  loadParked,
  type NewParked,
  narrowParked,
  type Parked,
  park,
  partitionsWithDueEntries,
  postpone,
  recordStall,
  unpark,
} from '../store/entries/parked.ts'
import { type DeferredEntry, insertOverflow } from '../store/inbound/overflow.ts'
import { insertReceipts, type Receipt } from '../store/inbound/receipts.ts'
import { holdConfigVersion } from '../store/tenants/config-version.ts'
import { lockShopRecords } from './connectors/shops.ts'
import { rememberSeen } from './identity/last-seen.ts'
import { rememberNodes } from './identity/linking.ts'
import { type Suppressions, writeSuppressed } from './identity/suppressions.ts'
import { rememberTouches } from './identity/touches.ts'
import { applyCarefully, attempt } from './isolate.ts'
import { openProfileLocks } from './profile-lock.ts'
import type { BatchTrace, Kind, Learned, Transaction, Unit } from './unit.ts'

// One worker is enough for a light load. It takes all partitions, because the same work costs less in one transaction. Under a
// heavy load, several workers share the partitions.
const TAKEN = { light: { maxPartitions: 16, maxEntries: 125 }, heavy: { maxPartitions: 4, maxEntries: 500 } }
const MAX_RETRIES = { rows: 500, bytes: 250_000 }
// How often to look for partitions with due retries. Not every transaction pays for the query.
const FIND_DUE_EVERY_MS = 250

// A request may contain 5,000 events. Applied in one transaction, they blocked all readers of the log for one to three
// seconds, because no reader passes an open transaction. 500 events take an eighth of a second.
const MAX_UNITS_PER_ENTRY = 500

// One transaction at a time changes the profiles of a tenant. Transactions with this many entries of it do not wait for
// each other, because they also contain entries of other tenants: they park the entries of the busy tenant. Before, a
// neighbor waited 8 s behind 20,000 calls of `identify` for one profile.
const MANY_ENTRIES = 100
const BUSY_MS = 500
/** Nothing is parked while only one tenant sends entries. */
const ACTIVE_MS = 600_000

/** How often a failing unit is attempted before it becomes a dead letter, and the delay between attempts. */
export type Retry = { attempts: number; firstDelayMs: number; maxDelayMs: number }

const DEFAULT_RETRY: Retry = { attempts: 6, firstDelayMs: 1_000, maxDelayMs: 60_000 }

type Logger = { warn(facts: object, message: string): void }

export type TransactionOptions = {
  pool: pg.Pool
  log: Pick<Log, 'take' | 'advance'>
  kinds: Record<EntryKind, Kind>
  /** Applies units in their order, set-based. If it throws, all of it is undone. */
  applyBatch(transaction: Transaction, units: Unit[]): Promise<void>
  /** Keeps suppressed people out of the dead letters, too. */
  suppressions?: Pick<Suppressions, 'letters'> | undefined
  retry?: Retry
  logger: Logger
  tracing?: { batch(entries: Entry[]): BatchTrace } | null
}

/**
 * Runs one transaction: takes partitions of the log, applies their entries and advances their cursors. Returns the
 * number of entries taken. `careful`: isolate units that fail and apply the others.
 * `alone`: take one partition only, and record a stall if the transaction fails. `load`: of the transaction before.
 */
export type RunTransaction = (options: {
  careful: boolean
  alone: boolean
  load: 'light' | 'heavy'
  onTaken(load: { entries: number; length: number; isFull: boolean }): void
}) => Promise<number>

export function openTransactions(options: TransactionOptions): RunTransaction {
  const { pool, log, kinds, suppressions, logger } = options
  const retry = options.retry ?? DEFAULT_RETRY
  const { lockFor, markContended } = openProfileLocks()
  const findDuePartitions = atMostEvery(FIND_DUE_EVERY_MS, partitionsWithDueEntries)
  const isShared = openActiveTenants()
  /** Tenants whose profiles another transaction changes, and until when large transactions park their entries. */
  const busyUntil = new Map<number, number>()

  async function apply(transaction: Transaction, units: Unit[]): Promise<void> {
    const undecodable = units.find(unit => unit.failure)?.failure
    if (undecodable) throw undecodable.error
    await options.applyBatch(transaction, units)
  }

  return async ({ careful, alone, load, onTaken }) => {
    const learned: Learned = { nodes: [], touches: [], seen: [], suppressed: [] }
    let hasDeferred = false
    let firstPartition: PartitionName | undefined
    let trace: BatchTrace | undefined
    let tenantIds: ReadonlySet<number> = new Set()
    const taken = await inTransaction(pool, async client => {
      const read = await log.take(client, {
        ...TAKEN[load],
        ...(alone && { maxPartitions: 1 }),
        alsoPartitions: (await findDuePartitions(client)) ?? [],
      })
      const taken = await moveToOverflow(client, read)
      onTaken(measureLoad(taken, TAKEN[load].maxEntries))
      firstPartition = taken[0]?.partition
      if (taken.length === 0) return taken
      const many = isShared(taken) ? findTenantsWithMany(taken) : new Set<number>()
      const busy = new Set([...many].filter(tenantId => (busyUntil.get(tenantId) ?? 0) > performance.now()))
      const plan = planEntries(taken, await findDueRetries(client, taken, busy), busy)
      tenantIds = new Set(plan.map(({ entry }) => entry.tenantId))
      trace = options.tracing?.batch(plan.filter(isNotBlocked).map(({ entry }) => entry))
      const transaction: Transaction = {
        client,
        ...(await holdConfigVersion(client, tenantIds)),
        profileLock: lockFor(client, tenantIds, busyTenants => {
          if (!busyTenants.some(tenantId => many.has(tenantId))) return false
          for (const tenantId of busyTenants) busyUntil.set(tenantId, performance.now() + BUSY_MS)
          return true
        }),
        learned,
        ...(trace && { trace }),
      }
      const decoded = decodeEntries(plan, kinds)
      const { units } = decoded
      hasDeferred = decoded.hasDeferred
      await lockShopRecords(transaction, units)
      if (careful) await applyCarefully({ transaction, units, apply, maxAttempts: retry.attempts })
      else await apply(transaction, units)
      await writeDispositions({ transaction, kinds, retry, suppressions, logger }, plan)
      await writeSuppressed(transaction)
      await log.advance(client, taken)
      return taken
    }).catch(async error => {
      trace?.end(error)
      if (isMissingPartition(error)) throw missingPartition(pool, error)
      if (isDeadlock(error)) markContended(tenantIds)
      if (alone && firstPartition !== undefined && !isConflict(error) && !isUnavailable(error))
        await recordStall(pool, firstPartition, errorMessage(error)).catch(() => {})
      throw error
    })
    trace?.end()
    rememberNodes(learned.nodes)
    rememberTouches(learned.touches)
    rememberSeen(learned.seen)
    if (hasDeferred) findDuePartitions.next()
    return taken.reduce((sum, { entries }) => sum + Math.max(1, entries.length), 0)
  }
}

/** Entries over their source's budget that were accepted while PostgreSQL was unavailable wait in the overflow queue instead. */
async function moveToOverflow(client: pg.PoolClient, taken: Taken[]): Promise<Taken[]> {
  const isOverBudget = ({ context }: Entry) => context.includes('"overBudget":true')
  if (!taken.some(({ entries }) => entries.some(isOverBudget))) return taken
  const deferred: DeferredEntry[] = []
  const left = taken.map(some => ({
    ...some,
    entries: some.entries.filter(entry => {
      const context = JSON.parse(entry.context) as EventContext
      if (context.route !== 'inbound' || !context.overBudget) return true
      const { overBudget: _, ...own } = context
      const items = own.items?.length ?? 1
      deferred.push({ sourceId: own.sourceId, entry: { ...entry, context: JSON.stringify(own) }, items })
      return false
    }),
  }))
  if (deferred.length > 0) await insertOverflow(client, deferred)
  return left
}

/** Retention dropped the table partition, or the clock jumped. Create it and restart the transaction. */
function missingPartition(pool: pg.Pool, error: Error): RestartTransaction {
  return new RestartTransaction(error.message, () => createMissingPartition(pool, error))
}

/** `isFull`: a partition may have more entries. */
function measureLoad(taken: Taken[], maxEntries: number) {
  const load = { entries: 0, length: 0, isFull: false }
  for (const { entries } of taken) {
    load.entries += entries.length
    load.isFull ||= entries.length >= maxEntries
    for (const { body } of entries) load.length += body.length
  }
  return load
}

/** Returns null if it ran less than `ms` ago. `next` makes the next call run in any case. */
function atMostEvery<T>(ms: number, run: (client: pg.PoolClient) => Promise<T>) {
  let lastAt = Number.NEGATIVE_INFINITY
  async function runSeldom(client: pg.PoolClient): Promise<T | null> {
    const now = performance.now()
    if (now - lastAt < ms) return null
    lastAt = now
    return run(client)
  }
  return Object.assign(runSeldom, {
    next() {
      lastAt = Number.NEGATIVE_INFINITY
    },
  })
}

/** An entry of this transaction. */
type Planned = {
  partition: PartitionName
  entry: Entry
  parked: Parked | null
  /** An entry that is blocked as a whole is not decoded: it has one unit without work. */
  units: Unit[]
  /** Items that can never be applied. They become dead letters. */
  rejected: NewDeadLetter[]
}

/** The due retries, and the ordering keys that have parked entries beyond those. */
async function findDueRetries(client: pg.PoolClient, taken: Taken[], busy: ReadonlySet<number>) {
  const partitions = taken.map(({ partition }) => partition)
  const orders = await listParkedOrders(client, partitions)
  const blocked = new Set(orders.map(orderKey))
  const due = orders.filter(({ isDue, tenantId }) => isDue && !busy.has(tenantId)).slice(0, MAX_RETRIES.rows)
  if (due.length === 0) return { retries: [], blocked }
  const retries = await loadParked(client, partitions, due, MAX_RETRIES)
  const loaded = Map.groupBy(retries, ({ entry }) => orderKey(entry))
  for (const order of due) {
    if (loaded.get(orderKey(order))?.length === order.entries) blocked.delete(orderKey(order))
  }
  return { retries, blocked }
}

/** Due retries first, then the new entries. A new entry is blocked while its ordering key has parked entries. */
function planEntries(
  taken: Taken[],
  { retries, blocked }: Awaited<ReturnType<typeof findDueRetries>>,
  busy: ReadonlySet<number>,
): Planned[] {
  const plan: Planned[] = retries.map(parked => ({
    partition: parked.partition,
    entry: parked.entry,
    parked,
    units: [],
    rejected: [],
  }))
  for (const { partition, entries } of taken) {
    for (const entry of entries) {
      const planned: Planned = { partition, entry, parked: null, units: [], rejected: [] }
      if (busy.has(entry.tenantId) || (blocked.size > 0 && blocked.has(orderKey(entry)))) block(planned)
      plan.push(planned)
    }
  }
  return plan
}

function findTenantsWithMany(taken: Taken[]): Set<number> {
  const counts = new Map<number, number>()
  for (const { entries } of taken)
    for (const { tenantId } of entries) counts.set(tenantId, (counts.get(tenantId) ?? 0) + 1)
  return new Set([...counts].flatMap(([tenantId, count]) => (count >= MANY_ENTRIES ? [tenantId] : [])))
}

/** Remembers which tenants had entries. The result returns whether there was more than one recently. */
function openActiveTenants(): (taken: Taken[]) => boolean {
  const seenAt = new Map<number, number>()
  return taken => {
    const now = performance.now()
    for (const tenantId of new Set(taken.flatMap(({ entries }) => entries.map(entry => entry.tenantId)))) {
      // Deleted first, so that the map is in the order of the times.
      seenAt.delete(tenantId)
      seenAt.set(tenantId, now)
    }
    for (const [tenantId, at] of seenAt) {
      if (at > now - ACTIVE_MS) break
      seenAt.delete(tenantId)
    }
    return seenAt.size > 1
  }
}

function block({ entry, partition, parked, units }: Planned): void {
  units.push({ entry, partition, parked, work: undefined, disposition: 'blocked' })
}

function isNotBlocked({ units }: Planned): boolean {
  return units.length === 0
}

/**
 * Decodes the entries that are not blocked. Returns the units to apply. An entry that cannot be decoded is one unit that
 * fails, so that the entries behind it wait. Entries behind a partially deferred entry are blocked.
 */
function decodeEntries(plan: Planned[], kinds: Record<EntryKind, Kind>): { units: Unit[]; hasDeferred: boolean } {
  const toApply: Unit[] = []
  const deferredOrders = new Set<string>()
  for (const planned of plan.filter(isNotBlocked)) {
    const { partition, entry, parked, units } = planned
    if (deferredOrders.size > 0 && deferredOrders.has(orderKey(entry))) {
      block(planned)
      continue
    }
    try {
      const { works, rejected } = kinds[entry.kind].decode(entry)
      for (const [i, work] of works.entries()) {
        const unit: Unit = { entry, partition, parked, work, disposition: 'applied' }
        if (i < MAX_UNITS_PER_ENTRY) toApply.push(unit)
        else unit.disposition = 'deferred'
        units.push(unit)
      }
      if (works.length > MAX_UNITS_PER_ENTRY) deferredOrders.add(orderKey(entry))
      planned.rejected = rejected
    } catch (error) {
      const unit: Unit = {
        ...{ entry, partition, parked, work: undefined },
        ...{ disposition: 'applied', failure: { error } },
      }
      units.push(unit)
      toApply.push(unit)
    }
  }
  return { units: toApply, hasDeferred: deferredOrders.size > 0 }
}

type DispositionContext = Required<Pick<TransactionOptions, 'kinds' | 'retry' | 'logger'>> &
  Pick<TransactionOptions, 'suppressions'> & { transaction: Transaction }

/**
 * Writes the disposition of every unit. A unit that is neither applied nor dead stays in a parked row: a new row for a
 * new entry, or what is left of its row for a parked one. Entries of one ordering key are parked in their order, which
 * is the order in which they will be applied. At most one unit per ordering key fails: the units behind it are blocked.
 */
async function writeDispositions(context: DispositionContext, plan: Planned[]): Promise<void> {
  const { transaction, kinds, retry } = context
  const { client, now } = transaction
  await writeRejected(
    context,
    plan.flatMap(({ rejected }) => rejected),
  )
  const done: Parked[] = []
  const toPark: NewParked[] = []
  for (const { partition, entry, parked, units, rejected } of plan) {
    const failed = units.find(({ disposition }) => disposition === 'retry' || disposition === 'dead')
    const waiting = units.filter(({ disposition }) => disposition === 'blocked' || disposition === 'deferred')
    const isRetried = failed?.disposition === 'retry'
    let next = { attempts: 0, nextAttemptAt: now, error: null as string | null }
    if (failed) {
      const { attempts, message } = describeFailure(failed)
      context.logger.warn({ err: failed.failure!.error, entry: entry.id, attempts }, 'an entry could not be applied')
      if (!isRetried) await giveUp(transaction, kinds[entry.kind], failed, { ...context, attempts, message })
      else next = { attempts, nextAttemptAt: new Date(now.getTime() + delayMs(retry, attempts)), error: message }
    }
    const left = (own: Unit[]) => ({ partition, entry: narrow(kinds, entry, own) })
    if (parked === null) {
      if (isRetried) toPark.push({ ...left([failed]), ...next })
      if (waiting.length > 0) toPark.push({ ...left(waiting), attempts: 0, nextAttemptAt: now, error: null })
      continue
    }
    const { parkedId } = parked
    if (isRetried) await postpone(client, { ...left([failed, ...waiting]), ...next, parkedId })
    else if (waiting.length === 0) done.push(parked)
    else if (failed) await postpone(client, { ...left(waiting), ...next, parkedId })
    else if (waiting.some(({ disposition }) => disposition === 'deferred'))
      await postpone(client, { ...left(waiting), ...next, attempts: parked.attempts, parkedId })
    // Its rejected items are dead letters now and must not become so again.
    else if (rejected.length > 0) await narrowParked(client, { ...left(waiting), parkedId })
  }
  await park(client, toPark)
  if (done.length > 0) await unpark(client, done)
}

/** The entry with only these units. An entry that was not decoded stays whole. */
function narrow(kinds: Record<EntryKind, Kind>, entry: Entry, units: Unit[]): Entry {
  if (units.some(unit => unit.work === undefined)) return entry
  return kinds[entry.kind].narrow(
    entry,
    units.map(unit => unit.work),
  )
}

function describeFailure({ parked, failure }: Unit): { attempts: number; message: string } {
  return { attempts: (parked?.attempts ?? 0) + 1, message: errorMessage(failure!.error) }
}

/** The delay doubles. Jitter keeps many failures from retrying together. */
function delayMs(retry: Retry, attempts: number): number {
  const full = Math.min(retry.maxDelayMs, retry.firstDelayMs * 2 ** (attempts - 1))
  return full / 2 + (Math.random() * full) / 2
}

// A failure while a dead letter is written would stop the partition forever. A dead letter therefore needs only its own
// table. Receipts and operations are written in a savepoint; if that fails, a log line reports it.

type DeadLetterContext = { logger: Logger; suppressions?: Pick<Suppressions, 'letters'> | undefined }

/** Writes rejected items as dead letters, with a receipt if they came from an inbound source. */
async function writeRejected(
  { transaction, logger, suppressions }: DeadLetterContext & { transaction: Transaction },
  letters: NewDeadLetter[],
): Promise<void> {
  if (letters.length === 0) return
  const { client } = transaction
  const { kept, suppressed } = (await suppressions?.letters(transaction, letters)) ?? keepAll(letters)
  if (kept.length > 0) await insertDeadLetters(client, kept)
  const receipts = [...kept.flatMap(letterReceipts), ...suppressed.flatMap(suppressedReceipts)]
  if (receipts.length === 0) return
  const failed = await attempt(client, () => insertReceipts(client, receipts))
  if (failed)
    logger.warn(
      { err: failed.error, deadLetters: receipts.map(({ id }) => id) },
      'receipts of rejected events could not be written',
    )
}

function keepAll(letters: NewDeadLetter[]) {
  return { kept: letters, suppressed: [] as NewDeadLetter[] }
}

/** Empty if the letter did not come from an inbound source. */
function letterReceipts({ id, entry, sourceId, inboundEventId, error }: NewDeadLetter): Receipt[] {
  if (sourceId === null) return []
  const { tenantId, receivedAt } = entry
  const facts = { eventType: null, outcome: 'dead_letter' as const, detail: error, firstId: null }
  return [{ id, tenantId, sourceId, receivedAt, inboundEventId, ...facts }]
}

function suppressedReceipts(letter: NewDeadLetter): Receipt[] {
  return letterReceipts(letter).map(receipt => ({ ...receipt, ...suppressedReceipt(receipt) }))
}

/** Writes a unit that failed for the last time as a dead letter, with its receipt or operation. */
export async function giveUp(
  transaction: Transaction,
  kind: Kind,
  unit: Unit,
  failure: { message: string; attempts: number } & DeadLetterContext,
): Promise<void> {
  const { client } = transaction
  const letter = buildDeadLetter(kind, unit, failure)
  const { kept, suppressed } = (await failure.suppressions?.letters(transaction, [letter])) ?? keepAll([letter])
  if (kept.length > 0) await insertDeadLetters(client, kept)
  // The error message may quote the event, so a suppressed event gets a receipt without it.
  const isSuppressed = suppressed.length > 0 && unit.entry.kind === 'events'
  const receipts = suppressed.flatMap(suppressedReceipts)
  const failed = await attempt(client, async () => {
    if (!isSuppressed) await kind.recordFailure(transaction, unit, failure.message)
    else if (receipts.length > 0) await insertReceipts(client, receipts)
  })
  if (failed)
    failure.logger.warn(
      { err: failed.error, entry: unit.entry.id, deadLetter: letter.id },
      'the receipt or operation of a dead letter could not be written',
    )
}

/** The unit alone, or its whole entry if the unit cannot be extracted. */
function buildDeadLetter(
  kind: Kind,
  unit: Unit,
  { message, attempts }: { message: string; attempts: number },
): NewDeadLetter {
  try {
    return kind.deadLetter(unit, message, attempts)
  } catch {
    const { entry } = unit
    return {
      id: entry.id,
      entry,
      sourceId: null,
      inboundEventId: null,
      reason: 'failed',
      error: message,
      attempts,
    }
  }
}

const MAX_MESSAGE = 2_000

/** An error message that PostgreSQL can store. An error may quote what was sent. */
function errorMessage(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error)
  return message.slice(0, MAX_MESSAGE).toWellFormed().replaceAll('\0', '\uFFFD')
}
