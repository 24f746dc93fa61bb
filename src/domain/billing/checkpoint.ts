/** Where the derivation of a subscription with many versions goes on from, so that one more does not cost them all. */

import { discountEnds } from './pricing.ts'
import type { Span } from './spans.ts'
import type { Standing } from './standing.ts'
import type { Instant, SubscriptionVersion } from './types.ts'

/** Taken from the nearest version that says so, for the versions that do not. */
export const FILLED_FIELDS = ['customer', 'customerName', 'customerEmail', 'acquisition'] as const

export type Checkpoint = {
  /** The time of the version with which to go on, which alone speaks of that time; none after it reaches back to it. */
  at: Instant
  firstSourceAt: Instant
  /** Right before. */
  standing: Standing
  /** Not before `at`, as versions before it foretold them. */
  discountEnds: Instant[]
}

type Derivation = {
  /** In order, as they were told; and with what was filled in. */
  told: SubscriptionVersion[]
  known: SubscriptionVersion[]
  spans: Span<SubscriptionVersion>[]
  /** Right before each span. */
  standings: Standing[]
  /** As versions before all of these foretold them. */
  earlierEnds: Instant[]
  firstSourceAt: Instant
  /** Whether the first of the versions is the very first. */
  isFirst: boolean
}

export type CheckpointSizes = {
  /** Fewer versions are derived faster than it is told where to go on. */
  least: number
  /** Versions after a checkpoint: what comes late mostly comes less late than that. */
  kept: number
}
export const CHECKPOINT_SIZES: CheckpointSizes = { least: 200, kept: 50 }

const MOST_ENDS = 100

/** The latest place that leaves some versions after it; null where there is none, or no need. */
export function checkpointOf(derivation: Derivation, { least, kept }: CheckpointSizes): Checkpoint | null {
  const { known, spans } = derivation
  if (known.length < (derivation.isFirst ? least : 2 * kept)) return null
  const places = new Map(known.map((version, place) => [version, place]))
  const firstFilled = Math.max(...FILLED_FIELDS.map(field => firstTold(derivation, field)))
  for (let s = spans.length - kept; s > 0; s--) {
    const place = places.get(spans[s]!.version)!
    if (place <= firstFilled) return null
    if (places.get(spans[s - 1]!.version) === place - 1 && standsAlone(known, place, spans[s]!))
      return checkpointAt(derivation, s)
  }
  return null
}

/** Which version first says it; -1: one before all of these, or none. */
function firstTold({ told, known, isFirst }: Derivation, field: (typeof FILLED_FIELDS)[number]): number {
  return isFirst || known[0]![field] === null ? told.findIndex(version => version[field] !== null) : -1
}

/** It holds from its own time on, and nobody else speaks of that time. */
function standsAlone(
  known: SubscriptionVersion[],
  place: number,
  { version, from }: Span<SubscriptionVersion>,
): boolean {
  const { sourceAt, change } = version
  const [last, next] = [known[place - 1]!, known[place + 1]]
  return (
    from === sourceAt &&
    change !== 'deleted' &&
    last.sourceAt < sourceAt &&
    (!next || next.sourceAt > sourceAt)
  )
}

function checkpointAt(
  { spans, standings, earlierEnds, firstSourceAt }: Derivation,
  s: number,
): Checkpoint | null {
  const at = spans[s]!.from
  const foretold = spans.slice(0, s).flatMap(({ version }) => discountEnds(version))
  const ends = new Set([...earlierEnds, ...foretold].filter(end => end >= at))
  if (ends.size > MOST_ENDS) return null
  return { at, firstSourceAt, standing: standings[s]!, discountEnds: [...ends] }
}
