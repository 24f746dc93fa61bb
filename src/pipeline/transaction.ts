import type pg from 'pg'
import { type Entry, type EntryKind, orderOf } from '../domain/entries/entry.ts'
import type { Log, PartitionName, Taken } from '../log/log.ts'
import {
  inTransaction,
  isConflict,
  isDeadlock,
  isUnavailable,
  RestartTransaction,
} from '../postgres/database.ts'
import { isMissingPartition, makeMissingPartition } from '../postgres/partitions.ts'
import type { NewDeadLetter } from '../store/entries/dead-letters.ts'
import {
  listParkedOrders,
  loadParked,
  narrowParked,
  type Parked,
  park,
  partitionsWithDueEntries,
  postpone,
  unpark,
} from '../store/entries/parked.ts'
import { recordStall } from '../store/entries/stalled.ts'
import { holdConfigVersion } from '../store/tenants/config-version.ts'
import type { SaleChanges } from './deliveries/sales.ts'
import { giveUp, keepRejected, messageOf } from './give-up.ts'
import type { Suppressions } from './identity/suppressions.ts'
import { applyCarefully, type Failure } from './isolate.ts'
import { DEFAULT_RETRY, delayMs, type Retry } from './retry.ts'
import { openTurns } from './turns.ts'
import type { BatchTrace, Kind, Suppressed, Transaction, Unit } from './unit.ts'

const MAX_PARTITIONS = 4
const MAX_ENTRIES_PER_PARTITION = 500
const MAX_RETRIES = { rows: 500, bytes: 250_000 }
// Retries that came due are looked for this often, not in every transaction.
const FIND_DUE_EVERY_MS = 250

// A request may hold 5,000 events. Applied in one transaction they held all readers up for one to three seconds, because
// nobody reads past a transaction that is still open; five hundred take an eighth of one.
const MAX_UNITS_OF_ENTRY = 500

export type TransactionOptions = {
  pool: pg.Pool
  log: Pick<Log, 'take' | 'advance'>
  kinds: Record<EntryKind, Kind>
  saleChanges?: SaleChanges
  /** Whoever is not to be recorded is not kept among what is given up, either. */
  suppressions?: Pick<Suppressions, 'letters' | 'settle'> | undefined
  retry?: Retry
  logger: { warn(facts: object, message: string): void }
  tracing?: { batch(entries: Entry[]): BatchTrace } | null
}

/**
 * One transaction: takes partitions of the log, applies their entries and moves the positions on. Returns how much it
 * took. `careful`: an entry that fails is found and set aside, and the others take effect.
 * `alone`: with one partition only, and where that fails it is written down which.
 */
export type RunTransaction = (options: {
  careful: boolean
  alone: boolean
  onTaken(load: { entries: number; length: number }): void
}) => Promise<number>

export function openTransactions(options: TransactionOptions): RunTransaction {
  const { pool, log, kinds, saleChanges, suppressions, logger } = options
  const retry = options.retry ?? DEFAULT_RETRY
  const { turnsOf, contend } = openTurns()
  const findDuePartitions = atMostEvery(FIND_DUE_EVERY_MS, partitionsWithDueEntries)

  async function apply(transaction: Transaction, units: Unit[]): Promise<void> {
    const unreadable = units.find(unit => unit.unreadable)?.unreadable
    if (unreadable) throw unreadable.error
    saleChanges?.begin(transaction)
    for (const kind of ['record', 'events'] as const) {
      const own = units.filter(unit => unit.entry.kind === kind)
      if (own.length === 0) continue
      const run = () => kinds[kind].apply(transaction, own)
      await (transaction.trace ? transaction.trace.effects(kind, own.length, run) : run())
    }
    await saleChanges?.end(transaction)
  }

  return async ({ careful, alone, onTaken }) => {
    const afterCommit: (() => void)[] = []
    const suppressed: Suppressed[] = []
    const undoable = [afterCommit, suppressed]
    let tried: PartitionName | undefined
    let trace: BatchTrace | undefined
    let tenantIds: ReadonlySet<number> = new Set()
    const taken = await inTransaction(pool, async client => {
      const taken = await log.take(client, {
        maxPartitions: alone ? 1 : MAX_PARTITIONS,
        maxEntries: MAX_ENTRIES_PER_PARTITION,
        alsoPartitions: (await findDuePartitions(client)) ?? [],
      })
      onTaken(loadOf(taken))
      tried = taken[0]?.partition
      if (taken.length === 0) return taken
      const { entries, blocked } = plan(taken, await dueRetries(client, taken))
      tenantIds = tenantsOf([...entries, ...blocked])
      trace = options.tracing?.batch(entries.map(({ entry }) => entry))
      const transaction: Transaction = {
        client,
        ...(await holdConfigVersion(client, tenantIds)),
        turns: turnsOf(client, tenantIds),
        suppressed,
        afterCommit: action => afterCommit.push(action),
        ...(trace && { trace }),
      }
      const { units, rejected, rest, behindRest } = decode(entries, kinds)
      const failures: Failure[] = []
      const heldBack: Unit[] = []
      await keepRejected(transaction, [...rejected.values()].flat(), { logger, suppressions })
      for (const kind of Object.values(kinds)) await kind.lock?.(transaction, units)
      if (careful) await applyCarefully({ transaction, units, apply, failures, heldBack, undoable })
      else await apply(transaction, units)
      for (const behind of blocked) await parkBehind(transaction, behind)
      heldBack.push(...rest)
      await settle(
        { transaction, kinds, retry, suppressions, logger },
        { entries, failures, heldBack, rejected, rest, behindRest },
      )
      // After what they wait behind: the order in which entries are parked is that in which they take effect.
      for (const behind of behindRest) if (!behind.parked) await parkBehind(transaction, behind)
      if (rest.length > 0) afterCommit.push(findDuePartitions.next)

      await suppressions?.settle(transaction)
      await log.advance(client, taken)
      return taken
    }).catch(async error => {
      trace?.end(error)
      if (isMissingPartition(error)) throw missingPartition(pool, error)
      if (isDeadlock(error)) contend(tenantIds)
      if (alone && tried !== undefined && !isConflict(error) && !isUnavailable(error))
        await recordStall(pool, tried, messageOf(error)).catch(() => {})
      throw error
    })
    trace?.end()
    for (const action of afterCommit) action()
    return taken.reduce((sum, { entries }) => sum + Math.max(1, entries.length), 0)
  }
}

/** Retention dropped it, or the clock jumped: nobody's fault, and soon made. */
function missingPartition(pool: pg.Pool, error: Error): RestartTransaction {
  return new RestartTransaction(error.message, () => makeMissingPartition(pool, error))
}

function loadOf(taken: Taken[]): { entries: number; length: number } {
  const load = { entries: 0, length: 0 }
  for (const { entries } of taken) {
    load.entries += entries.length
    for (const { body } of entries) load.length += body.length
  }
  return load
}

/** Null where it ran a moment ago; `next` has it run the next time all the same. */
function atMostEvery<T>(ms: number, run: (client: pg.PoolClient) => Promise<T>) {
  let lastAt = 0
  async function runSeldom(client: pg.PoolClient): Promise<T | null> {
    const now = Date.now()
    if (now - lastAt < ms) return null
    lastAt = now
    return run(client)
  }
  return Object.assign(runSeldom, {
    next() {
      lastAt = 0
    },
  })
}

/** The retries that are due, and the orders in which something waits that is not among them. */
async function dueRetries(client: pg.PoolClient, taken: Taken[]) {
  const partitions = taken.map(({ partition }) => partition)
  const orders = await listParkedOrders(client, partitions)
  const blocked = new Set(orders.map(orderOf))
  const due = orders.filter(({ isDue }) => isDue).slice(0, MAX_RETRIES.rows)
  if (due.length === 0) return { retries: [], blocked }
  const retries = await loadParked(client, partitions, due, MAX_RETRIES)
  const loaded = Map.groupBy(retries, ({ entry }) => orderOf(entry))
  for (const order of due) {
    if (loaded.get(orderOf(order))?.length === order.entries) blocked.delete(orderOf(order))
  }
  return { retries, blocked }
}

/** Due retries first, each with what waits behind it; then the new entries, but for those behind what still waits. */
function plan(taken: Taken[], { retries, blocked }: Awaited<ReturnType<typeof dueRetries>>) {
  const entries: Planned[] = retries.map(parked => ({
    partition: parked.partition,
    entry: parked.entry,
    parked,
  }))
  const behind: { partition: PartitionName; entry: Entry }[] = []
  for (const { partition, entries: fresh } of taken) {
    for (const entry of fresh) {
      if (blocked.size > 0 && blocked.has(orderOf(entry))) behind.push({ partition, entry })
      else entries.push({ partition, entry, parked: null })
    }
  }
  return { entries, blocked: behind }
}

function tenantsOf(planned: { entry: Entry }[]): Set<number> {
  return new Set(planned.map(({ entry }) => entry.tenantId))
}

type SettleOptions = Required<Pick<TransactionOptions, 'kinds' | 'retry' | 'logger'>> &
  Pick<TransactionOptions, 'suppressions'> & { transaction: Transaction }

type Tried = Pick<Decoded, 'rejected' | 'rest' | 'behindRest'> & {
  entries: Planned[]
  failures: Failure[]
  heldBack: Unit[]
}

/** What was tried is done, tried again later, or given up; what stood behind a failure waits for it. */
async function settle(
  { transaction, kinds, retry, suppressions, logger }: SettleOptions,
  { entries, failures, heldBack, rejected, rest, behindRest }: Tried,
): Promise<void> {
  const { client, now } = transaction
  const stillParked = new Set<number>()
  for (const { unit, error } of failures) {
    const attempts = (unit.parked?.attempts ?? 0) + 1
    const message = messageOf(error)
    logger.warn({ err: error, entry: unit.entry.id, attempts }, 'an entry could not be applied')
    const givenUp = attempts >= retry.attempts
    if (givenUp)
      await giveUp(transaction, kinds[unit.entry.kind], unit, { message, attempts, suppressions, logger })
    // A parked row can hold several items: the failed one and those behind it stay in it.
    const behind = unit.parked
      ? heldBack.filter(other => other.parked?.parkedId === unit.parked?.parkedId)
      : []
    const remaining = givenUp ? behind : [unit, ...behind]
    if (remaining.length === 0) continue
    const next = {
      partition: unit.partition,
      entry: narrow(kinds, unit.entry, remaining),
      attempts: givenUp ? 0 : attempts,
      nextAttemptAt: givenUp ? now : new Date(now.getTime() + delayMs(retry, attempts)),
      error: givenUp ? null : message,
    }
    if (unit.parked) {
      stillParked.add(unit.parked.parkedId)
      await postpone(client, { ...next, parkedId: unit.parked.parkedId })
    } else await park(client, next)
  }
  const cut = new Set(rest.map(({ entry }) => entry))
  const waiting = heldBack.filter(unit => unit.parked && !stillParked.has(unit.parked.parkedId))
  for (const [parked, units] of Map.groupBy(waiting, unit => unit.parked!)) {
    stillParked.add(parked.parkedId)
    const { entry, partition } = units[0]!
    const narrowed = () => ({ ...parked, partition, entry: narrow(kinds, entry, units) })
    if (cut.has(entry)) await postpone(client, { ...narrowed(), nextAttemptAt: now, error: null })
    // Its bad items are kept once, however often it waits.
    else if (rejected.has(entry)) await narrowParked(client, narrowed())
  }
  for (const { parked } of behindRest) if (parked) stillParked.add(parked.parkedId)
  const fresh = heldBack.filter(unit => !unit.parked)
  for (const [entry, units] of Map.groupBy(fresh, unit => unit.entry)) {
    await parkBehind(transaction, { partition: units[0]!.partition, entry: narrow(kinds, entry, units) })
  }
  const done = entries.flatMap(({ parked }) => (parked && !stillParked.has(parked.parkedId) ? [parked] : []))
  if (done.length > 0) await unpark(client, done)
}

/** The entry with just these units in it; one that could not even be read stays whole. */
function narrow(kinds: Record<EntryKind, Kind>, entry: Entry, units: Unit[]): Entry {
  if (units.some(unit => unit.work === undefined)) return entry
  return kinds[entry.kind].narrow(
    entry,
    units.map(unit => unit.work),
  )
}

async function parkBehind(
  { client, now }: Transaction,
  behind: { partition: PartitionName; entry: Entry },
): Promise<void> {
  await park(client, { ...behind, attempts: 0, nextAttemptAt: now, error: null })
}

/** An entry that is to take effect in this transaction. */
type Planned = { partition: PartitionName; entry: Entry; parked: Parked | null }

type Decoded = {
  units: Unit[]
  /** The items of entries that can never take effect. */
  rejected: Map<Entry, NewDeadLetter[]>
  /** What is left of large entries: it waits for its next turn, and meanwhile it is that of others. */
  rest: Unit[]
  /** Whole entries that stay behind such a rest, because they have the same order. */
  behindRest: Planned[]
}

/** An entry that cannot be read is a unit that fails: in its place, so that what is behind it waits. */
function decode(entries: Planned[], kinds: Record<EntryKind, Kind>): Decoded {
  const decoded: Decoded = { units: [], rejected: new Map(), rest: [], behindRest: [] }
  const ordersWithRest = new Set<string>()
  for (const planned of entries) {
    const { partition, entry, parked } = planned
    if (ordersWithRest.size > 0 && ordersWithRest.has(orderOf(entry))) {
      decoded.behindRest.push(planned)
      continue
    }
    try {
      const { works, rejected } = kinds[entry.kind].decode(entry)
      for (const [i, work] of works.entries()) {
        const part = i < MAX_UNITS_OF_ENTRY ? decoded.units : decoded.rest
        part.push({ entry, partition, parked, work })
      }
      if (works.length > MAX_UNITS_OF_ENTRY) ordersWithRest.add(orderOf(entry))
      if (rejected.length > 0) decoded.rejected.set(entry, rejected)
    } catch (error) {
      decoded.units.push({ entry, partition, parked, work: undefined, unreadable: { error } })
    }
  }
  return decoded
}
