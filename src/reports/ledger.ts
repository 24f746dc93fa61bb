import type { CohortChange, MovementType } from '../domain/billing/movements.ts'
import type { Segment } from '../domain/billing/timeline.ts'
import type { Slice } from '../domain/list-slices.ts'
import type { ExcludedItem } from '../store/reports/exclusions.ts'
import type { Standing } from '../store/reports/history.ts'
import type { MovementEntry, MovementOrder, RetentionBase } from '../store/reports/movements.ts'
import type { Moved, SourceFigures } from '../store/reports/totals.ts'

/**
 * What reports read of accounts and their movements, in the currency and as of the time of their question: of all
 * subscriptions from what is kept for that, of some of them from their segments.
 */
export type Ledger = {
  /** At `at`, of all currencies, with those at another time beside them. */
  figures(at: Date, then: Date): Promise<SourceFigures[]>
  /** In (since, until]. */
  moved(since: Date, until: Date): Promise<Moved>
  /** Right before each of these times. */
  standings(bounds: Date[]): Promise<Standing[]>
  /** Between each of these times and the next. */
  movedWithin(bounds: Date[]): Promise<Partial<Record<MovementType, number>>[]>
  /** By cohort and month, of accounts that first paid at `since` or later. */
  cohorts(since: Date, base: RetentionBase): Promise<CohortChange[]>
  /** The largest MRR first. */
  accounts(slice: Slice, count: number): Promise<string[]>
  /** That hold at the time of the question, in all currencies. */
  segments(accounts: string[]): Promise<Segment[]>
  /** In (since, until]. `count`: how many there are. */
  movements(
    window: { since: Date; until: Date },
    wanted: { slice: Slice; count: number; order: MovementOrder },
  ): Promise<MovementEntry[]>
  movementsOf(account: string): Promise<MovementEntry[]>
  /** What the filter leaves; null: there is none, and nothing to look up. */
  narrowed: Narrowed | null
}

export type Narrowed = {
  /** Whether something of the subscription was left at that time. */
  holds(subscriptionId: string, at: Date): boolean
  /** Items that do not count, as the report of exclusions lists them: of the currency or of none, and of others. */
  excluded: ExcludedItem[]
  foreign: ExcludedItem[]
}
