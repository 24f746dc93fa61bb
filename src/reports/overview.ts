import { computeRates, type Rates } from '../domain/billing/policy.ts'
import { computeArpa, computeArr } from '../domain/billing/price.ts'
import type { Db } from '../postgres/database.ts'
import type { Cash } from '../store/reports/totals.ts'
import { type AccountEntry, accountList } from './accounts.ts'
import { type SourceEntry, sourceList } from './acquisition.ts'
import { openAgenda, openIssues } from './attention.ts'
import { cashSince } from './cash.ts'
import { type Coverage, readCoverage } from './coverage.ts'
import { type ExclusionEntry, excludedItems, exclusionList } from './exclusions.ts'
import { type Ledger, openLedger, type SeriesLedger, toSpan } from './ledger.ts'
import { type MovementTotals, movementTotals, sumRetained } from './movements.ts'
import { daysFrom, type ReportList, type ReportQuestion, sum } from './question.ts'

/** The window of movements, cash, attention and cohorts in the overview. */
const WINDOW_DAYS = 30

export type OverviewReport = {
  mrr: number
  arr: number
  arpa: number
  committedMrr: number
  activeSubscriptions: number
  activeAccounts: number
  coverage: Coverage
  /** Entries of the attention report for the same number of days. */
  attention: { paymentIssues: number; renewals: number; cancellations: number; upcomingBilling: number }
  invoiced: { amount: number; count: number }
  collected: { amount: number; count: number; refunded: number; disputed: number; oneOff: number }
  windowDays: number
  movements: MovementTotals
  /** Over the same window. */
  rates: Rates
  accounts: ReportList<AccountEntry>
  acquisitionSources: ReportList<SourceEntry>
  exclusions: ReportList<ExclusionEntry>
  /** Only in the reporting currency: currencies whose rate is from an earlier day. */
  olderRates?: string[]
}

export async function overviewReport(db: Db, question: ReportQuestion): Promise<OverviewReport> {
  const since = overviewStart(question)
  const ledger = await openLedger(db, question)
  const { matched } = ledger
  const { figures, own, pending, report } = await summarizeLedger(db, question, ledger)
  return {
    ...report,
    attention: await countAttention(db, question, matched),
    ...shownCash(await cashSince(db, question, since, matched)),
    accounts: accountList(
      db,
      question,
      ledger,
      sum(own, source => source.accounts),
    ),
    exclusions: exclusionList(db, question, ledger, { ...excludedItems(figures, question.currency), pending }),
  }
}

export function overviewStart({ asOf }: ReportQuestion): Date {
  return daysFrom(asOf, -WINDOW_DAYS)
}

/** What the ledger of one currency and the converted ledger of all currencies have in common. */
export async function summarizeLedger(db: Db, question: ReportQuestion, ledger: SeriesLedger) {
  const { currency, asOf } = question
  const since = overviewStart(question)
  const figures = await ledger.figures(asOf, since)
  const own = figures.filter(source => source.currency === currency)
  const mrr = sum(own, source => source.mrr)
  const activeAccounts = sum(own, source => source.activeAccounts)
  const { coverage, pending, isThenCovered } = await readCoverage(db, question, figures, since)
  const span = toSpan({ since, until: asOf })
  const [moved] = await ledger.movedWithin([span.from, span.to])
  const [retained] = await ledger.retainedWithin([span])
  const openingMrr = sum(own, source => source.cohortMrr)
  const movements = movementTotals(moved!, openingMrr, mrr)
  const arpa = computeArpa(mrr, activeAccounts)
  const report = {
    ...{ mrr, arr: computeArr(mrr), arpa, activeAccounts, coverage, movements, windowDays: WINDOW_DAYS },
    committedMrr: sum(own, source => source.committedMrr),
    activeSubscriptions: sum(own, source => source.activeSubscriptions),
    rates: computeRates({
      moved: movements,
      openingMrr,
      retentionBaseMrr: sum(own, source => source.retentionBaseMrr ?? source.cohortMrr),
      openingAccounts: sum(own, source => source.cohortAccounts),
      retained: sumRetained(retained!),
      arpa,
    }),
    acquisitionSources: await sourceList(db, question, { figures, retained: retained!, isThenCovered }),
  }
  return { figures, own, pending, report }
}

export async function countAttention(
  db: Db,
  question: ReportQuestion,
  matched: Ledger['matched'],
): Promise<OverviewReport['attention']> {
  const { counts } = await openAgenda(db, question, WINDOW_DAYS, matched)
  const issues = (await openIssues(db, question, matched)).counts
  return {
    paymentIssues: issues.invoices + issues.subscriptions,
    renewals: counts.renewal,
    cancellations: counts.cancellation,
    upcomingBilling: counts.charge,
  }
}

export function shownCash(cash: Cash): Pick<OverviewReport, 'invoiced' | 'collected'> {
  return {
    invoiced: { amount: cash.invoiced, count: cash.invoices },
    collected: {
      amount: cash.collected - cash.refunded - cash.disputed,
      count: cash.payments,
      refunded: cash.refunded,
      disputed: cash.disputed,
      oneOff: cash.oneOff,
    },
  }
}
