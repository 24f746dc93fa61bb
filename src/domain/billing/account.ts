/** An account: its figures over time, its summary, its movements and its cohort. */

import { toMajor } from '../money.ts'
import { type Day, toDay, withinYears } from '../time.ts'
import { startOfDayIn, UTC } from '../time-zone.ts'
import type { Cause } from './cause.ts'
import { stripNamespaces } from './namespace.ts'
import { nextCharge } from './price.ts'
import { mergeEqual, ownAccount, type Segment } from './timeline.ts'
import type { Acquisition, Instant, SubscriptionStatus } from './types.ts'

type Figures = {
  mrr: number
  committedMrr: number
  /** Rows of items in reports. A subscription without items has one. */
  itemRows: number
  items: number
  /** Items with a known monthly price, included or not. */
  pricedItems: number
  excludedItems: number
}

/** The figures of a segment that its account adds up. */
export type SegmentFigures = Figures & {
  subscriptionId: string
  from: Instant
  to: Instant | null
  currency: string | null
}

export type AccountState = Figures & {
  currency: string | null
  from: Instant
  to: Instant | null
  subscriptions: number
  activeSubscriptions: number
}

export function computeFigures(segment: Segment): SegmentFigures {
  const { subscriptionId, from, to, currency, mrr, committedMrr, items } = segment
  return {
    subscriptionId,
    from,
    to,
    currency,
    mrr,
    committedMrr,
    itemRows: items.length,
    items: items.filter(item => item.id !== null).length,
    pricedItems: items.filter(item => item.included || item.excludedMrr !== null).length,
    excludedItems: items.filter(item => item.reason !== null).length,
  }
}

/** `segments`: all segments of one account, in any order and currency. */
export function accountStates(segments: SegmentFigures[]): AccountState[] {
  return [...Map.groupBy(segments, segment => segment.currency)].flatMap(([currency, own]) =>
    currencyStates(currency, own),
  )
}

/**
 * Derives the states from `at` on. `segments`: those that end at `at` or later. `before`: the states right before `at`;
 * the result includes them with their new ends.
 */
export function continueStates(segments: SegmentFigures[], at: Instant, before: AccountState[]): AccountState[] {
  const clipped = segments
    .filter(({ to }) => to === null || to > at)
    .map(segment => (segment.from < at ? { ...segment, from: at } : segment))
  const states = Map.groupBy(accountStates(clipped), ({ currency }) => currency)
  for (const last of before) {
    const own = states.get(last.currency) ?? []
    const cut = { ...last, to: at }
    states.set(last.currency, own[0]?.from === at ? mergeEqual([cut, ...own]) : [cut, ...own])
  }
  return [...states.values()].flat()
}

function currencyStates(currency: string | null, segments: SegmentFigures[]): AccountState[] {
  const changes = new Map<Instant, { segment: SegmentFigures; sign: 1 | -1 }[]>()
  const note = (at: Instant, segment: SegmentFigures, sign: 1 | -1) =>
    changes.set(at, [...(changes.get(at) ?? []), { segment, sign }])
  for (const segment of segments) {
    note(segment.from, segment, 1)
    if (segment.to !== null) note(segment.to, segment, -1)
  }
  const instants = [...changes.keys()].sort((a, b) => a - b)
  const sum: AccountState = { ...ZERO_FIGURES, currency, from: 0, to: null }
  const states = instants.map((from, i): AccountState => {
    for (const { segment, sign } of changes.get(from)!) add(sum, segment, sign)
    return { ...sum, from, to: instants[i + 1] ?? null }
  })
  return mergeEqual(states).filter(state => state.subscriptions > 0)
}

const ZERO_FIGURES = {
  mrr: 0,
  committedMrr: 0,
  subscriptions: 0,
  activeSubscriptions: 0,
  itemRows: 0,
  items: 0,
  pricedItems: 0,
  excludedItems: 0,
}

function add(sum: AccountState, segment: SegmentFigures, sign: 1 | -1): void {
  sum.mrr += sign * segment.mrr
  sum.committedMrr += sign * segment.committedMrr
  sum.subscriptions += sign
  sum.activeSubscriptions += segment.mrr > 0 ? sign : 0
  sum.itemRows += sign * segment.itemRows
  sum.items += sign * segment.items
  sum.pricedItems += sign * segment.pricedItems
  sum.excludedItems += sign * segment.excludedItems
}

// The summary of an account in one currency.

type AccountSummary = {
  account: string
  customer: string | null
  customerName: string | null
  customerEmail: string | null
  mrr: number
  committedMrr: number
  subscriptions: number
  activeSubscriptions: number
  status: SubscriptionStatus
  planNames: string[]
  /** From its oldest subscription that has one; null: see the events of its profile. */
  acquisition: Acquisition | null
  customerSince: Instant
  nextBillingAt: Instant | null
}

/** An account has the best status of its subscriptions. */
const STATUS_PRIORITY: SubscriptionStatus[] = [
  'active',
  'past_due',
  'trialing',
  'paused',
  'unpaid',
  'incomplete',
  'incomplete_expired',
  'unknown',
  'canceled',
]

/** `segments`: the one valid at `asOf` of each subscription; at least one. */
export function summarizeAccount(segments: Segment[], asOf: Instant): AccountSummary {
  const oldestFirst = [...segments].sort(
    (a, b) => a.startedAt - b.startedAt || (a.subscriptionId < b.subscriptionId ? -1 : 1),
  )
  const newest = oldestFirst.at(-1)!
  // the names of the account come before those of accounts that are merged into it
  const isOwn = (segment: Segment) => Number(ownAccount(segment) === segment.account)
  const ownLast = [...oldestFirst].sort((a, b) => isOwn(a) - isOwn(b))
  const running = oldestFirst.filter(segment => segment.status !== 'canceled')
  const statuses = new Set(segments.map(segment => segment.status))
  return {
    account: newest.account,
    customer: newest.customer,
    customerName: ownLast.findLast(segment => segment.customerName)?.customerName ?? null,
    customerEmail: ownLast.findLast(segment => segment.customerEmail)?.customerEmail ?? null,
    mrr: segments.reduce((sum, segment) => sum + segment.mrr, 0),
    committedMrr: segments.reduce((sum, segment) => sum + segment.committedMrr, 0),
    subscriptions: segments.length,
    activeSubscriptions: segments.filter(segment => segment.mrr > 0).length,
    status: STATUS_PRIORITY.find(status => statuses.has(status))!,
    planNames: planNames(running.length > 0 ? running : oldestFirst),
    acquisition: oldestFirst.find(segment => segment.acquisition)?.acquisition ?? null,
    customerSince: oldestFirst[0]!.startedAt,
    nextBillingAt: earliest(segments.map(segment => nextCharge(segment.cycles, asOf)?.billsAt)),
  }
}

function planNames(segments: Segment[]): string[] {
  const names = segments.flatMap(segment => segment.items.map(planName)).filter(name => name !== null)
  return [...new Set(names)]
}

export function planName(item: Segment['items'][number]): string | null {
  return item.name ?? item.priceId ?? item.productId
}

function earliest(instants: (Instant | undefined)[]): Instant | null {
  const known = instants.filter(at => at !== undefined)
  return known.length > 0 ? Math.min(...known) : null
}

// Changes of an account's MRR: one movement per account, currency and instant.

export const MOVEMENT_TYPES = ['new', 'expansion', 'contraction', 'churn', 'reactivation'] as const
export type MovementType = (typeof MOVEMENT_TYPES)[number]

export type Movement = {
  at: Instant
  type: MovementType
  before: number
  after: number
  /** The subscriptions behind it, each with its MRR before and after. */
  changes: MovementChange[]
}

/** `cause` and `eventId` are omitted if unknown. */
type MovementChange = { subscriptionId: string; before: number; after: number; cause?: Cause; eventId?: string }

type AccountLedger = { currency: string; movements: Movement[] }

type Priced = Pick<Segment, 'subscriptionId' | 'from' | 'to' | 'currency' | 'mrr'> & {
  cause?: Cause | null
  eventId?: string | null
}

type Value = Pick<Priced, 'mrr' | 'cause' | 'eventId'>

/** The start of the derivation, and the currencies with earlier movements. */
type LedgerStart = { at: Instant; movedIn: Set<string> }

/**
 * `segments`: all segments of one account, in any order and currency; with `start`, those that end at `start.at` or later.
 */
export function deriveAccount(segments: Priced[], start: LedgerStart | null = null): AccountLedger[] {
  const currencies = [...new Set(segments.map(segment => segment.currency))].filter(code => code !== null)
  return currencies
    .sort()
    .map(currency =>
      currencyLedger(
        currency,
        segments.filter(segment => segment.currency === currency),
        start,
      ),
    )
    .filter(ledger => ledger.movements.length > 0)
}

function currencyLedger(currency: string, segments: Priced[], start: LedgerStart | null): AccountLedger {
  const current = new Map<string, number>()
  const byInstant = new Map<Instant, Map<string, Value>>()
  const set = (at: Instant, subscriptionId: string, value: Value) => {
    const values = byInstant.get(at) ?? new Map<string, Value>()
    byInstant.set(at, values.set(subscriptionId, value))
  }
  // in order of time, the start of the next segment overwrites the end of the previous one
  for (const segment of [...segments].sort((a, b) => a.from - b.from)) {
    if (start && segment.from < start.at) current.set(segment.subscriptionId, segment.mrr)
    else set(segment.from, segment.subscriptionId, segment)
    if (segment.to !== null) set(segment.to, segment.subscriptionId, { mrr: 0 })
  }
  const movements: Movement[] = []
  let isFirst = !start?.movedIn.has(currency)
  let total = [...current.values()].reduce((sum, mrr) => sum + mrr, 0)
  for (const at of [...byInstant.keys()].sort((a, b) => a - b)) {
    const changes = changesAt(byInstant.get(at)!, current)
    const after = changes.reduce((sum, change) => sum + change.after - change.before, total)
    for (const change of changes) current.set(change.subscriptionId, change.after)
    if (after === total) continue
    movements.push({
      at,
      type: movementType(total, after, isFirst),
      before: total,
      after,
      changes: nameAdditional(changes, total),
    })
    total = after
    isFirst = false
  }
  return { currency, movements }
}

/** A new subscription of an account that already has MRR is an additional one. */
function nameAdditional(changes: MovementChange[], before: number): MovementChange[] {
  if (before === 0) return changes
  return changes.map(change =>
    change.cause === 'new_subscription' ? { ...change, cause: 'additional_subscription' } : change,
  )
}

function changesAt(values: Map<string, Value>, current: Map<string, number>): MovementChange[] {
  return [...values]
    .map(([subscriptionId, { mrr, cause, eventId }]) => ({
      subscriptionId,
      before: current.get(subscriptionId) ?? 0,
      after: mrr,
      ...(cause && { cause }),
      ...(eventId && { eventId }),
    }))
    .filter(change => change.before !== change.after)
    .sort((a, b) => (a.subscriptionId < b.subscriptionId ? -1 : 1))
}

/** The largest change. A movement of several subscriptions has its cause. */
export function mainChange(changes: MovementChange[]): MovementChange | undefined {
  const size = ({ before, after }: MovementChange) => Math.abs(after - before)
  return changes.reduce<MovementChange | undefined>(
    (most, change) => (most && size(most) >= size(change) ? most : change),
    undefined,
  )
}

/** The first rise of an account is new; every later rise from 0 is a reactivation. */
function movementType(before: number, after: number, isFirst: boolean): MovementType {
  if (before === 0) return isFirst ? 'new' : 'reactivation'
  if (after === 0) return 'churn'
  return after > before ? 'expansion' : 'contraction'
}

type Moved = {
  account: string
  customerName: string | null
  currency: string
  at: Date
  type: string
  before: number
  after: number
  changes: MovementChange[]
}

/** A movement in exports and in messages to destinations. */
export function formatMovement({ account, customerName, currency, at, type, before, after, changes }: Moved) {
  const main = mainChange(changes)
  return {
    occurred_at: at.toISOString(),
    currency,
    customer: stripNamespaces(account),
    customer_name: customerName,
    movement_type: type,
    mrr_before: toMajor(before, currency),
    mrr_after: toMajor(after, currency),
    mrr_delta: toMajor(after - before, currency),
    subscription_ids: changes.map(({ subscriptionId }) => stripNamespaces(subscriptionId)),
    cause: main?.cause ?? 'other',
    event_id: main?.eventId ?? null,
  }
}

// Netting: the policy can combine the movements of an account on one day.

type NettableMovement = Pick<Movement, 'type' | 'before' | 'after' | 'changes'> & { account: string; occurredAt: Date }

/** `movements`: the oldest first. The movements of a day become one at the time of the last, or none if they cancel out. */
export function netWithinDays<Entry extends NettableMovement>(
  movements: Entry[],
  toDay: (at: Date) => string,
): Entry[] {
  const days = Map.groupBy(movements, ({ account, occurredAt }) => `${toDay(occurredAt)} ${account}`)
  return [...days.values()]
    .flatMap(day => netDay(day) ?? [])
    .sort((a, b) => a.occurredAt.getTime() - b.occurredAt.getTime() || (a.account < b.account ? -1 : 1))
}

function netDay<Entry extends NettableMovement>(day: Entry[]): Entry | null {
  if (day.length === 1) return day[0]!
  const { before } = day[0]!
  const last = day.at(-1)!
  const { after } = last
  if (before === after) return null
  const isFirst = day.some(({ type }) => type === 'new')
  return { ...last, before, type: movementType(before, after, isFirst), changes: netChanges(day) }
}

/** Of each subscription the first MRR before and the last MRR after, with the last cause. */
function netChanges(day: NettableMovement[]): MovementChange[] {
  const bySubscription = Map.groupBy(
    day.flatMap(({ changes }) => changes),
    ({ subscriptionId }) => subscriptionId,
  )
  return [...bySubscription.values()]
    .map(changes => ({ ...changes.at(-1)!, before: changes[0]!.before }))
    .filter(({ before, after }) => before !== after)
}

// Cohorts: accounts that first paid in the same month.

/** The change of a cohort in one month. Months are given by their first day, 'YYYY-MM-DD'. */
export type CohortChange = {
  cohort: string
  month: string
  newAccounts: number
  newMrr: number
  mrr: number
  /** The change of MRR if no account counts for more than its starting MRR. */
  cappedMrr: number
  accounts: number
}

export type CohortMonth = {
  /** 'YYYY-MM' */
  cohort: string
  /** 0: the month in which its accounts first paid. */
  month: number
  at: Instant
  startingAccounts: number
  startingMrr: number
  accounts: number
  mrr: number
  cappedMrr: number
}

/** One row per cohort and month in `zone`, up to the month of `asOf`; the oldest cohort first. */
export function cohortMonths(changes: CohortChange[], asOf: Instant, zone = UTC): CohortMonth[] {
  const cohorts = Map.groupBy(changes, change => change.cohort)
  return [...cohorts]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([cohort, own]) => cohortRows(cohort, own, asOf, zone))
}

function cohortRows(cohort: string, changes: CohortChange[], asOf: Instant, zone: string): CohortMonth[] {
  const starting = changes.reduce(
    (sum, change) => ({ accounts: sum.accounts + change.newAccounts, mrr: sum.mrr + change.newMrr }),
    { accounts: 0, mrr: 0 },
  )
  const byMonth = new Map(changes.map(change => [change.month, change]))
  const rows: CohortMonth[] = []
  const sum = { accounts: 0, mrr: 0, cappedMrr: 0 }
  let previous = ''
  for (let month = 0; ; month++) {
    const first = addMonths(cohort, month)
    // dates end at the year 9999, where the next month is the same one
    if (startOfDayIn(zone, first).getTime() > asOf || first === previous) return rows
    previous = first
    const change = byMonth.get(first)
    sum.accounts += change?.accounts ?? 0
    sum.mrr += change?.mrr ?? 0
    sum.cappedMrr += change?.cappedMrr ?? 0
    rows.push({
      cohort: cohort.slice(0, 7),
      month,
      at: Math.min(startOfDayIn(zone, addMonths(cohort, month + 1)).getTime(), asOf),
      startingAccounts: starting.accounts,
      startingMrr: starting.mrr,
      ...sum,
    })
  }
}

/** The first day of the month that is `months` later (or earlier, if negative). */
export function addMonths(first: Day, months: number): Day {
  const date = new Date(`${first}T00:00:00Z`)
  date.setUTCMonth(date.getUTCMonth() + months, 1)
  return `${toDay(withinYears(date.getTime())).slice(0, 7)}-01`
}
