import { addMonths, type CohortMonth, cohortMonths, type MovementType, mainChange } from '../domain/billing/account.ts'
import { changedSettings, DEFAULT_POLICY } from '../domain/billing/policy.ts'
import { computeArr } from '../domain/billing/price.ts'
import type { Cause } from '../domain/billing/timeline.ts'
import { withinYears } from '../domain/time.ts'
import { dayIn, startOfDayIn } from '../domain/time-zone.ts'
import type { Db } from '../postgres/database.ts'
import { policyChanges } from '../store/billing/policies.ts'
import { accountNames } from '../store/reports/accounts.ts'
import type { MovementOrder, RetentionBase } from '../store/reports/movements.ts'
import { type Bucket, type BucketInterval, findBuckets, type Moved } from '../store/reports/totals.ts'
import { openLedger } from './ledger.ts'
import { type ReportList, type ReportQuestion, sum, toList } from './question.ts'

/** After `since` and up to `until`. */
export type Window = { since: Date; until: Date }

export type MovementReport = Window & { totals: MovementTotals; movements: ReportList<MovementEntry> }

/** opening + new + expansion + reactivation − contraction − churn = closing */
export type MovementTotals = Record<MovementType, number> & { openingMrr: number; net: number; closingMrr: number }

type MovementEntry = {
  occurredAt: Date
  customer: string
  customerName: string | null
  movementType: MovementType
  mrrBefore: number
  mrrAfter: number
  mrrDelta: number
  subscriptionIds: string[]
  cause: Cause
  eventId: string | null
}

/** Movements in the window. */
export async function movementReport(
  db: Db,
  question: ReportQuestion,
  window: Window,
  order: MovementOrder = 'time',
): Promise<MovementReport> {
  const { tenantId, currency } = question
  const ledger = await openLedger(db, question)
  const { moved } = await ledger.moved(window.since, window.until)
  const { count } = moved
  const figures = await ledger.figures(window.until, window.since)
  const own = figures.filter(source => source.currency === currency)
  const opening = sum(own, source => source.cohortMrr)
  const closing = sum(own, source => source.mrr)
  return {
    ...window,
    totals: movementTotals(moved, opening, closing),
    movements: {
      count,
      async rows(slice) {
        const entries = await ledger.movements(window, { slice, count, order })
        const names = await accountNames(db, tenantId, [...new Set(entries.map(entry => entry.account))])
        return entries.map(({ account, occurredAt, type, before, after, changes }) => ({
          occurredAt,
          customer: account,
          customerName: names.get(account) ?? null,
          movementType: type,
          mrrBefore: before,
          mrrAfter: after,
          mrrDelta: after - before,
          subscriptionIds: changes.map(change => change.subscriptionId),
          cause: mainChange(changes)?.cause ?? 'other',
          eventId: mainChange(changes)?.eventId ?? null,
        }))
      },
    },
  }
}

export function movementTotals(moved: Moved, opening: number, closing: number): MovementTotals {
  const { new: added = 0, expansion = 0, contraction = 0, churn = 0, reactivation = 0 } = moved
  const byType = { new: added, expansion, contraction, churn, reactivation }
  return { openingMrr: opening, ...byType, net: closing - opening, closingMrr: closing }
}

/** The parameters of a series. */
export type SeriesWindow = { interval: BucketInterval; from: Date | null; to: Date | null }

export type HistoryReport = {
  interval: BucketInterval
  history: ReportList<HistoryEntry>
  /** Policy changes since the first bucket. Their effect on MRR is not a movement. */
  policyChanges: PolicyChangeEntry[]
}

type PolicyChangeEntry = {
  at: Date
  version: number
  /** Changed settings, by their public names. */
  settings: Record<string, { before: unknown; after: unknown }>
  mrrBefore: number | null
  mrrAfter: number | null
}

type HistoryEntry = {
  date: string
  mrr: number
  arr: number
  activeAccounts: number
  activeSubscriptions: number
  new: number
  expansion: number
  contraction: number
  churn: number
  reactivation: number
  net: number
}

/** MRR at the end of each bucket and its movements; the open bucket is as of now. Null: too many buckets. */
export async function historyReport(
  db: Db,
  question: ReportQuestion,
  window: SeriesWindow,
): Promise<HistoryReport | null> {
  const buckets = await seriesBuckets(db, question, window)
  if (buckets === null) return null
  const entries = buckets.length > 0 ? await historyEntries(db, question, buckets) : []
  const since = buckets[0]?.starts ?? question.asOf
  const policyChanges = await policyChangesSince(db, question, since)
  return { interval: window.interval, history: toList(entries), policyChanges }
}

/** All figures use the current policy. These entries show the MRR before and after each policy change. */
async function policyChangesSince(
  db: Db,
  { tenantId, currency, asOf }: ReportQuestion,
  since: Date,
): Promise<PolicyChangeEntry[]> {
  const changes = await policyChanges(db, tenantId, currency)
  return changes
    .map(({ at, policy, mrr }, i) => ({
      at,
      version: policy.version,
      settings: changedSettings(changes[i - 1]?.policy ?? DEFAULT_POLICY, policy),
      mrrBefore: mrr?.before ?? null,
      mrrAfter: mrr?.after ?? null,
    }))
    .filter(({ at }) => at >= since && at <= asOf)
}

/** The buckets of a series. The last ends right after `asOf`. */
export async function seriesBuckets(
  db: Db,
  { asOf, policy: { timeZone } }: ReportQuestion,
  { interval, from, to }: SeriesWindow,
): Promise<Bucket[] | null> {
  const last = to && to < asOf ? to : asOf
  const buckets = await findBuckets(db, { interval, from, to: last, timeZone })
  // times are integer milliseconds: a change at `asOf` is included
  const end = withinYears(asOf.getTime() + 1)
  return buckets?.map(bucket => (bucket.ends > end ? { ...bucket, ends: end } : bucket)) ?? null
}

async function historyEntries(db: Db, question: ReportQuestion, buckets: Bucket[]): Promise<HistoryEntry[]> {
  const bounds = [buckets[0]!.starts, ...buckets.map(bucket => bucket.ends)]
  const ledger = await openLedger(db, question)
  const totals = await ledger.totalsBefore(bounds)
  const moved = await ledger.movedWithin(bounds)
  return buckets.map(({ date }, i) => {
    const { mrr, activeAccounts, activeSubscriptions } = totals[i + 1]!
    const { openingMrr: _, closingMrr: __, ...own } = movementTotals(moved[i]!, totals[i]!.mrr, mrr)
    return { date, mrr, arr: computeArr(mrr), activeAccounts, activeSubscriptions, ...own }
  })
}

export type RetentionReport = { months: number; base: RetentionBase; cohorts: ReportList<CohortEntry> }

type CohortEntry = Omit<CohortMonth, 'cappedMrr'> & {
  grossMrr: number
  logoRetention: number | null
  grossRevenueRetention: number | null
  netRevenueRetention: number | null
}

/** Cohorts of the last `months` months, including the current one. */
export async function retentionReport(
  db: Db,
  question: ReportQuestion,
  { months, base }: { months: number; base: RetentionBase },
): Promise<RetentionReport> {
  const { asOf, policy } = question
  const zone = policy.timeZone
  const since = startOfDayIn(zone, addMonths(dayIn(zone, asOf), 1 - months))
  const ledger = await openLedger(db, question)
  const changes = await ledger.cohorts(since, base)
  return { months, base, cohorts: toList(cohortMonths(changes, asOf.getTime(), zone).map(cohortEntry)) }
}

function cohortEntry({ cappedMrr, ...month }: CohortMonth): CohortEntry {
  const share = (part: number, whole: number) => (whole > 0 ? part / whole : null)
  return {
    ...month,
    grossMrr: cappedMrr,
    logoRetention: share(month.accounts, month.startingAccounts),
    grossRevenueRetention: share(cappedMrr, month.startingMrr),
    netRevenueRetention: share(month.mrr, month.startingMrr),
  }
}
