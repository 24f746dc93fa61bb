import { isFiltered } from '../domain/billing/dimensions.ts'
import { stripNamespaces } from '../domain/billing/namespace.ts'
import type { Caution } from '../domain/billing/timeline.ts'
import type { Instant } from '../domain/billing/types.ts'
import { toDay } from '../domain/time.ts'
import type { Db } from '../postgres/database.ts'
import { snapshotCoverage } from '../store/billing/snapshots.ts'
import { type OpenWarning, openWarnings, uncountedEvents } from '../store/billing/versions.ts'
import {
  type CautionedSubscriptions,
  cautionedSubscriptions,
  feedTimes,
  type Unlinked,
  unlinkedInvoices,
} from '../store/reports/exclusions.ts'
import type { SourceFigures } from '../store/reports/totals.ts'
import { type ReportQuestion, sum } from './question.ts'

/** How complete the data behind a report is. */
export type Coverage = {
  subscriptionsSeen: number
  subscriptionsIncluded: number
  subscriptionsExcluded: number
  itemsSeen: number
  itemsPriced: number
  invoicesWithoutSubscription: number
  accountsAttributed: number
  attributionRate: number
  firstEventAt: Date | null
  lastEventAt: Date | null
  snapshotFirstAt: Instant | null
  snapshotDaysAvailable: number
  snapshotGaps: number
  movementsComplete: boolean
  warnings: string[]
  /** Events that look like billing events but could not be read, by type. */
  unrecognized: Record<string, number>
  /** Events of a provider's test mode. */
  testEvents: number
}

type CoverageRead = {
  coverage: Coverage
  /** Subscriptions that are known only from invoices. */
  pending: number
  /** Whether there is a snapshot of the day of `then`. */
  isThenCovered: boolean
}

export async function readCoverage(
  db: Db,
  question: ReportQuestion,
  figures: SourceFigures[],
  then: Date,
): Promise<CoverageRead> {
  const { tenantId, currency, asOf, now } = question
  const unlinked = await unlinkedInvoices(db, question)
  const cautions = await cautionedSubscriptions(db, tenantId, asOf, MAX_LISTED)
  const uncounted = await uncountedEvents(db, tenantId, asOf)
  const unreadable = await openWarnings(db, tenantId, asOf, MAX_LISTED)
  const times = await feedTimes(db, tenantId, asOf)
  // the snapshot of a day is written after its end
  const until = toDay(Math.min(asOf.getTime(), now.getTime()))
  const snapshots = await snapshotCoverage(db, tenantId, until, then)
  const own = figures.filter(source => source.currency === currency)
  const seen = sum(figures, source => source.subscriptions)
  const included = sum(own, source => source.activeSubscriptions)
  const accounts = sum(own, source => source.activeAccounts)
  const attributed = sum(own, source => (source.acquisitionId > 0 ? source.activeAccounts : 0))
  return {
    // a filter cannot be applied to them
    pending: isFiltered(question.filter) ? 0 : unlinked.pending,
    isThenCovered: snapshots.covers,
    coverage: {
      subscriptionsSeen: seen,
      subscriptionsIncluded: included,
      subscriptionsExcluded: seen - included,
      itemsSeen: sum(figures, source => source.items),
      itemsPriced: sum(own, source => source.pricedItems),
      invoicesWithoutSubscription: unlinked.invoices,
      accountsAttributed: attributed,
      attributionRate: accounts > 0 ? attributed / accounts : 0,
      firstEventAt: times.first,
      lastEventAt: times.last,
      snapshotFirstAt: snapshots.firstDay === null ? null : Date.parse(snapshots.firstDay),
      snapshotDaysAvailable: snapshots.days,
      snapshotGaps: snapshots.gaps,
      movementsComplete: unlinked.pending === 0 && snapshots.gaps === 0,
      unrecognized: uncounted.unrecognized,
      testEvents: uncounted.test,
      warnings: [
        ...unreadableWarnings(unreadable),
        ...listWarnings(figures, unlinked, snapshots.gaps),
        ...cautionWarnings(cautions),
      ],
    },
  }
}

/** Values that cannot be read are listed up to this number. */
const MAX_LISTED = 10

function unreadableWarnings({ warnings, count }: { warnings: OpenWarning[]; count: number }): string[] {
  const more = count - warnings.length
  return [
    ...warnings.map(
      ({ kind, objectId, field, value }) =>
        `${kind[0]!.toUpperCase()}${kind.slice(1)} ${stripNamespaces(objectId)}: \`${field}\` cannot be read: ${value}`,
    ),
    ...(more > 0 ? [`${more} more ${more === 1 ? 'value' : 'values'} cannot be read.`] : []),
  ]
}

const CAUTIONS: Record<Caution, string> = {
  items_incomplete: 'its events do not list all of its items; MRR is too low.',
  inclusive_tax_unknown: 'prices include tax at an unknown rate; MRR is too high.',
  tax_mode_unknown: 'prices may include tax, which no invoice shows; MRR may be too high.',
  id_of_two_customers: 'two sources send the id with different customers: give the sources different namespaces.',
}

/** One warning per caution. It names the first subscriptions. */
function cautionWarnings(found: Map<Caution, CautionedSubscriptions>): string[] {
  return (Object.keys(CAUTIONS) as Caution[]).flatMap(caution => {
    const { ids, count } = found.get(caution) ?? { ids: [], count: 0 }
    if (count === 0) return []
    const more = count > ids.length ? ` and ${count - ids.length} more` : ''
    return `Subscription${count === 1 ? '' : 's'} ${ids.map(stripNamespaces).join(', ')}${more}: ${CAUTIONS[caution]}`
  })
}

function listWarnings(figures: SourceFigures[], { pending }: Unlinked, gaps: number): string[] {
  const withoutCurrency = sum(
    figures.filter(source => source.currency === ''),
    source => source.subscriptions,
  )
  const words = (count: number, single: string, several: string) =>
    count === 0 ? [] : [count === 1 ? single : several]
  return [
    ...words(
      pending,
      'One subscription appears only in invoices; its MRR is missing.',
      `${pending} subscriptions appear only in invoices; their MRR is missing.`,
    ),
    ...words(
      withoutCurrency,
      'One subscription has no currency and does not count.',
      `${withoutCurrency} subscriptions have no currency and do not count.`,
    ),
    ...words(
      gaps,
      'One day has no snapshot: run `kontor snapshot`.',
      `${gaps} days have no snapshot: run \`kontor snapshot\`.`,
    ),
  ]
}
