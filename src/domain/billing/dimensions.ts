/** By what MRR is broken down: what an item is sold as, and whose it is. */

import { planName } from './accounts.ts'
import type { Segment, SegmentItem } from './timeline.ts'

export const DIMENSIONS = ['plan', 'interval', 'source', 'country'] as const
export type Dimension = (typeof DIMENSIONS)[number]

export const UNKNOWN = 'unknown'

/** What is known of an account beside its subscriptions. */
export type AccountTraits = {
  /** Where it came from. */
  source: string
  /** As its contact says; null: it does not. */
  country: string | null
}

/** What an item of a segment counts under. */
export function dimensionOf(
  dimension: Dimension,
  item: SegmentItem,
  segment: Segment,
  traits: AccountTraits,
): string {
  switch (dimension) {
    case 'plan':
      return planName(item) ?? UNKNOWN
    case 'interval':
      return intervalName(item)
    case 'source':
      return traits.source
    case 'country':
      return traits.country ?? segment.country ?? UNKNOWN
  }
}

/** 'month', or '3 months'. */
function intervalName({ interval, intervalCount }: SegmentItem): string {
  if (interval === null) return UNKNOWN
  return intervalCount === null || intervalCount === 1 ? interval : `${intervalCount} ${interval}s`
}

/** What a report is narrowed to; all that are given must hold. */
export type Filter = Partial<Record<Dimension | 'status', string>>

export function isFiltered(filter: Filter): boolean {
  return Object.keys(filter).length > 0
}

/** The segment with those items alone that the filter leaves; null where it leaves none. */
export function filteredSegment(segment: Segment, filter: Filter, traits: AccountTraits): Segment | null {
  if (filter.status !== undefined && filter.status !== segment.status) return null
  const wanted = DIMENSIONS.filter(dimension => filter[dimension] !== undefined)
  const items = segment.items.filter(item =>
    wanted.every(dimension => dimensionOf(dimension, item, segment, traits) === filter[dimension]),
  )
  if (items.length === 0) return null
  if (items.length === segment.items.length) return segment
  const mrr = items.reduce((sum, item) => sum + item.mrr, 0)
  return { ...segment, items, mrr, committedMrr: segment.committedMrr === 0 ? 0 : mrr }
}
