/** The overview in the reporting currency. Lists contain the rows of all currencies, converted. */

import { computeRates } from '../domain/billing/policy.ts'
import { computeArpa, computeArr } from '../domain/billing/price.ts'
import { splitSlice } from '../domain/list-slices.ts'
import { DAY_MS, type Day, toDay } from '../domain/time.ts'
import type { Db } from '../postgres/database.ts'
import type { Stretch } from '../store/reports/cash.ts'
import type { Cash } from '../store/reports/totals.ts'
import { type AccountEntry, accountList } from './accounts.ts'
import { sourceList } from './acquisition.ts'
import { openAgenda, openIssues } from './attention.ts'
import { cashWithin } from './cash.ts'
import { readCoverage } from './coverage.ts'
import {
  type Convert,
  type Currencies,
  type CurrencyLedger,
  exchangedLedger,
  mergeLists,
  openCurrencies,
} from './exchange.ts'
import { exclusionList } from './exclusions.ts'
import { toSpan } from './ledger.ts'
import { movementTotals, sumRetained } from './movements.ts'
import { type OverviewReport, shownCash, WINDOW_DAYS } from './overview.ts'
import { daysFrom, type ReportList, type ReportQuestion, sum } from './question.ts'

export async function reportingOverview(db: Db, question: ReportQuestion): Promise<OverviewReport> {
  const { currency: target, asOf } = question
  const since = daysFrom(asOf, -WINDOW_DAYS)
  const today = toDay(asOf)
  const currencies = await openCurrencies(db, question)
  const { ledgers, convert, olderRates } = currencies
  const exchanged = await exchangedLedger(db, question, currencies)
  const figures = await exchanged.figures(asOf, since)
  const own = figures.filter(source => source.currency === target)
  const { coverage, pending, isThenCovered } = await readCoverage(db, question, figures, since)
  const attention = { paymentIssues: 0, renewals: 0, cancellations: 0, upcomingBilling: 0 }
  for (const { question: asked, ledger } of ledgers) {
    const { counts } = await openAgenda(db, asked, WINDOW_DAYS, ledger.matched)
    const issues = (await openIssues(db, asked, ledger.matched)).counts
    attention.paymentIssues += issues.invoices + issues.subscriptions
    attention.renewals += counts.renewal
    attention.cancellations += counts.cancellation
    attention.upcomingBilling += counts.charge
  }
  const span = toSpan({ since, until: asOf })
  const [moved] = await exchanged.movedWithin([span.from, span.to])
  const [retained] = await exchanged.retainedWithin([span])
  const mrr = sum(own, source => source.mrr)
  const openingMrr = sum(own, source => source.cohortMrr)
  const activeAccounts = sum(own, source => source.activeAccounts)
  const movements = movementTotals(moved!, openingMrr, mrr)
  const arpa = computeArpa(mrr, activeAccounts)
  return {
    ...{ mrr, arr: computeArr(mrr), arpa, activeAccounts, coverage, attention, olderRates },
    committedMrr: sum(own, source => source.committedMrr),
    activeSubscriptions: sum(own, source => source.activeSubscriptions),
    ...shownCash(await exchangedCash(db, ledgers, convert, { since, asOf })),
    windowDays: WINDOW_DAYS,
    movements,
    rates: computeRates({
      moved: movements,
      openingMrr,
      retentionBaseMrr: sum(own, source => source.retentionBaseMrr ?? 0),
      openingAccounts: sum(own, source => source.cohortAccounts),
      retained: sumRetained(retained!),
      arpa,
    }),
    accounts: exchangedAccounts(db, currencies, today),
    acquisitionSources: await sourceList(db, question, { figures, retained: retained!, isThenCovered }),
    exclusions: exchangedExclusions(db, currencies, today, pending),
  }
}

/** One row per account and currency, the largest first. */
function exchangedAccounts(db: Db, { ledgers, figures, convert }: Currencies, today: Day): ReportList<AccountEntry> {
  const lists = ledgers.map(({ currency, question, ledger }): ReportList<AccountEntry> => {
    const own = figures.filter(source => source.currency === currency)
    const list = accountList(
      db,
      question,
      ledger,
      sum(own, source => source.accounts),
    )
    return {
      count: list.count,
      async rows(slice) {
        return (await list.rows(slice)).map(entry => {
          const mrr = convert(entry.mrr, currency, today)
          return { ...entry, mrr, arr: computeArr(mrr), committedMrr: convert(entry.committedMrr, currency, today) }
        })
      },
    }
  })
  return mergeLists(lists, entry => entry.mrr)
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

/** Cash in (since, asOf], by the rate of each day. */
async function exchangedCash(
  db: Db,
  ledgers: CurrencyLedger[],
  convert: Convert,
  { since, asOf }: { since: Date; asOf: Date },
): Promise<Cash> {
  const days: Stretch[] = []
  for (let at = since.getTime() + 1; at <= asOf.getTime(); ) {
    const until = Math.min((Math.floor(at / DAY_MS) + 1) * DAY_MS, asOf.getTime() + 1)
    days.push({ bucket: days.length, since: new Date(at), until: new Date(until) })
    at = until
  }
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
