/** Dimensions by which reports break MRR down and filter it. */

import { channelOf } from '../customers/channels.ts'
import { planName } from './account.ts'
import type { Policy } from './policy.ts'
import type { Segment, SegmentItem } from './timeline.ts'
import type { Acquisition } from './types.ts'

export const DIMENSIONS = ['plan', 'plan_group', 'interval', 'source', 'channel', 'country'] as const

const METADATA = 'metadata.'

/** `metadata.` is followed by the key. */
export type Dimension = (typeof DIMENSIONS)[number] | `metadata.${string}`

export function isDimension(name: string): name is Dimension {
  return DIMENSIONS.some(known => known === name) || (name.startsWith(METADATA) && name.length > METADATA.length)
}

const UNKNOWN = 'unknown'
const UNATTRIBUTED = 'unattributed'

/** Facts about an account that its subscriptions do not have. */
export type AccountTraits = {
  /** Null: unattributed. */
  acquisition: Acquisition | null
  /** From its contact; null: unknown. */
  country: string | null
}

/** The value of a dimension for an item of a segment. */
export function dimensionValue(
  dimension: Dimension,
  item: SegmentItem,
  segment: Segment,
  { acquisition, country }: AccountTraits,
  { planGroups, channels }: Policy,
): string {
  switch (dimension) {
    case 'plan':
      return planName(item) ?? UNKNOWN
    case 'plan_group':
      return findGroup(item, planGroups)
    case 'interval':
      return intervalName(item)
    case 'source':
      return acquisition?.source ?? UNATTRIBUTED
    case 'channel':
      return acquisition ? channelOf(acquisition, channels) : UNATTRIBUTED
    case 'country':
      return country ?? segment.country ?? UNKNOWN
    default:
      return segment.metadata?.[dimension.slice(METADATA.length)] ?? UNKNOWN
  }
}

/** The first group that lists the plan by its name or the id of its price or product; else `ungrouped`. */
function findGroup(item: SegmentItem, groups: Policy['planGroups']): string {
  const names = [planName(item), item.priceId, item.productId]
  return Object.entries(groups).find(([, plans]) => plans.some(plan => names.includes(plan)))?.[0] ?? 'ungrouped'
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
export function filterSegment(segment: Segment, filter: Filter, traits: AccountTraits, policy: Policy): Segment | null {
  if (filter.status !== undefined && filter.status !== segment.status) return null
  const wanted = Object.keys(filter).filter(isDimension)
  const items = segment.items.filter(item =>
    wanted.every(dimension => dimensionValue(dimension, item, segment, traits, policy) === filter[dimension]),
  )
  if (items.length === 0) return null
  if (items.length === segment.items.length) return segment
  const mrr = items.reduce((sum, item) => sum + item.mrr, 0)
  return { ...segment, items, mrr, committedMrr: segment.committedMrr === 0 ? 0 : mrr }
}
