/** Dimensions by which reports break MRR down and filter it. */

import { planName } from './account.ts'
import type { Segment, SegmentItem } from './timeline.ts'

export const DIMENSIONS = ['plan', 'interval', 'source', 'country'] as const
export type Dimension = (typeof DIMENSIONS)[number]

export const UNKNOWN = 'unknown'

/** Facts about an account that its subscriptions do not have. */
export type AccountTraits = {
  /** The acquisition source. */
  source: string
  /** From its contact; null: unknown. */
  country: string | null
}

/** The value of a dimension for an item of a segment. */
export function dimensionValue(
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

/** A report filter. All conditions must match. */
export type Filter = Partial<Record<Dimension | 'status', string>>

export function isFiltered(filter: Filter): boolean {
  return Object.keys(filter).length > 0
}

/** The segment with only its matching items; null: no item matches. */
export function filterSegment(segment: Segment, filter: Filter, traits: AccountTraits): Segment | null {
  if (filter.status !== undefined && filter.status !== segment.status) return null
  const wanted = DIMENSIONS.filter(dimension => filter[dimension] !== undefined)
  const items = segment.items.filter(item =>
    wanted.every(dimension => dimensionValue(dimension, item, segment, traits) === filter[dimension]),
  )
  if (items.length === 0) return null
  if (items.length === segment.items.length) return segment
  const mrr = items.reduce((sum, item) => sum + item.mrr, 0)
  return { ...segment, items, mrr, committedMrr: segment.committedMrr === 0 ? 0 : mrr }
}
