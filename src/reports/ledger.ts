import {
  type AccountState,
  accountStates,
  type CohortChange,
  type CohortMonth,
  cohortMonths,
  computeFigures,
  deriveAccount,
  type Movement,
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
  accountMrrs,
  accountSlice,
  allSegments,
  type ReportTraits,
  reportTraits,
  segmentsOfAccounts,
  segmentsUntil,
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
  movedWithin,
  type Retained,
  retainedWithin,
  type SourceFigures,
  type Span,
  sourceFigures,
  totalsBefore,
} from '../store/reports/totals.ts'
import { type KeptAccounts, openKept, withKept } from './closed.ts'
import type { ReportQuestion } from './question.ts'

/** What reports read about movements, in the currency and as of the time of the question. */
export type SeriesLedger = {
  /** Figures at `at`, in all currencies, with those at `then` beside them. `then` is not after `at`. */
  figures(at: Date, then: Date): Promise<SourceFigures[]>
  /** Totals right before each of these times, in ascending order. */
  totalsBefore(bounds: Date[]): Promise<AccountTotals[]>
  /** Movements between each of these times (inclusive) and the next (exclusive). */
  movedWithin(bounds: Date[]): Promise<Moved[]>
  /** What became of the accounts that paid right before each of these. */
  retainedWithin(spans: Span[]): Promise<Retained[][]>
  /** In the reporting currency: the MRR right before each of these, by the rates of its last day. */
  openings?(spans: Span[]): Promise<number[]>
  /** Cohorts of accounts that first paid at `since` or later, by month. */
  cohortMonths(since: Date, base: RetentionBase): Promise<CohortMonth[]>
  /** Movements in (since, until]. `count`: how many there are. */
  movements(window: Window, wanted: { slice: Slice; count: number; order: MovementOrder }): Promise<MovementEntry[]>
}

/** What reports read about accounts and their movements. */
export type Ledger = SeriesLedger & {
  /** The largest MRR first. */
  accounts(slice: Slice, count: number): Promise<string[]>
  /** Segments valid at the time of the question, in all currencies. */
  segments(accounts: string[]): Promise<Segment[]>
  movementsOf(account: string): Promise<MovementEntry[]>
  /** What the filter matches; null: there is no filter. */
  matched: MatchedItems | null
  /** Acquisition sources of accounts as of the closing, if they may have changed since. */
  sources?: KeptAccounts['sources']
}

export type MatchedItems = {
  /** Whether an item of the subscription matched at that time. */
  includes(subscriptionId: string, at: Date): boolean
  /** Items that do not count, as the exclusions report lists them: in the currency or without one, and in other currencies. */
  excluded: ExcludedItem[]
  foreign: ExcludedItem[]
}

type Window = { since: Date; until: Date }

/**
 * Without a filter, SQL adds up the stored states, movements and daily sums: the cost does not depend on the number of
 * accounts. For a filter nothing is stored: it selects items, and an item that leaves the plan churns. The accounts are
 * then derived from the matching items with the pipeline's functions, and added up in memory. See decision 0034 for why
 * this is not one implementation.
 */
export async function openLedger(db: Db, question: ReportQuestion): Promise<Ledger> {
  const kept = await openKept(db, question)
  const all = () => withKept(allSegments(db, question.tenantId, question.asOf), kept)
  const ledger = isFiltered(question.filter)
    ? await memoryLedger(db, question, all(), kept)
    : kept
      ? await closedLedger(db, question, kept)
      : storedLedger(db, question)
  if (kept) ledger.sources = kept.sources
  const { netWithinDay, timeZone } = question.policy
  return netWithinDay ? nettedLedger(ledger, timeZone) : ledger
}

/** Right after a time: times are integer milliseconds. */
function after(at: Date): Date {
  return new Date(at.getTime() + 1)
}

/** (since, until], as the other functions express it. */
export function toSpan({ since, until }: Window): Span {
  return { from: after(since), to: after(until) }
}

function storedLedger(db: Db, question: ReportQuestion): Ledger {
  const { tenantId, currency, asOf, policy } = question
  return {
    figures: (at, then) => sourceFigures(db, tenantId, at, then),
    totalsBefore: bounds => totalsBefore(db, question, bounds),
    movedWithin: bounds => movedWithin(db, question, bounds),
    retainedWithin: spans => retainedWithin(db, question, spans),
    async cohortMonths(since, base) {
      const zone = policy.timeZone
      const changes = await cohortChanges(db, tenantId, currency, { since, asOf, zone, base })
      return cohortMonths(changes, asOf.getTime(), zone)
    },
    accounts: (slice, count) => accountSlice(db, question, slice, count),
    segments: accounts => segmentsOfAccounts(db, tenantId, accounts, asOf),
    movements: (window, wanted) => movementSlice(db, tenantId, currency, window, wanted),
    movementsOf: account => movementsOfAccount(db, tenantId, currency, account, asOf),
    matched: null,
  }
}

/** Segments of these accounts that are valid at the time of the question. */
async function segmentsAsClosed(
  db: Db,
  { tenantId, asOf }: ReportQuestion,
  kept: KeptAccounts | null,
  accounts: string[],
): Promise<Segment[]> {
  const isKept = (account: string) => kept?.sources.has(account) ?? false
  const current = await segmentsOfAccounts(
    db,
    tenantId,
    accounts.filter(account => !isKept(account)),
    asOf,
  )
  if (kept === null) return current
  const closed = await kept.segmentsOf(accounts.filter(isKept))
  return [...current, ...closed.filter(segment => isValidAt(segment, asOf.getTime()))]
}

/**
 * The stored ledger, minus the accounts that changed since the closing, plus the same accounts as they were. They are few, unless
 * a policy changed. Lists are sorted in memory.
 */
async function closedLedger(db: Db, question: ReportQuestion, kept: KeptAccounts): Promise<Ledger> {
  const { tenantId, asOf } = question
  const stored = storedLedger(db, question)
  const now = await memoryLedger(db, question, segmentsUntil(db, tenantId, [...kept.sources.keys()], asOf), null)
  const then = await memoryLedger(db, question, kept.segments(), kept)
  const parts = [
    { ledger: stored, sign: 1 },
    { ledger: now, sign: -1 },
    { ledger: then, sign: 1 },
  ]
  /** Adds rows with the same key up, field by field. */
  async function addUp<Row extends object>(
    read: (ledger: Ledger) => Promise<Row[]>,
    key: (row: Row, i: number) => string,
  ) {
    const sums = new Map<string, Record<string, unknown>>()
    for (const { ledger, sign } of parts)
      for (const [i, row] of (await read(ledger)).entries()) {
        const sum = sums.get(key(row, i)) ?? {}
        sums.set(key(row, i), sum)
        for (const [name, value] of Object.entries(row))
          sum[name] = typeof value === 'number' && !KEYS.has(name) ? ((sum[name] as number) ?? 0) + sign * value : value
      }
    return [...sums.values()] as Row[]
  }
  const byPlace = (_: unknown, i: number) => String(i)
  async function allMovements(window: Window): Promise<MovementEntry[]> {
    const { from, to } = toSpan(window)
    const read = async (ledger: Ledger) => {
      const [{ count }] = (await ledger.movedWithin([from, to])) as [Moved]
      return ledger.movements(window, { slice: { offset: 0, limit: count }, count, order: 'time' })
    }
    const others = (await read(stored)).filter(({ account }) => !kept.sources.has(account))
    return [...others, ...(await read(then))].sort(
      (a, b) => a.occurredAt.getTime() - b.occurredAt.getTime() || (a.account < b.account ? -1 : 1),
    )
  }
  return {
    figures: (at, before) =>
      addUp(
        ledger => ledger.figures(at, before),
        ({ currency, acquisitionId }) => `${currency} ${acquisitionId}`,
      ),
    totalsBefore: bounds => addUp(ledger => ledger.totalsBefore(bounds), byPlace),
    movedWithin: bounds => addUp(ledger => ledger.movedWithin(bounds), byPlace),
    async retainedWithin(spans) {
      const all: Retained[][] = []
      for (const span of spans) {
        const read = async (ledger: Ledger) => (await ledger.retainedWithin([span]))[0]!
        all.push(await addUp(read, ({ acquisitionId }) => String(acquisitionId)))
      }
      return all
    },
    async cohortMonths(since, base) {
      const rows = await addUp(
        ledger => ledger.cohortMonths(since, base),
        ({ cohort, month }) => `${cohort} ${month}`,
      )
      // without cohorts of accounts that were not known then
      return rows
        .filter(({ startingAccounts }) => startingAccounts > 0)
        .sort((a, b) => (a.cohort === b.cohort ? a.month - b.month : a.cohort < b.cohort ? -1 : 1))
    },
    async accounts(slice) {
      const current = [...(await accountMrrs(db, question))].filter(([account]) => !kept.sources.has(account))
      return orderByMrr([...current, ...then.mrrs()], slice)
    },
    segments: accounts => segmentsAsClosed(db, question, kept, accounts),
    movements: async (window, wanted) => sliceOfMovements(await allMovements(window), wanted),
    movementsOf: account => (kept.sources.has(account) ? then : stored).movementsOf(account),
    matched: null,
  }
}

/** Numbers that are no sums. */
const KEYS = new Set(['acquisitionId', 'month', 'at'])

// Movements in memory, of a filter or netted.

/** The number of these times that are not after `at`. */
function countBounds(bounds: Date[], at: Instant): number {
  let [low, high] = [0, bounds.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (bounds[middle]!.getTime() <= at) low = middle + 1
    else high = middle
  }
  return low
}

function sumMovements(movements: MovementEntry[], bounds: Date[]): Moved[] {
  const sums: Moved[] = bounds.slice(1).map(() => ({ count: 0, newAccounts: 0 }))
  for (const { occurredAt, type, before, after } of movements) {
    const moved = sums[countBounds(bounds, occurredAt.getTime()) - 1]
    if (moved === undefined) continue
    moved[type] = (moved[type] ?? 0) + Math.abs(after - before)
    moved.count += 1
    if (type === 'new') moved.newAccounts += 1
  }
  return sums
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
    const { from, to } = toSpan(window)
    const [moved] = await ledger.movedWithin([from, to])
    const { count } = moved!
    const all = { slice: { offset: 0, limit: count }, count, order: 'time' } as const
    return netWithinDays(await ledger.movements(window, all), findDay)
  }

  return {
    ...ledger,
    async movedWithin(bounds) {
      const before = (at: Date) => new Date(at.getTime() - 1)
      return sumMovements(await within({ since: before(bounds[0]!), until: before(bounds.at(-1)!) }), bounds)
    },
    movements: async (window, wanted) => sliceOfMovements(await within(window), wanted),
    movementsOf: async account => netWithinDays(await ledger.movementsOf(account), findDay),
  }
}

const QUARTER_MS = 900_000

/** Days start on a quarter of an hour. A lookup in the calendar takes 30 µs, and a year has many movements. */
export function cachedDays(zone: string): (at: Date) => string {
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

type MemoryLedger = Ledger & {
  /** All accounts with a subscription in the currency, and their MRR. */
  mrrs(): [account: string, mrr: number][]
}

/** `source`: the segments to derive the accounts from. The cost grows with their number. */
async function memoryLedger(
  db: Db,
  question: ReportQuestion,
  source: AsyncIterable<Segment[]>,
  kept: KeptAccounts | null,
): Promise<MemoryLedger> {
  const { tenantId, currency, asOf, filter, policy } = question
  const traits = new Map<string, ReportTraits>()
  const match = async (segments: Segment[]) => {
    const withCountry = filter.country !== undefined
    const accounts = new Set(segments.map(segment => segment.account))
    if (kept && !withCountry)
      for (const account of accounts) {
        const source = kept.sources.get(account)
        if (source) traits.set(account, { ...source, country: null })
      }
    const unknown = [...accounts].filter(account => !traits.has(account))
    const found = await reportTraits(db, tenantId, unknown, withCountry)
    for (const [account, known] of found) traits.set(account, { ...known, ...kept?.sources.get(account) })
    return segments.flatMap(segment => filterSegment(segment, filter, traits.get(segment.account)!, policy) ?? [])
  }
  const matching: SegmentSummary[] = []
  const items = { excluded: [] as ExcludedItem[], foreign: [] as ExcludedItem[] }
  for await (const segments of source) {
    for (const segment of await match(segments)) {
      const { account, cause, eventId } = segment
      matching.push({ ...computeFigures(segment), account, ...(cause && { cause }), ...(eventId && { eventId }) })
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
    figures: async (at, then) => compareFigures(accounts, at, then),
    async totalsBefore(bounds) {
      const own = accounts.map(account => ({ ...account, acquisitionId: 0 }))
      return figuresBefore(own, bounds).map(figures => figures.get(`${currency} 0`) ?? NO_FIGURES)
    },
    movedWithin: async bounds => sumMovements(movements, bounds),
    retainedWithin: async spans => spans.map(span => sumRetained(accounts, span)),
    async cohortMonths(since, base) {
      const zone = question.policy.timeZone
      return cohortMonths(sumCohorts(accounts, { since: since.getTime(), base, zone }), asOf.getTime(), zone)
    },
    accounts: async slice => orderByMrr(mrrsAt(accounts, currency, asOf.getTime()), slice),
    mrrs: () => mrrsAt(accounts, currency, asOf.getTime()),
    segments: async names => match(await segmentsAsClosed(db, question, kept, names)),
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

function mrrsAt(accounts: Account[], currency: string, at: Instant): [account: string, mrr: number][] {
  return accounts.flatMap(({ name, states }) => {
    const state = states.find(known => known.currency === currency && isValidAt(known, at))
    return state ? [[name, state.mrr] as [string, number]] : []
  })
}

/** The largest first. */
function orderByMrr(mrrs: [account: string, mrr: number][], { offset, limit }: Slice): string[] {
  return mrrs
    .sort(([a, most], [b, least]) => least - most || (a < b ? -1 : 1))
    .slice(offset, offset + limit)
    .map(([account]) => account)
}

function sumRetained(accounts: Account[], { from, to }: Span): Retained[] {
  const bySource = new Map<number, Retained>()
  for (const { acquisitionId, movements } of accounts) {
    const mrrBefore = (at: Date) => movements.findLast(movement => movement.at < at.getTime())?.after ?? 0
    const [opening, closing] = [mrrBefore(from), mrrBefore(to)]
    if (opening === 0) continue
    const sum = bySource.get(acquisitionId) ?? { acquisitionId, change: 0, lostMrr: 0, lostAccounts: 0 }
    bySource.set(acquisitionId, sum)
    sum.change += closing - opening
    sum.lostMrr += Math.max(opening - closing, 0)
    if (closing === 0) sum.lostAccounts += 1
  }
  return [...bySource.values()]
}

const NO_FIGURES = {
  ...{ accounts: 0, activeAccounts: 0, subscriptions: 0, activeSubscriptions: 0, mrr: 0, committedMrr: 0 },
  ...{ itemRows: 0, items: 0, pricedItems: 0, excludedItems: 0 },
}
type Figures = typeof NO_FIGURES & Pick<SourceFigures, 'currency' | 'acquisitionId'>

/** Right before each of these times: the figures by currency and source. */
function figuresBefore(accounts: Account[], bounds: Date[]): Map<string, Figures>[] {
  const changes = bounds.map(() => [] as { sign: number; state: AccountState; acquisitionId: number }[])
  for (const { acquisitionId, states } of accounts) {
    for (const state of states) {
      changes[countBounds(bounds, state.from)]?.push({ sign: 1, state, acquisitionId })
      if (state.to !== null) changes[countBounds(bounds, state.to)]?.push({ sign: -1, state, acquisitionId })
    }
  }
  let sums = new Map<string, Figures>()
  return changes.map(own => {
    sums = new Map([...sums].map(([key, figures]) => [key, { ...figures }]))
    for (const { sign, state, acquisitionId } of own) {
      const key = `${state.currency ?? ''} ${acquisitionId}`
      const sum = sums.get(key) ?? { ...NO_FIGURES, currency: state.currency ?? '', acquisitionId }
      sums.set(key, sum)
      const figures = { ...state, accounts: 1, activeAccounts: state.mrr > 0 ? 1 : 0 }
      for (const name of Object.keys(NO_FIGURES) as (keyof typeof NO_FIGURES)[]) sum[name] += sign * figures[name]
    }
    return sums
  })
}

function compareFigures(accounts: Account[], at: Date, then: Date): SourceFigures[] {
  const [was, is] = figuresBefore(accounts, [after(then), after(at)])
  return [...is!].map(([key, figures]) => ({
    ...figures,
    cohortAccounts: was!.get(key)?.activeAccounts ?? 0,
    cohortMrr: was!.get(key)?.mrr ?? 0,
  }))
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
