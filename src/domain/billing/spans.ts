/** From what was said, and when, to what held from when to when. */

import { isDeepStrictEqual } from 'node:util'
import type { Instant } from './types.ts'

/** A version with the time it holds for. `first`: it also stands for the time before its source spoke. */
export type Span<V> = { version: V; first: boolean; from: Instant; to: Instant | null }

/**
 * Without gaps or overlaps; what a later version says of an earlier time wins over what was said before. `isWhole`: the
 * first of the versions is the very first.
 */
export function spansOf<V>(
  ordered: V[],
  isWhole: boolean,
  fromOf: (version: V, first: boolean) => Instant,
): Span<V>[] {
  const spans: Span<V>[] = []
  let limit: Instant | null = null
  for (let i = ordered.length - 1; i >= 0; i--) {
    const version = ordered[i]!
    const first = isWhole && i === 0
    const from = fromOf(version, first)
    if (limit !== null && from >= limit) continue
    spans.push({ version, first, from, to: limit })
    limit = from
  }
  return spans.reverse()
}

/** Neighbours that differ in nothing become one. */
export function mergeEqual<S extends { from: Instant; to: Instant | null }>(segments: S[]): S[] {
  const result: S[] = []
  for (const segment of segments) {
    const last = result.at(-1)
    if (last && isDeepStrictEqual({ ...last, from: 0, to: 0 }, { ...segment, from: 0, to: 0 }))
      last.to = segment.to
    else result.push(segment)
  }
  return result
}
