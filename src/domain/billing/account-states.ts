/** What an account's subscriptions of one currency come to, from when to when. */

import { mergeEqual } from './spans.ts'
import type { Segment } from './timeline.ts'
import type { Instant } from './types.ts'

type Figures = {
  mrr: number
  committedMrr: number
  /** Rows that items have in reports: one stands for a subscription without items. */
  itemRows: number
  items: number
  /** Items whose price per month is known, whether they count or not. */
  pricedItems: number
  excludedItems: number
}

/** Of a segment, what its account adds up. */
export type SegmentFigures = Figures & {
  subscriptionId: string
  from: Instant
  to: Instant | null
  currency: string | null
}

export type AccountState = Figures & {
  currency: string | null
  from: Instant
  to: Instant | null
  subscriptions: number
  activeSubscriptions: number
}

export function figuresOf(segment: Segment): SegmentFigures {
  const { subscriptionId, from, to, currency, mrr, committedMrr, items } = segment
  return {
    subscriptionId,
    from,
    to,
    currency,
    mrr,
    committedMrr,
    itemRows: items.length,
    items: items.filter(item => item.id !== null).length,
    pricedItems: items.filter(item => item.included || item.excludedMrr !== null).length,
    excludedItems: items.filter(item => item.reason !== null).length,
  }
}

/** All segments of one account, in any order and in all their currencies. */
export function accountStates(segments: SegmentFigures[]): AccountState[] {
  return [...Map.groupBy(segments, segment => segment.currency)].flatMap(([currency, own]) =>
    statesOf(currency, own),
  )
}

/**
 * The same from `at` on: of the segments that end then or later, going on from the states that held right before. Returns
 * those too, as they are now.
 */
export function continueStates(
  segments: SegmentFigures[],
  at: Instant,
  before: AccountState[],
): AccountState[] {
  const clipped = segments
    .filter(({ to }) => to === null || to > at)
    .map(segment => (segment.from < at ? { ...segment, from: at } : segment))
  const states = Map.groupBy(accountStates(clipped), ({ currency }) => currency)
  for (const last of before) {
    const own = states.get(last.currency) ?? []
    const cut = { ...last, to: at }
    states.set(last.currency, own[0]?.from === at ? mergeEqual([cut, ...own]) : [cut, ...own])
  }
  return [...states.values()].flat()
}

function statesOf(currency: string | null, segments: SegmentFigures[]): AccountState[] {
  const changes = new Map<Instant, { segment: SegmentFigures; sign: 1 | -1 }[]>()
  const note = (at: Instant, segment: SegmentFigures, sign: 1 | -1) =>
    changes.set(at, [...(changes.get(at) ?? []), { segment, sign }])
  for (const segment of segments) {
    note(segment.from, segment, 1)
    if (segment.to !== null) note(segment.to, segment, -1)
  }
  const instants = [...changes.keys()].sort((a, b) => a - b)
  const sum: AccountState = { ...NOTHING, currency, from: 0, to: null }
  const states = instants.map((from, i): AccountState => {
    for (const { segment, sign } of changes.get(from)!) add(sum, segment, sign)
    return { ...sum, from, to: instants[i + 1] ?? null }
  })
  return mergeEqual(states).filter(state => state.subscriptions > 0)
}

const NOTHING = {
  mrr: 0,
  committedMrr: 0,
  subscriptions: 0,
  activeSubscriptions: 0,
  itemRows: 0,
  items: 0,
  pricedItems: 0,
  excludedItems: 0,
}

function add(sum: AccountState, segment: SegmentFigures, sign: 1 | -1): void {
  sum.mrr += sign * segment.mrr
  sum.committedMrr += sign * segment.committedMrr
  sum.subscriptions += sign
  sum.activeSubscriptions += segment.mrr > 0 ? sign : 0
  sum.itemRows += sign * segment.itemRows
  sum.items += sign * segment.items
  sum.pricedItems += sign * segment.pricedItems
  sum.excludedItems += sign * segment.excludedItems
}
