import { type Exclusion, pendingExclusion, REASONS } from '../../domain/billing/exclusions.ts'
import type { Db } from '../../postgres/database.ts'
import { segmentsOfSubscriptions } from '../../store/reports/accounts.ts'
import { excludedSlice, foreignSlice, pendingSlice } from '../../store/reports/exclusions.ts'
import { slicesOf } from '../../store/reports/reports.ts'
import type { Ask } from './query.ts'
import type { ReportList } from './report.ts'
import { ExclusionRow, type Row } from './rows.ts'

/** Three lists in a row: items that do not count, items in other currencies, subscriptions that have not arrived. */
export function exclusionList(
  db: Db,
  ask: Ask,
  counts: { excluded: number; foreign: number; pending: number },
): ReportList {
  const { tenantId, currency, asOf } = ask
  const parts = [counts.excluded, counts.foreign, counts.pending]
  return {
    row: ExclusionRow,
    count: counts.excluded + counts.foreign + counts.pending,
    async rows(slice) {
      const [own, foreign, pending] = slicesOf(slice, parts)
      const items = [
        ...(await excludedSlice(db, tenantId, currency, asOf, own!, counts.excluded)),
        ...(await foreignSlice(db, tenantId, currency, asOf, foreign!, counts.foreign)),
      ]
      const segments = await segmentsOfSubscriptions(
        db,
        tenantId,
        items.map(item => item.subscriptionId),
        asOf,
      )
      const stubs = await pendingSlice(db, tenantId, currency, asOf, pending!)
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
        ...stubs.map(({ id, customer, since, isForeign }): Exclusion => {
          const exclusion = pendingExclusion(id, customer, since.getTime())
          return isForeign ? { ...exclusion, code: 'other_currency' } : exclusion
        }),
      ].map(exclusionRow)
    },
  }
}

function exclusionRow(exclusion: Exclusion): Row<typeof ExclusionRow> {
  const { reason, fixHint } = REASONS[exclusion.code]
  return {
    subscription_id: exclusion.subscriptionId,
    item_id: exclusion.itemId,
    customer: exclusion.customer,
    status: exclusion.status,
    reason_code: exclusion.code,
    reason,
    excluded_mrr: exclusion.excludedMrr,
    since: exclusion.since,
    fix_hint: fixHint,
  }
}
