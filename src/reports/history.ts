import { changedSettings, DEFAULT_POLICY } from '../domain/billing/policy.ts'
import { computeArr } from '../domain/billing/price.ts'
import { withinYears } from '../domain/time.ts'
import type { Db } from '../postgres/database.ts'
import { policyChanges } from '../store/billing/policies.ts'
import { type Bucket, type BucketInterval, findBuckets } from '../store/reports/buckets.ts'
import { openLedger } from './open-ledger.ts'
import { listOf, type ReportList, type ReportQuestion } from './question.ts'

/** What a series is asked: in which steps, and from when to when. */
export type SeriesWindow = { interval: BucketInterval; from: Date | null; to: Date | null }

export type HistoryReport = {
  interval: BucketInterval
  history: ReportList<HistoryEntry>
  /** Changes of the policy since the first bucket: what they did to MRR is no movement. */
  policyChanges: PolicyChangeEntry[]
}

type PolicyChangeEntry = {
  at: Date
  version: number
  /** The settings that changed, by their public names. */
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

/** Each bucket as it ended, and what moved in it; the open one as of now. Null: there would be too many. */
export async function historyReport(
  db: Db,
  question: ReportQuestion,
  window: SeriesWindow,
): Promise<HistoryReport | null> {
  const buckets = await seriesBuckets(db, question, window)
  if (buckets === null) return null
  const entries = buckets.length > 0 ? await entriesOf(db, question, buckets) : []
  const since = buckets[0]?.starts ?? question.asOf
  const policyChanges = await policyChangesSince(db, question, since)
  return { interval: window.interval, history: listOf(entries), policyChanges }
}

/** When reports began to follow another policy. Older figures are told by it too: these lines say how it was before. */
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

/** The buckets of a series, none of them after `asOf`: the last ends right after it. */
export async function seriesBuckets(
  db: Db,
  { asOf, policy: { timeZone } }: ReportQuestion,
  { interval, from, to }: SeriesWindow,
): Promise<Bucket[] | null> {
  const last = to && to < asOf ? to : asOf
  const buckets = await findBuckets(db, { interval, from, to: last, timeZone })
  // instants are whole milliseconds: what happens at `asOf` itself has happened
  const end = withinYears(asOf.getTime() + 1)
  return buckets?.map(bucket => (bucket.ends > end ? { ...bucket, ends: end } : bucket)) ?? null
}

async function entriesOf(db: Db, question: ReportQuestion, buckets: Bucket[]): Promise<HistoryEntry[]> {
  const bounds = [buckets[0]!.starts, ...buckets.map(bucket => bucket.ends)]
  const ledger = await openLedger(db, question)
  const standings = await ledger.standings(bounds)
  const moved = await ledger.movedWithin(bounds)
  return buckets.map(({ date }, i) => {
    const standing = standings[i + 1]!
    const { new: added = 0, expansion = 0, contraction = 0, churn = 0, reactivation = 0 } = moved[i]!
    return {
      date,
      ...standing,
      arr: computeArr(standing.mrr),
      new: added,
      expansion,
      contraction,
      churn,
      reactivation,
      net: standing.mrr - standings[i]!.mrr,
    }
  })
}
