import {
  type AccountState,
  accountStates,
  type CohortChange,
  computeFigures,
  deriveAccount,
  type Movement,
  type MovementType,
  netWithinDays,
  type SegmentFigures,
} from '../domain/billing/account.ts'
import { filterSegment, isFiltered } from '../domain/billing/dimensions.ts'
import type { Segment } from '../domain/billing/timeline.ts'
import type { Instant } from '../domain/billing/types.ts'
import type { Slice } from '../domain/list-slices.ts'
import { dayIn } from '../domain/time-zone.ts'
import type { Db } from '../postgres/database.ts'
import {
  accountSlice,
  allSegments,
  type ReportTraits,
  reportTraits,
  segmentsOfAccounts,
} from '../store/reports/accounts.ts'
import type { ExcludedItem } from '../store/reports/exclusions.ts'
import {
  cohortChanges,
  type MovementEntry,
  type MovementOrder,
  movementSlice,
  movementsOfAccount,
  type RetentionBase,
} from '../store/reports/movements.ts'
import {
  type AccountTotals,
  type Moved,
  type MovementSums,
  movedBetween,
  movedWithin,
  type SourceFigures,
  sourceFigures,
  totalsBefore,
} from '../store/reports/totals.ts'
import { type ReportQuestion, sum } from './question.ts'

/** What reports read about accounts and their movements, in the currency and as of the time of the question. */
export type Ledger = {
  /** Figures at `at`, in all currencies, with those at `then` beside them. */
  figures(at: Date, then: Date): Promise<SourceFigures[]>
  /** Movements in (since, until]. */
  moved(since: Date, until: Date): Promise<Moved>
  /** Totals right before each of these times. */
  totalsBefore(bounds: Date[]): Promise<AccountTotals[]>
  /** Amounts by movement type between each of these times and the next. */
  movedWithin(bounds: Date[]): Promise<MovedAmounts[]>
  /** Changes by cohort and month, of accounts that first paid at `since` or later. */
  cohorts(since: Date, base: RetentionBase): Promise<CohortChange[]>
  /** The largest MRR first. */
  accounts(slice: Slice, count: number): Promise<string[]>
  /** Segments valid at the time of the question, in all currencies. */
  segments(accounts: string[]): Promise<Segment[]>
  /** Movements in (since, until]. `count`: how many there are. */
  movements(window: Window, wanted: { slice: Slice; count: number; order: MovementOrder }): Promise<MovementEntry[]>
  movementsOf(account: string): Promise<MovementEntry[]>
  /** What the filter matches; null: there is no filter. */
  matched: MatchedItems | null
}

export type MatchedItems = {
  /** Whether an item of the subscription matched at that time. */
  includes(subscriptionId: string, at: Date): boolean
  /** Items that do not count, as the exclusions report lists them: in the currency or without one, and in other currencies. */
  excluded: ExcludedItem[]
  foreign: ExcludedItem[]
}

type Window = { since: Date; until: Date }
type MovedAmounts = Partial<Record<MovementType, number>>

/**
 * Without a filter, SQL aggregates the stored states, movements and daily sums: the cost does not depend on the number of
 * accounts. For a filter nothing is stored: it selects items, and an item that leaves the plan churns. The accounts are
 * then derived from the matching items with the pipeline's functions, and aggregated in memory.
 */
export async function openLedger(db: Db, question: ReportQuestion): Promise<Ledger> {
  const ledger = isFiltered(question.filter) ? await filteredLedger(db, question) : storedLedger(db, question)
  const { netWithinDay, timeZone } = question.policy
  return netWithinDay ? nettedLedger(ledger, timeZone) : ledger
}

function storedLedger(db: Db, question: ReportQuestion): Ledger {
  const { tenantId, currency, asOf, policy } = question
  return {
    figures: (at, then) => sourceFigures(db, tenantId, at, then),
    moved: (since, until) => movedBetween(db, tenantId, currency, since, until),
    totalsBefore: bounds => totalsBefore(db, question, bounds),
    movedWithin: bounds => movedWithin(db, question, bounds),
    cohorts: (since, base) => cohortChanges(db, tenantId, currency, { since, asOf, zone: policy.timeZone, base }),
    accounts: (slice, count) => accountSlice(db, question, slice, count),
    segments: accounts => segmentsOfAccounts(db, tenantId, accounts, asOf),
    movements: (window, wanted) => movementSlice(db, tenantId, currency, window, wanted),
    movementsOf: account => movementsOfAccount(db, tenantId, currency, account, asOf),
    matched: null,
  }
}

// Movements in memory, of a filter or netted.

function sumByType(movements: MovementEntry[]): MovementSums {
  return [...Map.groupBy(movements, ({ type }) => type)].map(([type, own]) => ({
    type,
    amount: sum(own, ({ before, after }) => Math.abs(after - before)),
    count: own.length,
  }))
}

/** `movements`: the oldest first. */
function sumByBucket(movements: MovementEntry[], bounds: Date[]): MovedAmounts[] {
  const buckets: MovedAmounts[] = bounds.slice(1).map(() => ({}))
  let bucket = 0
  for (const { occurredAt, type, before, after } of movements) {
    if (occurredAt < bounds[0]!) continue
    while (bucket < buckets.length && occurredAt >= bounds[bucket + 1]!) bucket++
    const amounts = buckets[bucket]
    if (amounts === undefined) break
    amounts[type] = (amounts[type] ?? 0) + Math.abs(after - before)
  }
  return buckets
}

/** `movements`: the oldest first. Of the same size, the oldest is first. */
function sliceOfMovements(
  movements: MovementEntry[],
  { slice: { offset, limit }, order }: { slice: Slice; order: MovementOrder },
): MovementEntry[] {
  const size = ({ before, after }: MovementEntry) => Math.abs(after - before)
  const ordered = order === 'time' ? movements : movements.toSorted((a, b) => size(b) - size(a))
  return ordered.slice(offset, offset + limit)
}

/** Combines the movements of an account on one day; everything else comes from `ledger`. */
function nettedLedger(ledger: Ledger, zone: string): Ledger {
  const findDay = cachedDays(zone)
  const cache = new Map<string, Promise<MovementEntry[]>>()

  /** A report reads the same window several times. */
  function within(window: Window): Promise<MovementEntry[]> {
    const key = `${window.since.getTime()} ${window.until.getTime()}`
    const movements = cache.get(key) ?? read(window)
    cache.set(key, movements)
    return movements
  }

  async function read(window: Window): Promise<MovementEntry[]> {
    const { sums } = await ledger.moved(window.since, window.until)
    const count = sum(sums, moved => moved.count)
    const all = { slice: { offset: 0, limit: count }, count, order: 'time' } as const
    return netWithinDays(await ledger.movements(window, all), findDay)
  }

  return {
    ...ledger,
    async moved(since, until) {
      return { ...(await ledger.moved(since, until)), sums: sumByType(await within({ since, until })) }
    },
    async movedWithin(bounds) {
      const before = (at: Date) => new Date(at.getTime() - 1)
      return sumByBucket(await within({ since: before(bounds[0]!), until: before(bounds.at(-1)!) }), bounds)
    },
    movements: async (window, wanted) => sliceOfMovements(await within(window), wanted),
    movementsOf: async account => netWithinDays(await ledger.movementsOf(account), findDay),
  }
}

const QUARTER_MS = 900_000

/** Days start on a quarter of an hour. A lookup in the calendar takes 30 µs, and a year has many movements. */
function cachedDays(zone: string): (at: Date) => string {
  const days = new Map<number, string>()
  return at => {
    const quarter = Math.floor(at.getTime() / QUARTER_MS)
    const day = days.get(quarter) ?? dayIn(zone, quarter * QUARTER_MS)
    days.set(quarter, day)
    return day
  }
}

/** An account, derived from its matching items only. */
type Account = { name: string; acquisitionId: number; states: AccountState[]; movements: Movement[] }

/** The part of a segment that stays in memory. The body with its items is ten times as large. */
type SegmentSummary = SegmentFigures & Pick<Segment, 'account' | 'cause' | 'eventId'>

/** Reads all segments of the tenant in batches, so the cost grows with its history. */
async function filteredLedger(db: Db, question: ReportQuestion): Promise<Ledger> {
  const { tenantId, currency, asOf, filter } = question
  const traits = new Map<string, ReportTraits>()
  const match = async (segments: Segment[]) => {
    const unknown = [...new Set(segments.map(segment => segment.account))].filter(account => !traits.has(account))
    const found = await reportTraits(db, tenantId, unknown, filter.country !== undefined)
    for (const [account, known] of found) traits.set(account, known)
    return segments.flatMap(segment => filterSegment(segment, filter, traits.get(segment.account)!) ?? [])
  }
  const matching: SegmentSummary[] = []
  const items = { excluded: [] as ExcludedItem[], foreign: [] as ExcludedItem[] }
  for await (const segments of allSegments(db, tenantId, asOf)) {
    for (const segment of await match(segments)) {
      const { account, cause, eventId } = segment
      matching.push({
        ...computeFigures(segment),
        account,
        ...(cause && { cause }),
        ...(eventId && { eventId }),
      })
      if (segment.to === null || segment.to > asOf.getTime()) collectExcluded(items, segment, currency)
    }
  }
  const accounts = deriveAccounts(matching, question, traits)
  const movements = accounts
    .flatMap(({ name, movements: own }) =>
      own.map(({ at, ...movement }): MovementEntry => ({ account: name, occurredAt: new Date(at), ...movement })),
    )
    .sort((a, b) => a.occurredAt.getTime() - b.occurredAt.getTime() || (a.account < b.account ? -1 : 1))
  const within = ({ since, until }: Window) =>
    movements.filter(({ occurredAt }) => occurredAt > since && occurredAt <= until)
  const bySubscription = Map.groupBy(matching, segment => segment.subscriptionId)
  return {
    figures: async (at, then) => figuresAt(accounts, at.getTime(), then.getTime()),
    moved: async (since, until) => ({
      sums: sumByType(within({ since, until })),
      ...retainedBetween(accounts, since.getTime(), until.getTime()),
    }),
    totalsBefore: async bounds => totalsAt(accounts, currency, bounds),
    movedWithin: async bounds => sumByBucket(movements, bounds),
    cohorts: async (since, base) =>
      sumCohorts(accounts, { since: since.getTime(), base, zone: question.policy.timeZone }),
    accounts: async ({ offset, limit }) => orderByMrr(accounts, currency, asOf.getTime()).slice(offset, offset + limit),
    segments: async names => match(await segmentsOfAccounts(db, tenantId, names, asOf)),
    movements: async (window, wanted) => sliceOfMovements(within(window), wanted),
    movementsOf: async account => movements.filter(entry => entry.account === account),
    matched: {
      includes: (id, at) => bySubscription.get(id)?.some(segment => isValidAt(segment, at.getTime())) ?? false,
      excluded: items.excluded.sort(latestFirst),
      foreign: items.foreign.sort(latestFirst),
    },
  }
}

function collectExcluded(
  items: { excluded: ExcludedItem[]; foreign: ExcludedItem[] },
  segment: Segment,
  currency: string,
): void {
  const { subscriptionId, startedAt } = segment
  const isForeign = segment.currency !== null && segment.currency !== currency
  for (const item of segment.items) {
    const own = { subscriptionId, itemId: item.id }
    if (isForeign) {
      const reason = item.reason === 'test_mode' ? 'test_mode' : 'other_currency'
      items.foreign.push({ ...own, reason, excludedMrr: null, since: new Date(startedAt) })
    } else if (item.reason !== null) {
      const { reason, excludedMrr, since } = item
      items.excluded.push({ ...own, reason, excludedMrr, since: new Date(since ?? segment.from) })
    }
  }
}

function latestFirst(a: ExcludedItem, b: ExcludedItem): number {
  return (
    b.since.getTime() - a.since.getTime() ||
    (a.subscriptionId < b.subscriptionId ? -1 : a.subscriptionId > b.subscriptionId ? 1 : 0)
  )
}

function deriveAccounts(
  segments: SegmentSummary[],
  { currency, asOf }: ReportQuestion,
  traits: Map<string, ReportTraits>,
): Account[] {
  return [...Map.groupBy(segments, segment => segment.account)].map(([name, own]) => ({
    name,
    acquisitionId: traits.get(name)!.acquisitionId,
    states: accountStates(own),
    // segments that end after `asOf` are still open then
    movements: (deriveAccount(own).find(ledger => ledger.currency === currency)?.movements ?? []).filter(
      movement => movement.at <= asOf.getTime(),
    ),
  }))
}

const isValidAt = ({ from, to }: { from: Instant; to: Instant | null }, at: Instant) =>
  from <= at && (to === null || to > at)

function orderByMrr(accounts: Account[], currency: string, at: Instant): string[] {
  return accounts
    .flatMap(({ name, states }) => {
      const state = states.find(known => known.currency === currency && isValidAt(known, at))
      return state ? [{ name, mrr: state.mrr }] : []
    })
    .sort((a, b) => b.mrr - a.mrr || (a.name < b.name ? -1 : 1))
    .map(account => account.name)
}

/** Of accounts with MRR at `since`: by how much it changed, by source, and how many have none at `until`. */
function retainedBetween(accounts: Account[], since: Instant, until: Instant): Omit<Moved, 'sums'> {
  const kept = new Map<number, number>()
  let lostAccounts = 0
  for (const { acquisitionId, movements } of accounts) {
    const mrrAt = (at: Instant) => movements.findLast(movement => movement.at <= at)?.after ?? 0
    const [opening, closing] = [mrrAt(since), mrrAt(until)]
    if (opening === 0) continue
    kept.set(acquisitionId, (kept.get(acquisitionId) ?? 0) + closing - opening)
    if (closing === 0) lostAccounts += 1
  }
  return { kept, lostAccounts }
}

function figuresAt(accounts: Account[], at: Instant, then: Instant): SourceFigures[] {
  const rows = new Map<string, SourceFigures>()
  for (const { acquisitionId, states } of accounts) {
    for (const state of states) {
      const [isNow, wasThen] = [isValidAt(state, at), isValidAt(state, then)]
      if (!isNow && !wasThen) continue
      const key = `${state.currency} ${acquisitionId}`
      const row = rows.get(key) ?? { ...ZERO_FIGURES, currency: state.currency ?? '', acquisitionId }
      rows.set(key, row)
      if (isNow) addState(row, state)
      if (wasThen && state.mrr > 0) {
        row.cohortAccounts += 1
        row.cohortMrr += state.mrr
      }
    }
  }
  return [...rows.values()]
}

const ZERO_FIGURES: SourceFigures = {
  currency: '',
  acquisitionId: 0,
  accounts: 0,
  activeAccounts: 0,
  subscriptions: 0,
  activeSubscriptions: 0,
  mrr: 0,
  committedMrr: 0,
  itemRows: 0,
  items: 0,
  itemsPriced: 0,
  itemsExcluded: 0,
  cohortAccounts: 0,
  cohortMrr: 0,
}

function addState(row: SourceFigures, state: AccountState): void {
  row.accounts += 1
  row.activeAccounts += state.mrr > 0 ? 1 : 0
  row.subscriptions += state.subscriptions
  row.activeSubscriptions += state.activeSubscriptions
  row.mrr += state.mrr
  row.committedMrr += state.committedMrr
  row.itemRows += state.itemRows
  row.items += state.items
  row.itemsPriced += state.pricedItems
  row.itemsExcluded += state.excludedItems
}

function totalsAt(accounts: Account[], currency: string, bounds: Date[]): AccountTotals[] {
  const changes = accounts
    .flatMap(({ states }) => states.filter(state => state.currency === currency))
    .flatMap(state => [
      { at: state.from, sign: 1, state },
      ...(state.to === null ? [] : [{ at: state.to, sign: -1, state }]),
    ])
    .sort((a, b) => a.at - b.at)
  const totals = { mrr: 0, activeAccounts: 0, activeSubscriptions: 0 }
  let next = 0
  return bounds.map(bound => {
    for (; next < changes.length && changes[next]!.at < bound.getTime(); next++) {
      const { sign, state } = changes[next]!
      totals.mrr += sign * state.mrr
      totals.activeAccounts += state.mrr > 0 ? sign : 0
      totals.activeSubscriptions += sign * state.activeSubscriptions
    }
    return { ...totals }
  })
}

function sumCohorts(
  accounts: Account[],
  { since, base, zone }: { since: Instant; base: RetentionBase; zone: string },
): CohortChange[] {
  const month = ({ at }: Movement) => `${dayIn(zone, at).slice(0, 7)}-01`
  const rows = new Map<string, CohortChange>()
  for (const { movements } of accounts) {
    const first = movements[0]
    if (first === undefined || first.at < since) continue
    const cohort = month(first)
    const start = base === 'first_instant' ? first : movements.findLast(moved => month(moved) === cohort)!
    if (start.after === 0) continue
    for (const moved of movements) {
      const own = month(moved)
      const row = rows.get(cohort + own) ?? { ...NO_CHANGE, cohort, month: own }
      rows.set(cohort + own, row)
      const { type, before, after } = moved
      if (type === 'new') {
        row.newAccounts += 1
        row.newMrr += start.after
      }
      row.mrr += after - before
      row.cappedMrr += Math.min(start.after, after) - Math.min(start.after, before)
      row.accounts += Number(after > 0) - Number(before > 0)
    }
  }
  return [...rows.values()]
}

const NO_CHANGE = { newAccounts: 0, newMrr: 0, mrr: 0, cappedMrr: 0, accounts: 0 }
