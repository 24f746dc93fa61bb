import type pg from 'pg'
import { type Entry, type EntryKind, orderOf } from '../domain/entry.ts'
import type { Log, Taken } from '../log/log.ts'
import { BeginAgain, inTransaction, isConflict, isUnavailable } from '../postgres/database.ts'
import { insertDeadLetters, type NewDeadLetter } from '../store/entries/dead-letters.ts'
import {
  lanesWithDueEntries,
  listParkedOrders,
  loadParked,
  type Parked,
  park,
  postpone,
  unpark,
} from '../store/entries/parked.ts'
import { applyCarefully, type Failure } from './isolate.ts'
import { keepRejected } from './rejected.ts'
import type { Kind, Transaction, Unit } from './unit.ts'

export type Retry = { attempts: number; firstDelayMs: number; maxDelayMs: number }

export const DEFAULT_RETRY: Retry = { attempts: 6, firstDelayMs: 1_000, maxDelayMs: 60_000 }

const MAX_LANES = 4
const MAX_ENTRIES_PER_LANE = 500
const MAX_RETRIES = 500
const CAREFUL_RUNS = 8
// While more is arriving, a short rest lets the next transaction take more along: a tracked event then costs half.
const GATHER_MS = 10
// A transaction with this much to do is worth no rest, and another worker beside it.
const HEAVY_ENTRIES = 256
const HEAVY_LENGTH = 250_000
// Without a wake-up (another process appended, a retry came due) one of the workers looks this often.
const IDLE_LOOK_MS = 250

export type ConsumerOptions = {
  pool: pg.Pool
  log: Log
  kinds: Record<EntryKind, Kind>
  workers: number
  retry?: Retry
  logger: { error(facts: object, message: string): void; warn(facts: object, message: string): void }
}

/** Workers that take partitions of the log, apply their entries and move the positions on, in one transaction. */
export function openConsumer(options: ConsumerOptions) {
  const { log, logger } = options
  const retry = options.retry ?? DEFAULT_RETRY
  const sleepers = new Set<() => void>()
  // Workers that will look at the log again in a moment. While there is one, the others sleep: what one transaction can do
  // costs more in several.
  let lookers = 0
  let stopping = false
  let woken = false
  let lastLook = 0
  let lastDueLook = 0

  function wake(): void {
    woken = true
    rouseLooker()
  }
  const unsubscribe = log.onAppend(wake)

  function rouseLooker(): void {
    const [rouse] = sleepers
    if (lookers === 0) rouse?.()
  }

  async function work(): Promise<void> {
    let isLooking = false
    const look = (now: boolean) => {
      if (now !== isLooking) lookers += now ? 1 : -1
      isLooking = now
    }
    // Partitions are taken at random: the next few transactions are careful, to meet the poisonous entry again.
    let careful = 0
    let troubles = 0
    while (!stopping) {
      try {
        look(true)
        lastLook = Date.now()
        woken = false
        let isHeavy = false
        const applied = await runOnce(careful > 0, taken => {
          isHeavy = isHeavyLoad(taken)
          if (!isHeavy) return
          look(false)
          rouseLooker()
        })
        careful = Math.max(0, careful - 1)
        troubles = 0
        if (applied === 0 && !woken) {
          look(false)
          await nextLook()
        } else if (woken && !isHeavy) await rest(GATHER_MS)
      } catch (error) {
        look(false)
        const trouble = error instanceof BeginAgain ? await failureOf(error.prepare) : error
        if (trouble === null || isConflict(trouble)) continue
        if (isUnavailable(trouble)) {
          logger.warn({ err: trouble }, 'the pipeline waits for the database')
          await idle(Math.min(5_000, 200 * 2 ** troubles++))
        } else if (careful === 0) {
          careful = CAREFUL_RUNS
        } else {
          logger.error({ err: trouble }, 'the pipeline failed outside of any entry')
          await idle(Math.min(5_000, 200 * 2 ** troubles++))
        }
      }
    }
  }

  /** One transaction. Returns how many entries it took. */
  async function runOnce(careful: boolean, onTaken: (taken: Taken[]) => void): Promise<number> {
    const afterCommit: (() => void)[] = []
    const taken = await inTransaction(options.pool, async client => {
      const lanes = await log.take(client, {
        maxPartitions: MAX_LANES,
        maxEntries: MAX_ENTRIES_PER_LANE,
        alsoPartitions: await dueLanes(client),
      })
      onTaken(lanes)
      if (lanes.length > 0) {
        const transaction: Transaction = {
          client,
          now: new Date(),
          afterCommit: action => afterCommit.push(action),
        }
        await process(transaction, lanes, careful, afterCommit)
        await log.advance(client, lanes)
      }
      return lanes
    })
    for (const action of afterCommit) action()
    return taken.reduce((sum, { entries }) => sum + Math.max(1, entries.length), 0)
  }

  async function process(
    transaction: Transaction,
    taken: Taken[],
    careful: boolean,
    undoable: unknown[],
  ): Promise<void> {
    const { client } = transaction
    const { entries, blocked } = plan(taken, await dueRetries(transaction, taken))
    const failures: Failure[] = []
    const heldBack: Unit[] = []
    const { units, rejected } = decode(entries, options.kinds, failures)
    if (rejected.length > 0) await keepRejected(client, rejected)
    if (careful) await applyCarefully({ transaction, units, apply, failures, heldBack, undoable })
    else await apply(transaction, units)

    for (const { lane, entry } of blocked) await parkBehind(transaction, lane, entry)
    await settle(transaction, entries, failures, heldBack)
  }

  async function apply(transaction: Transaction, units: Unit[]): Promise<void> {
    for (const kind of ['record', 'events'] as const) {
      const own = units.filter(unit => unit.entry.kind === kind)
      if (own.length > 0) await options.kinds[kind].apply(transaction, own)
    }
  }

  /** What was tried is done, tried again later, or given up; what stood behind a failure waits for it. */
  async function settle(
    transaction: Transaction,
    entries: Planned[],
    failures: Failure[],
    heldBack: Unit[],
  ): Promise<void> {
    const { client, now } = transaction
    const stillParked = new Set<number>()
    for (const { unit, error } of failures) {
      const kind = options.kinds[unit.entry.kind]
      const attempts = (unit.parked?.attempts ?? 0) + 1
      const message = error instanceof Error ? error.message : String(error)
      logger.warn({ err: error, entry: unit.entry.id, attempts }, 'an entry could not be applied')
      const givenUp = attempts >= retry.attempts
      if (givenUp) await insertDeadLetters(client, [await kind.giveUp(transaction, unit, message, attempts)])
      // A parked row can hold several items: the failed one and those behind it stay in its place.
      const behind = unit.parked ? heldBack.filter(other => other.parked?.place === unit.parked?.place) : []
      const remaining = givenUp ? behind : [unit, ...behind]
      if (remaining.length === 0) continue
      const next = {
        lane: unit.lane,
        entry: narrow(unit.entry, remaining),
        attempts: givenUp ? 0 : attempts,
        nextAttemptAt: givenUp ? now : new Date(now.getTime() + delayMs(retry, attempts)),
        error: givenUp ? null : message,
      }
      if (unit.parked) {
        stillParked.add(unit.parked.place)
        await postpone(client, { ...next, place: unit.parked.place })
      } else await park(client, next)
    }
    for (const unit of heldBack) if (unit.parked) stillParked.add(unit.parked.place)
    const fresh = heldBack.filter(unit => !unit.parked)
    for (const units of Map.groupBy(fresh, unit => unit.entry).values()) {
      await parkBehind(transaction, units[0]!.lane, narrow(units[0]!.entry, units))
    }
    const done = entries.flatMap(({ lane, parked }) =>
      parked && !stillParked.has(parked.place) ? [{ lane, place: parked.place }] : [],
    )
    if (done.length > 0) await unpark(client, done)
  }

  /** The entry with just these units in it; one that could not even be read stays whole. */
  function narrow(entry: Entry, units: Unit[]): Entry {
    if (units.some(unit => unit.work === undefined)) return entry
    return options.kinds[entry.kind].narrow(
      entry,
      units.map(unit => unit.work),
    )
  }

  async function parkBehind({ client, now }: Transaction, lane: string, entry: Entry): Promise<void> {
    await park(client, { lane, entry, attempts: 0, nextAttemptAt: now, error: null })
  }

  /** Lanes with a retry that came due; asked now and then, not in every transaction. */
  async function dueLanes(client: pg.PoolClient): Promise<string[]> {
    const now = Date.now()
    if (now - lastDueLook < IDLE_LOOK_MS) return []
    lastDueLook = now
    return lanesWithDueEntries(client)
  }

  /** Not ended by a wake-up, only by stopping. */
  function rest(ms: number): Promise<void> {
    return stopping ? Promise.resolve() : new Promise(resolve => setTimeout(resolve, ms))
  }

  /** Until there is something to do, or nobody has looked for a while: of several sleepers one looks for all. */
  async function nextLook(): Promise<void> {
    do {
      if (await idle(IDLE_LOOK_MS)) return
    } while (Date.now() - lastLook < IDLE_LOOK_MS)
  }

  /** True when it was roused before its time. */
  function idle(ms: number): Promise<boolean> {
    return new Promise(resolve => {
      function end(isRoused: boolean) {
        clearTimeout(timer)
        sleepers.delete(rouse)
        resolve(isRoused)
      }
      const rouse = () => end(true)
      const timer = setTimeout(end, ms, false)
      sleepers.add(rouse)
      if (stopping) rouse()
    })
  }

  let running: Promise<unknown> = Promise.resolve()
  return {
    start() {
      running = Promise.all(Array.from({ length: options.workers }, () => work()))
    },
    /** Lets the transactions under way finish. */
    async stop() {
      stopping = true
      unsubscribe()
      for (const rouse of sleepers) rouse()
      await running
    },
  }
}

async function failureOf(work: () => Promise<void>): Promise<unknown> {
  try {
    await work()
    return null
  } catch (error) {
    return error
  }
}

function isHeavyLoad(taken: Taken[]): boolean {
  let entries = 0
  let length = 0
  for (const lane of taken) {
    entries += lane.entries.length
    for (const { body } of lane.entries) length += body.length
  }
  return entries >= HEAVY_ENTRIES || length >= HEAVY_LENGTH
}

type Planned = { lane: string; entry: Entry; parked: Parked | null }

/** The retries that are due, and the orders in which something waits that is not among them. */
async function dueRetries({ client, now }: Transaction, taken: Taken[]) {
  const lanes = taken.map(({ partition }) => partition)
  const orders = await listParkedOrders(client, lanes)
  const blocked = new Set(orders.map(orderOf))
  const due = orders.filter(({ nextAttemptAt }) => nextAttemptAt <= now).slice(0, MAX_RETRIES)
  if (due.length === 0) return { retries: [], blocked }
  const retries = await loadParked(client, lanes, due, MAX_RETRIES)
  const loaded = Map.groupBy(retries, ({ entry }) => orderOf(entry))
  for (const order of due) {
    if (loaded.get(orderOf(order))?.length === order.entries) blocked.delete(orderOf(order))
  }
  return { retries, blocked }
}

/** Due retries first, each with what waits behind it; then the new entries, but for those behind what still waits. */
function plan(taken: Taken[], { retries, blocked }: Awaited<ReturnType<typeof dueRetries>>) {
  const entries: Planned[] = retries.map(row => ({ lane: row.lane, entry: row.entry, parked: row }))
  const behind: { lane: string; entry: Entry }[] = []
  for (const { partition: lane, entries: fresh } of taken) {
    for (const entry of fresh) {
      if (blocked.size > 0 && blocked.has(orderOf(entry))) behind.push({ lane, entry })
      else entries.push({ lane, entry, parked: null })
    }
  }
  return { entries, blocked: behind }
}

function decode(entries: Planned[], kinds: Record<EntryKind, Kind>, failures: Failure[]) {
  const units: Unit[] = []
  const rejected: NewDeadLetter[] = []
  for (const { lane, entry, parked } of entries) {
    try {
      const decoded = kinds[entry.kind].decode(entry)
      for (const work of decoded.works) units.push({ entry, lane, parked, work })
      for (const letter of decoded.rejected) rejected.push(letter)
    } catch (error) {
      failures.push({ unit: { entry, lane, parked, work: undefined }, error })
    }
  }
  return { units, rejected }
}

/** Doubling, with jitter so that many failures do not come back together. */
function delayMs(retry: Retry, attempts: number): number {
  const full = Math.min(retry.maxDelayMs, retry.firstDelayMs * 2 ** (attempts - 1))
  return full / 2 + (Math.random() * full) / 2
}
