import { type Dimension, dimensionValue, filterSegment } from '../domain/billing/dimensions.ts'
import { computeArpa } from '../domain/billing/price.ts'
import type { Segment } from '../domain/billing/timeline.ts'
import type { Acquisition } from '../domain/billing/types.ts'
import { toDay } from '../domain/time.ts'
import type { Db } from '../postgres/database.ts'
import { countingSegments, reportTraits } from '../store/reports/accounts.ts'
import { acquisitionNames, type Retained, type SourceFigures } from '../store/reports/totals.ts'
import { UNATTRIBUTED } from './accounts.ts'
import { openKept, withKept } from './closed.ts'
import { type Coverage, readCoverage } from './coverage.ts'
import { convertParts, exchangedLedger, openCurrencies } from './exchange.ts'
import { openLedger, toSpan } from './ledger.ts'
import { daysFrom, type ReportList, type ReportQuestion, sum, toList } from './question.ts'

export type AcquisitionReport = { horizon: number; mrr: number; coverage: Coverage; sources: ReportList<SourceEntry> }

export type SourceEntry = Retention & {
  source: string
  medium: string | null
  campaign: string | null
  accounts: number
  subscriptions: number
  mrr: number
  mrrShare: number
  arpa: number
}

type Retention = {
  cohortAccounts: number | null
  cohortStartingMrr: number | null
  retainedMrr: number | null
  retentionRate: number | null
  retentionStatus: 'available' | 'insufficient_history' | 'horizon_not_reached'
}

/** `horizon`: the age of the cohort in days. */
export async function acquisitionReport(db: Db, question: ReportQuestion, horizon: number): Promise<AcquisitionReport> {
  const { currency, asOf } = question
  const then = daysFrom(asOf, -horizon)
  const ledger = question.isReporting ? await exchangedLedger(db, question) : await openLedger(db, question)
  const figures = await ledger.figures(asOf, then)
  const { coverage, isThenCovered } = await readCoverage(db, question, figures, then)
  const [retained] = await ledger.retainedWithin([toSpan({ since: then, until: asOf })])
  return {
    horizon,
    mrr: sum(figures, source => (source.currency === currency ? source.mrr : 0)),
    coverage,
    sources: await sourceList(db, question, { figures, retained: retained!, isThenCovered }),
  }
}

/**
 * Current MRR by acquisition source, and the retention of accounts that paid at the start of the horizon; the largest
 * first. `isThenCovered`: whether there is a snapshot of that day.
 */
export async function sourceList(
  db: Db,
  { tenantId, currency }: ReportQuestion,
  { figures, retained, isThenCovered }: { figures: SourceFigures[]; retained: Retained[]; isThenCovered: boolean },
): Promise<ReportList<SourceEntry>> {
  const own = figures.filter(
    source => source.currency === currency && (source.activeAccounts > 0 || source.cohortAccounts > 0),
  )
  const names = await acquisitionNames(
    db,
    tenantId,
    own.map(source => source.acquisitionId),
  )
  const total = sum(own, source => source.mrr)
  // In the reporting currency, a source has one row per currency.
  const changes = new Map<number, number>()
  for (const { acquisitionId, change } of retained)
    changes.set(acquisitionId, (changes.get(acquisitionId) ?? 0) + change)
  const entries = own.map((source): SourceEntry => {
    const base = source.retentionBaseMrr ?? source.cohortMrr
    const retainedMrr = base + (changes.get(source.acquisitionId) ?? 0)
    return {
      ...(names.get(source.acquisitionId) ?? UNKNOWN_SOURCE),
      accounts: source.activeAccounts,
      subscriptions: source.activeSubscriptions,
      mrr: source.mrr,
      mrrShare: total > 0 ? source.mrr / total : 0,
      arpa: computeArpa(source.mrr, source.activeAccounts),
      ...computeRetention({ ...source, cohortMrr: base }, retainedMrr, isThenCovered),
    }
  })
  return toList(entries.sort(bySize))
}

const UNKNOWN_SOURCE: Acquisition = { source: UNATTRIBUTED, medium: null, campaign: null }

function computeRetention(
  { cohortAccounts, cohortMrr }: SourceFigures,
  retainedMrr: number,
  isThenCovered: boolean,
): Retention {
  const unknown = { retainedMrr: null, retentionRate: null }
  if (cohortAccounts === 0) {
    return { cohortAccounts: 0, cohortStartingMrr: 0, ...unknown, retentionStatus: 'horizon_not_reached' }
  }
  if (!isThenCovered) {
    return { cohortAccounts: null, cohortStartingMrr: null, ...unknown, retentionStatus: 'insufficient_history' }
  }
  return {
    cohortAccounts,
    cohortStartingMrr: cohortMrr,
    retainedMrr,
    retentionRate: retainedMrr / cohortMrr,
    retentionStatus: 'available',
  }
}

function bySize(a: SourceEntry, b: SourceEntry): number {
  return b.mrr - a.mrr || compare(nameText(a), nameText(b))
}

function nameText({ source, medium, campaign }: SourceEntry): string {
  return JSON.stringify([source, medium, campaign])
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

export type BreakdownReport = { by: Dimension; mrr: number; parts: ReportList<BreakdownEntry> }

/** MRR of one plan, interval, source or country, and the number of accounts and subscriptions with such MRR. */
type BreakdownEntry = { name: string; mrr: number; accounts: number; subscriptions: number }

type Part = { mrr: number; accounts: Set<string>; subscriptions: number }

/** In the reporting currency, the rows of each currency add up to its converted MRR. */
async function reportingBreakdown(db: Db, question: ReportQuestion, by: Dimension): Promise<BreakdownReport> {
  const { ledgers, convert } = await openCurrencies(db, question)
  const parts = new Map<string, BreakdownEntry>()
  for (const { currency, question: asked } of ledgers) {
    const own = await breakdownReport(db, asked, by)
    const rows = await own.parts.rows({ offset: 0, limit: own.parts.count })
    const amounts = convertParts(
      rows.map(row => row.mrr),
      minor => convert(minor, currency, toDay(question.asOf)),
    )
    for (const [i, { name, accounts, subscriptions }] of rows.entries()) {
      const part = parts.get(name) ?? { name, mrr: 0, accounts: 0, subscriptions: 0 }
      parts.set(name, {
        name,
        mrr: part.mrr + amounts[i]!,
        accounts: part.accounts + accounts,
        subscriptions: part.subscriptions + subscriptions,
      })
    }
  }
  const entries = [...parts.values()]
  const mrr = sum(entries, part => part.mrr)
  return { by, mrr, parts: toList(entries.sort((a, b) => b.mrr - a.mrr || (a.name < b.name ? -1 : 1))) }
}

/** Breaks MRR down by item, so the rows add up to it. The largest first. */
export async function breakdownReport(db: Db, question: ReportQuestion, by: Dimension): Promise<BreakdownReport> {
  if (question.isReporting) return reportingBreakdown(db, question, by)
  const parts = new Map<string, Part>()
  let mrr = 0
  const withCountry = by === 'country' || question.filter.country !== undefined
  const kept = await openKept(db, question)
  const isCounting = ({ currency, mrr, to }: Segment) =>
    currency === question.currency && mrr > 0 && (to === null || to > question.asOf.getTime())
  for await (const segments of withKept(countingSegments(db, question), kept, isCounting)) {
    const accounts = [...new Set(segments.map(segment => segment.account))]
    const traits = await reportTraits(db, question.tenantId, accounts, withCountry)
    for (const whole of segments) {
      const ofAccount = { ...traits.get(whole.account)!, ...kept?.sources.get(whole.account) }
      const segment = filterSegment(whole, question.filter, ofAccount, question.policy)
      if (segment === null) continue
      const own = new Map<string, number>()
      for (const item of segment.items) {
        if (item.mrr === 0) continue
        const name = dimensionValue(by, item, segment, ofAccount, question.policy)
        own.set(name, (own.get(name) ?? 0) + item.mrr)
      }
      for (const [name, amount] of own) {
        const part = parts.get(name) ?? { mrr: 0, accounts: new Set<string>(), subscriptions: 0 }
        parts.set(name, part)
        part.mrr += amount
        part.accounts.add(segment.account)
        part.subscriptions += 1
        mrr += amount
      }
    }
  }
  const entries = [...parts].map(([name, part]) => ({ name, ...part, accounts: part.accounts.size }))
  return { by, mrr, parts: toList(entries.sort((a, b) => b.mrr - a.mrr || (a.name < b.name ? -1 : 1))) }
}
