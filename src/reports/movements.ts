import { addMonths, type CohortMonth, type MovementType, mainChange } from '../domain/billing/account.ts'
import type { Cause } from '../domain/billing/cause.ts'
import {
  changedSettings,
  computeRates,
  computeRetention,
  DEFAULT_POLICY,
  type Rates,
  type Retained,
} from '../domain/billing/policy.ts'
import { computeArpa, computeArr } from '../domain/billing/price.ts'
import { withinYears } from '../domain/time.ts'
import { dayIn, startOfDayIn } from '../domain/time-zone.ts'
import type { Db } from '../postgres/database.ts'
import { policyChanges } from '../store/billing/policies.ts'
import { accountNames } from '../store/reports/accounts.ts'
import type { MovementOrder, RetentionBase } from '../store/reports/movements.ts'
import { type Bucket, type BucketInterval, findBuckets, type Moved, monthsBefore } from '../store/reports/totals.ts'
import { closingAt } from './closed.ts'
import { exchangedLedger } from './exchange.ts'
import { openLedger, type SeriesLedger, toSpan } from './ledger.ts'
import { type ReportList, type ReportQuestion, sum, toList } from './question.ts'

/** After `since` and up to `until`. */
export type Window = { since: Date; until: Date }

export type MovementReport = Window & { totals: MovementTotals; movements: ReportList<MovementEntry> }

/** opening + new + expansion + reactivation − contraction − churn = closing */
export type MovementTotals = Record<MovementType, number> & {
  openingMrr: number
  /** Only in the reporting currency: the effect of exchange rates, which is part of `net`. */
  fx?: number
  net: number
  closingMrr: number
}

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

function openSeries(db: Db, question: ReportQuestion): Promise<SeriesLedger> {
  return question.isReporting ? exchangedLedger(db, question) : openLedger(db, question)
}

/** Movements in the window. */
export async function movementReport(
  db: Db,
  question: ReportQuestion,
  window: Window,
  order: MovementOrder = 'time',
): Promise<MovementReport> {
  const { tenantId, currency } = question
  const ledger = await openSeries(db, question)
  const { from, to } = toSpan(window)
  const [moved] = await ledger.movedWithin([from, to])
  const { count } = moved!
  const figures = await ledger.figures(window.until, window.since)
  const own = figures.filter(source => source.currency === currency)
  const opening = sum(own, source => source.cohortMrr)
  const closing = sum(own, source => source.mrr)
  return {
    ...window,
    totals: movementTotals(moved!, opening, closing),
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
  const byType = {
    new: added,
    expansion,
    contraction,
    churn,
    reactivation,
    ...(moved.fx !== undefined && { fx: moved.fx }),
  }
  return { openingMrr: opening, ...byType, net: closing - opening, closingMrr: closing }
}

export function sumRetained(retained: Retained[]): Retained {
  return {
    change: sum(retained, ({ change }) => change),
    lostMrr: sum(retained, ({ lostMrr }) => lostMrr),
    lostAccounts: sum(retained, ({ lostAccounts }) => lostAccounts),
  }
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
  fx?: number
  net: number
  /** Accounts with their first MRR in the bucket. */
  newAccounts: number
  /** Accounts with MRR at the start of the bucket and none at its end. */
  churnedAccounts: number
  /** Over the bucket. */
  rates: Rates
  /** Over the months before the end of the bucket. */
  retention?: HistoryRetention
}

type HistoryRetention = { months: number; grossRevenueRetention: number | null; netRevenueRetention: number | null }

/** Each row reads all movements of its months. */
export const MAX_RETENTION_BUCKETS = 120

/** MRR at the end of each bucket and its movements; the open bucket is as of now. Null: too many buckets. */
export async function historyReport(
  db: Db,
  question: ReportQuestion,
  { retentionMonths, ...window }: SeriesWindow & { retentionMonths?: number },
): Promise<HistoryReport | null> {
  const buckets = await seriesBuckets(db, question, window)
  if (buckets === null || (retentionMonths && buckets.length > MAX_RETENTION_BUCKETS)) return null
  const entries: HistoryEntry[] = []
  for (const { closing, own } of bucketsByClosing(buckets, question))
    entries.push(...(await historyEntries(db, { ...question, ...closing }, own, retentionMonths)))
  const since = buckets[0]?.starts ?? question.asOf
  const policyChanges = await policyChangesSince(db, question, since)
  return { interval: window.interval, history: toList(entries), policyChanges }
}

/** All figures use the current policy. These entries show the MRR before and after each policy change. */
async function policyChangesSince(
  db: Db,
  { tenantId, currency, asOf, isReporting }: ReportQuestion,
  since: Date,
): Promise<PolicyChangeEntry[]> {
  const changes = await policyChanges(db, tenantId, currency)
  return changes
    .map(({ at, policy, mrr }, i) => ({
      at,
      version: policy.version,
      settings: changedSettings(changes[i - 1]?.policy ?? DEFAULT_POLICY, policy),
      // stored by currency
      mrrBefore: isReporting ? null : (mrr?.before ?? null),
      mrrAfter: isReporting ? null : (mrr?.after ?? null),
    }))
    .filter(({ at }) => at >= since && at <= asOf)
}

/** The buckets of a series. The last ends right after `asOf`. */
export async function seriesBuckets(
  db: Db,
  { asOf, policy: { timeZone }, closings = [] }: ReportQuestion,
  { interval, from, to }: SeriesWindow,
): Promise<Bucket[] | null> {
  const last = to && to < asOf ? to : asOf
  const found = await findBuckets(db, { interval, from, to: last, timeZone })
  const months = new Map(interval === 'month' ? closings.map(closing => [`${closing.month}-01`, closing]) : [])
  const buckets = found?.map(bucket => {
    const { starts, ends } = months.get(bucket.date) ?? bucket
    return { ...bucket, starts, ends }
  })
  // times are integer milliseconds: a change at `asOf` is included
  const end = withinYears(asOf.getTime() + 1)
  return buckets?.map(bucket => (bucket.ends > end ? { ...bucket, ends: end } : bucket)) ?? null
}

/**
 * Consecutive buckets that end in the same closed month, or in none. With interval=month, the bucket of a closed month has the
 * bounds of the closing, whatever the time zone is now.
 */
function bucketsByClosing(buckets: Bucket[], { closings = [] }: ReportQuestion) {
  const runs: { closing: Pick<ReportQuestion, 'closing' | 'policy'> | null; own: Bucket[] }[] = []
  for (const bucket of buckets) {
    const closing = closingAt(closings, bucket.ends)
    const last = runs.at(-1)
    if (last && last.closing?.closing === (closing ?? undefined)) last.own.push(bucket)
    else runs.push({ closing: closing && { closing, policy: closing.policy }, own: [bucket] })
  }
  return runs
}

async function historyEntries(
  db: Db,
  question: ReportQuestion,
  buckets: Bucket[],
  retentionMonths?: number,
): Promise<HistoryEntry[]> {
  const bounds = [buckets[0]!.starts, ...buckets.map(bucket => bucket.ends)]
  const ledger = await openSeries(db, question)
  const totals = await ledger.totalsBefore(bounds)
  const moved = await ledger.movedWithin(bounds)
  const spans = buckets.map(({ starts, ends }) => ({ from: starts, to: ends }))
  const retained = await ledger.retainedWithin(spans)
  const bases = await ledger.openings?.(spans)
  const retentions = retentionMonths ? await retentionBefore(db, question, ledger, buckets, retentionMonths) : []
  return buckets.map(({ date }, i) => {
    const { mrr, activeAccounts, activeSubscriptions } = totals[i + 1]!
    const opening = totals[i]!
    const { openingMrr, closingMrr: _, ...own } = movementTotals(moved[i]!, opening.mrr, mrr)
    const cohort = sumRetained(retained[i]!)
    return {
      ...{ date, mrr, arr: computeArr(mrr), activeAccounts, activeSubscriptions, ...own },
      newAccounts: moved[i]!.newAccounts,
      churnedAccounts: cohort.lostAccounts,
      rates: computeRates({
        moved: own,
        openingMrr,
        retentionBaseMrr: bases?.[i] ?? openingMrr,
        openingAccounts: opening.activeAccounts,
        retained: cohort,
        arpa: computeArpa(mrr, activeAccounts),
      }),
      ...(retentions[i] && { retention: retentions[i] }),
    }
  })
}

/** Of the accounts with MRR `months` before the end of each bucket. */
async function retentionBefore(
  db: Db,
  { policy }: ReportQuestion,
  ledger: SeriesLedger,
  buckets: Bucket[],
  months: number,
): Promise<HistoryRetention[]> {
  const ends = buckets.map(bucket => bucket.ends)
  const starts = await monthsBefore(db, ends, months, policy.timeZone)
  const spans = ends.map((to, i) => ({ from: starts[i]!, to }))
  const openings = (await ledger.openings?.(spans)) ?? (await ledger.totalsBefore(starts)).map(({ mrr }) => mrr)
  const retained = await ledger.retainedWithin(spans)
  return retained.map((own, i) => ({ months, ...computeRetention(openings[i]!, sumRetained(own)) }))
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
  const ledger = await openSeries(db, question)
  const cohorts = await ledger.cohortMonths(since, base)
  return { months, base, cohorts: toList(cohorts.map(cohortEntry)) }
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
