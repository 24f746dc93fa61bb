import { type Exclusion, pendingExclusion, REASONS } from '../domain/billing/exclusions.ts'
import type { Instant, ReasonCode, SubscriptionStatus } from '../domain/billing/types.ts'
import { type Slice, slicesOf } from '../domain/list-slices.ts'
import type { Db } from '../postgres/database.ts'
import { segmentsOfSubscriptions } from '../store/reports/accounts.ts'
import { type ExcludedItem, excludedSlice, foreignSlice, pendingSlice } from '../store/reports/exclusions.ts'
import type { Ledger } from './ledger.ts'
import type { ReportList, ReportQuestion } from './question.ts'

export type ExclusionEntry = {
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

/** Three lists in a row: items that do not count, items in other currencies, subscriptions that have not arrived. */
export function exclusionList(
  db: Db,
  question: ReportQuestion,
  { narrowed }: Ledger,
  counts: { excluded: number; foreign: number; pending: number },
): ReportList<ExclusionEntry> {
  const { tenantId, asOf } = question
  const parts = [counts.excluded, counts.foreign, counts.pending]
  return {
    count: counts.excluded + counts.foreign + counts.pending,
    async rows(slice) {
      const [own, foreign, pending] = slicesOf(slice, parts)
      const part = (rows: ExcludedItem[], { offset, limit }: Slice) => rows.slice(offset, offset + limit)
      const items = narrowed
        ? [...part(narrowed.excluded, own!), ...part(narrowed.foreign, foreign!)]
        : [
            ...(await excludedSlice(db, question, own!, counts.excluded)),
            ...(await foreignSlice(db, question, foreign!, counts.foreign)),
          ]
      const segments = await segmentsOfSubscriptions(
        db,
        tenantId,
        items.map(item => item.subscriptionId),
        asOf,
      )
      const unseen = await pendingSlice(db, question, pending!)
      return [
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
          return isForeign ? { ...exclusion, code: 'other_currency' } : exclusion
        }),
      ].map(({ code, ...exclusion }) => ({ ...exclusion, reasonCode: code, ...REASONS[code] }))
    },
  }
}
