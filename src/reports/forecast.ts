/** What is already scheduled, and the reasons of past churn. */

import { addMonths, type MovementType, mainChange } from '../domain/billing/account.ts'
import type { Cause } from '../domain/billing/cause.ts'
import { DAY_MS } from '../domain/time.ts'
import { dayIn, startOfDayIn } from '../domain/time-zone.ts'
import type { Db } from '../postgres/database.ts'
import { segmentsOfSubscriptions } from '../store/reports/accounts.ts'
import { churnReasons, runningTrials } from '../store/reports/outcomes.ts'
import { type Bucket, findBuckets } from '../store/reports/totals.ts'
import { type Named, openAgenda, withNames } from './attention.ts'
import { type Ledger, openLedger } from './ledger.ts'
import { movementTotals, type SeriesWindow, seriesBuckets } from './movements.ts'
import { type ReportList, type ReportQuestion, sum, toList } from './question.ts'

type ForecastKind = 'renewal' | 'trial_end' | 'discount_end' | 'cancellation' | 'start' | 'resume' | 'other'

export type ForecastChange = {
  at: Date
  kind: ForecastKind
  customer: string
  subscriptionId: string
  /** Of a renewal, what it charges; null: unknown. Otherwise the change of MRR. */
  amount: number | null
  mrrDelta: number
}

export type ForecastMonth = Record<MovementType, number> & { date: string; mrr: number; trialEnds: number; net: number }

export type ForecastReport = {
  openingMrr: number
  months: ForecastMonth[]
  changes: ReportList<Named<ForecastChange>>
}

/** The rest of this month and the months after it, `months` in all. Assumes that nothing else happens. */
export async function forecastReport(db: Db, question: ReportQuestion, months: number): Promise<ForecastReport> {
  const { asOf, policy } = question
  const zone = policy.timeZone
  const last = startOfDayIn(zone, addMonths(dayIn(zone, asOf), months - 1))
  const buckets = (await findBuckets(db, { interval: 'month', from: asOf, to: last, timeZone: zone }))!
  const ends = buckets.map(bucket => bucket.ends)
  const bounds = [new Date(asOf.getTime() + 1), ...ends]
  const horizon = new Date(ends.at(-1)!.getTime() - 1)
  const ledger = await openLedger(db, { ...question, asOf: horizon })
  const totals = await ledger.totalsBefore(bounds)
  const moved = await ledger.movedWithin(bounds)
  const trials = await trialEnds(db, question, ledger, horizon)
  let added = 0
  const rows = buckets.map(({ date }, i): ForecastMonth => {
    const { openingMrr: _, closingMrr: __, ...own } = movementTotals(moved[i]!, totals[i]!.mrr, totals[i + 1]!.mrr)
    const converted = sum(
      trials.filter(({ at }) => at >= bounds[i]! && at < bounds[i + 1]!),
      trial => trial.mrrDelta,
    )
    added += converted
    return { date, ...own, mrr: totals[i + 1]!.mrr + added, trialEnds: converted, net: own.net + converted }
  })
  const scheduled = sum(moved, own => own.count)
  const renewals = await renewalList(db, question, ledger, horizon)
  const lists = [scheduledList(ledger, { since: asOf, until: horizon }, scheduled), renewals, toList(trials)]
  return {
    openingMrr: totals[0]!.mrr,
    months: rows,
    changes: withNames(db, question.tenantId, mergeByTime(lists)),
  }
}

/** The earliest first. What was read stays in memory: an export reads all pages, in order. */
function mergeByTime(lists: ReportList<ForecastChange>[]): ReportList<ForecastChange> {
  const parts = lists.map(list => ({ list, read: [] as ForecastChange[] }))
  return {
    count: sum(lists, list => list.count),
    async rows({ offset, limit }) {
      for (const { list, read } of parts) {
        const missing = Math.min(offset + limit, list.count) - read.length
        if (missing > 0) for (const row of await list.rows({ offset: read.length, limit: missing })) read.push(row)
      }
      const rows = parts.flatMap(({ read }) => read)
      const order = (a: ForecastChange, b: ForecastChange) =>
        a.at.getTime() - b.at.getTime() || (a.subscriptionId < b.subscriptionId ? -1 : 1)
      return rows.sort(order).slice(offset, offset + limit)
    },
  }
}

/** Changes that take effect without a further event are movements of the ledger. */
function scheduledList(
  ledger: Ledger,
  window: { since: Date; until: Date },
  count: number,
): ReportList<ForecastChange> {
  return {
    count,
    async rows(slice) {
      const entries = await ledger.movements(window, { slice, count, order: 'time' })
      return entries.map(({ account, occurredAt, before, after, changes }) => {
        const main = mainChange(changes)
        const mrrDelta = after - before
        return {
          ...{ at: occurredAt, kind: kindOf(main?.cause ?? 'other'), customer: account },
          ...{ subscriptionId: main?.subscriptionId ?? '', amount: mrrDelta, mrrDelta },
        }
      })
    },
  }
}

function kindOf(cause: Cause): ForecastKind {
  switch (cause) {
    case 'cancellation_voluntary':
    case 'cancellation_failed_payment':
      return 'cancellation'
    case 'new_subscription':
    case 'additional_subscription':
      return 'start'
    case 'discount_end':
    case 'trial_end':
    case 'resume':
      return cause
    default:
      return 'other'
  }
}

/** Every renewal of terms longer than a month. */
async function renewalList(
  db: Db,
  question: ReportQuestion,
  { matched }: Ledger,
  horizon: Date,
): Promise<ReportList<ForecastChange>> {
  const days = (horizon.getTime() - question.asOf.getTime()) / DAY_MS
  const agenda = await openAgenda(db, question, days, matched)
  return {
    count: agenda.counts.renewal,
    async rows(slice) {
      const entries = await agenda.slice('renewal', slice)
      const ids = [...new Set(entries.map(entry => entry.subscriptionId))]
      const segments = await segmentsOfSubscriptions(db, question.tenantId, ids, question.asOf)
      return entries.map(({ subscriptionId, dueAt, body }) => ({
        ...{ at: new Date(dueAt), kind: 'renewal' as const, customer: segments.get(subscriptionId)?.account ?? '' },
        ...{ subscriptionId, amount: body.amount as number | null, mrrDelta: 0 },
      }))
    },
  }
}

/** Trials that end by the horizon and are not scheduled to cancel, with the gross MRR of their items. */
async function trialEnds(
  db: Db,
  question: ReportQuestion,
  { matched }: Ledger,
  horizon: Date,
): Promise<ForecastChange[]> {
  const found: ForecastChange[] = []
  for (const segment of await runningTrials(db, question)) {
    const { subscriptionId, account, trialEnd, cancelling, items, to } = segment
    const isDue = trialEnd !== null && trialEnd > question.asOf.getTime() && trialEnd <= horizon.getTime()
    if (!isDue || cancelling || (to !== null && to <= trialEnd)) continue
    if (matched && !matched.includes(subscriptionId, question.asOf)) continue
    const mrrDelta = sum(items, item => (item.reason === 'trialing' ? (item.excludedMrr ?? 0) : 0))
    const at = new Date(trialEnd)
    found.push({ at, kind: 'trial_end', customer: account, subscriptionId, amount: mrrDelta, mrrDelta })
  }
  return found.sort((a, b) => a.at.getTime() - b.at.getTime())
}

type ReasonTotal = { reason: string; accounts: number; mrr: number }

export type ChurnReasonReport = { totals: ReasonTotal[]; reasons: ReportList<ReasonTotal & { date: string }> }

/** Reasons are free text, so only the largest are listed; the rest are `other`. */
const MAX_REASONS = 50

/** Churn by month and reason. Each month adds up to the churn of the history. Null: too many months. */
export async function churnReasonReport(
  db: Db,
  question: ReportQuestion,
  window: Omit<SeriesWindow, 'interval'>,
  read = (buckets: Bucket[]) => churnReasons(db, question, buckets),
): Promise<ChurnReasonReport | null> {
  const buckets = await seriesBuckets(db, question, { ...window, interval: 'month' })
  if (buckets === null) return null
  const found = await read(buckets)
  const ranked = sumReasons(found).slice(0, MAX_REASONS)
  const listed = new Set(ranked.map(({ reason }) => reason))
  const named = found.map(row => ({ ...row, reason: listed.has(row.reason) ? row.reason : 'other' }))
  const rows = [...Map.groupBy(named, row => row.bucket)]
    .sort(([a], [b]) => a - b)
    .flatMap(([bucket, own]) => sumReasons(own).map(total => ({ date: buckets[bucket]!.date, ...total })))
  return { totals: sumReasons(named), reasons: toList(rows) }
}

/** The largest MRR first. */
function sumReasons(rows: ReasonTotal[]): ReasonTotal[] {
  return [...Map.groupBy(rows, row => row.reason)]
    .map(([reason, own]) => ({
      reason,
      accounts: sum(own, row => row.accounts),
      mrr: sum(own, row => row.mrr),
    }))
    .sort((a, b) => b.mrr - a.mrr || (a.reason < b.reason ? -1 : 1))
}
