import type { Db } from '../../postgres/database.ts'
import { snapshotCoverage } from '../../store/billing/snapshots.ts'
import { feedTimes, type Unlinked, unlinkedInvoices } from '../../store/reports/exclusions.ts'
import type { SourceFigures } from '../../store/reports/totals.ts'
import type { Ask } from './query.ts'

export type Coverage = {
  /** As reports show it. */
  shown: Record<string, unknown>
  unlinked: Unlinked
  /** Whether there is a snapshot of the day of `then`. */
  isThenCovered: boolean
}

/** How much of what there is the report rests on. */
export async function readCoverage(
  db: Db,
  { tenantId, currency, asOf, now }: Ask,
  figures: SourceFigures[],
  then: Date,
): Promise<Coverage> {
  const unlinked = await unlinkedInvoices(db, tenantId, currency, asOf)
  const times = await feedTimes(db, tenantId, asOf)
  // a day has its snapshot once it is over
  const until = (asOf < now ? asOf : now).toISOString().slice(0, 10)
  const snapshots = await snapshotCoverage(db, tenantId, until, then)
  const own = figures.filter(one => one.currency === currency)
  const seen = sum(figures, one => one.subscriptions)
  const included = sum(own, one => one.activeSubscriptions)
  const accounts = sum(own, one => one.activeAccounts)
  const attributed = sum(own, one => (one.acquisitionId > 0 ? one.activeAccounts : 0))
  return {
    unlinked,
    isThenCovered: snapshots.covers,
    shown: {
      subscriptions_seen: seen,
      subscriptions_included: included,
      subscriptions_excluded: seen - included,
      items_seen: sum(figures, one => one.items),
      items_priced: sum(own, one => one.itemsPriced),
      invoices_without_subscription: unlinked.invoices,
      accounts_attributed: attributed,
      attribution_rate: accounts > 0 ? attributed / accounts : 0,
      first_event_at: times.first,
      last_event_at: times.last,
      snapshot_first_at: snapshots.firstDay && `${snapshots.firstDay}T00:00:00.000Z`,
      snapshot_days_available: snapshots.days,
      snapshot_gaps: snapshots.gaps,
      movements_complete: unlinked.pending === 0 && snapshots.gaps === 0,
      warnings: warningsOf(figures, unlinked, snapshots.gaps),
    },
  }
}

export function sum<T>(values: T[], of: (value: T) => number): number {
  return values.reduce((total, value) => total + of(value), 0)
}

function warningsOf(figures: SourceFigures[], unlinked: Unlinked, gaps: number): string[] {
  const withoutCurrency = sum(
    figures.filter(one => one.currency === ''),
    one => one.subscriptions,
  )
  const told = (count: number, one: string, many: string) =>
    count === 0 ? [] : [count === 1 ? one : many.replace('#', String(count))]
  return [
    ...told(
      unlinked.pending,
      'One subscription is known from invoices only; its MRR is missing.',
      '# subscriptions are known from invoices only; their MRR is missing.',
    ),
    ...told(
      withoutCurrency,
      'One subscription names no currency and counts nowhere.',
      '# subscriptions name no currency and count nowhere.',
    ),
    ...told(
      gaps,
      'One day has no snapshot: run `kontor snapshot`.',
      '# days have no snapshot: run `kontor snapshot`.',
    ),
  ]
}
