import { arrOf } from '../domain/billing/mrr.ts'
import { withinYears } from '../domain/time.ts'
import type { Db } from '../postgres/database.ts'
import { type Bucket, type BucketInterval, bucketsOf } from '../store/reports/buckets.ts'
import { movedWithin, standingsBefore } from '../store/reports/history.ts'
import { listOf, type ReportList, type ReportQuestion } from './question.ts'

/** What a series is asked: in which steps, and from when to when. */
export type SeriesWindow = { interval: BucketInterval; from: Date | null; to: Date | null }

export type HistoryReport = { interval: BucketInterval; history: ReportList<HistoryEntry> }

export type HistoryEntry = {
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

/** Each bucket as it ended, and what moved in it; the open one as of now. Null: there would be too many. */
export async function historyReport(
  db: Db,
  question: ReportQuestion,
  window: SeriesWindow,
): Promise<HistoryReport | null> {
  const buckets = await seriesBuckets(db, question, window)
  if (buckets === null) return null
  const entries = buckets.length > 0 ? await entriesOf(db, question, buckets) : []
  return { interval: window.interval, history: listOf(entries) }
}

/** The buckets of a series, none of them after `asOf`: the last ends right after it. */
export async function seriesBuckets(
  db: Db,
  { asOf, policy: { timeZone } }: ReportQuestion,
  { interval, from, to }: SeriesWindow,
): Promise<Bucket[] | null> {
  const last = to && to < asOf ? to : asOf
  const buckets = await bucketsOf(db, { interval, from, to: last, timeZone })
  // instants are whole milliseconds: what happens at `asOf` itself has happened
  const end = withinYears(asOf.getTime() + 1)
  return buckets?.map(bucket => (bucket.ends > end ? { ...bucket, ends: end } : bucket)) ?? null
}

async function entriesOf(db: Db, question: ReportQuestion, buckets: Bucket[]): Promise<HistoryEntry[]> {
  const bounds = [buckets[0]!.starts, ...buckets.map(bucket => bucket.ends)]
  const standings = await standingsBefore(db, question, bounds)
  const moved = await movedWithin(db, question, bounds)
  return buckets.map(({ date }, i) => {
    const standing = standings[i + 1]!
    const { new: added = 0, expansion = 0, contraction = 0, churn = 0, reactivation = 0 } = moved[i]!
    return {
      date,
      ...standing,
      arr: arrOf(standing.mrr),
      new: added,
      expansion,
      contraction,
      churn,
      reactivation,
      net: standing.mrr - standings[i]!.mrr,
    }
  })
}
