import { DAY_MS } from '../domain/time.ts'
import type { Db } from '../postgres/database.ts'
import { withAccounts } from '../store/billing/merges.ts'
import {
  type CashFact,
  cashFacts,
  cashOfDays,
  cashOfStretches,
  outstandingWithin,
  type Stretch,
} from '../store/reports/cash.ts'
import { type Bucket, type BucketInterval, type Cash, cashBetween } from '../store/reports/totals.ts'
import { type MatchedItems, openLedger } from './ledger.ts'
import { type SeriesWindow, seriesBuckets } from './movements.ts'
import { type ReportList, type ReportQuestion, sum, toList } from './question.ts'

export type CashReport = { interval: BucketInterval; cash: ReportList<CashEntry> }

/** The figures of a bucket, or the share of one fact. */
type CashFigures = {
  invoiced: number
  /** Payments of subscription invoices, less refunds and disputes. */
  collected: number
  refunded: number
  disputed: number
  /** The unpaid part of the bucket's invoices. */
  outstanding: number
  oneOff: number
}

type CashEntry = CashFigures & { date: string; invoices: number; payments: number }

/** By bucket, the oldest first. Null: too many buckets. */
export async function cashReport(db: Db, question: ReportQuestion, window: SeriesWindow): Promise<CashReport | null> {
  const buckets = await seriesBuckets(db, question, window)
  if (buckets === null) return null
  const entries = buckets.length > 0 ? await readEntries(db, question, buckets) : []
  return { interval: window.interval, cash: toList(entries) }
}

async function readEntries(db: Db, question: ReportQuestion, buckets: Bucket[]): Promise<CashEntry[]> {
  const { matched } = await openLedger(db, question)
  const sums = buckets.map(() => ({ ...NO_CASH, outstanding: 0 }))
  if (matched) {
    const window = { since: buckets[0]!.starts, until: buckets.at(-1)!.ends }
    const facts = listUnmatched(await cashFacts(db, question, window), matched)
    for (const [i, { starts, ends }] of buckets.entries()) {
      const own = facts.filter(({ occurredAt }) => occurredAt >= starts && occurredAt < ends)
      sums[i] = { ...sumCash(own), outstanding: sum(own, fact => fact.outstanding) }
    }
  } else {
    const { days, parts } = splitStretches(buckets, question.asOf >= question.now)
    const found = [...(await cashOfDays(db, question, days)), ...(await cashOfStretches(db, question, parts))]
    for (const { bucket, ...cash } of found) {
      const own = sums[bucket]!
      for (const figure of Object.keys(cash) as (keyof Cash)[]) own[figure] += cash[figure]
    }
    const bounds = [buckets[0]!.starts, ...buckets.map(bucket => bucket.ends)]
    const outstanding = await outstandingWithin(db, question, bounds)
    for (const [bucket, amount] of outstanding) sums[bucket]!.outstanding = amount
  }
  return buckets.map(({ date }, i) => {
    const cash = sums[i]!
    return { date, ...cash, collected: cash.collected - cash.refunded - cash.disputed }
  })
}

/** Splits buckets into whole UTC days, which are read from the daily sums, and the parts before and after them. */
function splitStretches(buckets: Bucket[], fromSums: boolean): { days: Stretch[]; parts: Stretch[] } {
  const days: Stretch[] = []
  const parts: Stretch[] = []
  for (const [bucket, { starts, ends }] of buckets.entries()) {
    const first = new Date(Math.ceil(starts.getTime() / DAY_MS) * DAY_MS)
    const last = new Date(Math.floor(ends.getTime() / DAY_MS) * DAY_MS)
    if (!fromSums || first >= last) {
      parts.push({ bucket, since: starts, until: ends })
      continue
    }
    days.push({ bucket, since: first, until: last })
    if (starts < first) parts.push({ bucket, since: starts, until: first })
    if (last < ends) parts.push({ bucket, since: last, until: ends })
  }
  return { days, parts }
}

export type CashFactReport = {
  date: string
  interval: BucketInterval
  totals: CashFigures
  facts: ReportList<CashFactEntry>
}

type CashFactEntry = CashFigures &
  Pick<CashFact, 'occurredAt' | 'kind' | 'id' | 'invoiceId' | 'subscriptionId' | 'customer' | 'amount'>

/** The invoices and payments of the bucket that contains `at`, the oldest first. */
export async function cashFactReport(
  db: Db,
  question: ReportQuestion,
  { interval, at }: { interval: BucketInterval; at: Date },
): Promise<CashFactReport> {
  const { matched } = await openLedger(db, question)
  const [bucket] = (await seriesBuckets(db, question, { interval, from: at, to: at })) ?? []
  const window = bucket && { since: bucket.starts, until: bucket.ends }
  const all = window ? await withAccounts(db, question.tenantId, await cashFacts(db, question, window)) : []
  const entries = (matched ? listUnmatched(all, matched) : all).map(factEntry)
  return {
    date: bucket?.date ?? at.toISOString().slice(0, 10),
    interval,
    totals: mapFigures(figure => sum(entries, entry => entry[figure])),
    facts: toList(entries),
  }
}

function factEntry({ recurring, outstanding, ...fact }: CashFact): CashFactEntry {
  const { invoiced, collected, refunded, disputed, oneOff } = sumCash([{ ...fact, recurring, outstanding }])
  return { ...fact, invoiced, collected: collected - refunded - disputed, refunded, disputed, outstanding, oneOff }
}

function mapFigures(of: (figure: keyof CashFigures) => number): CashFigures {
  return {
    invoiced: of('invoiced'),
    collected: of('collected'),
    refunded: of('refunded'),
    disputed: of('disputed'),
    outstanding: of('outstanding'),
    oneOff: of('oneOff'),
  }
}

const NO_CASH: Cash = { invoiced: 0, invoices: 0, collected: 0, payments: 0, refunded: 0, disputed: 0, oneOff: 0 }

/** Amounts invoiced and collected in (since, asOf]. With a filter, a fact counts if its subscription matched when it occurred. */
export async function cashSince(
  db: Db,
  question: ReportQuestion,
  since: Date,
  matched: MatchedItems | null,
): Promise<Cash> {
  const { tenantId, currency, asOf, now } = question
  if (matched === null) {
    return cashBetween(db, tenantId, currency, { since, until: asOf, fromSums: asOf >= now })
  }
  // times are integer milliseconds
  const window = { since: new Date(since.getTime() + 1), until: new Date(asOf.getTime() + 1) }
  return sumCash(listUnmatched(await cashFacts(db, question, window), matched))
}

/** Cash of these stretches, by bucket. */
export async function cashWithin(
  db: Db,
  question: ReportQuestion,
  stretches: Stretch[],
  matched: MatchedItems | null,
): Promise<(Cash & { bucket: number })[]> {
  if (matched === null) return cashOfStretches(db, question, stretches)
  const window = { since: stretches[0]!.since, until: stretches.at(-1)!.until }
  const facts = listUnmatched(await cashFacts(db, question, window), matched)
  return stretches.map(({ bucket, since, until }) => ({
    bucket,
    ...sumCash(facts.filter(({ occurredAt }) => occurredAt >= since && occurredAt < until)),
  }))
}

/** Facts whose subscription matched the filter at their time. */
function listUnmatched(facts: CashFact[], matched: MatchedItems): CashFact[] {
  return facts.filter(
    ({ subscriptionId, occurredAt }) => subscriptionId !== null && matched.includes(subscriptionId, occurredAt),
  )
}

/** Sums facts. */
function sumCash(facts: CashFact[]): Cash {
  const of = (kind: CashFact['kind'], recurring: boolean) =>
    facts.filter(fact => fact.kind === kind && fact.recurring === recurring)
  const amount = (rows: CashFact[]) => sum(rows, fact => fact.amount)
  const invoices = facts.filter(fact => fact.kind === 'invoice')
  const payments = of('payment', true)
  return {
    invoiced: amount(invoices),
    invoices: invoices.length,
    collected: amount(payments),
    payments: payments.length,
    refunded: amount(of('refund', true)),
    disputed: amount(of('dispute', true)),
    oneOff: amount(of('payment', false)) - amount(of('refund', false)) - amount(of('dispute', false)),
  }
}
