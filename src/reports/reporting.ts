/** Reports in the reporting currency. Lists contain the rows of all currencies, converted. */

import { computeArr } from '../domain/billing/price.ts'
import { splitSlice } from '../domain/list-slices.ts'
import { DAY_MS, type Day, toDay } from '../domain/time.ts'
import type { Db } from '../postgres/database.ts'
import type { Stretch } from '../store/reports/cash.ts'
import { excludedByCurrency, unlinkedInvoices } from '../store/reports/exclusions.ts'
import { type ChurnReasonRow, churnReasons } from '../store/reports/outcomes.ts'
import type { Bucket, Cash } from '../store/reports/totals.ts'
import { type AccountEntry, accountList } from './accounts.ts'
import { type AttentionReport, attentionReport, type Named } from './attention.ts'
import { cashWithin } from './cash.ts'
import {
  type Convert,
  type Currencies,
  type CurrencyLedger,
  convertMoved,
  exchangedLedger,
  mergeLists,
  openCurrencies,
  type Placed,
  partConverter,
} from './exchange.ts'
import { type ExclusionReport, exclusionList, reasonEntries } from './exclusions.ts'
import {
  type ChurnReasonReport,
  churnReasonReport,
  type ForecastChange,
  type ForecastMonth,
  type ForecastReport,
  forecastReport,
} from './forecast.ts'
import type { SeriesWindow } from './movements.ts'
import { countAttention, type OverviewReport, overviewStart, shownCash, summarizeLedger } from './overview.ts'
import { type ReportList, type ReportQuestion, sum } from './question.ts'

export async function reportingOverview(db: Db, question: ReportQuestion): Promise<OverviewReport> {
  const { asOf } = question
  const since = overviewStart(question)
  const today = toDay(asOf)
  const currencies = await openCurrencies(db, question)
  const { ledgers, convert, olderRates } = currencies
  const { pending, report } = await summarizeLedger(db, question, await exchangedLedger(db, question, currencies))
  const attention = { paymentIssues: 0, renewals: 0, cancellations: 0, upcomingBilling: 0 }
  for (const { question: asked, ledger } of ledgers) {
    const counts = await countAttention(db, asked, ledger.matched)
    for (const name of Object.keys(counts) as (keyof typeof counts)[]) attention[name] += counts[name]
  }
  return {
    ...report,
    olderRates,
    attention,
    ...shownCash(await exchangedCash(db, ledgers, convert, { since, asOf })),
    accounts: exchangedAccounts(db, currencies, today),
    exclusions: exchangedExclusions(db, currencies, today, pending),
  }
}

/** One row per account and currency, the largest first. They add up to MRR. */
function exchangedAccounts(db: Db, { ledgers, figures, convert }: Currencies, today: Day): ReportList<AccountEntry> {
  const lists = ledgers.map(({ currency, question, ledger }): ReportList<Placed<AccountEntry>> => {
    const own = figures.filter(source => source.currency === currency)
    const list = accountList(
      db,
      question,
      ledger,
      sum(own, source => source.accounts),
    )
    const to = (minor: number) => convert(minor, currency, today)
    const [toMrr, toCommitted] = [partConverter(to), partConverter(to)]
    return {
      count: list.count,
      async rows(slice) {
        return (await list.rows(slice)).map(entry => {
          const mrr = toMrr(entry.mrr)
          const row = { ...entry, mrr, arr: computeArr(mrr), committedMrr: toCommitted(entry.committedMrr) }
          // parts differ from it by rounding, and are not always in this order
          return { size: to(entry.mrr), row }
        })
      },
    }
  })
  return mergeLists(lists)
}

/** Currency by currency; items without a currency and pending subscriptions are listed with the first. */
function exchangedExclusions(
  db: Db,
  { ledgers, figures, convert }: Currencies,
  today: Day,
  pending: number,
): OverviewReport['exclusions'] {
  const lists = ledgers.map(({ currency, question, ledger }, i) => {
    const own = figures.filter(source => source.currency === currency || (i === 0 && source.currency === ''))
    const counts = { excluded: sum(own, source => source.excludedItems), foreign: 0, pending: i === 0 ? pending : 0 }
    const list = exclusionList(db, { ...question, isReporting: true }, ledger, counts, i === 0)
    return { ...list, currency }
  })
  return {
    count: sum(lists, list => list.count),
    async rows(slice) {
      const parts = splitSlice(
        slice,
        lists.map(list => list.count),
      )
      const rows = []
      for (const [i, { currency, rows: read }] of lists.entries()) {
        for (const row of await read(parts[i]!))
          rows.push({ ...row, excludedMrr: row.excludedMrr && convert(row.excludedMrr, currency, today) })
      }
      return rows
    },
  }
}

/** Excluded items of all currencies, and their sums by reason. */
export async function reportingExclusions(db: Db, question: ReportQuestion): Promise<ExclusionReport> {
  const today = toDay(question.asOf)
  const currencies = await openCurrencies(db, question)
  const { ledgers, convert } = currencies
  const isFiltered = ledgers[0]!.ledger.matched !== null
  const pending = isFiltered ? 0 : (await unlinkedInvoices(db, question)).pending
  const exclusions = exchangedExclusions(db, currencies, today, pending)
  if (isFiltered) {
    const rows = await exclusions.rows({ offset: 0, limit: exclusions.count })
    const sums = rows.map(({ reasonCode, excludedMrr }) => ({
      ...{ reason: reasonCode, items: 1, excludedMrr: excludedMrr ?? 0, unpriced: excludedMrr === null ? 1 : 0 },
    }))
    return { byReason: reasonEntries(sums), exclusions }
  }
  const sums = (await excludedByCurrency(db, question)).map(({ currency, ...own }) => ({
    ...own,
    excludedMrr: convert(own.excludedMrr, currency, today),
  }))
  const unseen = { reason: 'pending_subscription' as const, items: pending, excludedMrr: 0, unpriced: pending }
  return { byReason: reasonEntries(pending > 0 ? [...sums, unseen] : sums), exclusions }
}

/** The lists of all currencies. What is due is ordered by time; payment issues follow currency by currency. */
export async function reportingAttention(db: Db, question: ReportQuestion, days: number): Promise<AttentionReport> {
  const { ledgers, convert } = await openCurrencies(db, question)
  const today = toDay(question.asOf)
  const reports: { currency: string; report: AttentionReport }[] = []
  for (const { currency, question: own } of ledgers)
    reports.push({ currency, report: await attentionReport(db, own, days) })
  const merged = <Row>(
    listOf: (report: AttentionReport) => ReportList<Row>,
    amounts: { [Name in keyof Row]: Row[Name] extends number | null ? Name : never }[keyof Row][],
    order: (row: Row) => number,
  ): ReportList<Row> =>
    mergeLists(
      reports.map(({ currency, report }) => {
        const list = listOf(report)
        const converted = (row: Row) => {
          const own = amounts.map(name => [name, row[name] && convert(row[name] as number, currency, today)])
          return { size: order(row), row: { ...row, ...Object.fromEntries(own) } }
        }
        return { count: list.count, rows: async slice => (await list.rows(slice)).map(converted) }
      }),
    )
  return {
    days,
    paymentIssues: merged(
      report => report.paymentIssues,
      ['amountDue', 'amountRemaining', 'mrrAtRisk'],
      () => 0,
    ),
    renewals: merged(
      report => report.renewals,
      ['renewalAmount', 'mrr'],
      row => -row.renewsAt,
    ),
    cancellations: merged(
      report => report.cancellations,
      ['mrrAtRisk'],
      row => -row.cancelsAt,
    ),
    upcomingBilling: merged(
      report => report.upcomingBilling,
      ['estimatedAmount'],
      row => -row.billsAt,
    ),
  }
}

/** By the rates of today. */
export async function reportingForecast(db: Db, question: ReportQuestion, months: number): Promise<ForecastReport> {
  const { ledgers, convert } = await openCurrencies(db, question)
  const today = toDay(question.asOf)
  let openingMrr = 0
  const sums: ForecastMonth[] = []
  const lists: ReportList<Placed<Named<ForecastChange>>>[] = []
  for (const { currency, question: own } of ledgers) {
    const to = (minor: number) => convert(minor, currency, today)
    const forecast = await forecastReport(db, own, months)
    openingMrr += to(forecast.openingMrr)
    let total = forecast.openingMrr
    for (const [i, month] of forecast.months.entries()) {
      const moved = convertMoved(total, month, to)
      const [before, after] = [to(total), to(month.mrr)]
      const trialEnds = after - to(month.mrr - month.trialEnds)
      const row = { ...moved, mrr: after, trialEnds, net: after - before }
      const known = sums[i]
      if (known) for (const [name, amount] of Object.entries(row)) known[name as keyof typeof row] += amount
      else sums[i] = { ...row, date: month.date }
      total = month.mrr
    }
    lists.push({
      count: forecast.changes.count,
      rows: async slice =>
        (await forecast.changes.rows(slice)).map(change => ({
          size: -change.at.getTime(),
          row: { ...change, amount: change.amount && to(change.amount), mrrDelta: to(change.mrrDelta) },
        })),
    })
  }
  return { openingMrr, months: sums, changes: mergeLists(lists) }
}

/** By the rate of the day of each churn. */
export async function reportingChurnReasons(
  db: Db,
  question: ReportQuestion,
  window: Omit<SeriesWindow, 'interval'>,
): Promise<ChurnReasonReport | null> {
  const { ledgers, convert } = await openCurrencies(db, question)
  const read = async (buckets: Bucket[]) => {
    const days = buckets.flatMap((bucket, of) => daysWithin(bucket).map(day => ({ ...day, of })))
    const rows: ChurnReasonRow[] = []
    for (const { currency, question: own } of ledgers) {
      for (const { bucket, mrr, ...row } of await churnReasons(db, own, days)) {
        const { of, starts } = days[bucket]!
        rows.push({ ...row, bucket: of, mrr: convert(mrr, currency, toDay(starts)) })
      }
    }
    return rows
  }
  return churnReasonReport(db, question, window, read)
}

/** Rates change at midnight in UTC. */
function daysWithin({ starts, ends }: Pick<Bucket, 'starts' | 'ends'>): { starts: Date; ends: Date }[] {
  const days: { starts: Date; ends: Date }[] = []
  for (let at = starts.getTime(); at < ends.getTime(); ) {
    const next = Math.min((Math.floor(at / DAY_MS) + 1) * DAY_MS, ends.getTime())
    days.push({ starts: new Date(at), ends: new Date(next) })
    at = next
  }
  return days
}

/** Cash in (since, asOf], by the rate of each day. */
async function exchangedCash(
  db: Db,
  ledgers: CurrencyLedger[],
  convert: Convert,
  { since, asOf }: { since: Date; asOf: Date },
): Promise<Cash> {
  const window = { starts: new Date(since.getTime() + 1), ends: new Date(asOf.getTime() + 1) }
  const days = daysWithin(window).map(({ starts, ends }, bucket): Stretch => ({ bucket, since: starts, until: ends }))
  const sums: Cash = { invoiced: 0, invoices: 0, collected: 0, payments: 0, refunded: 0, disputed: 0, oneOff: 0 }
  for (const { currency, question, ledger } of ledgers) {
    for (const { bucket, ...cash } of await cashWithin(db, question, days, ledger.matched)) {
      const day = toDay(days[bucket]!.since)
      for (const name of Object.keys(sums) as (keyof Cash)[]) {
        const isCount = name === 'invoices' || name === 'payments'
        sums[name] += isCount ? cash[name] : convert(cash[name], currency, day)
      }
    }
  }
  return sums
}
