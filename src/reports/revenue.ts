import { DAY_MS, type Day, toDay } from '../domain/time.ts'
import { dayIn } from '../domain/time-zone.ts'
import type { Db } from '../postgres/database.ts'
import {
  CURRENT,
  type DayRange,
  type Revenue,
  type RevenueFact,
  revenueFacts,
  revenueMonths,
  revenueTotals,
  revenueWithin,
} from '../store/reports/revenue.ts'
import type { Bucket } from '../store/reports/totals.ts'
import { type Named, withNames } from './attention.ts'
import { seriesBuckets } from './movements.ts'
import { type ReportList, type ReportQuestion, sum, toList } from './question.ts'

type RevenueFigures = Revenue & {
  /** Invoiced and not yet recognized at the end of the month. Negative: recognized and not yet invoiced. */
  deferred: number
}

export type RevenueReport = { warnings: string[]; revenue: ReportList<RevenueFigures & { date: Day }> }

const RESTATING = 'The time zone of the policy has changed. Revenue is being computed again; figures are incomplete.'
const BEGINNING: Day = '0001-01-01'

/** By month, the oldest first; the current month up to and including today. Null: too many months. */
export async function revenueReport(
  db: Db,
  question: ReportQuestion,
  window: { from: Date | null; to: Date | null },
): Promise<RevenueReport | null> {
  const buckets = await seriesBuckets(db, question, { ...window, interval: 'month' })
  if (buckets === null) return null
  if (buckets.length === 0) return { warnings: [], revenue: toList([]) }
  const ranges = buckets.map(bucket => toRange(question, bucket))
  const { opening, months, isStale } = await readMonths(db, question, ranges)
  let deferred = opening.invoiced - opening.recognized
  const rows = buckets.map(({ date }, i) => {
    const { invoiced, recognized } = months[i]!
    deferred += invoiced - recognized
    return { date, invoiced, recognized, deferred }
  })
  return { warnings: isStale ? [RESTATING] : [], revenue: toList(rows) }
}

/** The days of a month that have begun at `asOf`. */
function toRange({ asOf, policy: { timeZone } }: ReportQuestion, { date, ends }: Bucket): DayRange {
  const last = dayIn(timeZone, Math.min(ends.getTime() - 1, asOf.getTime()))
  return { first: date, end: nextDay(last) }
}

function nextDay(day: Day): Day {
  return toDay(Date.parse(day) + DAY_MS)
}

/** `opening`: everything before the first range. Ended months come from the sums, which contain the current lines. */
async function readMonths(
  db: Db,
  question: ReportQuestion,
  ranges: DayRange[],
): Promise<{ opening: Revenue; months: Revenue[]; isStale: boolean }> {
  const { asOf, now, policy } = question
  const first = ranges[0]!.first
  if (asOf < now) {
    const before = { first: BEGINNING, end: first }
    const [opening, ...months] = await revenueWithin(db, question, [before, ...ranges], asOf)
    return { opening: opening!, months, isStale: false }
  }
  const last = ranges.at(-1)!
  const known = await revenueMonths(db, question, policy.timeZone, last.first)
  const earlier = known.months.filter(({ month }) => month < first)
  const isOpen = !last.end.endsWith('-01')
  const [current] = isOpen ? await revenueWithin(db, question, [last], CURRENT) : []
  const byMonth = new Map(known.months.map(month => [month.month, month]))
  return {
    opening: { invoiced: sum(earlier, month => month.invoiced), recognized: sum(earlier, month => month.recognized) },
    months: ranges.map(range => (range === last && current) || (byMonth.get(range.first) ?? NOTHING)),
    isStale: known.isStale,
  }
}

const NOTHING: Revenue = { invoiced: 0, recognized: 0 }

export type RevenueFactReport = { date: Day; totals: RevenueFigures; facts: ReportList<Named<RevenueFact>> }

/** The invoices and credit notes behind the figures of the month that contains `at`. */
export async function revenueFactReport(db: Db, question: ReportQuestion, at: Date): Promise<RevenueFactReport> {
  const [bucket] = (await seriesBuckets(db, question, { interval: 'month', from: at, to: at })) ?? []
  if (bucket === undefined) {
    const date = `${dayIn(question.policy.timeZone, at).slice(0, 7)}-01`
    return { date, totals: { ...NOTHING, deferred: 0 }, facts: toList([]) }
  }
  const range = toRange(question, bucket)
  const validAt = question.asOf < question.now ? question.asOf : CURRENT
  const { count, ...totals } = await revenueTotals(db, question, range, validAt)
  return {
    date: bucket.date,
    totals,
    facts: withNames(db, question.tenantId, {
      count,
      rows: slice => revenueFacts(db, question, range, validAt, slice),
    }),
  }
}
