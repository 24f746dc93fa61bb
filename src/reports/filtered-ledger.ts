import {
  type AccountState,
  accountStates,
  computeFigures,
  type SegmentFigures,
} from '../domain/billing/account.ts'
import { filterSegment } from '../domain/billing/dimensions.ts'
import {
  type CohortChange,
  deriveAccount,
  type Movement,
  type MovementType,
} from '../domain/billing/movements.ts'
import type { Segment } from '../domain/billing/timeline.ts'
import type { Instant } from '../domain/billing/types.ts'
import { dayIn } from '../domain/time-zone.ts'
import type { Db } from '../postgres/database.ts'
import { segmentsOfAccounts } from '../store/reports/accounts.ts'
import type { ExcludedItem } from '../store/reports/exclusions.ts'
import type { MovementEntry, RetentionBase } from '../store/reports/movements.ts'
import { allSegments } from '../store/reports/segments.ts'
import type { Moved, SourceFigures } from '../store/reports/totals.ts'
import { type ReportTraits, reportTraits } from '../store/reports/traits.ts'
import type { Ledger } from './ledger.ts'
import { inOrder } from './movement-order.ts'
import { type ReportQuestion, sum } from './question.ts'

/** One account of what is left: what it comes to, from when to when, and how its MRR moved. */
type Account = { name: string; acquisitionId: number; states: AccountState[]; movements: Movement[] }

/** Kept of a segment: the body with its items is ten times as large. */
type Kept = SegmentFigures & Pick<Segment, 'account' | 'cause' | 'eventId'>

/**
 * The ledger of what a filter leaves, as if there were nothing else: an item that leaves the plan churns here. All
 * segments are read for it, in portions: the cost grows with the history of the tenant, unlike that of the kept ledger.
 */
export async function filteredLedger(db: Db, question: ReportQuestion): Promise<Ledger> {
  const { tenantId, currency, asOf, filter } = question
  const traits = new Map<string, ReportTraits>()
  const learn = async (accounts: string[]) => {
    const unknown = [...new Set(accounts)].filter(account => !traits.has(account))
    const learnt = await reportTraits(db, tenantId, unknown, filter.country !== undefined)
    for (const [account, known] of learnt) traits.set(account, known)
  }
  const left = (segments: Segment[]) =>
    segments.flatMap(segment => filterSegment(segment, filter, traits.get(segment.account)!) ?? [])
  const kept: Kept[] = []
  const items = { excluded: [] as ExcludedItem[], foreign: [] as ExcludedItem[] }
  for await (const segments of allSegments(db, tenantId, asOf)) {
    await learn(segments.map(segment => segment.account))
    for (const segment of left(segments)) {
      kept.push(keptOf(segment))
      if (segment.to === null || segment.to > asOf.getTime()) noteExcluded(items, segment, currency)
    }
  }
  const accounts = accountsOf(kept, question, traits)
  const entries = accounts.flatMap(entriesOf).sort(byTime)
  const spans = Map.groupBy(kept, segment => segment.subscriptionId)
  return {
    ...figuresOfAccounts(accounts),
    ...historyOf(accounts, entries, currency),
    cohorts: async (since, base) =>
      cohortsOf(accounts, { since: since.getTime(), base, zone: question.policy.timeZone }),
    accounts: async ({ offset, limit }) =>
      byMrr(accounts, currency, asOf.getTime()).slice(offset, offset + limit),
    async segments(names) {
      const segments = await segmentsOfAccounts(db, tenantId, names, asOf)
      await learn(segments.map(segment => segment.account))
      return left(segments)
    },
    movements: async ({ since, until }, { slice: { offset, limit }, order }) =>
      inOrder(
        entries.filter(entry => entry.occurredAt > since && entry.occurredAt <= until),
        order,
      ).slice(offset, offset + limit),
    movementsOf: async account => entries.filter(entry => entry.account === account),
    narrowed: {
      holds: (id, at) => spans.get(id)?.some(span => holdsAt(span, at.getTime())) ?? false,
      excluded: items.excluded.sort(latestFirst),
      foreign: items.foreign.sort(latestFirst),
    },
  }
}

function keptOf(segment: Segment): Kept {
  const { account, cause, eventId } = segment
  return { ...computeFigures(segment), account, ...(cause && { cause }), ...(eventId && { eventId }) }
}

function noteExcluded(
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

function accountsOf(
  kept: Kept[],
  { currency, asOf }: ReportQuestion,
  traits: Map<string, ReportTraits>,
): Account[] {
  return [...Map.groupBy(kept, segment => segment.account)].map(([name, segments]) => ({
    name,
    acquisitionId: traits.get(name)!.acquisitionId,
    states: accountStates(segments),
    // what ends later has not ended yet
    movements: (deriveAccount(segments).find(ledger => ledger.currency === currency)?.movements ?? []).filter(
      movement => movement.at <= asOf.getTime(),
    ),
  }))
}

function entriesOf({ name, movements }: Account): MovementEntry[] {
  return movements.map(({ at, ...movement }) => ({ account: name, occurredAt: new Date(at), ...movement }))
}

function byTime(a: MovementEntry, b: MovementEntry): number {
  return a.occurredAt.getTime() - b.occurredAt.getTime() || (a.account < b.account ? -1 : 1)
}

const holdsAt = ({ from, to }: { from: Instant; to: Instant | null }, at: Instant) =>
  from <= at && (to === null || to > at)

function byMrr(accounts: Account[], currency: string, at: Instant): string[] {
  return accounts
    .flatMap(({ name, states }) => {
      const state = states.find(known => known.currency === currency && holdsAt(known, at))
      return state ? [{ name, mrr: state.mrr }] : []
    })
    .sort((a, b) => b.mrr - a.mrr || (a.name < b.name ? -1 : 1))
    .map(account => account.name)
}

function figuresOfAccounts(accounts: Account[]): Pick<Ledger, 'figures' | 'moved'> {
  return {
    figures: async (at, then) => sourceFiguresOf(accounts, at.getTime(), then.getTime()),
    async moved(since, until): Promise<Moved> {
      const changes = accounts.map(({ acquisitionId, movements }) => ({
        acquisitionId,
        opening: mrrAt(movements, since.getTime()),
        closing: mrrAt(movements, until.getTime()),
        within: movements.filter(({ at }) => at > since.getTime() && at <= until.getTime()),
      }))
      const kept = new Map<number, number>()
      for (const { acquisitionId, opening, closing } of changes) {
        if (opening > 0) kept.set(acquisitionId, (kept.get(acquisitionId) ?? 0) + closing - opening)
      }
      const byType = Map.groupBy(
        changes.flatMap(change => change.within),
        movement => movement.type,
      )
      const sums = [...byType].map(([type, own]) => ({
        type,
        amount: sum(own, ({ before, after }) => Math.abs(after - before)),
        count: own.length,
      }))
      const lost = changes.filter(({ opening, closing }) => opening > 0 && closing === 0)
      return { sums, kept, lostAccounts: lost.length }
    },
  }
}

function mrrAt(movements: Movement[], at: Instant): number {
  return movements.findLast(movement => movement.at <= at)?.after ?? 0
}

function sourceFiguresOf(accounts: Account[], at: Instant, then: Instant): SourceFigures[] {
  const rows = new Map<string, SourceFigures>()
  for (const { acquisitionId, states } of accounts) {
    for (const state of states) {
      const [isNow, wasThen] = [holdsAt(state, at), holdsAt(state, then)]
      if (!isNow && !wasThen) continue
      const key = `${state.currency} ${acquisitionId}`
      const row = rows.get(key) ?? { ...NOTHING, currency: state.currency ?? '', acquisitionId }
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

const NOTHING: SourceFigures = {
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

function historyOf(
  accounts: Account[],
  entries: MovementEntry[],
  currency: string,
): Pick<Ledger, 'standings' | 'movedWithin'> {
  const changes = accounts
    .flatMap(({ states }) => states.filter(state => state.currency === currency))
    .flatMap(state => [
      { at: state.from, sign: 1, state },
      ...(state.to === null ? [] : [{ at: state.to, sign: -1, state }]),
    ])
    .sort((a, b) => a.at - b.at)
  return {
    async standings(bounds) {
      const standing = { mrr: 0, activeAccounts: 0, activeSubscriptions: 0 }
      let next = 0
      return bounds.map(bound => {
        for (; next < changes.length && changes[next]!.at < bound.getTime(); next++) {
          const { sign, state } = changes[next]!
          standing.mrr += sign * state.mrr
          standing.activeAccounts += state.mrr > 0 ? sign : 0
          standing.activeSubscriptions += sign * state.activeSubscriptions
        }
        return { ...standing }
      })
    },
    async movedWithin(bounds) {
      const moved: Partial<Record<MovementType, number>>[] = bounds.slice(1).map(() => ({}))
      let bucket = 0
      for (const { occurredAt, type, before, after } of entries) {
        if (occurredAt < bounds[0]!) continue
        while (bucket < moved.length && occurredAt >= bounds[bucket + 1]!) bucket++
        const own = moved[bucket]
        if (own === undefined) break
        own[type] = (own[type] ?? 0) + Math.abs(after - before)
      }
      return moved
    },
  }
}

function cohortsOf(
  accounts: Account[],
  { since, base, zone }: { since: Instant; base: RetentionBase; zone: string },
): CohortChange[] {
  const monthOf = ({ at }: Movement) => `${dayIn(zone, at).slice(0, 7)}-01`
  const rows = new Map<string, CohortChange>()
  for (const { movements } of accounts) {
    const first = movements[0]
    if (first === undefined || first.at < since) continue
    const cohort = monthOf(first)
    const began = base === 'first_instant' ? first : movements.findLast(moved => monthOf(moved) === cohort)!
    if (began.after === 0) continue
    for (const moved of movements) {
      const month = monthOf(moved)
      const row = rows.get(cohort + month) ?? { ...NO_CHANGE, cohort, month }
      rows.set(cohort + month, row)
      const { type, before, after } = moved
      if (type === 'new') {
        row.newAccounts += 1
        row.newMrr += began.after
      }
      row.mrr += after - before
      row.cappedMrr += Math.min(began.after, after) - Math.min(began.after, before)
      row.accounts += Number(after > 0) - Number(before > 0)
    }
  }
  return [...rows.values()]
}

const NO_CHANGE = { newAccounts: 0, newMrr: 0, mrr: 0, cappedMrr: 0, accounts: 0 }
