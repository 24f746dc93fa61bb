/**
 * Everything known of one subscription, laid out in time. Derived from all its versions whenever one is added, so a late
 * one corrects the past it speaks of; or from those since a checkpoint, where nothing new speaks of the time before it.
 */

import { causeOf } from './causes.ts'
import {
  CHECKPOINT_SIZES,
  type Checkpoint,
  type CheckpointSizes,
  checkpointOf,
  FILLED_FIELDS,
} from './checkpoint.ts'
import { DEFAULT_POLICY, type Policy } from './policy.ts'
import { orderSubscriptions } from './precedence.ts'
import { discountEnds } from './pricing.ts'
import type { Segment, SegmentItem } from './segments.ts'
import { mergeEqual, type Span, spansOf } from './spans.ts'
import { firstStanding, type Standing } from './standing.ts'
import { endOf, holdsFrom, isPausedAfterPaying, statesOf } from './states.ts'
import { type KnownTerms, NO_TERMS, resolved } from './terms.ts'
import type { Instant, SubscriptionVersion } from './types.ts'

export type { Caution, Segment, SegmentItem } from './segments.ts'

export type DerivedSubscription = {
  id: string
  segments: Segment[]
  /** From when on the source has deleted it; nothing revives it. */
  deletedAt: Instant | null
  firstSourceAt: Instant
  lastSourceAt: Instant
  /** Where to go on from when something is added; null where it is not worth it. */
  checkpoint: Checkpoint | null
}

/** A checkpoint, and the last segment before it as it is known. */
type Continuation = { checkpoint: Checkpoint; before: Segment }

/** All versions of one subscription, at least one, in the order of their arrival and however often repeated. */
export function deriveSubscription(
  versions: SubscriptionVersion[],
  terms: KnownTerms = NO_TERMS,
  policy: Policy = DEFAULT_POLICY,
  sizes: CheckpointSizes = CHECKPOINT_SIZES,
): DerivedSubscription {
  const ordered = withStateBefore(orderSubscriptions(versions)).map(version => resolved(version, terms))
  return layOut(ordered, policy, null, sizes)
}

/**
 * The same from the versions since a checkpoint, in the order of their arrival: the segments from `before` on, as deriving
 * from all versions would give them. Null: what they say reaches further back.
 */
export function continueSubscription(
  continuation: Continuation,
  versions: SubscriptionVersion[],
  terms: KnownTerms = NO_TERMS,
  policy: Policy = DEFAULT_POLICY,
  sizes: CheckpointSizes = CHECKPOINT_SIZES,
): DerivedSubscription | null {
  const ordered = orderSubscriptions(versions).map(version => resolved(version, terms))
  return continues(ordered, continuation) ? layOut(ordered, policy, continuation, sizes) : null
}

/** Whether the checkpoint's version is where it was, and nothing else speaks of that time or before. */
function continues(ordered: SubscriptionVersion[], { checkpoint, before }: Continuation): boolean {
  const [first, ...rest] = ordered
  if (first?.sourceAt !== checkpoint.at || first.change === 'deleted') return false
  if (holdsFrom(first, false) !== checkpoint.at) return false
  if (rest.some(version => version.sourceAt <= checkpoint.at || holdsFrom(version, false) <= checkpoint.at))
    return false
  // what nobody had said before is filled in for the past too
  return FILLED_FIELDS.every(
    field => before[field] !== null || ordered.every(version => version[field] === null),
  )
}

function layOut(
  ordered: SubscriptionVersion[],
  policy: Policy,
  after: Continuation | null,
  sizes: CheckpointSizes,
): DerivedSubscription {
  const firstSourceAt = after?.checkpoint.firstSourceAt ?? ordered[0]!.sourceAt
  const deletion = ordered.findIndex(version => version.change === 'deleted')
  const told = deletion < 0 ? ordered : ordered.slice(0, deletion + 1)
  const known = completed(told, firstSourceAt, after?.before)
  const spans = spansOf(known, after === null, holdsFrom)
  const begin = after?.checkpoint.standing ?? firstStanding(isPausedAfterPaying(spans[0]!.version))
  const { states, standings } = statesOfAll(spans, begin, policy)
  const earlierEnds = after?.checkpoint.discountEnds ?? []
  const ends = new Set([...earlierEnds, ...spans.flatMap(endsForetold)])
  const merged = mergeEqual(after ? [untold(after), ...states] : states)
  const segments = withCauses(withSince(merged, after?.before), spans, ends, after?.before)
  return {
    id: ordered[0]!.id,
    segments,
    deletedAt: deletion < 0 ? null : endOf(known[deletion]!, false),
    firstSourceAt,
    lastSourceAt: ordered.at(-1)!.sourceAt,
    checkpoint: checkpointOf(
      { told, known, spans, standings, earlierEnds, firstSourceAt, isFirst: after === null },
      sizes,
    ),
  }
}

/** A discount that was over when its version began to hold took nothing off under it, and tells nothing of the time before. */
function endsForetold({ version, from }: Span<SubscriptionVersion>): Instant[] {
  return discountEnds(version).filter(end => end >= from)
}

/** With how the subscription stands right before each span. */
function statesOfAll(
  spans: Span<SubscriptionVersion>[],
  begin: Standing,
  policy: Policy,
): { states: Segment[]; standings: Standing[] } {
  const states: Segment[] = []
  const standings = [begin]
  for (const span of spans) {
    const { states: own, standing } = statesOf(span, standings.at(-1)!, policy)
    states.push(...own)
    standings.push(standing)
  }
  return { states, standings }
}

/** The segment before a checkpoint, up to there, without what neighbours say of it. */
function untold({ checkpoint, before }: Continuation): Segment {
  const { cause: _cause, eventId: _event, cautions, ...segment } = before
  // it is said of all segments at once, when all versions are known
  const own = cautions?.filter(caution => caution !== 'id_of_two_customers') ?? []
  const { cycles, ...rest } = segment
  return {
    ...rest,
    to: checkpoint.at,
    items: segment.items.map(item => ({ ...item, since: null })),
    ...(own.length > 0 && { cautions: own }),
    cycles,
  }
}

/** The first event that is known may say what its change replaced: that held until then. */
function withStateBefore(ordered: SubscriptionVersion[]): SubscriptionVersion[] {
  const { before, ...first } = ordered[0]!
  return before ? [{ ...first, ...before }, ...ordered] : ordered
}

/** Who the customer is and where they came from is taken from the nearest version that says so. */
function completed(
  versions: SubscriptionVersion[],
  firstSourceAt: Instant,
  before: Segment | undefined,
): SubscriptionVersion[] {
  const filled = versions.map(version => ({ ...version }))
  for (const field of FILLED_FIELDS) {
    const given = before?.[field] != null ? before : filled.find(version => version[field] !== null)
    let last = (given ?? filled[0]!)[field]
    for (const version of filled) {
      if (version[field] === null) Object.assign(version, { [field]: last })
      else last = version[field]
    }
  }
  for (const [i, version] of filled.entries()) {
    const last = filled[i - 1]
    if (version.itemsUntold && last) Object.assign(version, { items: last.items, discounts: last.discounts })
  }
  const end = filled.at(-1)!
  const previous = filled.at(-2)
  if (end.change === 'deleted' && end.items.length === 0 && previous) {
    // a deletion that carries only the id says that it ended, not that it never had items
    Object.assign(end, { items: previous.items, discounts: previous.discounts })
    end.currency ??= previous.currency
    end.startedAt ??= previous.startedAt
  }
  for (const version of filled) version.startedAt ??= firstSourceAt
  return filled
}

/**
 * Where MRR changed: why, and by which event. What takes effect by itself is by the event that foretold it. `before`: the
 * first segment as it is known.
 */
function withCauses(
  segments: Segment[],
  spans: Span<SubscriptionVersion>[],
  discountEnds: Set<Instant>,
  before: Segment | undefined,
): Segment[] {
  let s = 0
  for (const [i, segment] of segments.entries()) {
    if (before && i === 0) {
      if (before.cause !== undefined) segment.cause = before.cause
      if (before.eventId !== undefined) segment.eventId = before.eventId
      continue
    }
    while (spans[s + 1] && spans[s + 1]!.from <= segment.from) s++
    const last = segments[i - 1]
    if ((last?.mrr ?? 0) === segment.mrr) continue
    segment.cause = last ? causeOf(last, segment, segment.from, discountEnds) : 'other'
    const { eventId } = spans[s]!.version
    if (eventId !== undefined) segment.eventId = eventId
  }
  return segments
}

function withSince(segments: Segment[], before: Segment | undefined): Segment[] {
  let last = new Map<string | null, SegmentItem>()
  for (const [i, segment] of segments.entries()) {
    for (const [n, item] of segment.items.entries()) {
      if (item.reason === null) continue
      const same = last.get(item.id)
      if (before && i === 0) item.since = before.items[n]!.since
      else item.since = same?.reason === item.reason ? same.since : segment.from
    }
    last = new Map(segment.items.map(item => [item.id, item]))
  }
  return segments
}
