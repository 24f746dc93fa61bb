import { type Exclusion, fixHint, hasProviderHints, pendingExclusion, REASONS } from '../domain/billing/exclusions.ts'
import type { Instant, ReasonCode, SubscriptionStatus } from '../domain/billing/types.ts'
import { type Slice, splitSlice } from '../domain/list-slices.ts'
import type { Db } from '../postgres/database.ts'
import { segmentsOfSubscriptions } from '../store/reports/accounts.ts'
import {
  type ExcludedItem,
  excludedByReason,
  excludedSlice,
  findProviders,
  foreignSlice,
  pendingSlice,
  type ReasonSum,
  unlinkedInvoices,
} from '../store/reports/exclusions.ts'
import type { SourceFigures } from '../store/reports/totals.ts'
import { type Named, withNames } from './attention.ts'
import { type Ledger, openLedger } from './ledger.ts'
import { type ReportList, type ReportQuestion, sum } from './question.ts'

export type ExclusionEntry = Named<ExcludedEntry>

type ExcludedEntry = {
  subscriptionId: string
  itemId: string | null
  customer: string | null
  status: SubscriptionStatus | null
  reasonCode: ReasonCode
  reason: string
  excludedMrr: number | null
  since: Instant
  fixHint: string
}

/** Three lists in sequence: excluded items, items in other currencies, subscriptions that have not been received. */
export function exclusionList(
  db: Db,
  question: ReportQuestion,
  { matched }: Ledger,
  counts: { excluded: number; foreign: number; pending: number },
  withUnknownCurrency = true,
): ReportList<ExclusionEntry> {
  const { tenantId, asOf } = question
  const parts = [counts.excluded, counts.foreign, counts.pending]
  return withNames(db, tenantId, {
    count: counts.excluded + counts.foreign + counts.pending,
    async rows(slice) {
      const [own, foreign, pending] = splitSlice(slice, parts)
      const part = (rows: ExcludedItem[], { offset, limit }: Slice) => rows.slice(offset, offset + limit)
      const items = matched
        ? [...part(matched.excluded, own!), ...part(matched.foreign, foreign!)]
        : [
            ...(await excludedSlice(db, question, own!, counts.excluded, withUnknownCurrency)),
            ...(await foreignSlice(db, question, foreign!, counts.foreign)),
          ]
      const segments = await segmentsOfSubscriptions(
        db,
        tenantId,
        items.map(item => item.subscriptionId),
        asOf,
      )
      const unseen = await pendingSlice(db, question, pending!)
      const exclusions = [
        ...items.map((item): Exclusion => {
          const segment = segments.get(item.subscriptionId)
          return {
            subscriptionId: item.subscriptionId,
            itemId: item.itemId,
            customer: segment?.account ?? null,
            status: segment?.status ?? null,
            code: item.reason,
            excludedMrr: item.excludedMrr,
            since: item.since.getTime(),
          }
        }),
        ...unseen.map(({ id, customer, since, isForeign }): Exclusion => {
          const exclusion = pendingExclusion(id, customer, since.getTime())
          return isForeign && !question.isReporting ? { ...exclusion, code: 'other_currency' } : exclusion
        }),
      ]
      const dependent = exclusions.filter(({ code }) => hasProviderHints(code))
      const providers = await findProviders(db, tenantId, [...new Set(dependent.map(row => row.subscriptionId))])
      return exclusions.map(({ code, ...exclusion }) => ({
        ...{ ...exclusion, reasonCode: code, reason: REASONS[code].reason },
        fixHint: fixHint(code, providers.get(exclusion.subscriptionId) ?? null),
      }))
    },
  })
}

/** The number of excluded items: in the currency or without one, and in other currencies. */
export function excludedItems(figures: SourceFigures[], currency: string): { excluded: number; foreign: number } {
  const isOwn = (source: SourceFigures) => source.currency === currency || source.currency === ''
  return {
    excluded: sum(figures, source => (isOwn(source) ? source.excludedItems : 0)),
    foreign: sum(figures, source => (isOwn(source) ? 0 : source.itemRows)),
  }
}

export type ExclusionReport = { byReason: ReasonEntry[]; exclusions: ReportList<ExclusionEntry> }

type ReasonEntry = {
  reasonCode: ReasonCode
  reason: string
  items: number
  /** Of items that can be priced. */
  excludedMrr: number
  unpriced: number
}

/** All exclusions, and their sums by reason; the most items first. */
export async function exclusionReport(db: Db, question: ReportQuestion): Promise<ExclusionReport> {
  const ledger = await openLedger(db, question)
  const figures = await ledger.figures(question.asOf, question.asOf)
  const pending = ledger.matched ? 0 : (await unlinkedInvoices(db, question)).pending
  const unseen = await pendingSlice(db, question, { offset: 0, limit: pending })
  const sums = ledger.matched
    ? sumByReason([...ledger.matched.excluded, ...ledger.matched.foreign])
    : await excludedByReason(db, question)
  const all = unseen.map(({ isForeign }): ReasonSum => {
    const reason = isForeign ? 'other_currency' : 'pending_subscription'
    return { reason, items: 1, excludedMrr: 0, unpriced: 1 }
  })
  return {
    byReason: reasonEntries([...sums, ...all]),
    exclusions: exclusionList(db, question, ledger, { ...excludedItems(figures, question.currency), pending }),
  }
}

function sumByReason(items: ExcludedItem[]): ReasonSum[] {
  return items.map(({ reason, excludedMrr }) => ({
    reason,
    items: 1,
    excludedMrr: excludedMrr ?? 0,
    unpriced: excludedMrr === null ? 1 : 0,
  }))
}

/** The most items first. */
export function reasonEntries(sums: ReasonSum[]): ReasonEntry[] {
  return [...Map.groupBy(sums, own => own.reason)]
    .map(([reason, own]) => ({
      reasonCode: reason,
      reason: REASONS[reason].reason,
      items: sum(own, part => part.items),
      excludedMrr: sum(own, part => part.excludedMrr),
      unpriced: sum(own, part => part.unpriced),
    }))
    .sort((a, b) => b.items - a.items || (a.reasonCode < b.reasonCode ? -1 : 1))
}
