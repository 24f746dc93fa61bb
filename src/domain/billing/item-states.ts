/** The items of a subscription, where anything about their part in MRR changed. */

import { mergeEqual } from './spans.ts'
import type { Segment } from './timeline.ts'
import type { Instant, ReasonCode } from './types.ts'

export type ItemRange = {
  place: number
  from: Instant
  to: Instant | null
  currency: string | null
  itemId: string | null
  reason: ReasonCode | null
  excludedMrr: number | null
  /** From when on it is excluded for this reason; of what counts, from when on the subscription runs. */
  since: Instant
  startedAt: Instant
}

export function itemRanges(segments: Segment[]): ItemRange[] {
  const rows = segments.flatMap(segment =>
    segment.items.map(
      (item, place): ItemRange => ({
        place,
        from: segment.from,
        to: segment.to,
        currency: segment.currency,
        itemId: item.id,
        reason: item.reason,
        excludedMrr: item.excludedMrr,
        since: item.since ?? segment.startedAt,
        startedAt: segment.startedAt,
      }),
    ),
  )
  return [...Map.groupBy(rows, row => row.place).values()].flatMap(withoutSeams)
}

/** A place may be empty for a while: only ranges that touch are one. */
function withoutSeams(rows: ItemRange[]): ItemRange[] {
  const runs: ItemRange[][] = []
  for (const row of rows) {
    const run = runs.at(-1)
    if (run && run.at(-1)!.to === row.from) run.push(row)
    else runs.push([row])
  }
  return runs.flatMap(mergeEqual)
}
